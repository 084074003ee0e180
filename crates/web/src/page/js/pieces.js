// Small parts that several views are made of.

import { attr, h, put, s, style } from "./dom.js";
import { MISSING, age } from "./format.js";
import { href } from "./route.js";

/// How a device is: a sign and a word, since a colour alone says nothing to some, and what the word means.
const STATES = {
  ok: ["●", "good", "It answers."],
  resetting: ["↻", "warn", "A reset is under way."],
  hung: ["✕", "bad", "It answers all-ones, or its heartbeat stands still."],
  silent: ["…", "warn", "It does not answer in time. These are its last values."],
  lost: ["○", "bad", "It was there and is gone."],
  "no driver": ["–", "warn", "No driver is bound to it."],
  remote: ["◇", "plain", "Reached through its neighbour. Its telemetry cannot be read without disturbing it."],
};

export const stateOf = (device) => STATES[device.state] ?? ["?", "warn", ""];
export const isFine = (device) => device.state === "ok" || device.state === "remote";

export function statePill() {
  const sign = h("span", { "aria-hidden": true });
  const name = h("span");
  const node = h("span.pill", null, sign, name);
  const update = (device) => {
    const [mark, tone, meaning] = stateOf(device);
    put(sign, mark);
    put(name, device.state);
    attr(node, "title", meaning);
    node.className = `pill ${tone}`;
  };
  return { node, update };
}

/// What is wrong with a device, in a sentence; empty when nothing is.
export function complaint(device) {
  const old = device.sample_age_seconds > 0 ? ` Values are ${age(device.sample_age_seconds)} old.` : "";
  return isFine(device) && !old ? "" : `${isFine(device) ? "" : stateOf(device)[2]}${old}`.trim();
}

/// An arc that fills up to a limit.
export function gauge(label) {
  const ARC = "M 12 50 A 40 40 0 1 1 88 50";
  const fill = s("path.fill", { d: ARC, pathLength: 100 });
  const value = h("b");
  const below = h("small");
  const node = h("div.gauge", { role: "img" }, s("svg", { viewBox: "0 -8 100 66", "aria-hidden": true }, s("path.track", { d: ARC }), fill), value, h("span.name", null, label), below);
  const update = (number, limit, unit) => {
    const isKnown = number !== null && number !== undefined;
    const share = isKnown && limit > 0 ? Math.min(1, Math.max(0, number / limit)) : 0;
    const isAt = isKnown && limit > 0 && number >= limit;
    put(value, isKnown ? `${number.toFixed(0)} ${unit}` : MISSING);
    put(below, limit ? `${isAt ? "▲ at limit" : "of"} ${limit.toFixed(0)} ${unit}` : "no limit known");
    style(fill, "stroke-dasharray", `${share * 100} 200`);
    node.className = `gauge ${isAt ? "bad" : share > 0.9 ? "warn" : ""} ${share ? "" : "none"}`;
    attr(node, "aria-label", `${label}: ${value.shown}, ${below.shown}`);
  };
  return { node, update };
}

/// A figure with a name.
export function tile(label) {
  const value = h("b");
  const note = h("small");
  return { node: h("div.tile", null, h("span.name", null, label), value, note), value, note };
}

export const deviceLink = (id, ...content) => h("a", { href: href(`device/${encodeURIComponent(id)}`) }, ...(content.length ? content : [id]));

/// A panel with a heading.
export const panel = (title, ...content) => h("section.panel", null, h("h2", null, ...[title].flat()), ...content);

/// A table: `columns` are `[word, class, title]`.
export function table(columns, label) {
  const body = h("tbody");
  const head = h("tr", null, columns.map(([name, kind, title]) => h(`th${kind ? `.${kind}` : ""}`, { scope: "col", title }, name)));
  return { node: h("div.scroll", { tabindex: 0, role: "region", "aria-label": label }, h("table", null, h("thead", null, head), body)), head, body };
}

/// A row of cells of which only the text changes.
export function row(columns, first = null) {
  const cells = columns.map(([, kind], n) => h(`td${kind ? `.${kind}` : ""}`, null, n === 0 && first));
  return { node: h("tr", null, cells), cells };
}

/// What the words in the column SOURCE mean.
export const SOURCES = {
  exact: "what the allocator has reserved, to the byte: the process keeps a book",
  kernel: "what the driver accounts to the process",
  reported: "what the process has told the service",
  shm: "tt-metal's shared memory: logical bytes of the thread that it tracks",
};

export const KINDS = [
  ["dram", "DRAM", "Buffers in DRAM"],
  ["trace", "TRACE", "Recorded command traces, in DRAM"],
  ["l1", "L1", "Buffers in L1"],
  ["l1_small", "L1_SMALL", "Buffers in the small L1 region"],
  ["cb", "CB", "Circular buffers, in L1"],
];
