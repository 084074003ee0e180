// Events, and the alerts that are active now.

import { attr, h, keyed, put } from "./dom.js";
import * as f from "./format.js";
import { deviceLink, panel, pill, row, table } from "./pieces.js";
import { change, href, route } from "./route.js";
import { shownNow, store } from "./store.js";

const WEIGHTS = { note: ["·", "plain"], good: ["✓", "good"], warning: ["▲", "warn"], bad: ["✕", "critical"] };
const ORDER = Object.keys(WEIGHTS);
const SEVERITIES = { info: ["i", "plain"], warning: ["▲", "warn"], critical: ["✕", "critical"] };
/// The word for a weight, where it is not the weight itself.
const WORDS = { bad: "critical" };
export const toneOf = (weight) => (WEIGHTS[weight] ?? WEIGHTS.note)[1];
const isProblem = ({ weight }) => ORDER.indexOf(weight) >= ORDER.indexOf("warning");

/// Events of one device this close to each other are one fault, in milliseconds.
const ONE_FAULT = 5000;
/// The device that an event is about. A failed read names it in its path.
const deviceOf = ({ device, text }) => device ?? text.match(/\/tenstorrent[!/](\d+)\b/)?.[1] ?? null;
let memo = { of: null, rows: [] };

/// One row for each fault: what is said of a device at the same time is one, by its change of state where there is one.
export function merged(events) {
  if (memo.of === events) return memo.rows;
  const rows = [];
  for (const event of events) {
    const [time, device] = [Date.parse(event.time), deviceOf(event)];
    const same = isProblem(event) && device !== null ? rows.findLast((row) => row.device === device && isProblem(row) && Math.abs(time - row.time) <= ONE_FAULT) : null;
    if (same) {
      same.texts.push(event.text);
      same.seq = event.seq;
      if (ORDER.indexOf(event.weight) > ORDER.indexOf(same.weight)) same.weight = event.weight;
    } else rows.push({ key: event.seq, seq: event.seq, time, device, weight: event.weight, texts: [event.text] });
  }
  for (const one of rows) {
    // A chip that is lost may be silent before: what it is last comes first.
    one.texts.reverse().sort((a, b) => b.includes(" → ") - a.includes(" → "));
    one.text = one.texts[0];
    // The rest may come later.
    one.key = `${one.key} ${one.texts.length}`;
  }
  memo = { of: events, rows };
  return rows;
}

/// The events of a device as marks of a chart.
export const marksOf = (events, device) => merged(events).filter((row) => row.device === device).map(({ key, time, weight, text }) => ({ key, time, tone: toneOf(weight), text }));

const timeOf = (time) => h("time", { datetime: new Date(time).toISOString() }, f.clock(time));
/// The rest of what was said of a fault.
const restOf = ({ texts }) => texts.length > 1 && h("details.rest", null, h("summary", null, `${texts.length - 1} more`), texts.slice(1).map((text) => h("p", null, text)));

/// One line about an event. They never change.
export function eventRow(event) {
  const sign = pill(WEIGHTS[event.weight] ?? WEIGHTS.note, WORDS[event.weight] ?? event.weight);
  return { node: h("li", null, timeOf(event.time), sign, h("span", null, event.text), event.kernel?.text ? h("code.dim", { title: "the kernel's own words" }, event.kernel.text) : null, event.device !== null && deviceLink(event.device, `device ${event.device}`)) };
}

/// One line about an alert.
function alertRow(first) {
  const state = h("span.dim");
  const text = h("span");
  const node = h("li", null, pill(SEVERITIES[first.severity] ?? SEVERITIES.warning, first.severity), h("b", null, first.name), text, state,
    first.device !== null && deviceLink(first.device, `device ${first.device}`), first.process !== null && h("a", { href: href(`process/${first.process}`) }, `process ${first.process}`));
  const update = (alert) => {
    put(text, alert.text ?? "");
    put(state, `${alert.state} for ${f.age((shownNow() - Date.parse(alert.since)) / 1000)}`);
  };
  return { node, update };
}

const alertKey = (alert) => `${alert.name} ${alert.severity} ${alert.device} ${alert.process} ${alert.state}`;

/// The last event that was looked at.
let seen = 0;
/// How many problems have happened since the events were looked at.
export const unseen = () => merged(store.events).filter((row) => row.seq > seen && isProblem(row)).length;

const COLUMNS = [["Time"], ["Severity"], ["Device"], ["Event", "words"]];

export function make() {
  const choices = ["", "warning", "bad"].map((weight) => h("button", { onclick: () => change({ weight }), "data-weight": weight }, { "": "all", warning: "warnings and worse", bad: "critical only" }[weight]));
  const only = h("select", { "aria-label": "Device", onchange: () => change({ device: only.value }) });
  const search = h("input", { type: "search", id: "find", placeholder: "text", "aria-label": "Find in events", autocomplete: "off" });
  search.addEventListener("input", () => change({ find: search.value }, true));
  const alerts = h("ol.log");
  const noAlerts = h("p.empty");
  const list = table(COLUMNS, "Events");
  const nothing = h("p.empty");
  const count = h("span.note", { role: "status" });
  const node = h("div.view", null, h("h1.unseen", null, "Events"),
    panel("Alerts", alerts, noAlerts),
    h("section.panel", null, h("div.bar-row", null, h("h2", null, "Events"), h("div.segments", { role: "group", "aria-label": "Severity" }, choices), only, search, count), list.node, nothing));
  const update = (store) => {
    seen = Math.max(seen, store.newest);
    const words = (name) => route.words.get(name) ?? "";
    const [weight, device, find] = [words("weight"), words("device"), words("find")];
    for (const choice of choices) attr(choice, "aria-pressed", String(choice.dataset.weight === weight));
    keyed(only, [{ id: "", text: "all devices" }, ...store.snapshot.devices.map(({ id }) => ({ id, text: `device ${id}` }))], ({ id }) => id, ({ id, text }) => ({ node: h("option", { value: id }, text) }));
    only.value = device;
    if (search.value !== find) search.value = find;
    keyed(alerts, store.alerts, alertKey, alertRow);
    put(noAlerts, store.alerts.length ? "" : "No alert is firing or pending.");
    const all = merged(store.events);
    const isFound = (one) => ORDER.indexOf(one.weight) >= ORDER.indexOf(weight) && (!device || one.device === device) && (!find || one.texts.some((text) => text.toLowerCase().includes(find.toLowerCase())));
    const shown = all.filter(isFound).reverse();
    keyed(list.body, shown, ({ key }) => key, eventCells);
    list.node.hidden = !shown.length;
    put(count, `${shown.length} of ${all.length}`);
    put(nothing, shown.length ? "" : "No such events.");
  };
  return { node, update, focus: () => search.select() };
}

function eventCells(event) {
  const { node, cells } = row(COLUMNS, timeOf(event.time));
  cells[1].append(pill(WEIGHTS[event.weight] ?? WEIGHTS.note, WORDS[event.weight] ?? event.weight));
  cells[2].append(event.device === null ? f.MISSING : deviceLink(event.device));
  const then = store.status?.black_box && h("a.then", { href: href("overview", { at: event.time }), title: "Show the machine at this moment" }, "show this moment");
  cells[3].append(...[h("span", null, event.text), restOf(event), then].filter(Boolean));
  return { node };
}
