// One device: what matters now, its charts, its memory, who uses it, what happened to it, and all its figures by section.

import { Chart } from "./chart.js";
import { attr, bar, h, keyed, put } from "./dom.js";
import { charts as groups, fieldsOf, figureOf, gauges, headlines, isBeside, judge, keptFields, limitOf, numbers, read, roleOf, shareOf, shortTitle, show, showOf, stateOf, tables, whyUnknown } from "./figures.js";
import * as f from "./format.js";
import { follow } from "./history.js";
import { eventRow, marksOf, merged } from "./log.js";
import { partsOf, remarkOf, usedText } from "./memory.js";
import { SIGNS, ageNote, belowLimit, complaint, deviceLink, fade, panel, shownSpan, statePill, table, tile, zoomNote } from "./pieces.js";
import { currentRange, deviceHref, go, href, route } from "./route.js";
import { store } from "./store.js";
import { largestOf, processRow, utilText } from "./processes.js";

/// Where the axis of a temperature begins: chips in use are warmer than this.
const WARMEST_FLOOR = 30;

function chartOf(figures) {
  const [first] = figures;
  const floor = first.unit.name === "celsius" ? WARMEST_FLOOR : 0;
  const bound = first.judge?.by === "capacity" ? "capacity" : "limit";
  // Labels of one figure have its title, figures of one section have that of the section.
  const isLabelled = first.label !== undefined;
  const title = figures.length < 2 ? first.title : isLabelled ? first.title.replace(` ${first.label}`, "") : first.section;
  const lines = figures.length < 2 ? [""] : figures.map((figure) => (isLabelled ? String(figure.label) : shortTitle(figure)));
  return { figures, chart: new Chart({ title, show: (value) => show(first, value), lines, floor, base: first.unit.binary ? 2 : 10, bound, full: first.full ?? 0, isAlarming: first.judge?.by === "heat", help: first.help }) };
}

/// What is known of a figure. The values of all channels or ports are in a row.
function textOf(figure, device) {
  const [value, symbol] = [read(figure, device), figure.unit.symbol && ` ${figure.unit.symbol}`];
  return Array.isArray(value) ? value.map((one) => show(figure, one, 0).replace(symbol, "")).join(" ") + symbol : showOf(figure, device);
}
const isEmpty = (value) => value === null || (Array.isArray(value) && value.every((one) => one === null));

/// The figures of a device by section. What a device does not measure is named in one line, and takes no room.
export function factsOf(fields) {
  const sections = tables.sections.map((name) => ({ name, facts: fields.filter(({ section }) => section === name).map((figure) => ({ figure, title: h("dt", { title: figure.help }, figure.title), value: h("dd") })) })).filter(({ facts }) => facts.length);
  const parts = sections.map(({ name, facts }) => ({ facts, node: h("section", null, h("h3", null, name), h("dl.facts", null, facts.map(({ title, value }) => [title, value]))) }));
  const missing = h("p.note");
  const node = h("div", null, h("div.sections", null, parts.map(({ node }) => node)), missing);
  const update = (device) => {
    const absent = [];
    for (const { facts, node } of parts) {
      for (const { figure, title, value } of facts) {
        const judgement = judge(figure, device);
        const isWrong = judgement === "warning" || judgement === "critical";
        const why = whyUnknown(figure, device);
        const isAbsent = isEmpty(read(figure, device)) && !why;
        title.hidden = value.hidden = isAbsent;
        // What only a deep read knows is not missing without one.
        if (isAbsent && !figure.deep) absent.push(figure.title);
        put(value, `${isWrong ? `▲ ${figure.judge.words[judgement]} ` : ""}${textOf(figure, device)}${why ? ` (${why.name})` : ""}`);
        value.className = isWrong ? SIGNS[judgement][1] : "";
        attr(value, "title", why?.meaning);
      }
      node.hidden = facts.every(({ value }) => value.hidden);
    }
    put(missing, absent.length ? `Not measured here: ${absent.join(", ")}.` : "");
  };
  return { node, update };
}

/// The figures that are said first, as tiles.
export function headTiles(device) {
  const busy = figureOf("device", "utilization");
  const of = (figure) => {
    const judgement = judge(figure, device) ?? "normal";
    const value = read(figure, device);
    return {
      name: figure.name, title: figure.title, value: showOf(figure, device, figure.full === null ? undefined : 0), tone: judgement === "normal" ? "" : SIGNS[judgement][1],
      note: figure.limit === null ? (whyUnknown(figure, device)?.meaning ?? "") : belowLimit(figure, device, judgement),
      share: figure.full && value !== null ? value / figure.full : shareOf(figure, device), isKnown: value !== null,
    };
  };
  const memory = tables.memory.map((area) => of(tables.device.find(({ path }) => path === area.used)));
  const rest = [...gauges().filter((figure) => !headlines().includes(figure)), ...numbers().filter((figure) => figure !== busy)].map(of).filter(({ isKnown }) => isKnown);
  return [...headlines().map(of), ...memory, ...rest];
}

/// Its memory by kind, with numbers.
export function memoryPanel() {
  const areas = tables.memory.map((area) => ({ area, bar: bar(`${area.title} used`), amount: h("span.n") }));
  const remark = h("small.remark");
  const node = h("section.panel.memory-bars", null, h("h2", null, "Memory"), areas.map(({ area, bar, amount }) => [h("div.line", null, h("span.name", null, `${area.title} used`), amount), bar.node]),
    h("span.key", null, tables.memory_kinds.filter(({ part_of }) => part_of).map(({ name, title, help }) => h("span", { title: help }, h(`i.${name}`), title))), remark);
  const update = (device) => {
    for (const { area, bar, amount } of areas) {
      put(amount, usedText(area, device));
      bar.show(partsOf(area, device), amount.shown);
    }
    put(remark, remarkOf(device));
    fade(node, device);
  };
  return { node, update };
}

/// The chips that it is joined to.
function neighbours(topology, id) {
  const joined = (topology?.links ?? []).filter(({ ends }) => ends.some((end) => end.id === id));
  return joined.map((link) => ({ key: link.ends.map((end) => end.id).join(), other: link.ends.find((end) => end.id !== id) ?? link.ends[0], link }));
}

function linkRow({ other, link }) {
  return { node: h("li", null, deviceLink(other.id, `device ${other.id}`), h("span.dim", null, `${link.count} link${link.count > 1 ? "s" : ""}, ${link.source === "assumed" ? "assumed" : `known from the ${link.source}`}`)) };
}

export function make() {
  const others = h("nav.chips", { "aria-label": "Devices" });
  const name = h("h1");
  const about = h("span.dim");
  const state = statePill();
  const old = ageNote();
  const problem = h("p.wrong");
  const now = h("div.tiles");
  const zoomed = zoomNote();
  const facts = factsOf(fieldsOf("device", ({ deep }) => deep).filter((figure) => !isBeside("device", figure)));
  const charts = groups().map(chartOf);
  const memory = memoryPanel();
  const columns = [["PID", "n"], ["Name"], ...tables.memory.map(({ title }) => [`${title} used`, "n"]), ["Util", "n"], ["Source"]];
  const holders = table(columns, "Processes on this device");
  const none = h("p.empty", null, "No process holds memory on this device.");
  const links = h("ul.log");
  const linkPanel = panel("Links", links);
  const events = h("ol.log");
  const nothing = h("p.empty", null, "No events of this device since the service was started.");
  const gone = h("p.empty");
  const drawn = h("div.charts", null, charts.map(({ chart }) => chart.node));
  const body = h("div.view", null,
    h("header.title", null, name, state.node, old.node, about), problem, now, zoomed.node,
    drawn,
    h("div.pair", null, memory.node, panel("Processes", holders.node, none), panel(["Events ", h("a.more", { href: href("events") }, "all")], events, nothing), linkPanel),
    panel("Figures", facts.node));
  const node = h("div.view", null, others, gone, body);

  const update = ({ snapshot, topology, events: happened }) => {
    const id = route.id ?? "";
    const device = snapshot.devices.find((device) => device.id === id);
    keyed(others, snapshot.devices, (device) => device.id, chip);
    body.hidden = !device;
    put(gone, device ? "" : `There is no device ${id} here.`);
    if (!device) return;
    put(name, `Device ${id}`);
    put(about, [device.board, roleOf("device", "address", device)].filter(Boolean).join(" · "));
    state.update(device);
    old.update(device);
    put(problem, complaint(device));
    problem.classList.toggle("critical", stateOf(device).judgement === "critical");
    keyed(now, headTiles(device), ({ name }) => name, tile);
    fade(now, device);
    fade(drawn, device);
    facts.update(device);
    fade(facts.node, device);
    memory.update(device);
    const span = shownSpan();
    zoomed.update();
    const { tracks, reason } = follow(keptFields(), id, currentRange(), 1, span.zoom);
    const marks = marksOf(happened, id);
    for (const { chart, figures } of charts) {
      const latest = figures.map((figure) => read(figure, device));
      const shown = figures.map((figure) => tracks.get(`${id} ${figure.name}`));
      // What this device does not measure has no chart: a board without a fan, a chip that nothing runs on with the agent.
      const isMeasured = latest.some((value) => value !== null) || shown.some((track) => track?.points.some(Boolean));
      chart.node.hidden = !isMeasured;
      if (isMeasured) chart.update({ tracks: shown, latest, marks, most: limitOf(figures[0], device), to: span.to, range: span.range, reason });
    }
    const held = largestOf(snapshot, id);
    keyed(holders.body, held, (row) => row.pid, () => processRow(columns, (row) => [f.nameOf(row.process), ...tables.memory.map(({ name }) => f.bytes(row[name])), utilText(row), f.word(row.source)]));
    holders.node.hidden = !held.length;
    none.hidden = held.length > 0;
    const joined = neighbours(topology, id);
    linkPanel.hidden = !joined.length;
    keyed(links, joined, ({ key }) => key, linkRow);
    const mine = merged(happened).filter((event) => event.device === id).slice(-8).reverse();
    keyed(events, mine, ({ key }) => key, eventRow);
    nothing.hidden = mine.length > 0;
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
