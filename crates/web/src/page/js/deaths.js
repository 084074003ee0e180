// Processes that have exited, and what they held at that moment.

import { h, keyed, put } from "./dom.js";
import * as f from "./format.js";
import { tables, valueAt } from "./figures.js";
import { row, table } from "./pieces.js";
import { change, route } from "./route.js";
import { get, store } from "./store.js";

const PAGE = 50;
const COLUMNS = [["Exited", ""], ["PID", "n"], ["Name"], ["User"], ["How"], ["Devices"], ["Held", "n", "DRAM and L1 used, on all devices"], ["Buffers", "n"], ["Largest buffers", "command"], ["Command", "command"]];
const SIGNALS = { 1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM" };

export function make() {
  const list = table(COLUMNS, "Exited processes");
  const note = h("span.note", { role: "status" });
  const empty = h("p.empty");
  const pageNumber = () => Math.max(1, Number.parseInt(route.words.get("page") ?? "1", 10) || 1);
  const turn = (by) => change({ page: String(Math.max(1, pageNumber() + by)) });
  const [before, after] = [h("button", { onclick: () => turn(-1) }, "← later"), h("button", { onclick: () => turn(1) }, "earlier →")];
  const node = h("div.view", null, h("div.bar-row", null, h("h1", null, "Exited processes"), before, after, note), h("section.panel", null, list.node, empty));
  let asked = "";

  async function load() {
    const wanted = { limit: PAGE, offset: (pageNumber() - 1) * PAGE };
    // Looked for every five seconds, and at once when something has happened.
    const key = `${wanted.offset} ${store.newest} ${store.snapshot.processes.length} ${Math.floor(Date.now() / 5000)}`;
    if (key === asked) return;
    asked = key;
    try {
      const { total, deaths } = await get("deaths", wanted);
      if (key !== asked) return;
      keyed(list.body, deaths, (death) => `${death.pid} ${death.died_at}`, deathRow);
      list.node.hidden = !deaths.length;
      before.disabled = wanted.offset === 0;
      after.disabled = wanted.offset + deaths.length >= total;
      put(note, total ? `${f.count(total)} recorded` : "");
      put(empty, total ? "" : "No process has exited since the service was started.");
    } catch (error) {
      put(note, error.message);
    }
  }
  return { node, update: () => store.link.state === "live" && load() };
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
