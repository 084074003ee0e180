// One device: its charts, the processes on it, and all its figures by section.

import { Chart } from "./chart.js";
import { attr, h, keyed, put } from "./dom.js";
import { charts as groups, fieldsOf, figureOf, isBeside, judge, keptFields, limitOf, read, shortTitle, show, showOf, stateOf, tables, whyUnknown } from "./figures.js";
import * as f from "./format.js";
import { RANGES, follow } from "./history.js";
import { SIGNS, complaint, isAged, panel, statePill, table } from "./pieces.js";
import { currentRange, deviceHref, go, route } from "./route.js";
import { isOld, now, store } from "./store.js";
import { largestOf, processRow, utilText } from "./processes.js";

/// Where the axis of a temperature begins: chips in use are warmer than this.
const WARMEST_FLOOR = 30;

function chartOf(figures) {
  const [first] = figures;
  const floor = first.unit.name === "celsius" ? WARMEST_FLOOR : 0;
  const bound = first.judge?.by === "capacity" ? "capacity" : "limit";
  const title = figures.length > 1 ? first.section : first.title;
  const lines = figures.length > 1 ? figures.map(shortTitle) : [""];
  return { figures, chart: new Chart({ title, show: (value) => show(first, value), lines, floor, base: first.unit.binary ? 2 : 10, bound, full: first.full ?? 0, isAlarming: first.judge?.by === "heat" }) };
}

/// What is known of a figure. The values of all channels or ports are in a row.
function textOf(figure, device) {
  const [value, symbol] = [read(figure, device), figure.unit.symbol && ` ${figure.unit.symbol}`];
  return Array.isArray(value) ? value.map((one) => show(figure, one, 0).replace(symbol, "")).join(" ") + symbol : showOf(figure, device);
}
const isEmpty = (value) => value === null || (Array.isArray(value) && value.every((one) => one === null));

/// The figures of a device by section. Those of deep reads are there only where they have a value.
function factsOf(fields) {
  const factOf = (figure) => ({ figure, title: h("dt", { title: figure.help }, figure.title), value: h("dd") });
  const sectionOf = (name) => {
    const facts = fields.filter(({ section }) => section === name).map(factOf);
    return { facts, node: h("section", null, h("h3", null, name), h("dl.facts", null, facts.map(({ title, value }) => [title, value]))) };
  };
  const sections = tables.sections.map(sectionOf).filter(({ facts }) => facts.length);
  const node = h("div.sections", null, sections.map(({ node }) => node));
  const update = (device) => {
    for (const { figure, title, value } of sections.flatMap(({ facts }) => facts)) {
      const judgement = judge(figure, device);
      const isWrong = judgement === "warning" || judgement === "critical";
      const why = whyUnknown(figure, device);
      put(value, `${isWrong ? `▲ ${figure.judge.words[judgement]} ` : ""}${textOf(figure, device)}${why ? ` (${why.name})` : ""}`);
      value.className = isWrong ? SIGNS[judgement][1] : "";
      attr(value, "title", why?.meaning);
      title.hidden = value.hidden = figure.deep && isEmpty(read(figure, device));
    }
    for (const { facts, node } of sections) node.hidden = facts.every(({ value }) => value.hidden);
  };
  return { node, update };
}

export function make() {
  const others = h("nav.chips", { "aria-label": "Devices" });
  const name = h("h1");
  const state = statePill();
  const problem = h("p.wrong");
  const facts = factsOf(fieldsOf("device", ({ deep }) => deep).filter((figure) => !isBeside("device", figure)));
  const charts = groups().map(chartOf);
  const columns = [["PID", "n"], ["Name"], ...tables.memory.map(({ title }) => [`${title} used`, "n"]), ["Util", "n"], ["Source"]];
  const holders = table(columns, "Processes on this device");
  const none = h("p.empty", null, "No process holds memory on this device.");
  const gone = h("p.empty");
  const body = h("div.view", null,
    h("header.title", null, name, state.node), problem,
    h("div.charts", null, charts.map(({ chart }) => chart.node), panel("Processes", holders.node, none)),
    panel("Figures", facts.node));
  const node = h("div.view", null, others, gone, body);

  const update = ({ snapshot }) => {
    const id = route.id ?? "";
    const device = snapshot.devices.find((device) => device.id === id);
    keyed(others, snapshot.devices, (device) => device.id, chip);
    body.hidden = !device;
    put(gone, device ? "" : `There is no device ${id} here.`);
    if (!device) return;
    put(name, `Device ${id}`);
    state.update(device);
    put(problem, complaint(device));
    problem.classList.toggle("critical", stateOf(device).judgement === "critical");
    facts.update(device);
    facts.node.classList.toggle("aged", isAged(device));
    const range = currentRange();
    const { tracks, reason } = follow(keptFields(), id, range);
    // Without new samples time stops: an old picture is not pushed out of sight.
    const to = isOld() ? Date.parse(snapshot.taken_at) : now();
    for (const { chart, figures } of charts) {
      const latest = figures.map((figure) => read(figure, device));
      const shown = figures.map((figure) => tracks.get(`${id} ${figure.name}`));
      // Where nothing runs with the agent, or is read deeply, there is nothing to draw.
      const isMeasured = latest.some((value) => value !== null) || shown.some((track) => track?.points.some(Boolean));
      chart.node.hidden = (figures[0].deep || figures[0].section === figureOf("device", "utilization").section) && !isMeasured;
      chart.update({ tracks: shown, latest, most: limitOf(figures[0], device), to, range: RANGES[range][0], reason });
    }
    const held = largestOf(snapshot, id);
    keyed(holders.body, held, (row) => row.pid, () => processRow(columns, (row) => [f.word(row.process.name), ...tables.memory.map(({ name }) => f.bytes(row[name])), utilText(row), f.word(row.source)]));
    holders.node.hidden = !held.length;
    none.hidden = held.length > 0;
  };

  /// Goes to the next device.
  const step = (by) => {
    const all = store.snapshot?.devices ?? [];
    const at = all.findIndex((device) => device.id === route.id);
    const next = all[(at + by + all.length) % all.length];
    if (next) go(deviceHref(next.id));
  };
  return { node, update, step };
}

function chip(device) {
  const state = statePill();
  const link = h("a", null, h("b", null, device.id), state.node);
  const update = (device) => {
    attr(link, "href", deviceHref(device.id));
    attr(link, "aria-current", device.id === route.id ? "page" : null);
    attr(link, "aria-label", `Device ${device.id}, ${device.state}`);
    state.update(device);
  };
  return { node: link, update };
}
