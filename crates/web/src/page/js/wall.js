// For a display on the wall: everything large, nothing to scroll, one view after another.

import { Chart, spark } from "./chart.js";
import { attr, bar, h, keyed, put, style } from "./dom.js";
import { figureOf, fieldsOf, headlines, isFine, judge, limitOf, read, roleOf, show, showOf, tables, whyUnknown } from "./figures.js";
import * as f from "./format.js";
import { HeatMap, heatFigures } from "./heat.js";
import { follow } from "./history.js";
import { merged, toneOf } from "./log.js";
import { partsOf, usedText } from "./memory.js";
import { SIGNS, ageNote, fade, scaleOf, shownSpan, statePill } from "./pieces.js";
import { inShort, problemsOf } from "./problems.js";
import { largestOf, utilText } from "./processes.js";
import { change, currentRange, deviceHref, route } from "./route.js";
import { isOld, now, sampleAge, store } from "./store.js";
import { tiles } from "./overview.js";
import { trailFigures, trailOf } from "./trails.js";

/// How long each view is shown, in milliseconds.
const TURN = 15e3;

export function make() {
  const [host, time, trouble] = [h("b"), h("span.clock"), h("span.trouble")];
  const held = () => route.words.get("hold") ?? "";
  const pause = h("button", { onclick: () => change({ hold: held() ? "" : current().name }, true) });
  const sums = tiles();
  const stage = h("div.stage");
  const views = [chips(), maps(), work()];
  const dots = h("span.dots", { "aria-hidden": true });
  const node = h("div.wall", null, h("h1.unseen", null, "Wall display"),
    h("header", { "data-content": true }, host, trouble, dots, time, pause, h("a.close", { href: "#/overview", "aria-label": "Leave the wall display" }, "✕")),
    sums.node, stage);
  attr(sums.node, "data-content", true);
  let at = 0;
  let turned = Date.now();
  const known = () => views.filter((view) => view.isUseful(store));
  const inTurn = () => known()[at % known().length];
  const current = () => known().find(({ name }) => name === held()) ?? inTurn();
  const turn = (by) => {
    at = (known().indexOf(current()) + by + known().length) % known().length;
    turned = Date.now();
    if (held()) change({ hold: inTurn().name }, true);
    if (store.snapshot) update(store);
  };
  const clock = setInterval(() => {
    if (store.snapshot && !held() && Date.now() - turned >= TURN && !document.hidden) turn(1);
  }, 500);

  const update = (store) => {
    const { snapshot } = store;
    const problems = problemsOf(store);
    const isHeld = Boolean(held());
    put(host, roleOf("machine", "host", snapshot) ?? "ttmon");
    const old = isOld() || store.link.state !== "live";
    put(trouble, old ? `▲ out of date: last sample ${f.age(sampleAge())} ago` : problems.length ? `✕ ${inShort(problems)}` : "● all ok");
    trouble.className = `trouble ${old || problems[0]?.judgement === "critical" ? "critical" : problems.length ? "warn" : "good"}`;
    put(time, f.clock(now()));
    put(pause, isHeld ? "▶" : "❚❚");
    attr(pause, "aria-label", isHeld ? "Change views by itself" : "Keep this view");
    sums.update(store);
    const view = current();
    put(dots, known().map((one) => (one === view ? "●" : "○")).join(" "));
    if (stage.firstChild !== view.node) stage.replaceChildren(view.node);
    view.update(store);
  };

  const press = (key) => {
    if (key === " ") pause.click();
    else if (key === "ArrowRight" || key === "ArrowLeft") turn(key === "ArrowRight" ? 1 : -1);
    else return false;
    return true;
  };
  return { node, update, press, end: () => clearInterval(clock) };
}

/// Columns for so many cells, so that each is about as wide as `shape` times its height.
function columnsFor(count, width, height, shape) {
  let best = [1, 0];
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const [wide, high] = [width / columns, height / rows];
    // What counts is how large a cell of that shape fits, and that no place is left empty.
    const size = Math.min(wide / shape, high) * (count / (columns * rows)) ** 2;
    if (size > best[1] * 1.001) best = [columns, size];
  }
  return best[0];
}

function fillGrid(node, count, shape) {
  const { clientWidth: width, clientHeight: height } = node;
  if (!width || !count) return;
  const columns = columnsFor(count, width, height, shape);
  style(node, "grid-template-columns", `repeat(${columns}, minmax(0, 1fr))`);
  style(node, "grid-template-rows", `repeat(${Math.ceil(count / columns)}, minmax(0, 1fr))`);
}

/// A cell for each chip; of one chip alone, its charts.
function chips() {
  const grid = h("div.grid");
  const solo = h("div.solo");
  const node = h("div.fill", null, grid, solo);
  let charts = null;
  const update = ({ snapshot: { devices } }) => {
    const span = shownSpan();
    const isSolo = devices.length === 1;
    grid.classList.toggle("dense", devices.length > 8);
    const trend = follow(isSolo ? soloFigures() : [figureOf("device", "trend"), figureOf("device", "utilization")], "", currentRange(), isSolo ? 1 : 4);
    keyed(grid, devices.map((device) => ({ device, trend, span })), ({ device }) => device.id, cell);
    node.classList.toggle("one", isSolo);
    fillGrid(grid, devices.length, isSolo ? 0.6 : 1.35);
    if (!isSolo) return;
    charts ??= soloFigures().map((figure) => ({ figure, chart: new Chart({ title: figure.title, show: (value) => show(figure, value), base: figure.unit.binary ? 2 : 10, bound: figure.judge?.by === "capacity" ? "capacity" : "limit", full: figure.full ?? 0, isAlarming: figure.judge?.by === "heat" }) }));
    keyed(solo, charts, ({ figure }) => figure.name, ({ chart }) => (attr(chart.node, "data-content", true), { node: chart.node }));
    const [device] = devices;
    for (const { figure, chart } of charts) chart.update({ tracks: [trend.tracks.get(`${device.id} ${figure.name}`)], latest: [read(figure, device)], most: limitOf(figure, device), to: span.to, range: span.range, reason: trend.reason });
  };
  return { name: "chips", node, update, isUseful: () => true };
}

const soloFigures = () => [...headlines(), ...tables.memory.map((area) => fieldsOf("device").find(({ path }) => path === area.used))].filter((figure) => figure.history);

function cell(first) {
  const { device } = first;
  const state = statePill();
  const old = ageNote();
  const [main, ...others] = headlines().map((figure) => ({ figure, value: h("b") }));
  const [area] = tables.memory;
  const name = h("span.name");
  const amount = h("span");
  const used = bar(`${area.title} used`);
  const trends = [figureOf("device", "utilization"), figureOf("device", "trend")].map((figure) => ({ figure, line: spark(`${figure.title} of device ${device.id} over time`) }));
  const node = h("a.cell", { "data-content": true }, h("header", null, h("b.id", null, device.id), old.node, state.node),
    h("div.numbers", null, h("div.main", null, main.value, name), h("div.others", null, others.map(({ value }) => value))),
    h("div.used", null, used.node, amount), h("div.trends", null, trends.map(({ figure, line }) => h("div.trend", null, h("span.name", null, figure.title), line.node))));
  const update = ({ device, trend, span }) => {
    state.update(device);
    old.update(device);
    fade(node, device);
    attr(node, "href", deviceHref(device.id));
    node.classList.toggle("problem", !isFine(device));
    for (const { figure, value } of [main, ...others]) {
      const judgement = judge(figure, device) ?? "normal";
      put(value, showOf(figure, device, 0));
      value.className = judgement === "normal" ? "" : SIGNS[judgement][1];
    }
    const why = whyUnknown(main.figure, device);
    put(name, why ? why.name : main.figure.title);
    name.parentNode.classList.toggle("unknown", why !== null);
    put(amount, `${area.title} ${usedText(area, device)}`);
    used.show(partsOf(area, device), amount.shown);
    for (const { figure, line } of trends) line.show(trend.tracks.get(`${device.id} ${figure.name}`), scaleOf(figure, device), span.to, span.range);
  };
  return { node, update };
}

/// All chips over time, by the figures that matter most.
function maps() {
  const figures = [...headlines(), ...heatFigures().filter(({ path }) => path === tables.memory[0].used)];
  const all = figures.map((figure) => ({ figure, map: new HeatMap(figure.title) }));
  for (const { map } of all) attr(map.node, "data-content", true);
  const node = h("div.fill.maps", null, all.map(({ map }) => map.node));
  const update = ({ snapshot: { devices } }) => {
    const span = shownSpan();
    const set = follow(figures, "", currentRange(), 2);
    for (const { figure, map } of all) {
      const room = map.node.clientHeight - map.head.offsetHeight - 40;
      map.update({ figure, devices, set, ...span, high: Math.max(6, Math.floor(room / devices.length)) });
    }
  };
  return { name: "maps", node, update, isUseful: ({ snapshot }) => (snapshot?.devices.length ?? 0) > 1 };
}

/// Who uses the chips, and what happened.
function work() {
  const processes = h("ol.rows");
  const events = h("ol.rows");
  const none = h("p.empty", null, "No process uses a device.");
  const node = h("div.fill.work", null, h("section", { "data-content": true }, h("h2", null, "Processes"), processes, none), h("section", { "data-content": true }, h("h2", null, "Events"), events));
  const update = ({ snapshot, events: happened }) => {
    const rows = largestOf(snapshot).slice(0, 8);
    const { to, range } = shownSpan();
    keyed(processes, rows.map((row) => ({ row, to, range })), ({ row }) => row.pid, processLine);
    none.hidden = rows.length > 0;
    const last = merged(happened).slice(-8).reverse();
    node.classList.toggle("quiet", !last.length);
    keyed(events, last, ({ key }) => key, (event) => ({ node: h("li", null, h("span.dim", null, f.clock(event.time)), h(`span.text.${toneOf(event.weight)}`, null, event.text)) }));
  };
  return { name: "work", node, update, isUseful: () => true };
}

/// A process, with what is followed of it first: how busy it is, how much it holds.
function processLine() {
  const [name, where] = [h("b.text"), h("span.dim")];
  const parts = trailFigures().slice(0, 2).map(({ name, title, figure }) => ({ name, figure, value: h("b"), line: spark(`${title} over time`), title }));
  const update = ({ row, to, range }) => {
    put(name, f.nameOf(row.process));
    put(where, `${f.word(row.process.user)} · device ${f.ids(row.process.devices)}`);
    put(parts[0].value, utilText(row));
    put(parts[1].value, f.bytes(row[parts[1].name]));
    const trail = trailOf(row.process);
    // It is known since the page was opened: the line begins there.
    const known = Math.min(range, Math.max(60e3, to - (trail?.since ?? to)));
    for (const { name, figure, line } of parts) line.show(trail?.tracks.get(name), figure.full ?? 0, to, known);
  };
  return { node: h("li.process", null, h("div.who-text", null, name, where), parts.map(({ title, value, line }) => h("div.trend", null, h("span.name", null, title), value, line.node))), update };
}
