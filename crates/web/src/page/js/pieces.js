// Small parts that several views are made of.

import { attr, h, put, s, style } from "./dom.js";
import { age } from "./format.js";
import { isAtLimit, isFine, isUnread, judge, limitOf, read, roleOf, shareOf, show, showOf, stateOf } from "./figures.js";
import { change, deviceHref, route } from "./route.js";
import { get, store } from "./store.js";

/// A sign and a tone for each judgement: a colour alone says nothing to some.
export const SIGNS = { normal: ["●", "good"], warning: ["▲", "warn"], critical: ["✕", "critical"] };

/// The sign and the tone of a device's state. What cannot be read, and need not be, is neither good nor wrong.
export const signOf = (device) => (isUnread(device) ? ["◇", "plain"] : SIGNS[stateOf(device).judgement]);

/// A word with a sign, in its tone.
export const pill = ([sign, tone], word) => h(`span.pill.${tone}`, null, h("span", { "aria-hidden": true }, sign), word);

export function statePill() {
  const sign = h("span", { "aria-hidden": true });
  const name = h("span");
  const node = h("span.pill", null, sign, name);
  const update = (device) => {
    const [mark, tone] = signOf(device);
    put(sign, mark);
    put(name, device.state);
    attr(node, "title", stateOf(device).meaning);
    node.className = `pill ${tone}`;
  };
  return { node, update };
}

/// Whether the values of a device are not of now.
export const isAged = (device) => roleOf("device", "age", device) > 0 || stateOf(device).judgement === "critical";

/// What is wrong with a device, in a sentence; empty when nothing is.
export function complaint(device) {
  const seconds = roleOf("device", "age", device);
  const old = seconds > 0 ? ` Values are ${age(seconds)} old.` : "";
  return `${isFine(device) ? "" : stateOf(device).meaning}${old}`.trim();
}

/// An arc that fills up to the limit of a figure.
export function gauge(figure) {
  const ARC = "M 12 50 A 40 40 0 1 1 88 50";
  const fill = s("path.fill", { d: ARC, pathLength: 100 });
  const value = h("b");
  const below = h("small");
  const node = h("div.gauge", { role: "img", title: figure.help }, s("svg", { viewBox: "0 -8 100 66", "aria-hidden": true }, s("path.track", { d: ARC }), fill), value, h("span.name", null, figure.title), below);
  const update = (device) => {
    const share = Math.min(1, Math.max(0, shareOf(figure, device) ?? 0));
    const judgement = judge(figure, device) ?? "normal";
    put(value, showOf(figure, device, 0));
    put(below, belowLimit(figure, device, judgement));
    style(fill, "stroke-dasharray", `${share * 100} 200`);
    node.className = `gauge ${judgement === "normal" ? "" : SIGNS[judgement][1]} ${share ? "" : "none"}`;
    attr(node, "aria-label", `${figure.title}: ${value.shown}, ${below.shown}`);
  };
  return { node, update };
}

/// `of 90 °C`, `▲ warm, of 90 °C`, `at limit 150 W`.
export function belowLimit(figure, device, judgement) {
  const limit = limitOf(figure, device);
  if (!limit || read(figure, device) === null) return limit ? `limit ${show(figure, limit, 0)}` : "no limit known";
  const text = `${isAtLimit(figure, device) ? "at limit" : "of"} ${show(figure, limit, 0)}`;
  return judgement === "normal" ? text : `▲ ${figure.judge.words[judgement]}, ${text}`;
}

/// A number with a name.
export function tile(label) {
  const value = h("b");
  const note = h("small");
  return { node: h("div.tile", null, h("span.name", null, label), value, note), value, note };
}

export const deviceLink = (id, ...content) => h("a", { href: deviceHref(id) }, ...(content.length ? content : [id]));

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

/// A list of the service, a page at a time: `show(answer, offset)` draws it, and returns how many there are here and in all, and a
/// text about that.
export function pages(path, size, words, show) {
  const note = h("span.note", { role: "status" });
  const number = () => Math.max(1, Number.parseInt(route.words.get("page") ?? "1", 10) || 1);
  const [before, after] = words.map((word, n) => h("button", { onclick: () => change({ page: String(Math.max(1, number() + 2 * n - 1)) }) }, word));
  let asked = "";
  /// Asks every five seconds, and at once when `news` are others.
  const load = async (wanted, news) => {
    const offset = (number() - 1) * size;
    const key = JSON.stringify([wanted, offset, news, Math.floor(Date.now() / 5000)]);
    if (key === asked || store.link.state !== "live") return;
    asked = key;
    try {
      const answer = await get(path, { ...wanted, limit: size, offset });
      if (key !== asked) return;
      const { shown, total, text } = show(answer, offset);
      before.disabled = offset === 0;
      after.disabled = offset + shown >= total;
      put(note, text);
    } catch (error) {
      put(note, error.message);
    }
  };
  return { nodes: [before, after, note], load };
}
