// What each process did since this page was opened: the service keeps the past of devices, not of processes.

import { figureOf, read, roleOf, tables, valueAt } from "./figures.js";
import { sum } from "./format.js";
import { Track } from "./history.js";
import { listen, store } from "./store.js";

/// How far apart points are, in milliseconds, and how many are kept: an hour.
const STEP = 5000;
const MOST = 720;
/// So many processes and operations of one are followed, the largest first.
const PROCESSES = 16;
const OPERATIONS = 5;

/// By process: `{ since, tracks, totals }`.
const trails = new Map();
const keyOf = (process) => `${process.pid} ${roleOf("process", "started", process)}`;
export const trailOf = (process) => trails.get(keyOf(process)) ?? null;

/// What is followed of a process, beside its operations: `{ name, title, figure, value }`.
export function trailFigures() {
  const busy = figureOf("held", "utilization");
  const areas = tables.memory.map((area) => ({ name: area.name, title: `${area.title} used`, figure: tables.held.find(({ path }) => path === area.process_used), value: (process) => sum(process.devices.map((held) => valueAt(held, area.process_used))).value }));
  const most = (values) => values.reduce((a, b) => (b !== null && (a === null || b > a) ? b : a), null);
  const rates = tables.process.filter(({ unit, path }) => path !== null && ["per_second", "percent"].includes(unit.name));
  return [
    { name: "utilization", title: busy.title, figure: busy, value: (process) => most(process.devices.map((held) => read(busy, held))) }, ...areas,
    ...rates.map((figure) => ({ name: figure.name, title: figure.title, figure, value: (process) => read(figure, process) })),
  ];
}

listen((what) => {
  if (what !== "snapshot" || !tables.held) return;
  const time = Date.parse(store.snapshot.taken_at);
  const figures = trailFigures();
  const size = (process) => figures[1]?.value(process) ?? 0;
  const largest = [...store.snapshot.processes].sort((a, b) => size(b) - size(a)).slice(0, PROCESSES);
  const keys = new Set(largest.map(keyOf));
  for (const key of trails.keys()) if (!keys.has(key)) trails.delete(key);
  for (const process of largest) {
    const trail = trails.get(keyOf(process)) ?? { since: time, tracks: new Map(), totals: new Map() };
    trails.set(keyOf(process), trail);
    const add = (name, value) => {
      const track = trail.tracks.get(name) ?? Track.empty(time, STEP, MOST);
      trail.tracks.set(name, track);
      track.add(time, value);
    };
    for (const { name, value } of figures) add(name, value(process));
    follow(trail, process, time, add);
  }
});

/// The time on devices that each operation took, as a share of the time that has passed: its total is counted from its start.
function follow(trail, process, time, add) {
  const total = (one) => roleOf("operation", "time", one);
  const all = (process.operations ?? []).filter((one) => total(one) !== null).sort((a, b) => total(b) - total(a)).slice(0, OPERATIONS);
  for (const one of all) {
    const name = roleOf("operation", "name", one);
    const before = trail.totals.get(name);
    trail.totals.set(name, [time, total(one)]);
    const passed = before ? (time - before[0]) / 1000 : 0;
    if (passed > 0) add(`operation ${name}`, Math.max(0, ((total(one) - before[1]) / passed / Math.max(1, process.devices.length)) * 100));
  }
}
