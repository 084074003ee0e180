// All chips over time: a row for each chip, a column for each step, one scale of colour. What was not measured has none.

import { attr, h, put, style } from "./dom.js";
import { figureOf, isFine, keptFields, limitOf, show } from "./figures.js";
import { clock } from "./format.js";
import { cursorTime, draggable, follows, moveCursor, point, timeTicks } from "./chart.js";
import { SIGNS } from "./pieces.js";
import { deviceHref, go } from "./route.js";

const LEFT = 40;
const BOTTOM = 16;
/// Colours between the five of the sheet.
const SHADES = 64;

/// What can be mapped: figures that history keeps and that one device has once, the utilization first.
export function heatFigures() {
  const busy = figureOf("device", "utilization");
  const [first, others] = [keptFields().filter(({ name }) => name === busy.name), keptFields().filter(({ name, label }) => name !== busy.name && label === undefined)];
  return [...first, ...others];
}

export class HeatMap {
  constructor(title) {
    this.reading = h("output.reading");
    this.scale = h("span.scale", { "aria-hidden": true }, (this.least = h("span")), (this.stops = [0, 1, 2, 3, 4].map((n) => h(`i.heat${n}`))), (this.most = h("span")), h("i.blank"), h("span", null, "not measured"));
    this.canvas = h("canvas", { tabindex: 0, role: "application", "aria-roledescription": "heat map", "data-item": true });
    this.hair = h("i.hair");
    this.frame = h("i.frame");
    this.chosen = h("i.chosen");
    this.name = title ? h("h2", null, title) : null;
    this.head = h("figcaption", null, this.name, this.scale, this.reading);
    this.body = h("div.map", null, this.canvas, this.hair, this.frame, this.chosen);
    this.node = h("figure.heatmap", null, this.head, this.body);
    this.row = null;
    this.drawn = "";
    draggable(this.canvas, (x) => this.timeAt(x), (from, to) => {
      this.chosen.hidden = from === undefined;
      if (from !== undefined) this.place(this.chosen, Math.max(LEFT, from), 0, to - Math.max(LEFT, from), this.canvas.clientHeight - BOTTOM);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const { top, height } = this.canvas.getBoundingClientRect();
      this.row = Math.floor((((event.clientY - top) / height) * this.canvas.clientHeight) / this.high);
      this.read();
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.row = null;
      this.read();
    });
    this.canvas.addEventListener("click", () => this.row !== null && cursorTime() !== null && !this.wasDragged && this.open());
    this.canvas.addEventListener("pointerdown", (event) => (this.pressed = event.clientX));
    this.canvas.addEventListener("pointerup", (event) => (this.wasDragged = Math.abs(event.clientX - this.pressed) > 4));
    this.canvas.addEventListener("blur", () => {
      this.row = null;
      this.read();
    });
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.width = 0;
    new ResizeObserver(([{ contentRect }]) => {
      this.width = contentRect.width;
      this.draw(true);
    }).observe(this.canvas);
    follows(this);
    this.read();
  }

  open() {
    const device = this.devices?.[this.row];
    if (device) go(deviceHref(device.id));
  }

  press(event) {
    const last = (this.devices?.length ?? 1) - 1;
    const rows = { ArrowUp: -1, ArrowDown: 1 };
    if (event.key in rows) this.row = Math.min(last, Math.max(0, (this.row ?? (rows[event.key] > 0 ? -1 : last + 1)) + rows[event.key]));
    else if (event.key === "Enter" && this.row !== null) return this.open();
    else if (!moveCursor(event.key, this.to - this.range, this.to, this.step ?? this.range / 100)) return;
    if (cursorTime() === null && event.key in rows) point(this.to);
    event.preventDefault();
    event.stopPropagation();
    this.read();
  }

  timeAt(x) {
    const width = Math.max(1, this.width - LEFT);
    return this.to - this.range + (Math.min(width, Math.max(0, x - LEFT)) / width) * this.range;
  }

  /// Takes what there is now; `set` is what `follow` gives.
  update({ figure, devices, set, to, range, high = null }) {
    Object.assign(this, { figure, devices, set, to, range });
    this.step = [...set.tracks.values()][0]?.step;
    this.high = high ?? Math.min(30, Math.max(9, Math.floor(340 / Math.max(1, devices.length))));
    const tracks = devices.map((device) => set.tracks.get(`${device.id} ${figure.name}`));
    this.tracks = tracks;
    // One scale for all chips: up to the largest limit, to the full scale, or to the most that was seen.
    const seen = Math.max(0, ...tracks.map((track) => Math.max(0, ...(track?.points ?? []).map((value) => value?.[1] ?? 0))));
    this.top = Math.max(figure.full ?? 0, ...devices.map((device) => limitOf(figure, device) ?? 0)) || seen || 1;
    put(this.least, show(figure, 0, 0));
    put(this.most, show(figure, this.top, 0));
    attr(this.canvas, "aria-label", `${figure.title} of ${devices.length} devices over time. Arrow keys move, Enter opens a device.`);
    style(this.body, "height", `${this.high * devices.length + BOTTOM}px`);
    this.draw(false);
  }

  draw(isForced) {
    if (!this.figure || !this.width) return;
    const { theme, palette } = document.documentElement.dataset;
    const colouring = `${theme} ${palette} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
    const last = this.step ? Math.floor(this.to / this.step) : 0;
    const states = this.devices.map(({ id, state }) => `${id}${state}`).join();
    const key = [this.set.key, this.set.version, last, colouring, states, this.top, this.figure.name, this.high, this.width].join(" ");
    this.read();
    if (!isForced && key === this.drawn) return;
    this.drawn = key;
    const [width, height] = [this.width, this.high * this.devices.length + BOTTOM];
    // The page may be magnified: the picture has the pixels of the screen.
    const pixels = this.canvas.getBoundingClientRect().width / width * devicePixelRatio || 1;
    this.canvas.width = Math.round(width * pixels);
    this.canvas.height = Math.round(height * pixels);
    const pen = this.canvas.getContext("2d");
    pen.scale(pixels, pixels);
    const colours = paletteOf(this.stops.map((stop) => getComputedStyle(stop).backgroundColor));
    const from = this.to - this.range;
    const x = (time) => LEFT + ((time - from) / this.range) * (width - LEFT);
    const styles = getComputedStyle(this.canvas);
    const size = Math.min(12, this.high + 1);
    pen.font = `${size}px ${styles.fontFamily}`;
    pen.textBaseline = "middle";
    this.devices.forEach((device, row) => {
      const track = this.tracks[row];
      const top = row * this.high;
      for (let at = 0; at < (track?.points.length ?? 0); at += 1) {
        const value = track.points[at];
        if (!value) continue;
        const left = Math.max(LEFT, x(track.from + at * track.step));
        const right = Math.min(width, x(track.from + (at + 1) * track.step));
        if (right <= left) continue;
        pen.fillStyle = colours[Math.min(SHADES - 1, Math.max(0, Math.floor((value[1] / this.top) * SHADES)))];
        pen.fillRect(left, top, right - left + 0.3, this.high - 1);
      }
      const fine = isFine(device);
      // Labels that would touch each other are left out, but never one of a problem.
      if (fine && this.high < 11 && row % 2) return;
      pen.fillStyle = fine ? styles.color : getComputedStyle(this.hair).getPropertyValue("color");
      pen.textAlign = "right";
      pen.fillText(`${fine ? "" : `${SIGNS.critical[0]} `}${device.id}`, LEFT - 6, top + this.high / 2);
    });
    pen.fillStyle = styles.color;
    pen.font = `11px ${styles.fontFamily}`;
    const ticks = timeTicks(from, this.to, (width - LEFT) / 80);
    pen.textAlign = "center";
    for (const time of ticks.times) pen.fillText(ticks.show(time), Math.min(width - ticks.show(time).length * 3.4, Math.max(LEFT + 16, x(time))), height - BOTTOM / 2 + 1);
  }

  place(node, left, top, width, height) {
    for (const [name, value] of Object.entries({ left, top, width, height })) style(node, name, `${value}px`);
  }

  /// Says what is at the cursor.
  read() {
    const time = cursorTime();
    const isHeld = Boolean(this.figure) && time !== null && time >= this.to - this.range && time <= this.to;
    this.hair.hidden = !isHeld;
    this.chosen.hidden = this.chosen.hidden || !isHeld;
    const device = isHeld && this.row !== null ? this.devices[this.row] : null;
    this.frame.hidden = !device;
    if (!isHeld) return put(this.reading, "");
    const x = LEFT + ((time - this.to + this.range) / this.range) * (this.width - LEFT);
    this.place(this.hair, x, 0, 1, this.high * this.devices.length);
    if (device) this.place(this.frame, LEFT, this.row * this.high, this.width - LEFT, this.high - 1);
    put(this.reading, device ? `device ${device.id}: ${show(this.figure, this.tracks[this.row]?.at(time)?.[1])} at ${clock(time)}` : clock(time));
  }
}

/// Shades from the first colour to the last, through those between.
function paletteOf(stops) {
  const parts = stops.map((stop) => stop.match(/[\d.]+/g).slice(0, 3).map(Number));
  return Array.from({ length: SHADES }, (_, n) => {
    const at = (n / (SHADES - 1)) * (parts.length - 1);
    const [a, b] = [parts[Math.floor(at)], parts[Math.min(parts.length - 1, Math.floor(at) + 1)]];
    return `rgb(${a.map((value, k) => Math.round(value + (b[k] - value) * (at % 1))).join(" ")})`;
  });
}
