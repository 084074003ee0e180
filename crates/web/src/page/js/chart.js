// A chart: a band from the least to the most, a line of the mean, limits, events, gaps as gaps. The cursor of one is the cursor of
// all, and of every small line and map of the view.

import { attr, attrs, h, keyed, put, s } from "./dom.js";
import { clock, days, minutes } from "./format.js";
import { currentZoom, zoomTo } from "./route.js";

const LEFT = 64;
const BOTTOM = 18;
const TOP = 6;
/// A drag shorter than this many pixels is a click.
const DRAG = 8;

const readers = new Set();
/// The moment that is looked at, or null.
let cursor = null;
export const cursorTime = () => cursor;

/// Adds what shows the cursor: `{ node, read }`.
export const follows = (reader) => readers.add(reader);

export function point(at) {
  if (cursor === at) return;
  cursor = at;
  readers.forEach((reader) => (reader.node.isConnected ? reader.read() : readers.delete(reader)));
}

/// Makes a drag over a drawing choose a stretch of time: `timeAt(x)` says which time is where, `mark(from, to)` shows what is chosen
/// so far and hides it without an argument.
export function draggable(node, timeAt, mark) {
  let start = null;
  const place = (event) => {
    const { left, width } = node.getBoundingClientRect();
    return ((event.clientX - left) / width) * node.clientWidth;
  };
  node.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = place(event);
    node.setPointerCapture(event.pointerId);
  });
  node.addEventListener("pointermove", (event) => {
    const x = place(event);
    point(timeAt(x));
    if (start !== null && Math.abs(x - start) >= DRAG) mark(Math.min(start, x), Math.max(start, x));
  });
  const end = (event) => {
    const [from, to] = [start, place(event)];
    start = null;
    mark();
    if (from !== null && event.type === "pointerup" && Math.abs(to - from) >= DRAG) zoomTo(timeAt(Math.min(from, to)), timeAt(Math.max(from, to)));
  };
  node.addEventListener("pointerup", end);
  node.addEventListener("pointercancel", end);
  node.addEventListener("pointerleave", () => start === null && point(null));
  node.addEventListener("dblclick", () => currentZoom() && zoomTo());
}

/// Moves the cursor with keys, from `from` to `to` by `step`; plus and minus zoom. Returns whether the key did something.
export function moveCursor(key, from, to, step) {
  const at = cursor ?? to;
  const range = to - from;
  const next = { ArrowLeft: at - step, ArrowRight: at + step, PageUp: at - range / 10, PageDown: at + range / 10, Home: from, End: to }[key];
  if (key === "Escape" && cursor !== null) point(null);
  else if (key === "Escape" && currentZoom()) zoomTo();
  else if (key === "+" || key === "=") zoomTo(Math.max(from, at - range / 4), Math.min(to, at + range / 4));
  else if (key === "-") zoomTo();
  else if (next !== undefined) point(Math.min(to, Math.max(from, next)));
  else return false;
  return true;
}

export class Chart {
  /// `show` turns a value into text, `lines` are names of lines, `floor` is where the axis begins, `base` 2 for bytes,
  /// `bound` what the limit is called, `full` how far the axis goes at least, and `isAlarming` whether reaching it is a problem.
  constructor({ title, show, lines = [""], floor = 0, base = 10, bound = "limit", full = 0, isAlarming = false, help = null }) {
    Object.assign(this, { title, show, floor, base, bound, full, tracks: [], latest: [], marks: [], to: 0, range: 1 });
    this.value = h("output.reading");
    this.grid = s("g.grid");
    this.limit = s(isAlarming ? "g.limit" : "g.limit.plain");
    this.area = s("g");
    this.events = s("g.marks");
    this.hair = s("line.hair", { y1: TOP });
    this.chosen = s("rect.chosen", { y: TOP, visibility: "hidden" });
    this.empty = s("text.empty", { "text-anchor": "middle" });
    this.svg = s("svg", { tabindex: 0, role: "slider", "aria-label": title, "aria-valuemin": 0, "aria-valuemax": 100 }, this.grid, this.area, this.limit, this.events, this.hair, this.chosen, this.empty);
    this.key = h("span.key");
    this.node = h("figure.chart", null, h("figcaption", null, h("h2", { title: help }, title), this.key, this.value), this.svg);
    this.setLines(lines);
    draggable(this.svg, (x) => this.timeAt(x), (from, to) => attrs(this.chosen, { visibility: from === undefined ? "hidden" : "visible", x: Math.max(LEFT, from ?? 0), width: Math.max(0, (to ?? 0) - Math.max(LEFT, from ?? 0)), height: Math.max(0, this.svg.clientHeight - BOTTOM - TOP) }));
    this.svg.addEventListener("keydown", (event) => {
      if (!moveCursor(event.key, this.to - this.range, this.to, this.tracks[0]?.step ?? this.range / 100)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    // Asking for sizes between changes would lay out the page again for each chart.
    this.width = this.height = 0;
    new ResizeObserver(([{ contentRect }]) => {
      [this.width, this.height] = [contentRect.width, contentRect.height];
      this.draw();
    }).observe(this.svg);
    follows(this);
  }

  setLines(lines) {
    if (this.lines?.join() === lines.join()) return;
    this.lines = lines;
    this.bands = lines.map((_, n) => s(`path.band.line${n % COLOURS}`));
    this.means = lines.map((_, n) => s(`path.mean.line${n % COLOURS}`));
    this.area.replaceChildren(...this.bands, ...this.means);
    this.key.replaceChildren(...(lines.length < 2 ? [] : lines.map((name, n) => h("span", null, s("svg.swatch", { "aria-hidden": true, viewBox: "0 0 14 8" }, s(`path.mean.line${n % COLOURS}`, { d: "M0 4H14" })), name))));
  }

  timeAt(x) {
    const width = Math.max(1, this.svg.clientWidth - LEFT);
    return this.to - this.range + (Math.min(width, Math.max(0, x - LEFT)) / width) * this.range;
  }

  /// Takes what there is now: `tracks` and the `latest` value for each line, `most` is the limit, `to` and `range` say
  /// which time is shown, `marks` are events, and `reason` why there is nothing.
  update(what) {
    Object.assign(this, what);
    this.draw();
  }

  draw() {
    const { width, height } = this;
    if (!width || !height) return;
    const from = this.to - this.range;
    const isIn = (track, at) => track.points[at] && track.timeOf(at) >= from - track.step && track.timeOf(at) <= this.to + track.step;
    let most = Math.max(this.most ?? 0, this.full / 1.04);
    let least = Infinity;
    for (const track of this.tracks) {
      track?.points.forEach((value, at) => {
        if (!isIn(track, at)) return;
        most = Math.max(most, value[2]);
        least = Math.min(least, value[0]);
      });
    }
    const isEmpty = least === Infinity;
    put(this.empty, isEmpty ? this.reason || "not measured in this time" : "");
    attrs(this.empty, { x: LEFT + (width - LEFT) / 2, y: height / 2 });
    const low = isEmpty ? this.floor : Math.min(this.floor, least);
    const step = stepOf((most * 1.04 - low) / Math.max(2, Math.floor(height / 30)), this.base);
    const high = Math.max(most * 1.04, low + step);
    const x = (time) => LEFT + ((time - from) / this.range) * (width - LEFT);
    const y = (value) => TOP + (1 - (value - low) / (high - low)) * (height - BOTTOM - TOP);
    const lines = [];
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) lines.push({ key: `y${value}`, y: y(value), text: this.show(value), width, height });
    const ticks = timeTicks(from, this.to, (width - LEFT) / 80);
    for (const time of ticks.times) lines.push({ key: `x${time}${ticks.show === clock}`, x: x(time), text: ticks.show(time), width, height });
    keyed(this.grid, isEmpty ? lines.filter((line) => line.x) : lines, (line) => line.key, tick);
    keyed(this.limit, this.most && !isEmpty ? [{ y: y(this.most), width, text: `${this.bound} ${this.show(this.most)}` }] : [], () => "limit", limitLine);
    keyed(this.events, this.marks.filter(({ time }) => time >= from && time <= this.to).map((mark) => ({ mark, x: x(mark.time), height })), ({ mark }) => mark.key, eventMark);
    this.tracks.forEach((track, n) => {
      if (!this.bands[n]) return;
      const runs = runsOf(track, isIn);
      const left = (at) => Math.min(width, Math.max(LEFT, x(track.timeOf(at)))).toFixed(1);
      const spot = (at, which) => `${left(at)} ${y(track.points[at][which]).toFixed(1)}`;
      attr(this.bands[n], "d", runs.map((run) => `M${run.map((at) => spot(at, 2)).join("L")}L${run.toReversed().map((at) => spot(at, 0)).join("L")}Z`).join(""));
      attr(this.means[n], "d", runs.map((run) => `M${run.map((at) => spot(at, 1)).join("L")}${run.length > 1 ? "" : "h.1"}`).join(""));
    });
    this.read();
  }

  /// Says what was at the cursor, or what is now.
  read() {
    const { width } = this;
    const isHeld = cursor !== null && cursor >= this.to - this.range && cursor <= this.to;
    const time = isHeld ? cursor : this.to;
    const texts = this.tracks.map((track, n) => {
      if (!isHeld) return this.show(this.latest[n]);
      const value = track?.at(time);
      const spread = this.lines.length < 2 && value && value[0] !== value[2] ? ` (${this.show(value[0])} to ${this.show(value[2])})` : "";
      return this.show(value?.[1]) + spread;
    });
    // More than a few numbers beside each other say nothing.
    const shown = texts.length > 3 ? "" : texts.join(" · ");
    const near = isHeld && this.marks.find((mark) => Math.abs(mark.time - time) <= (this.range / Math.max(1, width)) * 6);
    const text = shown + (isHeld ? `${shown && " "}at ${clock(time)}` : "") + (near ? ` · ${near.text}` : "");
    put(this.value, text);
    if (texts.length > 3) [...this.key.children].forEach((part, n) => put(part.lastChild, `${this.lines[n]} ${texts[n] ?? ""}`));
    attrs(this.svg, { "aria-valuetext": text || texts.join(", "), "aria-valuenow": Math.round(((time - this.to + this.range) / this.range) * 100) });
    const x = LEFT + ((time - this.to + this.range) / this.range) * (width - LEFT);
    attrs(this.hair, { visibility: isHeld ? "visible" : "hidden", x1: x, x2: x, y2: this.height - BOTTOM });
  }
}

/// Lines that have a colour of their own.
const COLOURS = 6;

/// The stretches in which something was measured.
function runsOf(track, isIn) {
  const runs = [];
  let run = null;
  track?.points.forEach((_, at) => {
    if (!isIn(track, at)) run = null;
    else if (run) run.push(at);
    else runs.push((run = [at]));
  });
  return runs;
}

function tick({ x, text }) {
  const line = s("line");
  const words = s("text", { "text-anchor": x === undefined ? "end" : "middle" }, text);
  const update = ({ x, y, width, height }) => {
    attrs(line, x === undefined ? { x1: LEFT, x2: width, y1: y, y2: y } : { x1: x, x2: x, y1: height - BOTTOM, y2: height - BOTTOM + 4 });
    attrs(words, x === undefined ? { x: LEFT - 6, y: y + 4 } : { x: Math.min(x, width - text.length * 3.4), y: height - 3 });
  };
  return { node: s("g", null, line, words), update };
}

function limitLine() {
  const line = s("line", { x1: LEFT });
  const words = s("text", { x: LEFT + 4 });
  const update = ({ y, width, text }) => {
    attrs(line, { x2: width, y1: y, y2: y });
    attrs(words, { y: y + 12 });
    put(words, text);
  };
  return { node: s("g", null, line, words), update };
}

/// An event: a line through the chart, and a sign on its axis. Its text is in a title and at the cursor.
function eventMark({ mark }) {
  const line = s("line", { y1: TOP });
  const sign = s("path");
  const node = s(`g.${mark.tone}`, null, s("title", null, mark.text), line, sign);
  const update = ({ x, height }) => {
    const y = height - BOTTOM;
    attrs(line, { x1: x, x2: x, y2: y });
    attr(sign, "d", `M${x} ${y - 7}l5 7h-10Z`);
  };
  return { node, update };
}

function stepOf(least, base) {
  if (!(least > 0)) return 1;
  if (base === 2) return 2 ** Math.ceil(Math.log2(least));
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((n) => n * power >= least) * power;
}

const DAY = 86400e3;

export function timeTicks(from, to, most) {
  const step = [5e3, 10e3, 30e3, 60e3, 120e3, 300e3, 900e3, 1800e3, 3600e3, 7200e3, 14400e3, 21600e3, 43200e3, DAY, 2 * DAY, 5 * DAY].find((step) => (to - from) / step <= most) ?? 10 * DAY;
  const zone = new Date(to).getTimezoneOffset() * 60e3;
  const times = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) times.push(at);
  return { times, show: step < 60e3 ? clock : step < DAY ? minutes : days };
}

/// A line without axes: the mean, gaps as gaps. `say(value, time)` is told what is at the cursor, and null when there is none.
export function spark(label, say) {
  const path = s("path.mean.line0");
  const area = s("path.band.line0");
  const hair = s("line.hair", { y1: 0, y2: 20, visibility: "hidden" });
  const node = s("svg.spark", { viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": label }, area, path, hair);
  let shown = null;
  const show = (track, most, to, range) => {
    const from = to - range;
    // It is drawn again when it would move by about a pixel, not with every sample.
    const key = `${track?.from} ${Math.floor(to / (range / 180))} ${range} ${most}`;
    const isSame = shown !== null && shown.track === track && shown.key === key;
    shown = { track, to, range, key };
    if (isSame) return;
    const runs = runsOf(track, (track, at) => track.points[at] && track.timeOf(at) >= from && track.timeOf(at) <= to + track.step);
    const top = Math.max(most ?? 0, ...(track?.points ?? []).map((value) => value?.[2] ?? 0)) || 1;
    const spot = (at) => `${Math.min(100, ((track.timeOf(at) - from) / range) * 100).toFixed(2)} ${(19 - (track.points[at][1] / top) * 18).toFixed(2)}`;
    attr(path, "d", runs.map((run) => `M${run.map(spot).join("L")}${run.length > 1 ? "" : "h.1"}`).join(""));
    attr(area, "d", runs.filter((run) => run.length > 1).map((run) => `M${spot(run[0]).split(" ")[0]} 20L${run.map(spot).join("L")}V20Z`).join(""));
    read();
  };
  const read = () => {
    const isHeld = shown !== null && cursor !== null && cursor >= shown.to - shown.range && cursor <= shown.to;
    const x = isHeld ? ((cursor - shown.to + shown.range) / shown.range) * 100 : 0;
    attrs(hair, { visibility: isHeld ? "visible" : "hidden", x1: x, x2: x });
    say?.(isHeld ? (shown.track?.at(cursor)?.[1] ?? null) : null, isHeld ? cursor : null);
  };
  node.addEventListener("pointermove", (event) => {
    const { left, width } = node.getBoundingClientRect();
    if (shown) point(shown.to - shown.range + ((event.clientX - left) / width) * shown.range);
  });
  node.addEventListener("pointerleave", () => point(null));
  follows({ node, read });
  return { node, show };
}
