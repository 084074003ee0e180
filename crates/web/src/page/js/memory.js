// Where the memory went: on each device by kind or by process, with the numbers, and where they come from.

import { attr, bar, h, keyed, put } from "./dom.js";
import * as f from "./format.js";
import { memoryParts } from "./overview.js";
import { KINDS, SOURCES, deviceLink, panel, row, statePill, table } from "./pieces.js";
import { change, href, route } from "./route.js";

const COLUMNS = [["Device", "n"], ["PID", "n"], ["Name"], ["User"], ...KINDS.map(([, name, title]) => [name, "n", title]), ["Source"]];
/// So many processes have a colour of their own.
const COLOURS = 6;

export function make() {
  const choices = ["kind", "process"].map((by) => h("button", { onclick: () => change({ by }), "data-by": by }, `by ${by}`));
  const key = h("span.key", null, KINDS.map(([id, name, title]) => h("span", { title }, h(`i.${id}`), name)));
  const list = h("div.memory");
  const who = table(COLUMNS, "Memory of each process on each device");
  const nobody = h("p.empty", null, "No process holds memory.");
  const node = h("div.view", null,
    h("div.bar-row", null, h("h1", null, "Memory"), h("div.segments", { role: "group", "aria-label": "Bars show" }, choices), key),
    list, panel("Who holds it", who.node, nobody),
    h("dl.facts.legend", null, Object.entries(SOURCES).map(([name, meaning]) => [h("dt", null, name), h("dd", null, meaning)]), h("dt", null, "stale"), h("dd", null, "bytes that books still carry for processes that are dead; never part of what is used")));

  const update = ({ snapshot }) => {
    const by = route.words.get("by") === "process" ? "process" : "kind";
    for (const choice of choices) attr(choice, "aria-pressed", String(choice.dataset.by === by));
    key.hidden = by === "process";
    const held = snapshot.processes.flatMap((process, n) => process.devices.map((one) => ({ process, one, colour: `p${n % COLOURS}` })));
    keyed(list, snapshot.devices.map((device) => ({ device, by, held: held.filter(({ one }) => one.id === device.id) })), ({ device }) => device.id, ({ device }) => deviceBars(device));
    const rows = held.filter(({ one }) => one.source);
    keyed(who.body, rows, ({ process, one }) => `${process.pid} ${one.id}`, holding);
    who.node.hidden = !rows.length;
    nobody.hidden = rows.length > 0;
  };
  return { node, update };
}

function deviceBars(first) {
  const state = statePill();
  const bars = { dram: bar(`DRAM of device ${first.id}`), l1: bar(`L1 of device ${first.id}`) };
  const amounts = { dram: h("span.n"), l1: h("span.n") };
  const notes = { dram: h("small"), l1: h("small") };
  const remark = h("small.remark");
  const area = (id, name) => [h("div.line", null, h("span.name", null, name), amounts[id]), bars[id].node, notes[id]];
  const node = h("section.panel", { "aria-label": `Memory of device ${first.id}` }, h("header", null, deviceLink(first.id, h("b.id", null, first.id), h("span", null, f.word(first.board))), state.node), area("dram", "DRAM"), area("l1", "L1"), remark);
  const update = ({ device, by, held }) => {
    const { memory } = device;
    state.update(device);
    const mark = memory.untracked_processes ? "≥ " : "";
    const kinds = memoryParts(memory);
    for (const id of ["dram", "l1"]) {
      const names = id === "dram" ? ["dram", "trace"] : ["l1", "l1_small", "cb"];
      put(amounts[id], f.ofBytes(f.sum(names.map((name) => memory[`${name}_used_bytes`])).value, memory[`${id}_total_bytes`], mark));
      const words = names.map((name) => `${name.toUpperCase()} ${f.bytes(memory[`${name}_used_bytes`])}`);
      const shares = held.map(({ process, one, colour }) => {
        const { value } = f.sum(names.map((name) => one[`${name}_bytes`]));
        return { share: memory[`${id}_total_bytes`] ? (value ?? 0) / memory[`${id}_total_bytes`] : 0, value, process, colour };
      }).filter(({ value }) => value);
      if (by === "process") {
        put(notes[id], shares.map(({ process, value }) => `${process.pid} ${process.name ?? ""} ${f.bytes(value)}`).join(" · ") || "nobody");
        bars[id].show(shares.map(({ share, process, colour, value }) => [`${colour} ${process.pid}`, share, `${process.pid} ${process.name ?? ""} ${f.bytes(value)}`]), notes[id].shown);
      } else {
        put(notes[id], words.join(" · "));
        bars[id].show(kinds[id], notes[id].shown);
      }
    }
    const stale = memory.stale_bytes ? `stale ${f.bytes(memory.stale_bytes)}` : "";
    const silent = memory.untracked_processes ? `${memory.untracked_processes} of its processes tell nobody what they hold` : "";
    put(remark, [stale, silent].filter(Boolean).join(" · "));
  };
  return { node, update };
}

function holding({ process, one }) {
  const { node, cells } = row(COLUMNS, deviceLink(one.id));
  cells[1].append(h("a", { href: href(`process/${process.pid}`), "data-item": true }, String(process.pid)));
  const update = ({ process, one }) => {
    [f.word(process.name), f.word(process.user), ...KINDS.map(([id]) => f.bytes(one[`${id}_bytes`])), f.word(one.source)].forEach((text, n) => put(cells[n + 2], text));
    cells.at(-1).title = SOURCES[one.source] ?? "";
  };
  return { node, update };
}
