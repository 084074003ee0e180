// A chart: a band from the least to the most, a line of the mean, limits, gaps as gaps. The cursor of one is the cursor of all.

import { attr, attrs, h, keyed, put, s } from "./dom.js";
import { clock, minutes } from "./format.js";

const LEFT = 70;
const BOTTOM = 18;
const TOP = 6;

const charts = new Set();
/// The moment that is looked at, or null.
let cursor = null;

function point(at) {
  cursor = at;
  charts.forEach((chart) => (chart.svg.isConnected ? chart.read() : charts.delete(chart)));
}

export class Chart {
  /// `show` turns a value into text, `lines` are names of lines, `floor` is where the axis begins, `base` 2 for bytes,
  /// `bound` what the limit is called, `full` how far the axis goes at least, and `isAlarming` whether reaching it is a problem.
  constructor({ title, show, lines = [""], floor = 0, base = 10, bound = "limit", full = 0, isAlarming = false }) {
    Object.assign(this, { title, show, lines, floor, base, bound, full, tracks: [], to: 0, range: 1 });
    this.value = h("output.reading");
    this.grid = s("g.grid");
    this.limit = s(isAlarming ? "g.limit" : "g.limit.plain");
    this.bands = lines.map((_, n) => s(`path.band.line${n}`));
    this.means = lines.map((_, n) => s(`path.mean.line${n}`));
    this.hair = s("line.hair", { y1: TOP });
    this.empty = s("text.empty", { "text-anchor": "middle" });
    this.svg = s("svg", { tabindex: 0, role: "slider", "aria-label": title, "aria-valuemin": 0, "aria-valuemax": 100 }, this.grid, this.limit, this.bands, this.means, this.hair, this.empty);
    const key = lines.length > 1 && h("span.key", null, lines.map((name, n) => h("span", null, s("svg.swatch", { "aria-hidden": true, viewBox: "0 0 14 8" }, s(`path.mean.line${n}`, { d: "M0 4H14" })), name)));
    this.node = h("figure.chart", null, h("figcaption", null, h("h2", null, title), key, this.value), this.svg);
    this.svg.addEventListener("pointermove", (event) => {
      const { left, width } = this.svg.getBoundingClientRect();
      point(this.timeAt(((event.clientX - left) / width) * this.svg.clientWidth));
    });
    this.svg.addEventListener("pointerleave", () => point(null));
    this.svg.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.draw()).observe(this.svg);
    charts.add(this);
  }

  press(event) {
    const step = this.tracks[0]?.step ?? this.range / 100;
    const from = this.to - this.range;
    const at = cursor ?? this.to;
    const to = { ArrowLeft: at - step, ArrowRight: at + step, PageUp: at - this.range / 10, PageDown: at + this.range / 10, Home: from, End: this.to }[event.key];
    if (event.key === "Escape" && cursor !== null) point(null);
    else if (to !== undefined) point(Math.min(this.to, Math.max(from, to)));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  timeAt(x) {
    const width = Math.max(1, this.svg.clientWidth - LEFT);
    return this.to - this.range + (Math.min(width, Math.max(0, x - LEFT)) / width) * this.range;
  }

  /// Takes what there is now: `tracks` and the `latest` value for each line, `most` is the limit, `to` and `range` say
  /// which time is shown, and `reason` why there is nothing.
  update(what) {
    Object.assign(this, what);
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth;
    const height = this.svg.clientHeight;
    if (!width || !height) return;
    const from = this.to - this.range;
    const shown = this.tracks.map((track) => (track ? track.points : []));
    const isIn = (track, at) => track.points[at] && track.timeOf(at) >= from - track.step;
    let most = Math.max(this.most ?? 0, this.full / 1.04);
    let least = Infinity;
    this.tracks.forEach((track, n) => shown[n].forEach((value, at) => {
      if (!isIn(track, at)) return;
      most = Math.max(most, value[2]);
      least = Math.min(least, value[0]);
    }));
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
    for (const time of timeTicks(from, this.to, (width - LEFT) / 80)) lines.push({ key: `x${time}`, x: x(time), text: minutes(time), width, height });
    keyed(this.grid, isEmpty ? lines.filter((line) => line.x) : lines, (line) => line.key, tick);
    keyed(this.limit, this.most && !isEmpty ? [{ y: y(this.most), width, text: `${this.bound} ${this.show(this.most)}` }] : [], () => "limit", limitLine);
    this.tracks.forEach((track, n) => {
      const runs = runsOf(track, isIn);
      const spot = (at, which) => `${x(track.timeOf(at)).toFixed(1)} ${y(track.points[at][which]).toFixed(1)}`;
      attr(this.bands[n], "d", runs.map((run) => `M${run.map((at) => spot(at, 2)).join("L")}L${run.toReversed().map((at) => spot(at, 0)).join("L")}Z`).join(""));
      attr(this.means[n], "d", runs.map((run) => `M${run.map((at) => spot(at, 1)).join("L")}${run.length > 1 ? "" : "h.1"}`).join(""));
    });
    this.read();
  }

  /// Says what was at the cursor, or what is now.
  read() {
    const width = this.svg.clientWidth;
    const isHeld = cursor !== null && cursor >= this.to - this.range;
    const time = isHeld ? cursor : this.to;
    const texts = this.tracks.map((track, n) => {
      if (!isHeld) return this.show(this.latest[n]);
      const value = track?.points[Math.floor((time - track.from) / track.step)];
      const spread = this.lines.length < 2 && value && value[0] !== value[2] ? ` (${this.show(value[0])} to ${this.show(value[2])})` : "";
      return this.show(value?.[1]) + spread;
    });
    const text = texts.join(" · ") + (isHeld ? ` at ${clock(time)}` : "");
    put(this.value, text);
    attrs(this.svg, { "aria-valuetext": text, "aria-valuenow": Math.round(((time - this.to + this.range) / this.range) * 100) });
    const x = LEFT + ((time - this.to + this.range) / this.range) * (width - LEFT);
    attrs(this.hair, { visibility: isHeld ? "visible" : "hidden", x1: x, x2: x, y2: this.svg.clientHeight - BOTTOM });
  }
}

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
    attrs(words, x === undefined ? { x: LEFT - 6, y: y + 4 } : { x: Math.min(x, width - 16), y: height - 3 });
  };
  return { node: s("g", null, line, words), update };
}

function limitLine() {
  const line = s("line", { x1: LEFT });
  const words = s("text", { "text-anchor": "end" });
  const update = ({ y, width, text }) => {
    attrs(line, { x2: width, y1: y, y2: y });
    attrs(words, { x: width - 2, y: y + 12 });
    put(words, text);
  };
  return { node: s("g", null, line, words), update };
}

function stepOf(least, base) {
  if (!(least > 0)) return 1;
  if (base === 2) return 2 ** Math.ceil(Math.log2(least));
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((n) => n * power >= least) * power;
}

function timeTicks(from, to, most) {
  const step = [60e3, 120e3, 300e3, 900e3, 1800e3, 3600e3, 7200e3, 14400e3, 21600e3].find((step) => (to - from) / step <= most) ?? 86400e3;
  const zone = new Date(to).getTimezoneOffset() * 60e3;
  const ticks = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) ticks.push(at);
  return ticks;
}

/// A line without axes: the mean, gaps as gaps.
export function spark(label) {
  const path = s("path.mean.line0");
  const area = s("path.band.line0");
  const node = s("svg.spark", { viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": label }, area, path);
  const show = (track, most, to, range) => {
    const from = to - range;
    const runs = runsOf(track, (track, at) => track.points[at] && track.timeOf(at) >= from);
    const top = Math.max(most ?? 0, ...(track?.points ?? []).map((value) => value?.[2] ?? 0)) || 1;
    const spot = (at) => `${(((track.timeOf(at) - from) / range) * 100).toFixed(2)} ${(19 - (track.points[at][1] / top) * 18).toFixed(2)}`;
    attr(path, "d", runs.map((run) => `M${run.map(spot).join("L")}${run.length > 1 ? "" : "h.1"}`).join(""));
    attr(area, "d", runs.filter((run) => run.length > 1).map((run) => `M${spot(run[0]).split(" ")[0]} 20L${run.map(spot).join("L")}V20Z`).join(""));
  };
  return { node, show };
}
