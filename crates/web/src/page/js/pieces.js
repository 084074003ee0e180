// Small parts that several views are made of.

import { attr, h, put, style } from "./dom.js";
import { age, clock, shortAge } from "./format.js";
import { isAtLimit, isFine, isUnread, limitOf, read, roleOf, show, stateOf } from "./figures.js";
import { RANGES } from "./history.js";
import { change, currentRange, currentZoom, deviceHref, route, zoomTo } from "./route.js";
import { get, isOld, now, store } from "./store.js";

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

/// `of 90 °C`, `▲ warm, of 90 °C`, `at limit 150 W`.
export function belowLimit(figure, device, judgement) {
  const limit = limitOf(figure, device);
  if (!limit || read(figure, device) === null) return limit ? `${figure.judge?.by === "capacity" ? "capacity" : "limit"} ${show(figure, limit, 0)}` : "no limit known";
  const text = `${isAtLimit(figure, device) ? "at limit" : "of"} ${show(figure, limit, 0)}`;
  return judgement === "normal" ? text : `▲ ${figure.judge.words[judgement]}, ${text}`;
}

/// A number with a name, as `summaryOf` gives it: `{ title, value, note, share, tone, address }`.
export function tile({ title, address }) {
  const [value, note, fill] = [h("b"), h("small"), h("i")];
  const meter = h("span.meter", { "aria-hidden": true }, fill);
  const node = h(address ? "a.tile" : "div.tile", null, h("span.name", null, title), value, note, meter);
  const update = (one) => {
    put(value, one.value);
    put(note, one.note);
    attr(note, "title", one.note);
    if (address) attr(node, "href", one.address);
    node.className = `tile ${one.tone ?? ""}`;
    meter.hidden = one.share === null || one.share === undefined;
    if (!meter.hidden) style(fill, "transform", `scaleX(${Math.min(1, one.share).toFixed(3)})`);
  };
  return { node, update };
}

/// The time that a view ends at. Without new samples time stops: an old picture is not pushed out of sight.
export const shownTo = () => (isOld() ? Date.parse(store.snapshot.taken_at) : now());

/// Which time is shown: `{ to, range, zoom }`.
export function shownSpan() {
  const zoom = currentZoom();
  return zoom ? { to: zoom[1], range: zoom[1] - zoom[0], zoom } : { to: shownTo(), range: RANGES[currentRange()][0], zoom: null };
}

/// Says that only a stretch of time is shown, and ends that.
export function zoomNote() {
  const text = h("span");
  const node = h("p.zoomed", null, text, h("button", { onclick: () => zoomTo() }, "Show all"));
  const update = () => {
    const zoom = currentZoom();
    node.hidden = !zoom || !route.words.get("zoom");
    if (zoom) put(text, `${clock(zoom[0])} to ${clock(zoom[1])}`);
  };
  return { node, update };
}

/// What the full height of a small line is. A device that does not answer does not say its limit: then it is that of its kind, so
/// that its line is not drawn higher than those of the others.
export function scaleOf(figure, device) {
  const limits = (devices) => devices.map((one) => limitOf(figure, one) ?? 0);
  const own = Math.max(figure.full ?? 0, ...limits([device]));
  const { devices } = store.snapshot;
  return own || Math.max(0, ...limits(devices.filter(({ board }) => board === device.board))) || Math.max(0, ...limits(devices));
}

/// How old the values of a device are; empty while they are of now.
export function ageNote() {
  const node = h("small.age");
  const update = (device) => {
    const seconds = roleOf("device", "age", device);
    put(node, isAged(device) && seconds >= 1 ? `${shortAge(seconds)} old` : "");
  };
  return { node, update };
}

/// Marks values that are not of now: the older, the fainter what is drawn.
export function fade(node, device) {
  const isOld = isAged(device);
  node.classList.toggle("aged", isOld);
  if (isOld) style(node, "--fade", Math.max(0.35, 0.8 - (roleOf("device", "age", device) ?? 0) / 150).toFixed(2));
}

export const deviceLink = (id, ...content) => h("a", { href: deviceHref(id) }, ...(content.length ? content : [id]));

/// A panel with a heading.
export const panel = (title, ...content) => h("section.panel", null, h("h2", null, ...[title].flat()), ...content);

/// A table: `columns` are `[word, class, title]`.
export function table(columns, label) {
  const body = h("tbody");
  const head = h("tr", { role: "row" }, columns.map(([name, kind, title]) => h(`th${kind ? `.${kind}` : ""}`, { scope: "col", role: "columnheader", title }, name)));
  attr(body, "role", "rowgroup");
  // On phones rows are blocks. The roles keep it a table.
  return { node: h("div.scroll", { tabindex: 0, role: "region", "aria-label": label }, h("table", { role: "table", "aria-label": label }, h("thead", { role: "rowgroup" }, head), body)), head, body };
}

/// A row of cells of which only the text changes.
export function row(columns, first = null) {
  const cells = columns.map(([name, kind], n) => h(`td${kind ? `.${kind}` : ""}`, { role: "cell", "data-name": name }, n === 0 && first));
  return { node: h("tr", { role: "row" }, cells), cells };
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
