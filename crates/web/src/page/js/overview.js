// Everything at a glance: sums, a card for each device, all devices over time, the largest processes, the latest events.

import { attr, bar, h, keyed, put } from "./dom.js";
import { figureOf, flows, gauges, headlines, isFine, isUnread, judge, limitOf, links, numbers, read, roleOf, shortTitle, show, showOf, stateOf, tables, whyUnknown } from "./figures.js";
import * as f from "./format.js";
import { HeatMap, heatFigures } from "./heat.js";
import { follow } from "./history.js";
import { eventRow, merged } from "./log.js";
import { partsOf, remarkOf, usedText } from "./memory.js";
import { SIGNS, ageNote, belowLimit, complaint, fade, panel, scaleOf, shownSpan, statePill, table, tile, zoomNote } from "./pieces.js";
import { largestOf, processRow, utilText } from "./processes.js";
import { spark } from "./chart.js";
import { change, currentRange, deviceHref, go, href, route } from "./route.js";
import { summaryOf } from "./summary.js";

/// What is used of a capacity, in the tone of one that is tight or full, and as a bar.
export function showUsed(area, device, bar, amount) {
  const judgement = judge(tables.device.find((figure) => figure.path === area.used), device) ?? "normal";
  put(amount, usedText(area, device));
  amount.className = `n ${judgement === "normal" ? "" : SIGNS[judgement][1]}`;
  bar.show(partsOf(area, device), amount.shown);
}

/// More devices than this get small cards.
const RICH = 8;

/// Tiles, which are the same on the overview and on the wall.
export function tiles() {
  const node = h("div.tiles");
  return { node, update: (store) => keyed(node, summaryOf(store), ({ name }) => name, tile) };
}

/// All chips over time, with a choice of the figure.
function heatPanel() {
  const map = new HeatMap();
  const choices = heatFigures().map(({ name, title, help }) => h("button", { onclick: () => change({ heat: name }), "data-by": name, title: help }, title));
  const node = h("section.panel", { "aria-label": "All devices over time" }, h("div.bar-row", null, h("h2", null, "All devices over time"), h("div.segments", { role: "group", "aria-label": "Figure" }, choices)), map.node);
  const update = (devices, span) => {
    const figures = heatFigures();
    const figure = figures.find(({ name }) => name === route.words.get("heat")) ?? figures[0];
    for (const choice of choices) attr(choice, "aria-pressed", String(choice.dataset.by === figure.name));
    map.update({ figure, devices, set: follow([figure], "", currentRange(), 1, span.zoom), ...span });
  };
  return { node, update };
}

export function make() {
  const sums = tiles();
  const cards = h("div");
  const heat = heatPanel();
  const zoomed = zoomNote();
  const columns = [["PID", "n"], ["Name"], ["Devices"], ...tables.memory.map(({ title }) => [`${title} used`, "n"]), ["Util", "n"], ["Source"]];
  const textsOf = (row) => [f.nameOf(row.process), f.ids(row.process.devices), ...tables.memory.map(({ name }) => f.bytes(row[name])), utilText(row), f.word(row.source)];
  const largest = table(columns, "Largest processes");
  const none = h("p.empty");
  const events = h("ol.log");
  const nothing = h("p.empty", null, "No events since the service was started.");
  const faults = h("ul.faults");
  const failed = h("summary");
  const wrong = h("details.panel", null, failed, faults);
  const node = h("div.view", null, h("h1.unseen", null, "Overview"), sums.node,
    zoomed.node, h("section", { "aria-label": "Devices" }, cards), heat.node,
    h("div.pair", null,
      panel(["Processes ", h("a.more", { href: href("processes") }, "all")], largest.node, none),
      panel(["Events ", h("a.more", { href: href("events") }, "all")], events, nothing)),
    wrong);

  const update = (store) => {
    const { devices, processes, faults: failures } = store.snapshot;
    sums.update(store);
    const isRich = devices.length <= RICH;
    // Everything fits on one screen.
    const most = isRich ? 8 : 5;
    const span = shownSpan();
    zoomed.update();
    const trend = follow(isRich ? headlines() : [figureOf("device", "trend")], "", currentRange(), isRich ? 2 : 4, span.zoom);
    cards.className = isRich ? `cards ${devices.length < 3 ? "few" : ""}` : "heat";
    keyed(cards, devices.map((device) => ({ device, trend, span, isRich })), ({ device }) => `${device.id} ${isRich}`, ({ device }) => (isRich ? card(device) : small(device)));
    heat.node.hidden = devices.length < 2;
    if (devices.length > 1) heat.update(devices, span);
    keyed(largest.body, largestOf(store.snapshot).slice(0, most), (row) => row.pid, () => processRow(columns, textsOf, {}));
    put(none, processes.length ? "" : "No process to show.");
    largest.node.hidden = !processes.length;
    const happened = merged(store.events);
    keyed(events, happened.slice(-most).reverse(), (event) => event.key, eventRow);
    nothing.hidden = happened.length > 0;
    wrong.hidden = !failures.length;
    put(failed, `${failures.length} reading${failures.length > 1 ? "s" : ""} failed`);
    keyed(faults, failures, (fault) => `${fault.path} ${fault.reason}`, (fault) => ({ node: h("li", null, h("code", null, fault.path), `: ${fault.reason}`) }));
  };
  return { node, update };
}

function bars() {
  const areas = tables.memory.map((area) => ({ area, bar: bar(`${area.title} used`), amount: h("span.n") }));
  const node = h("div.bars", null, areas.map(({ area, bar, amount }) => [h("span.name", null, area.title), bar.node, amount]));
  return { node, update: (device) => areas.forEach(({ area, bar, amount }) => showUsed(area, device, bar, amount)) };
}

/// The link of a device in short: `Gen5 x16`.
const linkText = (device) => links().map((figure, n) => (read(figure, device) === null ? "" : `${["Gen", "x"][n] ?? ""}${showOf(figure, device)}`)).filter(Boolean).join(" ");

/// A small line that belongs to a device: a click opens the device, as everywhere on its card.
function deviceSpark(figure, id, say) {
  const { node, show: draw } = spark(`${figure.title} of device ${id} over time`, say);
  node.addEventListener("click", () => go(deviceHref(id)));
  const update = ({ device, trend: { tracks }, span }) => draw(tracks.get(`${device.id} ${figure.name}`), scaleOf(figure, device), span.to, span.range);
  return { node, update };
}

/// What large and small cards have in common.
function cardFrame(device) {
  const state = statePill();
  const old = ageNote();
  const link = h("a.id", { "data-item": true, "aria-label": `Device ${device.id}` }, device.id);
  const update = (node, { device }) => {
    state.update(device);
    old.update(device);
    node.classList.toggle("problem", !isFine(device));
    fade(node, device);
    attr(link, "href", deviceHref(device.id));
  };
  return { state, old, link, update };
}

/// A figure with its name, its value, its limit, and its line over time. At the cursor it says what was then.
function lane(figure, id) {
  const [value, below] = [h("b"), h("small")];
  let then = null;
  const trend = deviceSpark(figure, id, (at, time) => {
    then = time === null ? null : [show(figure, at, 0), `at ${f.clock(time)}`];
    if (then) [value, below].forEach((node, n) => put(node, then[n]));
    else if (last) say(last);
  });
  let last = null;
  const say = (device) => {
    const judgement = judge(figure, device) ?? "normal";
    put(value, showOf(figure, device, 0));
    put(below, figure.limit === null ? (whyUnknown(figure, device)?.name ?? "") : belowLimit(figure, device, judgement));
    label.className = `label ${judgement === "normal" ? "" : SIGNS[judgement][1]}`;
    attr(label, "title", whyUnknown(figure, device)?.meaning ?? figure.help);
  };
  const label = h("div.label", null, h("span.name", null, figure.title), value, below);
  const node = h("div.lane", null, label, trend.node);
  const update = (item) => {
    last = item.device;
    if (!then) say(last);
    trend.update(item);
  };
  return { node, update };
}

function card(device) {
  const { state, old, link, update: updateFrame } = cardFrame(device);
  const lanes = headlines().map((figure) => lane(figure, device.id));
  const busy = figureOf("device", "utilization");
  // What is not drawn is a number.
  const others = [...gauges().filter((figure) => !headlines().includes(figure)), ...numbers().filter(({ section }) => section !== busy.section)].map((figure) => ({ figure, value: h("dd") }));
  const memory = bars();
  const where = h("span.dim");
  const problem = h("p.wrong");
  const far = h("p.dim");
  const remark = h("small.remark");
  const board = h("span.board");
  const flow = h("dd");
  const facts = others.map(({ figure, value }) => ({ figure, value, part: h("div", null, h("dt", { title: figure.help }, figure.title), value) }));
  const node = h("article.card", null,
    h("header", null, link, board, where, old.node, state.node), problem, far,
    h("div.lanes", null, lanes.map((lane) => lane.node)), memory.node, h("dl.others", null, facts.map(({ part }) => part), h("div.flow", null, h("dt", null, flows()[0]?.section), flow)), remark);
  const update = (item) => {
    const { device } = item;
    updateFrame(node, item);
    node.classList.toggle("far", isUnread(device));
    put(board, f.word(device.board));
    put(where, [f.word(roleOf("device", "address", device)), linkText(device)].filter(Boolean).join(" · "));
    attr(where, "title", where.shown);
    put(problem, [complaint(device), ...links().filter((figure) => judge(figure, device) === "warning").map((figure) => `${figure.section} ${figure.title.toLowerCase()} ${showOf(figure, device)} of ${show(figure, limitOf(figure, device))}.`)].filter(Boolean).join(" "));
    problem.classList.toggle("critical", stateOf(device).judgement === "critical");
    put(far, isUnread(device) ? stateOf(device).meaning : "");
    lanes.forEach((lane) => lane.update(item));
    facts.forEach(({ figure, value, part }) => {
      put(value, showOf(figure, device, figure.full === null ? undefined : 0));
      // A board without a fan has no fan to show.
      part.hidden = read(figure, device) === null;
    });
    flow.parentNode.hidden = flows().every((figure) => read(figure, device) === null);
    put(flow, flows().map((figure) => `${shortTitle(figure)} ${showOf(figure, device)}`).join(" · "));
    memory.update(device);
    put(remark, remarkOf(device));
  };
  return { node, update };
}

function small(device) {
  const { state, old, link, update: updateFrame } = cardFrame(device);
  const values = headlines().map((figure) => ({ figure, value: h("b") }));
  const [area] = tables.memory;
  const amount = h("span.n");
  const stale = h("span.n.stale-note");
  const used = bar(`${area.title} used`);
  const figure = figureOf("device", "trend");
  const reading = h("small.label");
  const trend = deviceSpark(figure, device.id, (value, time) => put(reading, time === null ? figure.title : `${show(figure, value, 0)} at ${f.clock(time)}`));
  const node = h("article.card", null,
    h("header", null, link, old.node, state.node),
    h("div.figures", null, values.map(({ value }) => value)), h("div.bars", null, used.node, h("div.line", null, amount, stale)), h("div.lane", null, reading, trend.node));
  const update = (item) => {
    const { device } = item;
    updateFrame(node, item);
    for (const { figure, value } of values) {
      const judgement = judge(figure, device) ?? "normal";
      put(value, `${judgement === "normal" ? "" : "▲ "}${showOf(figure, device, 0)}`);
      value.className = judgement === "normal" ? "" : SIGNS[judgement][1];
      const why = whyUnknown(figure, device)?.meaning;
      attr(value, "title", `${figure.title}: ${why ?? (figure.limit === null ? figure.help : belowLimit(figure, device, judgement))}`);
    }
    const bytes = roleOf("device", "stale", device);
    put(stale, bytes ? `+ ${f.bytes(bytes)} stale` : "");
    attr(stale, "title", bytes ? remarkOf(device) : null);
    showUsed(area, device, used, amount);
    trend.update(item);
  };
  return { node, update };
}
