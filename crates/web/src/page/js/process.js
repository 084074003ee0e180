// One process: what it is, what it holds on each device, and its buffers, a page at a time.

import { attr, h, keyed, put } from "./dom.js";
import { fieldsOf, figureOf, isBeside, read, roleOf, show, showOf, sourceMeaning, tables, valueAt, whyUnknown } from "./figures.js";
import * as f from "./format.js";
import { deviceLink, pages, panel, row, table } from "./pieces.js";
import { change, href, route } from "./route.js";

const PAGE = 100;
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
  const held = table(heldColumns(), "On each device");
  const agent = table(agentColumns(), "Allocator, by device and kind");
  const agentPanel = panel("Allocator", agent.node);
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
  const body = h("div.view", null, panel("About", h("dl.facts.wide", null, facts.map(({ name, value }, n) => h("div", { id: n === 0 && "command" }, name, value)))), panel("On each device", held.node), operationPanel, agentPanel);
  const node = h("div.view", null, h("header.title", null, name, h("a.more", { href: href("processes") }, "all processes")), gone, body,
    panel("Buffers", h("div.bar-row", null, kind, nodes), list.node));

  const update = ({ snapshot }) => {
    const process = snapshot.processes.find((process) => String(process.pid) === route.id);
    put(name, `Process ${route.id}${process?.name ? ` ${process.name}` : ""}`);
    body.hidden = !process;
    put(gone, process ? "" : "This process does not use a device now. What exited processes held is under Exited.");
    if (process) {
      for (const { figure, value } of facts) put(value, figure.path === tables.roles.process.started ? f.clock(timeOf(read(figure, process))) : showOf(figure, process));
      keyed(held.body, process.devices, (one) => one.id, heldRow);
      const all = [...(process.operations ?? [])].sort((a, b) => (timeOfOperation(b) ?? -1) - (timeOfOperation(a) ?? -1) || b.launches - a.launches);
      const time = f.sum(all.map(timeOfOperation)).value;
      keyed(operations.body, all.map((one) => ({ one, time })), ({ one }) => one.name, operationRow);
      operationPanel.hidden = !all.length;
      const counted = process.devices.flatMap((one) => tables.memory_kinds.filter(({ name }) => one.exact?.[name]).map((kind) => ({ one, kind })));
      keyed(agent.body, counted, ({ one, kind }) => `${one.id} ${kind.name}`, agentRow);
      agentPanel.hidden = !counted.length;
    }
    kind.value = route.words.get("kind") ?? "";
    load({ pid: route.id, kind: route.words.get("kind") });
  };
  return { node, update };
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
