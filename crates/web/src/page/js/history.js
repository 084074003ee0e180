// Values over time: what the service has kept, and what the stream adds to it.

import { read, roleOf } from "./figures.js";
import { cards, get, interval, listen, now, store } from "./store.js";

/// How far back, and how far apart points are: both in milliseconds.
export const RANGES = {
  "5m": [300e3, 2e3],
  "15m": [900e3, 5e3],
  "1h": [3600e3, 15e3],
  "6h": [21600e3, 60e3],
  "24h": [86400e3, 300e3],
};

/// Points of one series: `[min, mean, max]`, or null where nothing was measured.
class Track {
  constructor(from, step, points, most) {
    Object.assign(this, { from, step, points, most });
    // How many samples the last point is made of, so that its mean stays one.
    this.samples = Math.max(1, Math.round(step / interval() / 2));
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

let current = null;

/// The tracks of some figures and devices, which go on by themselves. There is one such set at a time; coarse ones have fewer points.
export function follow(figures, devices, range, coarse = 1) {
  const key = [figures.map(({ name }) => name), devices, range, coarse].join(" ");
  if (current?.key !== key) {
    current = { key, figures, devices, range, coarse, tracks: new Map(), reason: "loading…" };
    load(current);
  }
  return current;
}

async function load(wanted) {
  const [back, usual] = RANGES[wanted.range];
  // Points closer to each other than samples would be gaps.
  const step = Math.max(usual * wanted.coarse, 2 * interval());
  try {
    const answer = await get("history", { series: wanted.figures.map(({ name }) => name), device: wanted.devices, from: -back, step });
    for (const { device, name, points } of answer.series) {
      wanted.tracks.set(`${device} ${name}`, new Track(answer.from_ms, answer.step_ms, points, Math.ceil(back / answer.step_ms) + 1));
    }
    wanted.reason = "";
  } catch (error) {
    wanted.reason = error.message;
  }
  wanted.loadedAt = now();
  if (store.snapshot) extend(store.snapshot);
}

function extend(snapshot) {
  const time = Date.parse(snapshot.taken_at);
  for (const device of snapshot.devices) {
    for (const figure of current?.figures ?? []) {
      // A device that does not answer shows its last known values. Those are no measurements of now.
      const value = (roleOf("device", "age", device) ?? 1) < 1 ? read(figure, device) : null;
      current.tracks.get(`${device.id} ${figure.name}`)?.add(time, value);
    }
  }
}

listen((what) => {
  if (what === "snapshot") {
    // The service knows the past of each card, whatever its number was.
    const shown = cards(store.snapshot);
    if (current?.cards && current.cards !== shown) load(current);
    if (current) current.cards = shown;
    extend(store.snapshot);
  }
  // What was missed while there was no connection is known to the service.
  if (what === "refresh" && current) load(current);
});
