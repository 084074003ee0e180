// Values over time: what the service has kept, and what the stream adds to it.

import { read, roleOf } from "./figures.js";
import { cards, get, interval, listen, now, store, tell } from "./store.js";

/// How far back, and how far apart points are: both in milliseconds.
export const RANGES = {
  "5m": [300e3, 2e3],
  "15m": [900e3, 5e3],
  "1h": [3600e3, 15e3],
  "6h": [21600e3, 60e3],
  "24h": [86400e3, 300e3],
  "7d": [604800e3, 1800e3],
  "30d": [2592000e3, 7200e3],
};
/// Ranges that only a black box has.
const OF_BLACK_BOX = ["7d", "30d"];
export const hasRange = (range) => Boolean(store.status?.black_box) || !OF_BLACK_BOX.includes(range);
/// So much before and after a moment of the past is shown with it.
export const AROUND = 1800e3;

/// Points of one series: `[min, mean, max]`, or null where nothing was measured.
export class Track {
  constructor(from, step, points, most) {
    Object.assign(this, { from, step, points, most });
    // How many samples the last point is made of, so that its mean stays one.
    this.samples = Math.max(1, Math.round(step / interval() / 2));
  }

  static empty(time, step, most) {
    return new Track(time - (time % step), step, [], most);
  }

  /// The point at a time.
  at(time) {
    return this.points[Math.floor((time - this.from) / this.step)] ?? null;
  }

  timeOf(at) {
    return this.from + (at + 0.5) * this.step;
  }

  add(time, value) {
    const at = Math.floor((time - this.from) / this.step);
    if (at < 0) return;
    if (at - this.points.length > this.most) Object.assign(this, { points: [], from: time - (time % this.step) });
    while (this.points.length <= at && this.points.length <= this.most * 2) {
      this.points.push(null);
      this.samples = 0;
    }
    const surplus = this.points.length - this.most;
    if (surplus > 0) {
      this.points.splice(0, surplus);
      this.from += surplus * this.step;
    }
    if (value === null || value === undefined) return;
    const last = this.points.length - 1;
    const [min, mean, max] = this.points[last] ?? [value, value, value];
    this.samples += 1;
    this.points[last] = [Math.min(min, value), mean + (value - mean) / this.samples, Math.max(max, value)];
  }
}

/// The sets that are followed, the one that was asked for last at the end.
const sets = new Map();
const MOST_SETS = 4;

/// The tracks of some figures and devices, which go on by themselves. Coarse ones have fewer points. `zoom` is `[from, to]` for a
/// stretch of the past.
export function follow(figures, devices, range, coarse = 1, zoom = null) {
  const key = [figures.map(({ name }) => name), devices, range, coarse, zoom].join(" ");
  let set = sets.get(key);
  if (!set) {
    set = { key, figures, devices, range, coarse, zoom, tracks: new Map(), reason: "loading…" };
    load(set);
  }
  sets.delete(key);
  sets.set(key, set);
  if (sets.size > MOST_SETS) sets.delete(sets.keys().next().value);
  return set;
}

async function load(wanted) {
  const [back, usual] = wanted.zoom ? [wanted.zoom[1] - wanted.zoom[0], (wanted.zoom[1] - wanted.zoom[0]) / 200] : RANGES[wanted.range];
  // Points closer to each other than samples would be gaps.
  const step = Math.round(Math.max(usual * wanted.coarse, 2 * interval()));
  const [from, to] = wanted.zoom ?? [-back];
  // What the service has not kept in memory is in its black box.
  const oldest = store.status?.history.oldest_ms;
  const isBeyond = store.status?.black_box && (!oldest || (wanted.zoom ? from : now() - back) < oldest - step);
  try {
    const answer = await get(isBeyond ? "past" : "history", { series: wanted.figures.map(({ name }) => name), device: wanted.devices, from, to, step });
    for (const { device, name, points } of answer.series) {
      wanted.tracks.set(`${device} ${name}`, new Track(answer.from_ms, answer.step_ms, points, Math.ceil(back / answer.step_ms) + 1));
    }
    wanted.reason = answer.reason ?? "";
  } catch (error) {
    wanted.reason = error.message;
  }
  wanted.version = (wanted.version ?? 0) + 1;
  if (store.snapshot) extend(wanted, store.snapshot);
  // What was missing until now can be drawn.
  tell("history");
}

function extend(set, snapshot) {
  if (set.zoom || store.past) return;
  const time = Date.parse(snapshot.taken_at);
  for (const device of snapshot.devices) {
    // A device that does not answer shows its last known values. Those are no measurements of now.
    const isNow = (roleOf("device", "age", device) ?? 1) < 1;
    for (const figure of set.figures) set.tracks.get(`${device.id} ${figure.name}`)?.add(time, isNow ? read(figure, device) : null);
  }
}

let numbers = null;
listen((what) => {
  if (what === "snapshot") {
    // The service knows the past of each card, whatever its number was.
    const shown = cards(store.snapshot);
    if (numbers !== null && numbers !== shown) sets.forEach(load);
    numbers = shown;
    sets.forEach((set) => extend(set, store.snapshot));
  }
  // What was missed while there was no connection is known to the service.
  if (what === "refresh") sets.forEach(load);
});
