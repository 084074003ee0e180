// One process: what it uses in all and over time, what it holds on each device, its operations, and its buffers, a page at a time.

import { attr, h, keyed, put } from "./dom.js";
import { fieldsOf, figureOf, isBeside, read, roleOf, show, showOf, sourceMeaning, tables, valueAt, whyUnknown } from "./figures.js";
import * as f from "./format.js";
import { Chart } from "./chart.js";
import { deviceLink, pages, panel, row, shownTo, table, tile } from "./pieces.js";
import { RANGES } from "./history.js";
import { change, currentRange, currentZoom, href, route } from "./route.js";
import { trailFigures, trailOf } from "./trails.js";

const PAGE = 100;
/// A table with more rows is closed at first.
const LONG = 12;
const timeOfOperation = (one) => roleOf("operation", "time", one);
/// What a process has on a device, and what its agent says of each kind there.
const heldFields = () => fieldsOf("held").filter((figure) => !figure.path.startsWith("exact") && !isBeside("held", figure));
const agentFigures = () => tables.held.filter((figure) => figure.path?.startsWith("exact"));
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const heldColumns = () => heldFields().map((figure) => [figure.title, figure.unit.name === "text" ? "" : "n", figure.help]);
const agentColumns = () => [["Device", "n"], ["Kind"], ...agentFigures().map((figure) => [capital(figure.title), "n", figure.help])];
const operationColumns = () => tables.operation.flatMap((figure) => [[figure.title, figure.unit.name === "text" ? "" : "n", figure.help], ...(figure === figureOf("operation", "time") ? [["Share", "n", "Of the device time of all operations that are listed"]] : [])]);
const BUFFERS = [["Bytes", "n", "Reserved on each device"], ["Kind"], ["Devices"], ["Label"], ["Requested", "n"], ["Banks", "n"], ["Address", "n"], ["Age", "n"], ["Source"]];

export function make() {
  const name = h("h1");
  // The command is the longest, and the first.
  const facts = fieldsOf("process").map((figure) => ({ figure, name: h("dt", { title: figure.help }, figure.title), value: h("dd") })).sort((a, b) => (b.figure.path === "command") - (a.figure.path === "command"));
  const sums = h("div.tiles");
  const charts = trailFigures().map(({ name, title, figure }) => ({ name, chart: new Chart({ title, show: (value) => show(figure, value), base: figure.unit.binary ? 2 : 10, full: figure.full ?? 0, help: figure.help }) }));
  const share = figureOf("held", "utilization");
  const busy = new Chart({ title: "Device time by operation", show: (value) => show(share, value), help: "Part of the time of each device that an operation took" });
  const since = h("p.note");
  const held = table(heldColumns(), "On each device");
  const agent = table(agentColumns(), "Allocator, by device and kind");
  const counts = h("summary");
  const agentPanel = h("details.panel", { open: true }, counts, agent.node);
  let isSettled = false;
  const operations = table(operationColumns(), "Operations, by device time");
  const operationPanel = panel("Operations", operations.node);
  const list = table(BUFFERS, "Buffers");
  const kind = h("select", { "aria-label": "Kind of buffers", onchange: () => change({ kind: kind.value, page: "" }) }, h("option", { value: "" }, "all kinds"), tables.memory_kinds.map(({ name, title }) => h("option", { value: name }, title)));
  const { nodes, load } = pages("buffers", PAGE, ["← larger", "smaller →"], ({ total, buffers, unlisted }, offset) => {
    keyed(list.body, buffers, (buffer) => `${buffer.id} ${buffer.devices} ${buffer.kind}`, () => bufferRow());
    list.node.hidden = !buffers.length;
    const more = unlisted ? `, and ${f.count(unlisted)} that are counted but not listed` : "";
    const text = buffers.length ? `${f.count(offset + 1)} to ${f.count(offset + buffers.length)} of ${f.count(total)}${more}` : "No per-buffer data for this process. Start it with “ttmon run” to see each buffer.";
    return { shown: buffers.length, total, text };
  });
  const gone = h("p.empty");
  const body = h("div.view", null, sums, h("div.charts", null, charts.map(({ chart }) => chart.node), busy.node), since, panel("About", h("dl.facts.wide", null, facts.map(({ name, value }, n) => h("div", { id: n === 0 && "command" }, name, value)))), panel("On each device", held.node), operationPanel, agentPanel);
  const node = h("div.view", null, h("header.title", null, name, h("a.more", { href: href("processes") }, "all processes")), gone, body,
    panel("Buffers", h("div.bar-row", null, kind, nodes), list.node));

  const update = ({ snapshot }) => {
    const process = snapshot.processes.find((process) => String(process.pid) === route.id);
    put(name, `Process ${route.id}${process ? ` ${f.nameOf(process)}` : ""}`);
    body.hidden = !process;
    put(gone, process ? "" : "This process does not use a device now. What exited processes held is under Exited.");
    if (process) {
      for (const { figure, value } of facts) put(value, figure.path === tables.roles.process.started ? f.clock(timeOf(read(figure, process))) : showOf(figure, process));
      keyed(sums, totalsOf(process), ({ name }) => name, tile);
      drawTrail(process, charts, busy, since);
      keyed(held.body, process.devices, (one) => one.id, heldRow);
      const all = [...(process.operations ?? [])].sort((a, b) => (timeOfOperation(b) ?? -1) - (timeOfOperation(a) ?? -1) || b.launches - a.launches);
      const time = f.sum(all.map(timeOfOperation)).value;
      keyed(operations.body, all.map((one) => ({ one, time })), ({ one }) => one.name, operationRow);
      operationPanel.hidden = !all.length;
      const counted = process.devices.flatMap((one) => tables.memory_kinds.filter(({ name }) => one.exact?.[name]).map((kind) => ({ one, kind })));
      keyed(agent.body, counted, ({ one, kind }) => `${one.id} ${kind.name}`, agentRow);
      agentPanel.hidden = !counted.length;
      put(counts, `Allocator: ${counted.length} counts, by device and kind`);
      // A long table opens when it is asked for.
      if (!isSettled && counted.length) isSettled = true, (agentPanel.open = counted.length <= LONG);
    }
    kind.value = route.words.get("kind") ?? "";
    load({ pid: route.id, kind: route.words.get("kind") });
  };
  return { node, update };
}

/// What it uses in all: each figure that is followed, and how many devices and buffers that is.
function totalsOf(process) {
  const figures = trailFigures().map(({ name, title, figure, value }) => ({ name, title: process.devices.length > 1 && name === "utilization" ? "Busiest device" : title, value: show(figure, value(process), figure.full ? 0 : undefined), note: "", share: figure.full && value(process) !== null ? value(process) / figure.full : null }));
  const buffers = f.sum(process.devices.flatMap((one) => tables.memory_kinds.map(({ name }) => one.exact?.[name]?.buffers ?? null))).value;
  return [{ name: "devices", title: "Devices", value: String(process.devices.length), note: f.ids(process.devices) }, ...figures, { name: "buffers", title: "Buffers", value: f.count(buffers), note: buffers === null ? "no per-buffer data" : "" }];
}

/// Its charts, for as far back as this page was open.
function drawTrail(process, charts, busy, since) {
  const trail = trailOf(process);
  const zoom = currentZoom();
  const [to, range] = zoom ? [zoom[1], zoom[1] - zoom[0]] : [shownTo(), Math.min(RANGES[currentRange()][0], RANGES["1h"][0])];
  put(since, trail ? `Charts begin when this page was opened, at ${f.clock(trail.since)}. The service keeps the history of devices, not of processes.` : "Only the 16 largest processes are charted.");
  const values = new Map(trailFigures().map(({ name, value }) => [name, value(process)]));
  const isMeasured = (track) => track?.points.some(Boolean);
  for (const { name, chart } of charts) {
    const track = trail?.tracks.get(name);
    chart.node.hidden = !isMeasured(track);
    if (!chart.node.hidden) chart.update({ tracks: [track], latest: [values.get(name)], to, range });
  }
  const operations = [...(trail?.tracks ?? [])].filter(([name, track]) => name.startsWith("operation ") && isMeasured(track)).slice(0, 6);
  busy.node.hidden = !operations.length;
  if (!operations.length) return;
  busy.setLines(operations.map(([name]) => name.slice("operation ".length)));
  busy.update({ tracks: operations.map(([, track]) => track), latest: operations.map(([, track]) => track.points.at(-1)?.[1] ?? track.points.at(-2)?.[1] ?? null), to, range });
}

const timeOf = (text) => (text === null ? null : Date.parse(text));

function heldRow(first) {
  const fields = heldFields();
  const { node, cells } = row(heldColumns(), deviceLink(first.id));
  const update = (one) => {
    fields.forEach((figure, n) => {
      const why = whyUnknown(figure, one);
      if (n) put(cells[n], `${showOf(figure, one)}${why ? ` (${why.name})` : ""}`);
      if (figure.reason) attr(cells[n], "title", why?.meaning);
    });
    fields.forEach((figure, n) => figure.path === "source" && (cells[n].title = sourceMeaning(one.source)));
  };
  return { node, update };
}

function operationRow() {
  const { node, cells } = row(operationColumns());
  const update = ({ one, time }) => {
    const share = time && timeOfOperation(one) !== null ? (timeOfOperation(one) / time) * 100 : null;
    const text = (figure) => (figure.unit.name === "seconds" ? f.seconds(read(figure, one)) : showOf(figure, one));
    const texts = tables.operation.flatMap((figure) => [text(figure), ...(figure === figureOf("operation", "time") ? [f.percent(share)] : [])]);
    texts.forEach((text, n) => put(cells[n], text));
  };
  return { node, update };
}

function agentRow({ one, kind }) {
  const figures = agentFigures();
  const { node, cells } = row(agentColumns(), deviceLink(one.id));
  put(cells[1], kind.title);
  const update = ({ one, kind }) => figures.forEach((figure, n) => put(cells[n + 2], show(figure, valueAt(one, figure.path.replace("{label}", kind.name)))));
  return { node, update };
}

function bufferRow() {
  const { node, cells } = row(BUFFERS);
  const update = (b) => {
    const texts = [f.bytes(b.bytes), b.kind, b.devices.join(","), f.word(b.label), f.bytes(b.logical_bytes), f.word(b.banks), `0x${b.address.toString(16)}`, f.age(b.age_seconds), f.word(b.source)];
    texts.forEach((text, n) => put(cells[n], text));
  };
  return { node, update };
}
