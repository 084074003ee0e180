// The machine in a few numbers. Overview, wall, title and screen readers all take them from here.

import { figureOf, flows, gauges, isFine, isUnread, judge, limitOf, read, roleOf, shareOf, shortTitle, show, showOf, stateOf, tables, valueAt, worse } from "./figures.js";
import * as f from "./format.js";
import { SIGNS, isAged } from "./pieces.js";
import { href } from "./route.js";

/// What the values of now are taken from: a chip that is lost or hung has old ones.
const current = (devices) => devices.filter((device) => !isUnread(device) && !isAged(device));
const sums = (figure, devices) => f.sum(devices.map((device) => read(figure, device)));
const least = (isBound, value) => (isBound && value !== null ? "≥ " : "");

/// The states that are not fine, the worst first: `[{ state, devices }]`.
function wrongStates(devices) {
  const states = new Map();
  for (const device of devices.filter((device) => !isFine(device))) states.set(device.state, [...(states.get(device.state) ?? []), device]);
  const all = [...states].map(([state, devices]) => ({ state, devices }));
  const isCritical = ({ devices: [first] }) => stateOf(first).judgement === "critical";
  return all.sort((a, b) => isCritical(b) - isCritical(a));
}

/// The tiles: `{ name, title, value, note, share, tone, address }`; `share` of 1 is drawn as a bar.
export function summaryOf({ snapshot, alerts }) {
  const { devices, processes } = snapshot;
  return [
    chips(devices), utilization(devices), ...gauges().filter((figure) => figure.judge.by === "load").slice(0, 1).map((figure) => ofLimit(figure, devices)),
    ...gauges().filter((figure) => figure.judge.by === "heat").slice(0, 1).map((figure) => hottest(figure, devices)),
    ...tables.memory.map((area) => used(area, devices)),
    ...traffic(devices), held(processes), firing(alerts),
  ];
}

function chips(devices) {
  const wrong = wrongStates(devices);
  const ok = devices.length - wrong.reduce((sum, { devices }) => sum + devices.length, 0);
  const named = wrong.map(({ state, devices }) => `${f.ids(devices)} ${state}`).join(", ");
  const judgement = wrong.reduce((worst, { devices }) => worse(worst, stateOf(devices[0]).judgement), "normal");
  return {
    name: "chips", title: "Chips", value: wrong.length ? `${ok} of ${devices.length} ok` : devices.length ? `${ok} ok` : "none",
    note: wrong.length ? `${SIGNS[judgement][0]} ${named}` : devices.length ? "no problems" : "no device found",
    tone: judgement === "normal" ? "" : SIGNS[judgement][1],
  };
}

function utilization(devices) {
  const figure = figureOf("device", "utilization");
  const known = current(devices).filter((device) => read(figure, device) !== null);
  const mean = known.length ? sums(figure, known).value / known.length : null;
  const busiest = known.reduce((a, b) => (a && read(figure, a) >= read(figure, b) ? a : b), null);
  const isBound = known.some((device) => figure.lower_bound && valueAt(device, figure.lower_bound));
  const reasons = new Set(devices.map((device) => figure.reason && valueAt(device, figure.reason)).filter(Boolean));
  const part = known.length < devices.length ? `mean of ${known.length}, ` : known.length > 1 ? "mean, " : "";
  return {
    name: "utilization", title: figure.title, value: least(isBound, mean) + show(figure, mean, 0), share: mean === null ? null : mean / 100,
    note: busiest ? (devices.length > 1 ? `${part}busiest ${busiest.id}: ${show(figure, read(figure, busiest), 0)}` : "") : reasons.size === 1 ? [...reasons][0] : "not measured",
  };
}

/// Watts, and kilowatts where there are many.
export const watts = (figure, value) => (value >= 1000 && figure.unit.symbol === "W" ? `${(value / 1000).toFixed(2)} kW` : show(figure, value, 0));

function ofLimit(figure, devices) {
  const here = devices.filter((device) => !isUnread(device));
  const all = sums(figure, current(devices));
  const isPart = all.value !== null && current(devices).length < here.length;
  const most = f.sum(current(devices).map((device) => limitOf(figure, device))).value;
  const share = all.value !== null && most > 0 ? all.value / most : null;
  return {
    name: figure.name, title: figure.title, value: (all.mark || least(isPart, all.value)) + watts(figure, all.value), share,
    note: most ? `of ${watts(figure, most)}, ${show({ unit: { symbol: "%" } }, share * 100, 0)}` : "",
  };
}

/// The chip that is nearest to its limit.
function hottest(figure, devices) {
  const near = (device) => shareOf(figure, device) ?? read(figure, device) / 100;
  const known = current(devices).filter((device) => read(figure, device) !== null);
  const device = known.reduce((a, b) => (a && near(a) >= near(b) ? a : b), null);
  if (!device) return { name: "hottest", title: "Hottest", value: f.MISSING, note: "", share: null };
  const [judgement, limit] = [judge(figure, device) ?? "normal", limitOf(figure, device)];
  return {
    name: "hottest", title: "Hottest", value: showOf(figure, device, 0), share: shareOf(figure, device), tone: judgement === "normal" ? "" : SIGNS[judgement][1],
    note: `${judgement === "normal" ? "" : `▲ ${figure.judge.words[judgement]}, `}device ${device.id}${limit ? `, of ${show(figure, limit, 0)}` : ""}`,
  };
}

function used(area, devices) {
  const [amount, total] = [area.used, area.total].map((path) => f.sum(devices.map((device) => valueAt(device, path))));
  const isPart = devices.some((device) => roleOf("device", "untracked", device));
  const share = amount.value !== null && total.value ? amount.value / total.value : null;
  return {
    name: area.used, title: `${area.title} used`, value: (amount.mark || least(isPart, amount.value)) + f.bytes(amount.value), share,
    note: `of ${f.bytes(total.value)}${share === null ? "" : `, ${(share * 100).toFixed(0)} %`}`,
  };
}

function traffic(devices) {
  const [first, ...others] = flows();
  if (!first) return [];
  const sumOf = (figure) => show(figure, sums(figure, current(devices)).value);
  return [{ name: "traffic", title: first.title, value: sumOf(first), note: others.map((figure) => `${shortTitle(figure)} ${sumOf(figure)}`).join(", ") }];
}

function held(processes) {
  const idle = processes.filter((process) => roleOf("process", "idle", process) >= tables.idle_after && process.devices.some((one) => tables.memory.some(({ process_used }) => valueAt(one, process_used)))).length;
  const cpu = f.sum(processes.map((process) => roleOf("process", "cpu", process))).value;
  return { name: "processes", title: "Processes", value: String(processes.length), note: idle ? `${idle} hold memory and are idle` : cpu === null ? "" : `${f.percent(cpu)} CPU`, address: href("processes") };
}

function firing(alerts) {
  const all = alerts.filter(({ state }) => state === "firing");
  const isCritical = all.some(({ severity }) => severity === "critical");
  const isWarning = all.some(({ severity }) => severity === "warning");
  const pending = alerts.length - all.length;
  const names = [...new Set(all.map(({ name }) => name))];
  return {
    name: "alerts", title: "Alerts", value: all.length ? `${all.length} firing` : "none", address: href("events"),
    note: names.length ? names.join(", ") : pending ? `${pending} pending` : "none firing", tone: isCritical ? "critical" : isWarning ? "warn" : "",
  };
}
