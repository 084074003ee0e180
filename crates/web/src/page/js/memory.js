// Where the memory went: on each device by kind or by process, with the numbers, and where they come from.

import { attr, bar, h, keyed, put } from "./dom.js";
import * as f from "./format.js";
import { kindOf, otherKinds, roleOf, sourceMeaning, tables, valueAt } from "./figures.js";
import { deviceLink, isAged, panel, row, statePill, table } from "./pieces.js";
import { change, href, route } from "./route.js";

const columns = () => [["Device", "n"], ["PID", "n"], ["Name"], ["User"], ...tables.memory.map(({ title }) => [`${title} used`, "n"]), ...otherKinds().map(({ title, help }) => [title, "n", help]), ["Source"]];
/// So many processes have a colour of their own.
const COLOURS = 6;

export function make() {
  const choices = ["kind", "process"].map((by) => h("button", { onclick: () => change({ by }), "data-by": by }, `by ${by}`));
  const key = h("span.key", null, tables.memory_kinds.map(({ name, title, help }) => h("span", { title: help }, h(`i.${name}`), partTitle(name, title))));
  const list = h("div.memory");
  const holders = table(columns(), "Memory by process");
  const none = h("p.empty", null, "No process holds memory.");
  const node = h("div.view", null,
    h("div.bar-row", null, h("h1", null, "Memory"), h("div.segments", { role: "group", "aria-label": "Bars show" }, choices), key),
    list, panel("Memory by process", holders.node, none),
    h("dl.facts.legend", null, tables.sources.map(({ name, meaning }) => [h("dt", null, name), h("dd", null, meaning)]), h("dt", null, "stale"), h("dd", null, tables.device.find(({ path }) => path === tables.roles.device.stale).help)));

  const update = ({ snapshot }) => {
    const by = route.words.get("by") === "process" ? "process" : "kind";
    for (const choice of choices) attr(choice, "aria-pressed", String(choice.dataset.by === by));
    key.hidden = by === "process";
    const held = snapshot.processes.flatMap((process, n) => process.devices.map((one) => ({ process, one, colour: `p${n % COLOURS}` })));
    keyed(list, snapshot.devices.map((device) => ({ device, by, held: held.filter(({ one }) => one.id === device.id) })), ({ device }) => device.id, ({ device }) => deviceBars(device));
    const rows = held.filter(({ one }) => one.source);
    keyed(holders.body, rows, ({ process, one }) => `${process.pid} ${one.id}`, holding);
    holders.node.hidden = !rows.length;
    none.hidden = rows.length > 0;
  };
  return { node, update };
}

/// `DRAM buffers` for the part that is called as its capacity.
const partTitle = (name, title) => (tables.memory.some((area) => area.name === name) ? `${title} buffers` : title);

/// The parts of one capacity of a device, as shares of it. What no part accounts for is drawn as the first.
export function partsOf(area, device) {
  const total = valueAt(device, area.total);
  const used = valueAt(device, area.used) ?? 0;
  const parts = area.kinds.map((name) => [name, valueAt(device, kindOf(name).path) ?? 0]);
  const rest = used - parts.reduce((sum, [, bytes]) => sum + bytes, 0);
  if (rest > 0) parts[0][1] += rest;
  return parts.map(([name, bytes]) => [name, total ? bytes / total : 0]);
}

/// What is used of a capacity: `20.3 / 32.0 GiB`, a lower bound where a process does not report.
export const usedText = (area, device) => f.ofBytes(valueAt(device, area.used), valueAt(device, area.total), roleOf("device", "untracked", device) ? "≥ " : "");

/// What else is to be said about the memory of a device.
export function remarkOf(device) {
  const [stale, untracked] = [roleOf("device", "stale", device), roleOf("device", "untracked", device)];
  const beside = tables.memory_kinds.filter(({ part_of, path }) => part_of === null && valueAt(device, path));
  return [
    ...beside.map(({ title, path }) => `${title} ${f.bytes(valueAt(device, path))}, not part of used`),
    stale && `${f.bytes(stale)} stale: still attributed to exited processes`,
    untracked && `${untracked} process${untracked > 1 ? "es" : ""} not reporting`,
  ].filter(Boolean).join(" · ");
}

function deviceBars(first) {
  const state = statePill();
  const areas = tables.memory.map((area) => ({ area, bar: bar(`${area.title} of device ${first.id}`), amount: h("span.n"), note: h("small") }));
  const remark = h("small.remark");
  const node = h("section.panel", { "aria-label": `Memory of device ${first.id}` }, h("header", null, deviceLink(first.id, h("b.id", null, first.id), h("span", null, f.word(first.board))), state.node),
    areas.map(({ area, bar, amount, note }) => [h("div.line", null, h("span.name", null, `${area.title} used`), amount), bar.node, note]), remark);
  const update = ({ device, by, held }) => {
    state.update(device);
    node.classList.toggle("aged", isAged(device));
    for (const { area, bar, amount, note } of areas) {
      put(amount, usedText(area, device));
      const total = valueAt(device, area.total);
      if (by === "process") {
        const shares = held.map(({ process, one, colour }) => ({ value: valueAt(one, area.process_used), process, colour })).filter(({ value }) => value);
        const text = ({ process, value }) => `${process.pid} ${f.nameOf(process)} ${f.bytes(value)}`;
        put(note, shares.map(text).join(" · ") || "no process");
        bar.show(shares.map((share) => [`${share.colour} ${share.process.pid}`, total ? share.value / total : 0, text(share)]), note.shown);
      } else {
        put(note, area.kinds.map((name) => `${partTitle(name, kindOf(name).title)} ${f.bytes(valueAt(device, kindOf(name).path))}`).join(" · "));
        bar.show(partsOf(area, device), note.shown);
      }
    }
    put(remark, remarkOf(device));
  };
  return { node, update };
}

function holding({ process, one }) {
  const { node, cells } = row(columns(), deviceLink(one.id));
  cells[1].append(h("a", { href: href(`process/${process.pid}`), "data-item": true }, String(process.pid)));
  const update = ({ process, one }) => {
    const used = tables.memory.map(({ process_used }) => f.bytes(valueAt(one, process_used)));
    const parts = otherKinds().map(({ process_path }) => f.bytes(valueAt(one, process_path)));
    [f.nameOf(process), f.word(process.user), ...used, ...parts, f.word(one.source)].forEach((text, n) => put(cells[n + 2], text));
    cells.at(-1).title = sourceMeaning(one.source);
  };
  return { node, update };
}
