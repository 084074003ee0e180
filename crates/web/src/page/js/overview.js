// Everything at a glance: sums, a card for each device, the largest processes, the latest events.

import { attr, bar, h, keyed, put } from "./dom.js";
import { figureOf, flows, gauges, isFine, isUnread, judge, limitOf, links, numbers, read, roleOf, shortTitle, show, showOf, stateOf, tables, valueAt, whyUnknown } from "./figures.js";
import * as f from "./format.js";
import { RANGES, follow } from "./history.js";
import { eventRow } from "./log.js";
import { partsOf, remarkOf, usedText } from "./memory.js";
import { SIGNS, belowLimit, complaint, gauge, isAged, panel, statePill, table, tile } from "./pieces.js";
import { largestOf, processRow, utilText } from "./processes.js";
import { spark } from "./chart.js";
import { currentRange, deviceHref, href } from "./route.js";
import { now } from "./store.js";

/// What is used of a capacity, in the tone of one that is tight or full, and as a bar.
function showUsed(area, device, bar, amount) {
  const judgement = judge(tables.device.find((figure) => figure.path === area.used), device) ?? "normal";
  put(amount, usedText(area, device));
  amount.className = `n ${judgement === "normal" ? "" : SIGNS[judgement][1]}`;
  bar.show(partsOf(area, device), amount.shown);
}

/// More devices than this get small cards.
const RICH = 8;

export function make() {
  const [count, users] = [tile("Devices"), tile("Processes")];
  const sums = sumTiles();
  const trendOf = figureOf("device", "trend");
  const cards = h("div");
  const columns = [["PID", "n"], ["Name"], ["Devices"], ...tables.memory.map(({ title }) => [`${title} used`, "n"]), ["Util", "n"], ["Source"]];
  const textsOf = (row) => [f.word(row.process.name), f.ids(row.process.devices), ...tables.memory.map(({ name }) => f.bytes(row[name])), utilText(row), f.word(row.source)];
  const largest = table(columns, "Largest processes");
  const none = h("p.empty");
  const events = h("ol.log");
  const nothing = h("p.empty", null, "No events since the service was started.");
  const faults = h("ul.faults");
  const failed = h("summary");
  const wrong = h("details.panel", null, failed, faults);
  const node = h("div.view", null, h("h1.unseen", null, "Overview"),
    h("div.tiles", null, [count, ...sums, users].map((tile) => tile.node)),
    h("section", { "aria-label": "Devices" }, cards),
    h("div.pair", null,
      panel(["Processes ", h("a.more", { href: href("processes") }, "all")], largest.node, none),
      panel(["Events ", h("a.more", { href: href("events") }, "all")], events, nothing)),
    wrong);

  const update = ({ snapshot, events: happened }) => {
    const { devices, processes } = snapshot;
    countDevices(count, devices);
    sums.forEach((tile) => tile.update(devices));
    countProcesses(users, processes);
    const isRich = devices.length <= RICH;
    // Everything fits on one screen.
    const most = isRich ? 8 : 5;
    const range = RANGES[currentRange()][0];
    const trend = follow([trendOf], "", currentRange(), 4);
    cards.className = isRich ? "cards" : "heat";
    keyed(cards, devices.map((device) => ({ device, trend, range, isRich })), ({ device }) => `${device.id} ${isRich}`, ({ device }) => (isRich ? card(device) : small(device)));
    keyed(largest.body, largestOf(snapshot).slice(0, most), (row) => row.pid, () => processRow(columns, textsOf, {}));
    put(none, processes.length ? "" : "No process to show.");
    largest.node.hidden = !processes.length;
    keyed(events, happened.slice(-most).reverse(), (event) => event.seq, eventRow);
    nothing.hidden = happened.length > 0;
    wrong.hidden = !snapshot.faults.length;
    put(failed, `${snapshot.faults.length} reading${snapshot.faults.length > 1 ? "s" : ""} failed`);
    keyed(faults, snapshot.faults, (fault) => `${fault.path} ${fault.reason}`, (fault) => ({ node: h("li", null, h("code", null, fault.path), `: ${fault.reason}`) }));
  };
  return { node, update };
}

/// Numbers for all devices together, made of the tables: a title, and what the number and its note are.
function sumTiles() {
  const sums = (figure, devices) => f.sum(devices.filter((device) => !isUnread(device)).map((device) => read(figure, device)));
  const hottest = (figure) => (devices) => {
    const known = devices.filter((device) => read(figure, device) !== null);
    const device = known.reduce((a, b) => (a && read(figure, a) >= read(figure, b) ? a : b), null);
    return device ? [showOf(figure, device), `device ${device.id}`] : [f.MISSING, ""];
  };
  const ofLimit = (figure) => (devices) => {
    const [all, most] = [sums(figure, devices), sums({ ...figure, path: figure.limit }, devices)];
    return [all.mark + show(figure, all.value), most.value ? `of ${show(figure, most.value, 0)}` : ""];
  };
  const ofCapacity = (area) => (devices) => {
    const [used, total] = [area.used, area.total].map((path) => f.sum(devices.map((device) => valueAt(device, path))));
    const isPart = devices.some((device) => roleOf("device", "untracked", device));
    return [(used.mark || (isPart && used.value !== null ? "≥ " : "")) + f.bytes(used.value), `of ${f.bytes(total.value)}`];
  };
  const [first, ...others] = flows();
  const sumOf = (figure, devices) => show(figure, sums(figure, devices).value);
  const flow = (devices) => [sumOf(first, devices), others.map((figure) => `${shortTitle(figure)} ${sumOf(figure, devices)}`).join(" · ")];
  const all = [
    ...gauges().map((figure) => (figure.judge.by === "heat" ? ["Hottest", hottest(figure)] : [figure.title, ofLimit(figure)])),
    ...tables.memory.map((area) => [`${area.title} used`, ofCapacity(area)]),
    ...(first ? [[first.title, flow]] : []),
  ];
  return all.map(([title, texts]) => {
    const { node, value, note } = tile(title);
    const update = (devices) => texts(devices).forEach((text, n) => put([value, note][n], text));
    return { node, update };
  });
}

function countDevices({ node, value, note }, devices) {
  const wrong = devices.filter((device) => !isFine(device));
  const states = new Map();
  for (const { state } of wrong) states.set(state, (states.get(state) ?? 0) + 1);
  put(value, String(devices.length));
  put(note, wrong.length ? `▲ ${[...states].map(([state, n]) => `${n} ${state}`).join(", ")}` : devices.length ? "all ok" : "none found");
  node.classList.toggle("critical", wrong.length > 0);
}

function countProcesses({ value, note }, processes) {
  put(value, String(processes.length));
  const cpu = f.sum(processes.map((process) => roleOf("process", "cpu", process)));
  put(note, cpu.value === null ? "" : `${f.percent(cpu.value)} CPU`);
}

function bars() {
  const areas = tables.memory.map((area) => ({ area, bar: bar(`${area.title} used`), amount: h("span.n") }));
  const flow = h("span.flow");
  const node = h("div.bars", null, areas.map(({ area, bar, amount }) => [h("span.name", null, area.title), bar.node, amount]), h("span.name.pcie", null, flows()[0]?.section), flow);
  const update = (device) => {
    areas.forEach(({ area, bar, amount }) => showUsed(area, device, bar, amount));
    put(flow, flows().map((figure) => `${shortTitle(figure)} ${showOf(figure, device)}`).join("  "));
  };
  return { node, update };
}

/// The link of a device in short: `Gen5 x16`.
const linkText = (device) => links().map((figure, n) => (read(figure, device) === null ? "" : `${["Gen", "x"][n] ?? ""}${showOf(figure, device)}`)).filter(Boolean).join(" ");

/// What large and small cards have in common.
function cardFrame(device) {
  const state = statePill();
  // The line of the figure that shows how much a device does.
  const figure = figureOf("device", "trend");
  const trend = spark(`${figure.title} of device ${device.id} over time`);
  attr(trend.node, "title", figure.title);
  const link = h("a.id", { "data-item": true, "aria-label": `Device ${device.id}` }, device.id);
  const update = (node, { device, trend: { tracks }, range }) => {
    state.update(device);
    node.classList.toggle("problem", !isFine(device));
    node.classList.toggle("aged", isAged(device));
    attr(link, "href", deviceHref(device.id));
    trend.show(tracks.get(`${device.id} ${figure.name}`), limitOf(figure, device), now(), range);
  };
  return { state, trend, link, update };
}

function card(device) {
  const { state, trend, link, update: updateFrame } = cardFrame(device);
  const meters = gauges().map(gauge);
  // How busy it is comes first, and says more than how many programs that is.
  const busy = figureOf("device", "utilization");
  const plain = [busy, ...numbers().filter(({ section }) => section !== busy.section)].map((figure) => ({ figure, value: h("dd") }));
  const memory = bars();
  const where = h("span.dim");
  const problem = h("p.wrong");
  const far = h("p.dim");
  const remark = h("small.remark");
  const board = h("span.board");
  const node = h("article.card", null,
    h("header", null, link, board, where, state.node), problem, far,
    h("div.meters", null, meters.map((meter) => meter.node), h("dl.stack", null, plain.map(({ figure, value }) => [h("dt", { title: figure.help }, figure.title), value]))),
    memory.node, remark, trend.node);
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
    meters.forEach((meter) => meter.update(device));
    plain.forEach(({ figure, value }) => {
      put(value, showOf(figure, device, figure.full === null ? undefined : 0));
      attr(value, "title", whyUnknown(figure, device)?.meaning);
    });
    memory.update(device);
    put(remark, remarkOf(device));
  };
  return { node, update };
}

function small(device) {
  const { state, trend, link, update: updateFrame } = cardFrame(device);
  const values = [figureOf("device", "utilization"), ...gauges()].map((figure) => ({ figure, value: h("b") }));
  const [area] = tables.memory;
  const amount = h("span.n");
  const used = bar(`${area.title} used`);
  const node = h("article.card", null,
    h("header", null, link, state.node),
    h("div.figures", null, values.map(({ value }) => value)), h("div.bars", null, used.node, amount), trend.node);
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
    showUsed(area, device, used, amount);
  };
  return { node, update };
}
