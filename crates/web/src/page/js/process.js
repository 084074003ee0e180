// One process: what it is, what it holds on each device, and its buffers, a page at a time.

import { h, keyed, put } from "./dom.js";
import * as f from "./format.js";
import { KINDS, SOURCES, deviceLink, panel, row, table } from "./pieces.js";
import { change, href, route } from "./route.js";
import { get, store } from "./store.js";

const PAGE = 100;
const FACTS = [
  ["Command", (p) => f.word(p.command)],
  ["User", (p) => f.word(p.user)],
  ["Container", (p) => f.word(p.container)],
  ["Runtime", (p) => f.word(p.runtime)],
  ["Parent", (p) => f.word(p.parent_pid)],
  ["Started", (p) => (p.started_at ? f.clock(Date.parse(p.started_at)) : f.MISSING)],
  ["Host memory", (p) => f.bytes(p.host_memory_bytes)],
  ["Host CPU", (p) => f.percent(p.host_cpu_percent)],
  ["Book", (p) => f.word(p.agent)],
];
const HELD = [["Device", "n"], ...KINDS.map(([, name, title]) => [name, "n", title]), ["Source", "", "Where these figures come from"], ["Peak DRAM", "n"], ["Buffers", "n"], ["Largest free", "n", "The largest piece that is free in a bank of DRAM"], ["Fragmented", "n", "How much of what is free a single buffer cannot have"]];
const BUFFERS = [["Bytes", "n", "Reserved on each device"], ["Kind"], ["Devices"], ["Label"], ["Asked for", "n"], ["Banks", "n"], ["Address", "n"], ["Age", "n"], ["Source"]];

export function make() {
  const name = h("h1");
  const facts = FACTS.map(([label, show]) => ({ show, name: h("dt", null, label), value: h("dd") }));
  const held = table(HELD, "Memory on each device");
  const list = table(BUFFERS, "Buffers");
  const kind = h("select", { "aria-label": "Kind of buffers", onchange: () => change({ kind: kind.value, page: "" }) }, h("option", { value: "" }, "all kinds"), [...KINDS.map(([id]) => id), "kernel"].map((id) => h("option", { value: id }, id)));
  const note = h("span.note", { role: "status" });
  const turn = (by) => change({ page: String(Math.max(1, pageNumber() + by)) });
  const [before, after] = [h("button", { onclick: () => turn(-1) }, "← larger"), h("button", { onclick: () => turn(1) }, "smaller →")];
  const gone = h("p.empty");
  const body = h("div.view", null, panel("About", h("dl.facts.wide", null, facts.map(({ name, value }, n) => h("div", { id: n === 0 && "command" }, name, value)))), panel("Memory", held.node));
  const node = h("div.view", null, h("header.title", null, name, h("a.more", { href: href("processes") }, "all processes")), gone, body,
    panel("Buffers", h("div.bar-row", null, kind, before, after, note), list.node));
  let asked = "";

  const pageNumber = () => Math.max(1, Number.parseInt(route.words.get("page") ?? "1", 10) || 1);

  async function load() {
    const wanted = { pid: route.id, kind: route.words.get("kind"), limit: PAGE, offset: (pageNumber() - 1) * PAGE };
    const key = JSON.stringify(wanted) + Math.floor(Date.now() / 5000);
    if (key === asked) return;
    asked = key;
    kind.value = wanted.kind ?? "";
    try {
      const answer = await get("buffers", wanted);
      if (key !== asked) return;
      const { total, offset, buffers, unlisted } = Array.isArray(answer.buffers) ? answer : answer.buffers;
      keyed(list.body, buffers, (buffer) => `${buffer.id} ${buffer.devices} ${buffer.kind}`, () => bufferRow());
      list.node.hidden = !buffers.length;
      before.disabled = offset === 0;
      after.disabled = offset + buffers.length >= total;
      const more = unlisted ? `, and ${f.count(unlisted)} that the book had no room for` : "";
      put(note, buffers.length ? `${f.count(offset + 1)} to ${f.count(offset + buffers.length)} of ${f.count(total)}${more}` : `Nobody tells of its buffers. Start it with “ttmon run” to see each of them.`);
    } catch (error) {
      put(note, error.message);
    }
  }

  const update = ({ snapshot }) => {
    const process = snapshot.processes.find((process) => String(process.pid) === route.id);
    put(name, `Process ${route.id}${process?.name ? ` ${process.name}` : ""}`);
    body.hidden = !process;
    put(gone, process ? "" : "It does not use a device now. What the dead held is under Deaths.");
    if (process) {
      for (const { show, value } of facts) put(value, show(process));
      keyed(held.body, process.devices, (one) => one.id, heldRow);
    }
    if (store.link.state === "live") load();
  };
  return { node, update };
}

function heldRow(first) {
  const { node, cells } = row(HELD, deviceLink(first.id));
  const update = (one) => {
    const { dram } = one.exact ?? {};
    const texts = [...KINDS.map(([id]) => f.bytes(one[`${id}_bytes`])), f.word(one.source), f.bytes(dram?.peak_bytes), f.count(dram?.buffers), f.bytes(dram?.banks?.largest_free_bytes), f.percent(dram?.banks?.fragmentation === undefined || dram.banks.fragmentation === null ? null : dram.banks.fragmentation * 100)];
    texts.forEach((text, n) => put(cells[n + 1], text));
    cells[KINDS.length + 1].title = SOURCES[one.source] ?? "";
  };
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
