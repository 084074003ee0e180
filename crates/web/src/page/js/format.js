// Numbers as people read them, the same as on the command line. What was not measured is `–`, never 0.

export const MISSING = "–";
const PREFIXES = ["", "Ki", "Mi", "Gi", "Ti"];

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
const or = (show) => (value) => (known(value) ? show(value) : MISSING);

/// In the unit with a prefix: one decimal below 100, none from 100 on, and none of bytes themselves. `units.rs` has the same rule.
function rounded(value, step) {
  value /= 1024 ** step;
  const tenths = Math.round(value * 10);
  return step > 0 && tenths < 1000 ? (tenths / 10).toFixed(1) : String(Math.round(value));
}

/// The prefix of an amount: what would be 1000 of a unit is one of the next.
function stepOf(value) {
  let step = 0;
  while (Number(rounded(value, step)) >= 1000 && step + 1 < PREFIXES.length) step += 1;
  return step;
}

/// With a binary prefix: `2.4 GiB`, `1.0 MiB/s`.
export function binary(number, unit) {
  const [value, step] = [Math.abs(number), stepOf(Math.abs(number))];
  return `${number < 0 ? "-" : ""}${rounded(value, step)} ${PREFIXES[step]}${unit}`;
}

export const bytes = or((n) => binary(n, "B"));
export const percent = or((n) => `${n.toFixed(1)} %`);
export const count = or((n) => n.toLocaleString("en"));
export const word = or(String);

/// Used and total: `20.3 / 32.0 GiB`, `512 MiB / 32.0 GiB`. In the unit of the total, unless it is less than one of it.
export function ofBytes(used, total, mark = "") {
  if (!known(total)) return mark + bytes(used);
  if (!known(used)) return `${MISSING} / ${bytes(total)}`;
  const number = rounded(used, stepOf(total));
  return `${mark}${used > 0 && Number(number) < 1 ? bytes(used) : number} / ${bytes(total)}`;
}

/// A length of time with about three digits: `520.0 µs`, `2.1 ms`, `18.8 s`.
export const seconds = or((n) => (n > 0 && n < 1e-3 ? `${(n * 1e6).toFixed(1)} µs` : n > 0 && n < 1 ? `${(n * 1e3).toFixed(1)} ms` : `${n.toFixed(1)} s`));

/// A time that has passed, in seconds.
export const age = or((seconds) => {
  const n = Math.max(0, Math.round(seconds));
  if (n < 60) return `${n} s`;
  if (n < 3600) return `${Math.floor(n / 60)} m ${n % 60} s`;
  if (n < 86400) return `${Math.floor(n / 3600)} h ${Math.floor((n % 3600) / 60)} m`;
  return `${Math.floor(n / 86400)} d ${Math.floor((n % 86400) / 3600)} h`;
});

/// The same in one unit, where there is little room.
export const shortAge = or((seconds) => {
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]].find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
});

const two = (n) => String(n).padStart(2, "0");

/// The time of day here; with the date when that is another day.
export const clock = or((time) => {
  const at = new Date(time);
  const day = at.toDateString() === new Date().toDateString() ? "" : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `;
  return `${day}${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
});

export const minutes = (time) => `${two(new Date(time).getHours())}:${two(new Date(time).getMinutes())}`;

export const days = (time) => `${two(new Date(time).getMonth() + 1)}-${two(new Date(time).getDate())}`;

/// The sum of what is known, and whether something is missing in it. Nothing known is nothing, not 0.
export function sum(values) {
  const all = values.filter(known);
  return { value: all.length ? all.reduce((a, b) => a + b, 0) : null, mark: all.length && all.length < values.length ? "≥ " : "" };
}

/// Names of devices in short: `0-3,5`. Remote chips (`2R`) are never part of a run.
export function ids(held) {
  const parts = [];
  for (let n = 0; n < held.length; ) {
    let run = 1;
    while (known(held[n].index) && held[n + run]?.index === held[n].index + run) run += 1;
    if (run < 3) run = 1;
    parts.push(run > 1 ? `${held[n].id}-${held[n + run - 1].id}` : held[n].id);
    n += run;
  }
  return parts.join(",") || MISSING;
}

/// What a process is called: the script, where its name is only that of an interpreter.
export function nameOf({ name, command }) {
  if (!/^(python|node|bash|sh|perl|ruby|java)[\d.]*$/.test(name ?? "")) return word(name);
  const words = (command ?? "").split(" ").slice(1);
  const at = words.findIndex((one) => !one.startsWith("-"));
  const isModule = words[at - 1] === "-m";
  const script = words[at]?.split("/").at(-1);
  return script && (isModule || script.includes(".")) ? script : word(name);
}
