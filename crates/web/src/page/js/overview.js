// Everything at a glance: sums, a card for each device, the largest processes, the latest events.

import { attr, bar, h, keyed, put } from "./dom.js";
import { figureOf, flows, gauges, isFine, isUnread, judge, limitOf, links, numbers, read, roleOf, shortTitle, show, showOf, stateOf, tables, valueAt } from "./figures.js";
import * as f from "./format.js";
import { RANGES, follow } from "./history.js";
import { eventRow } from "./log.js";
import { partsOf, remarkOf, usedText } from "./memory.js";
import { SIGNS, belowLimit, complaint, gauge, isAged, panel, statePill, table, tile } from "./pieces.js";
import { largestOf, processRow } from "./processes.js";
import { spark } from "./chart.js";
import { currentRange, href } from "./route.js";
import { now } from "./store.js";

/// The class of a memory area that is tight or full; empty where it is neither.
const toneOf = (area, device) => {
  const judgement = judge(tables.device.find((figure) => figure.path === area.used), device) ?? "normal";
  return judgement === "normal" ? "" : SIGNS[judgement][1];
};

/// More devices than this get small cards.
const RICH = 8;

export function make() {
  const [count, users] = [tile("Devices"), tile("Processes")];
  const sums = sumTiles();
  const trendOf = figureOf("device", "trend");
  const cards = h("div");
  const columns = [["PID", "n"], ["Name"], ["Devices"], ...tables.memory.map(({ title }) => [`${title} used`, "n"]), ["Source"]];
  const textsOf = (row) => [f.word(row.process.name), f.ids(row.process.devices), ...tables.memory.map(({ name }) => f.bytes(row[name])), f.word(row.source)];
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

/// A number for all devices together, each made of the tables.
function sumTiles() {
  const sums = (figure, devices) => f.sum(devices.filter((device) => !isUnread(device)).map((device) => read(figure, device)));
  const made = [];
  const add = (title, update) => {
    const one = tile(title);
    made.push({ node: one.node, update: (devices) => update(one, devices) });
  };
  for (const figure of gauges()) {
    if (figure.judge.by === "heat") {
      add("Hottest", ({ value, note }, devices) => {
        const hottest = devices.reduce((a, b) => ((read(figure, b) ?? -1) > ((a && read(figure, a)) ?? -1) ? b : a), null);
        const isKnown = hottest && read(figure, hottest) !== null;
        put(value, isKnown ? showOf(figure, hottest) : f.MISSING);
        put(note, isKnown ? `device ${hottest.id}` : "");
      });
    } else {
      const limit = { ...figure, path: figure.limit };
      add(figure.title, ({ value, note }, devices) => {
        const [all, most] = [sums(figure, devices), sums(limit, devices)];
        put(value, all.mark + show(figure, all.value));
        put(note, most.value ? `of ${show(figure, most.value, 0)}` : "");
      });
    }
  }
  for (const area of tables.memory) {
    add(`${area.title} used`, ({ value, note }, devices) => {
      const [used, total] = [area.used, area.total].map((path) => f.sum(devices.map((device) => valueAt(device, path))));
      const isPart = devices.some((device) => roleOf("device", "untracked", device));
      put(value, (used.mark || (isPart && used.value !== null ? "≥ " : "")) + f.bytes(used.value));
      put(note, `of ${f.bytes(total.value)}`);
    });
  }
  const [first, ...others] = flows();
  if (first) {
    add(first.title, ({ value, note }, devices) => {
      put(value, show(first, sums(first, devices).value));
      put(note, others.map((figure) => `${shortTitle(figure)} ${show(figure, sums(figure, devices).value)}`).join(" · "));
    });
  }
  return made;
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
    for (const { area, bar, amount } of areas) {
      put(amount, usedText(area, device));
      amount.className = `n ${toneOf(area, device)}`;
      bar.show(partsOf(area, device), amount.shown);
    }
    put(flow, flows().map((figure) => `${shortTitle(figure)} ${showOf(figure, device)}`).join("  "));
  };
  return { node, update };
}

/// The link that a whole card is.
const cardLink = ({ id }) => h("a.id", { "data-item": true, "aria-label": `Device ${id}` }, id);

/// The link of a device in short: `Gen5 x16`.
const linkText = (device) => links().map((figure, n) => (read(figure, device) === null ? "" : `${["Gen", "x"][n] ?? ""}${showOf(figure, device)}`)).filter(Boolean).join(" ");

/// The line of the figure that shows how much a device does.
function trendLine(device) {
  const figure = figureOf("device", "trend");
  const line = spark(`${figure.title} of device ${device.id} over time`);
  attr(line.node, "title", figure.title);
  const update = (device, tracks, range) => line.show(tracks.get(`${device.id} ${figure.name}`), limitOf(figure, device), now(), range);
  return { node: line.node, update };
}

function card(device) {
  const state = statePill();
  const meters = gauges().map(gauge);
  const plain = numbers().map((figure) => ({ figure, value: h("dd") }));
  const memory = bars();
  const trend = trendLine(device);
  const where = h("span.dim");
  const problem = h("p.wrong");
  const far = h("p.dim");
  const remark = h("small.remark");
  const link = cardLink(device);
  const board = h("span.board");
  const node = h("article.card", null,
    h("header", null, link, board, where, state.node), problem, far,
    h("div.meters", null, meters.map((meter) => meter.node), h("dl.stack", null, plain.map(({ figure, value }) => [h("dt", { title: figure.help }, figure.title), value]))),
    memory.node, remark, trend.node);
  const update = ({ device, trend: { tracks }, range }) => {
    state.update(device);
    node.classList.toggle("problem", !isFine(device));
    node.classList.toggle("aged", isAged(device));
    node.classList.toggle("far", isUnread(device));
    attr(link, "href", href(`device/${encodeURIComponent(device.id)}`));
    put(board, f.word(device.board));
    put(where, [f.word(roleOf("device", "address", device)), linkText(device)].filter(Boolean).join(" · "));
    attr(where, "title", where.shown);
    put(problem, [complaint(device), ...links().filter((figure) => judge(figure, device) === "warning").map((figure) => `${figure.section} ${figure.title.toLowerCase()} ${showOf(figure, device)} of ${show(figure, limitOf(figure, device))}.`)].filter(Boolean).join(" "));
    problem.classList.toggle("critical", stateOf(device).judgement === "critical");
    put(far, isUnread(device) ? stateOf(device).meaning : "");
    meters.forEach((meter) => meter.update(device));
    plain.forEach(({ figure, value }) => put(value, showOf(figure, device)));
    memory.update(device);
    put(remark, remarkOf(device));
    trend.update(device, tracks, range);
  };
  return { node, update };
}

function small(device) {
  const state = statePill();
  const values = gauges().map((figure) => ({ figure, value: h("b") }));
  const [area] = tables.memory;
  const amount = h("span.n");
  const used = bar(`${area.title} used`);
  const trend = trendLine(device);
  const link = cardLink(device);
  const node = h("article.card", null,
    h("header", null, link, state.node),
    h("div.figures", null, values.map(({ value }) => value)), h("div.bars", null, used.node, amount), trend.node);
  const update = ({ device, trend: { tracks }, range }) => {
    state.update(device);
    node.classList.toggle("problem", !isFine(device));
    node.classList.toggle("aged", isAged(device));
    attr(link, "href", href(`device/${encodeURIComponent(device.id)}`));
    for (const { figure, value } of values) {
      const judgement = judge(figure, device) ?? "normal";
      put(value, `${judgement === "normal" ? "" : "▲ "}${showOf(figure, device, 0)}`);
      value.className = judgement === "normal" ? "" : SIGNS[judgement][1];
      attr(value, "title", `${figure.title}: ${belowLimit(figure, device, judgement)}`);
    }
    put(amount, usedText(area, device));
    amount.className = `n ${toneOf(area, device)}`;
    used.show(partsOf(area, device), amount.shown);
    trend.update(device, tracks, range);
  };
  return { node, update };
}
