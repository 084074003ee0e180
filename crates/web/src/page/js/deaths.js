// Processes that have exited, and what they held at that moment.

import { h, keyed, put } from "./dom.js";
import * as f from "./format.js";
import { tables, valueAt } from "./figures.js";
import { pages, row, table } from "./pieces.js";

const PAGE = 50;
const COLUMNS = [["Exited", ""], ["PID", "n"], ["Name"], ["User"], ["How"], ["Devices"], ["Held", "n", "DRAM and L1 used, on all devices"], ["Buffers", "n"], ["Largest buffers", "command"], ["Command", "command"]];
const SIGNALS = { 1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM" };

export function make() {
  const list = table(COLUMNS, "Exited processes");
  const empty = h("p.empty");
  const { nodes, load } = pages("deaths", PAGE, ["← later", "earlier →"], ({ total, deaths }) => {
    keyed(list.body, deaths, (death) => `${death.pid} ${death.died_at}`, deathRow);
    list.node.hidden = !deaths.length;
    put(empty, total ? "" : "No process has exited since the service was started.");
    return { shown: deaths.length, total, text: total ? `${f.count(total)} recorded` : "" };
  });
  const node = h("div.view", null, h("div.bar-row", null, h("h1", null, "Exited processes"), nodes), h("section.panel", null, list.node, empty));
  return { node, update: ({ newest, snapshot }) => load({}, [newest, snapshot.processes.length]) };
}

function deathRow(death) {
  const { node, cells } = row(COLUMNS);
  const held = f.sum(death.devices.flatMap((one) => tables.memory.map(({ process_used }) => valueAt(one, process_used)))).value;
  const largest = (death.largest_buffers ?? []).slice(0, 3).map((b) => `${b.label ? `${b.label} ` : ""}${b.kind} ${f.bytes(b.bytes)}`).join(", ");
  const texts = [f.clock(Date.parse(death.died_at)), String(death.pid), f.word(death.name), f.word(death.user), ending(death), f.ids(death.devices), f.bytes(held), f.count(death.buffers), largest || f.MISSING, f.word(death.command)];
  texts.forEach((text, n) => put(cells[n], text));
  cells.at(-1).title = death.command ?? "";
  return { node };
}

function ending({ exit_code, signal, in_its_own_time }) {
  if (typeof signal === "number") return `killed by ${SIGNALS[signal] ?? `signal ${signal}`}`;
  if (typeof exit_code === "number") return `exit code ${exit_code}`;
  if (in_its_own_time === true) return "normal exit";
  return in_its_own_time === false ? "interrupted" : "unknown";
}
