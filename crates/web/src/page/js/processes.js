// The processes: one row each, sorted and filtered.

import { attr, h, keyed, put } from "./dom.js";
import { figureOf, otherKinds, read, roleOf, tables, valueAt } from "./figures.js";
import * as f from "./format.js";
import { row as cellsOf, table } from "./pieces.js";
import { change, href, route } from "./route.js";
import { get, listen, store } from "./store.js";
import { reasonOf } from "./stream.js";

/// `[heading, class, title, field, text]`; the first is a link. The fields are those of the filter.
const columns = () => [
  ["PID", "n", "Process id", "pid"],
  ["Name", "", "The script, or the short name of the process", "name", (r) => f.nameOf(r.process)],
  ["User", "", "", "user", (r) => f.word(r.process.user)],
  ["Devices", "", "", "dev", (r) => f.ids(r.process.devices)],
  ...tables.memory.map(({ name, title, process_used }) => [title, "n", tables.held.find(({ path }) => path === process_used).help, name, (r) => f.bytes(r[name])]),
  ...otherKinds().filter(({ part_of }) => part_of !== null).map(({ name, title, help }) => [title, "n", help, name, (r) => f.bytes(r[name])]),
  ["Source", "", "Where the memory figures come from", "source", (r) => f.word(r.source)],
  ["Util", "n", figureOf("held", "utilization").help, "util", utilText],
  ["Share", "n", `Of the ${tables.memory[0].title} of its devices`, "share", (r) => f.percent(r.share)],
  ["Growth", "n", `Of ${tables.memory[0].title} per minute`, "growth", (r) => (r.growth === null ? f.MISSING : `${r.growth > 0 ? "+" : ""}${f.bytes(r.growth)}/m`)],
  ["CPU", "n", figureOf("process", "cpu").help, "cpu", (r) => f.percent(r.cpu)],
  ["RSS", "n", figureOf("process", "memory").help, "rss", (r) => f.bytes(r.rss)],
  ["Age", "n", "", "age", (r) => f.age(r.age)],
  ["Command", "command", "", "command", (r) => f.word(r.process.command)],
];

/// What each process used before: `[time, bytes]`, for its growth.
const trails = new Map();
const keyOfProcess = (process) => `${process.pid} ${roleOf("process", "started", process)}`;

listen((what) => {
  if (what !== "snapshot") return;
  const time = Date.parse(store.snapshot.taken_at);
  const running = new Set();
  for (const process of store.snapshot.processes) {
    const key = keyOfProcess(process);
    const trail = trails.get(key) ?? [];
    const { value } = f.sum(process.devices.map((held) => valueAt(held, tables.memory[0].process_used)));
    running.add(key);
    if (value !== null && !(time - trail.at(-1)?.[0] < 2000)) trail.push([time, value]);
    while (trail.length > 1 && time - trail[1][0] >= 60000) trail.shift();
    trails.set(key, trail);
  }
  for (const key of trails.keys()) if (!running.has(key)) trails.delete(key);
});

function growth(process) {
  const trail = trails.get(keyOfProcess(process)) ?? [];
  const [first, last] = [trail[0], trail.at(-1)];
  return first && last[0] - first[0] >= 10000 ? ((last[1] - first[1]) / (last[0] - first[0])) * 60000 : null;
}

/// How busy it keeps its busiest device, or that it holds memory and runs nothing.
export const utilText = (row) => (row.isIdle ? "▲ idle" : row.util === null ? f.MISSING : `${row.utilMark}${row.util.toFixed(0)} %`);

/// A row for each process: its figures summed up, on one device only where one is named. A capacity by its name is what is used
/// of it, a kind by its name is that part.
function rowsOf(snapshot, device = null) {
  const [first] = tables.memory;
  const totals = new Map(snapshot.devices.map((device) => [device.id, valueAt(device, first.total)]));
  const time = Date.parse(snapshot.taken_at);
  const rows = [];
  for (const process of snapshot.processes) {
    const held = device === null ? process.devices : process.devices.filter((held) => held.id === device);
    if (device !== null && !held.length) continue;
    const add = (path) => f.sum(held.map((one) => valueAt(one, path))).value;
    const sources = [...new Set(held.map((one) => one.source).filter(Boolean))];
    const row = { pid: process.pid, process };
    for (const { name, process_path } of tables.memory_kinds) row[name] = add(process_path);
    for (const { name, process_used } of tables.memory) row[name] = add(process_used);
    row.total = f.sum(tables.memory.map(({ name }) => row[name])).value;
    row.source = sources.length > 1 ? "mixed" : (sources[0] ?? null);
    const all = f.sum(held.map((one) => totals.get(one.id)));
    row.share = row[first.name] !== null && all.value && !all.mark ? (row[first.name] / all.value) * 100 : null;
    const util = figureOf("held", "utilization");
    const busy = held.map((one) => read(util, one)).filter((value) => value !== null);
    row.util = busy.length ? Math.max(...busy) : null;
    row.utilMark = row.util < 99.5 && (busy.length < held.length || held.some((one) => valueAt(one, util.lower_bound))) ? "≥ " : "";
    row.isIdle = roleOf("process", "idle", process) >= tables.idle_after && row.total > 0;
    row.growth = growth(process);
    row.cpu = roleOf("process", "cpu", process);
    row.rss = roleOf("process", "memory", process);
    const started = roleOf("process", "started", process);
    row.age = started ? (time - Date.parse(started)) / 1000 : null;
    rows.push(row);
  }
  return rows;
}

/// So many rows are drawn unless all are asked for.
const ROWS = 200;

const TEXT = ["name", "user", "source", "command"];
const keyOf = (row, by) => (by === "dev" ? (row.process.devices[0]?.index ?? null) : TEXT.includes(by) ? (by === "source" ? row.source : row.process[by]) : row[by]);

export function make() {
  const input = h("input", { type: "search", id: "filter", placeholder: "user:alice dram>1G name~vllm", "aria-label": "Filter processes", "aria-describedby": "filter-note", autocomplete: "off", spellcheck: "false" });
  const note = h("span.note", { id: "filter-note", role: "status" });
  const shown = columns();
  const textsOf = (row) => shown.slice(1).map(([, , , , show]) => show(row));
  const { node: scroll, head, body } = table(shown, "Processes");
  scroll.firstChild.classList.add("fixed");
  shown.forEach(([name, , , field], n) => {
    head.cells[n].replaceChildren(h("button", { onclick: () => sortBy(field) }, name, h("span.arrow", { "aria-hidden": true })));
  });
  const empty = h("p.empty");
  const more = h("button", { onclick: () => change({ rows: "all" }) });
  // On phones there are no headings to press.
  const sort = h("select.only-phone", { "aria-label": "Sort by", onchange: () => change({ sort: sort.value, dir: TEXT.includes(sort.value) ? "up" : "" }) }, shown.map(([name, , , field]) => h("option", { value: field }, `by ${name}`)));
  const node = h("div.view", null, h("div.bar-row", null, h("h1", null, "Processes"), input, sort, note), h("section.panel", null, scroll, empty, more));
  /// What is in the box and what is wrong with it; the last valid filter and the pids that match it; the sample that was asked about.
  const filter = { typed: "", problem: "", valid: "", pids: null, sample: null, timer: null };
  input.addEventListener("input", () => change({ q: input.value }, true));

  const order = () => ({ by: route.words.get("sort") ?? tables.memory[0].name, isUp: route.words.get("dir") === "up" });
  const sortBy = (field) => {
    const { by, isUp } = order();
    change({ sort: field, dir: by === field ? (isUp ? "" : "up") : TEXT.includes(field) ? "up" : "" });
  };

  /// Asks the service which processes match a filter.
  const load = async (text) => {
    try {
      const { processes } = await get("processes", { filter: text });
      // Another filter may have been typed since.
      if (text !== filter.typed && text !== filter.valid) return;
      if (text === filter.typed) filter.problem = "";
      filter.valid = text;
      filter.pids = new Set(processes.map(({ pid }) => pid));
    } catch (error) {
      if (text !== filter.typed) return;
      filter.problem = reasonOf(error);
      // A filter that was not refused is tried again with the next sample.
      if (error.status !== 400) filter.valid = text;
    }
    if (node.isConnected) update(store);
  };
  /// Asks when typing pauses, and then with each sample. A filter that is not valid leaves the last valid one in use.
  const follow = (text, sample) => {
    if (text !== filter.typed) {
      filter.typed = text;
      clearTimeout(filter.timer);
      if (text) filter.timer = setTimeout(load, 150, text);
      else Object.assign(filter, { problem: "", valid: "", pids: null });
    } else if (sample !== filter.sample && filter.valid) load(filter.valid);
    filter.sample = sample;
  };

  const update = ({ snapshot }) => {
    const text = route.words.get("q") ?? "";
    if (input.value !== text) input.value = text;
    follow(text.trim(), snapshot.taken_at);
    const { pids, problem } = filter;
    const { by, isUp } = order();
    shown.forEach(([, , , field], n) => {
      attr(head.cells[n], "aria-sort", field === by ? (isUp ? "ascending" : "descending") : null);
      put(head.cells[n].querySelector(".arrow"), field === by ? (isUp ? "▲" : "▼") : "");
    });
    sort.value = by;
    const all = rowsOf(snapshot);
    const rows = pids ? all.filter((row) => pids.has(row.pid)) : all;
    rows.sort((a, b) => compare(keyOf(a, by), keyOf(b, by), isUp) || a.pid - b.pid);
    const most = route.words.get("rows") === "all" ? rows.length : ROWS;
    keyed(body, rows.slice(0, most), (row) => row.pid, () => processRow(shown, textsOf));
    more.hidden = rows.length <= most;
    put(more, `Show ${rows.length - most} more`);
    attr(input, "aria-invalid", problem ? "true" : null);
    put(note, problem || (text ? `${rows.length} of ${all.length}` : `${all.length} in all`));
    note.classList.toggle("critical", problem !== "");
    put(empty, rows.length ? "" : all.length ? "No process matches the filter." : "No process to show.");
  };
  return { node, update, focus: () => input.select() };
}

/// Absent values come last in both directions.
function compare(a, b, isUp) {
  if (a === null || a === undefined || b === null || b === undefined) return (a ?? null) === (b ?? null) ? 0 : (a ?? null) === null ? 1 : -1;
  return (a < b ? -1 : a > b ? 1 : 0) * (isUp ? 1 : -1);
}

/// A row about a process: a link to it, and what `texts(row)` says in the other cells.
export function processRow(columns, texts, attributes = { "data-item": true }) {
  const link = h("a", attributes);
  const { node, cells } = cellsOf(columns, link);
  const update = (row) => {
    attr(link, "href", href(`process/${row.pid}`));
    put(link, String(row.pid));
    texts(row).forEach((text, n) => put(cells[n + 1], text));
    attr(node, "title", row.process.command);
  };
  return { node, update };
}

/// The rows of the largest processes first.
export function largestOf(snapshot, device) {
  const [{ name }] = tables.memory;
  return rowsOf(snapshot, device).sort((a, b) => (b[name] ?? -1) - (a[name] ?? -1));
}
