// The processes: one row each, sorted and filtered.

import { attr, h, keyed, put } from "./dom.js";
import * as f from "./format.js";
import { row as cellsOf, table } from "./pieces.js";
import { parse } from "./query.js";
import { change, href, route } from "./route.js";
import { listen, store } from "./store.js";

const COLUMNS = [
  ["PID", "n", "Process id", "pid", (r) => String(r.pid)],
  ["Name", "", "As the kernel calls it", "name", (r) => f.word(r.process.name)],
  ["User", "", "", "user", (r) => f.word(r.process.user)],
  ["Devices", "", "", "dev", (r) => f.ids(r.process.devices)],
  ["DRAM", "n", "Buffers in DRAM", "dram", (r) => f.bytes(r.dram)],
  ["L1", "n", "Buffers in L1", "l1", (r) => f.bytes(r.l1)],
  ["Trace", "n", "Recorded command traces, in DRAM", "trace", (r) => f.bytes(r.trace)],
  ["CB", "n", "Circular buffers, in L1", "cb", (r) => f.bytes(r.cb)],
  ["Source", "", "Where these figures come from", "source", (r) => f.word(r.source)],
  ["Share", "n", "Of the DRAM of its devices", "share", (r) => f.percent(r.share)],
  ["Growth", "n", "Of DRAM per minute", "growth", (r) => (r.growth === null ? f.MISSING : `${r.growth > 0 ? "+" : ""}${f.bytes(r.growth)}/m`)],
  ["CPU", "n", "Of the host, 100 % is one core", "cpu", (r) => f.percent(r.cpu)],
  ["RSS", "n", "Memory of the host", "rss", (r) => f.bytes(r.rss)],
  ["Age", "n", "", "age", (r) => f.age(r.age)],
  ["Command", "command", "", "command", (r) => f.word(r.process.command)],
];

/// What each process held before: `[time, bytes]`, for its growth.
const trails = new Map();

listen((what) => {
  if (what !== "snapshot") return;
  const time = Date.parse(store.snapshot.taken_at);
  const alive = new Set();
  for (const process of store.snapshot.processes) {
    const key = `${process.pid} ${process.started_at}`;
    const trail = trails.get(key) ?? [];
    const { value } = f.sum(process.devices.map((held) => held.dram_bytes));
    alive.add(key);
    if (value !== null && !(time - trail.at(-1)?.[0] < 2000)) trail.push([time, value]);
    while (trail.length > 1 && time - trail[1][0] >= 60000) trail.shift();
    trails.set(key, trail);
  }
  for (const key of trails.keys()) if (!alive.has(key)) trails.delete(key);
});

function growth(process) {
  const trail = trails.get(`${process.pid} ${process.started_at}`) ?? [];
  const [first, last] = [trail[0], trail.at(-1)];
  return first && last[0] - first[0] >= 10000 ? ((last[1] - first[1]) / (last[0] - first[0])) * 60000 : null;
}

/// A row for each process: its figures summed up, on one device only where one is named.
export function rowsOf(snapshot, device = null) {
  const totals = new Map(snapshot.devices.map((device) => [device.id, device.memory.dram_total_bytes]));
  const time = Date.parse(snapshot.taken_at);
  const rows = [];
  for (const process of snapshot.processes) {
    const held = device === null ? process.devices : process.devices.filter((held) => held.id === device);
    if (device !== null && !held.length) continue;
    const add = (name) => f.sum(held.map((one) => one[`${name}_bytes`])).value;
    const sources = [...new Set(held.map((one) => one.source).filter(Boolean))];
    const row = { pid: process.pid, process, dram: add("dram"), l1: add("l1"), l1_small: add("l1_small"), trace: add("trace"), cb: add("cb") };
    row.total = f.sum([row.dram, row.l1, row.l1_small, row.trace, row.cb]).value;
    row.source = sources.length > 1 ? "mixed" : (sources[0] ?? null);
    const all = f.sum(held.map((one) => totals.get(one.id)));
    row.share = row.dram !== null && all.value && !all.mark ? (row.dram / all.value) * 100 : null;
    row.growth = growth(process);
    row.cpu = process.host_cpu_percent;
    row.rss = process.host_memory_bytes;
    row.age = process.started_at ? (time - Date.parse(process.started_at)) / 1000 : null;
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
  const { node: scroll, head, body } = table(COLUMNS, "Processes");
  scroll.firstChild.classList.add("fixed");
  COLUMNS.forEach(([name, , , field], n) => {
    head.cells[n].replaceChildren(h("button", { onclick: () => sortBy(field) }, name, h("span.arrow", { "aria-hidden": true })));
  });
  const empty = h("p.empty");
  const more = h("button", { onclick: () => change({ rows: "all" }) });
  const node = h("div.view", null, h("div.bar-row", null, h("h1", null, "Processes"), input, note), h("section.panel", null, scroll, empty, more));
  let query = () => true;
  let read = null;
  input.addEventListener("input", () => change({ q: input.value }, true));

  const order = () => ({ by: route.words.get("sort") ?? "dram", isUp: route.words.get("dir") === "up" });
  const sortBy = (field) => {
    const { by, isUp } = order();
    change({ sort: field, dir: by === field ? (isUp ? "" : "up") : TEXT.includes(field) ? "up" : "" });
  };

  const update = ({ snapshot }) => {
    const text = route.words.get("q") ?? "";
    if (input.value !== text) input.value = text;
    let problem = "";
    try {
      if (text !== read) query = parse(text);
      read = text;
    } catch (error) {
      // What was asked before stays until this makes sense.
      problem = error.message;
    }
    const { by, isUp } = order();
    COLUMNS.forEach(([, , , field], n) => {
      attr(head.cells[n], "aria-sort", field === by ? (isUp ? "ascending" : "descending") : null);
      put(head.cells[n].querySelector(".arrow"), field === by ? (isUp ? "▲" : "▼") : "");
    });
    const all = rowsOf(snapshot);
    const rows = all.filter(query);
    rows.sort((a, b) => compare(keyOf(a, by), keyOf(b, by), isUp) || a.pid - b.pid);
    const most = route.words.get("rows") === "all" ? rows.length : ROWS;
    keyed(body, rows.slice(0, most), (row) => row.pid, rowNode);
    more.hidden = rows.length <= most;
    put(more, `Show ${rows.length - most} more`);
    attr(input, "aria-invalid", problem ? "true" : null);
    put(note, problem || (text ? `${rows.length} of ${all.length}` : `${all.length} in all`));
    note.classList.toggle("bad", problem !== "");
    put(empty, rows.length ? "" : all.length ? "None of them is like that." : "No process uses a device.");
  };
  return { node, update, focus: () => input.select() };
}

/// Absent values come last in both directions.
function compare(a, b, isUp) {
  if (a === null || a === undefined || b === null || b === undefined) return (a ?? null) === (b ?? null) ? 0 : (a ?? null) === null ? 1 : -1;
  return (a < b ? -1 : a > b ? 1 : 0) * (isUp ? 1 : -1);
}

function rowNode() {
  const link = h("a", { "data-item": true });
  const { node, cells } = cellsOf(COLUMNS, link);
  const update = (row) => {
    attr(link, "href", href(`process/${row.pid}`));
    COLUMNS.forEach(([, , , , show], n) => put(n ? cells[n] : link, show(row)));
    attr(cells[COLUMNS.length - 1], "title", row.process.command);
  };
  return { node, update };
}
