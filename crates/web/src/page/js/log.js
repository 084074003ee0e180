// Events, and the alerts that are active now.

import { attr, h, keyed, put } from "./dom.js";
import * as f from "./format.js";
import { deviceLink, panel, pill } from "./pieces.js";
import { change, href, route } from "./route.js";
import { now } from "./store.js";

const WEIGHTS = { note: ["·", "plain"], good: ["✓", "good"], warning: ["▲", "warn"], bad: ["✕", "critical"] };
const SEVERITIES = { info: ["i", "plain"], warning: ["▲", "warn"], critical: ["✕", "critical"] };
/// The word for a weight, where it is not the weight itself.
const WORDS = { bad: "critical" };

/// One line about an event. They never change.
export function eventRow(event) {
  const sign = pill(WEIGHTS[event.weight] ?? WEIGHTS.note, WORDS[event.weight] ?? event.weight);
  return { node: h("li", null, h("time", { datetime: event.time }, f.clock(Date.parse(event.time))), sign, h("span", null, event.text), event.kernel?.text ? h("code.dim", { title: "the kernel's own words" }, event.kernel.text) : null, event.device !== null && deviceLink(event.device, `device ${event.device}`)) };
}

/// One line about an alert.
export function alertRow(first) {
  const state = h("span.dim");
  const text = h("span");
  const node = h("li", null, pill(SEVERITIES[first.severity] ?? SEVERITIES.warning, first.severity), h("b", null, first.name), text, state,
    first.device !== null && deviceLink(first.device, `device ${first.device}`), first.process !== null && h("a", { href: href(`process/${first.process}`) }, `process ${first.process}`));
  const update = (alert) => {
    put(text, alert.text ?? "");
    put(state, `${alert.state} for ${f.age((now() - Date.parse(alert.since)) / 1000)}`);
  };
  return { node, update };
}

export const alertKey = (alert) => `${alert.name} ${alert.severity} ${alert.device} ${alert.process} ${alert.state}`;

export function make() {
  const choices = ["", "warning", "bad"].map((weight) => h("button", { onclick: () => change({ weight }), "data-weight": weight }, { "": "all", warning: "warnings and worse", bad: "critical only" }[weight]));
  const alerts = h("ol.log");
  const noAlerts = h("p.empty");
  const events = h("ol.log", { "aria-label": "Events" });
  const nothing = h("p.empty");
  const node = h("div.view", null, h("h1.unseen", null, "Events"),
    panel("Alerts", alerts, noAlerts),
    h("section.panel", null, h("div.bar-row", null, h("h2", null, "Events"), h("div.segments", { role: "group", "aria-label": "Weight" }, choices)), events, nothing));
  const update = (store) => {
    const weight = route.words.get("weight") ?? "";
    for (const choice of choices) attr(choice, "aria-pressed", String(choice.dataset.weight === weight));
    keyed(alerts, store.alerts, alertKey, alertRow);
    put(noAlerts, store.alerts.length ? "" : "No alert is firing or pending.");
    const order = Object.keys(WEIGHTS);
    const shown = store.events.filter((event) => order.indexOf(event.weight) >= order.indexOf(weight)).reverse();
    keyed(events, shown, (event) => event.seq, eventRow);
    put(nothing, shown.length ? "" : "No such events.");
  };
  return { node, update };
}
