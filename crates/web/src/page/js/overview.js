// Everything at a glance: sums, a card for each device, the largest processes, the latest events.

import { attr, bar, h, keyed, put } from "./dom.js";
import * as f from "./format.js";
import { RANGES, follow } from "./history.js";
import { eventRow } from "./log.js";
import { complaint, gauge, isFine, panel, row, stateOf, statePill, table, tile } from "./pieces.js";
import { rowsOf } from "./processes.js";
import { spark } from "./chart.js";
import { currentRange, href } from "./route.js";
import { now } from "./store.js";

/// More devices than this get small cards.
const RICH = 8;

export function make() {
  const tiles = { devices: tile("Devices"), power: tile("Power"), hottest: tile("Hottest"), dram: tile("DRAM"), pcie: tile("PCIe"), processes: tile("Processes") };
  const cards = h("div");
  const columns = [["PID", "n"], ["Name"], ["Devices"], ["DRAM", "n"], ["L1", "n"], ["Source"]];
  const largest = table(columns, "Largest processes");
  const nobody = h("p.empty");
  const events = h("ol.log");
  const nothing = h("p.empty", null, "Nothing has happened since the service was started.");
  const faults = h("ul.faults");
  const failed = h("summary");
  const wrong = h("details.panel", null, failed, faults);
  const node = h("div.view", null, h("h1.unseen", null, "Overview"),
    h("div.tiles", null, Object.values(tiles).map((tile) => tile.node)),
    h("section", { "aria-label": "Devices" }, cards),
    h("div.pair", null,
      panel(["Processes ", h("a.more", { href: href("processes") }, "all")], largest.node, nobody),
      panel(["Events ", h("a.more", { href: href("events") }, "all")], events, nothing)),
    wrong);

  const update = ({ snapshot, events: happened }) => {
    const { devices, processes } = snapshot;
    sums(tiles, devices, processes);
    const isRich = devices.length <= RICH;
    // All of it fits on one screen.
    const most = isRich ? 8 : 5;
    const range = RANGES[currentRange()][0];
    const trend = follow(["power_watts"], "", currentRange(), 4);
    cards.className = isRich ? "cards" : "heat";
    keyed(cards, devices.map((device) => ({ device, trend, range, isRich })), ({ device }) => `${device.id} ${isRich}`, ({ device }) => (isRich ? card(device) : small(device)));
    keyed(largest.body, rowsOf(snapshot).sort((a, b) => (b.dram ?? -1) - (a.dram ?? -1)).slice(0, most), (row) => row.pid, () => process(columns));
    put(nobody, processes.length ? "" : "No process uses a device.");
    largest.node.hidden = !processes.length;
    keyed(events, happened.slice(-most).reverse(), (event) => event.seq, eventRow);
    nothing.hidden = happened.length > 0;
    wrong.hidden = !snapshot.faults.length;
    put(failed, `${snapshot.faults.length} reading${snapshot.faults.length > 1 ? "s" : ""} failed`);
    keyed(faults, snapshot.faults, (fault) => `${fault.path} ${fault.reason}`, (fault) => ({ node: h("li", null, h("code", null, fault.path), `: ${fault.reason}`) }));
  };
  return { node, update };
}

function sums(tiles, devices, processes) {
  const all = (get) => f.sum(devices.filter((device) => device.state !== "remote").map(get));
  const sick = devices.filter((device) => !isFine(device));
  const states = new Map();
  for (const { state } of sick) states.set(state, (states.get(state) ?? 0) + 1);
  put(tiles.devices.value, String(devices.length));
  put(tiles.devices.note, sick.length ? `▲ ${[...states].map(([state, n]) => `${n} ${state}`).join(", ")}` : devices.length ? "all fine" : "none found");
  tiles.devices.node.classList.toggle("bad", sick.length > 0);
  const power = all((device) => device.power_watts);
  const most = all((device) => device.power_max_watts);
  put(tiles.power.value, power.mark + f.watts(power.value));
  put(tiles.power.note, most.value ? `of ${f.whole(most.value)} W` : "");
  const hottest = devices.reduce((a, b) => ((b.asic_temp_celsius ?? -1) > (a?.asic_temp_celsius ?? -1) ? b : a), null);
  put(tiles.hottest.value, f.celsius(hottest?.asic_temp_celsius));
  put(tiles.hottest.note, hottest?.asic_temp_celsius ? `device ${hottest.id}` : "");
  const memory = (name) => f.sum(devices.map((device) => device.memory[name]));
  const used = memory("dram_used_bytes");
  put(tiles.dram.value, used.mark + f.bytes(used.value));
  put(tiles.dram.note, `of ${f.bytes(memory("dram_total_bytes").value)}`);
  put(tiles.pcie.value, `→ ${f.rate(all((device) => device.pcie.host_to_device_bytes_per_second).value)}`);
  put(tiles.pcie.note, `← ${f.rate(all((device) => device.pcie.device_to_host_bytes_per_second).value)}`);
  put(tiles.processes.value, String(processes.length));
  const cpu = f.sum(processes.map((process) => process.host_cpu_percent));
  put(tiles.processes.note, cpu.value === null ? "" : `${f.percent(cpu.value)} CPU`);
}

/// The parts of both bars of a device, as shares.
export function memoryParts(memory) {
  const share = (name, total) => (memory[total] ? (memory[name] ?? 0) / memory[total] : 0);
  return {
    dram: [["dram", share("dram_used_bytes", "dram_total_bytes")], ["trace", share("trace_used_bytes", "dram_total_bytes")]],
    l1: [["l1", share("l1_used_bytes", "l1_total_bytes")], ["l1_small", share("l1_small_used_bytes", "l1_total_bytes")], ["cb", share("cb_used_bytes", "l1_total_bytes")]],
  };
}

function bars() {
  const dram = bar("DRAM");
  const l1 = bar("L1");
  const amounts = [h("span.n"), h("span.n")];
  const node = h("div.bars", null, h("span.name", null, "DRAM"), dram.node, amounts[0], h("span.name", null, "L1"), l1.node, amounts[1]);
  const update = ({ memory }) => {
    const parts = memoryParts(memory);
    const mark = memory.untracked_processes ? "≥ " : "";
    put(amounts[0], f.ofBytes(memory.dram_used_bytes, memory.dram_total_bytes, mark));
    put(amounts[1], f.ofBytes(memory.l1_used_bytes, memory.l1_total_bytes, mark));
    dram.show(parts.dram, amounts[0].shown);
    l1.show(parts.l1, amounts[1].shown);
  };
  return { node, update };
}

/// The link that a whole card is.
const cardLink = ({ id }) => h("a.id", { "data-item": true, "aria-label": `Device ${id}` }, id);

export const linkText = ({ pcie }) => (pcie.generation ? `Gen${pcie.generation} x${pcie.width ?? "?"}` : f.MISSING);

function card(device) {
  const state = statePill();
  const [temperature, power] = [gauge("Temperature"), gauge("Power")];
  const [clock, fan] = [h("dd"), h("dd")];
  const flow = h("span.flow");
  const memory = bars();
  const trend = spark(`Power of device ${device.id} over time`);
  const where = h("span.dim");
  const sick = h("p.sick");
  const far = h("p.dim");
  const link = cardLink(device);
  const board = h("span.board");
  const node = h("article.card", null,
    h("header", null, link, board, where, state.node), sick, far,
    h("div.meters", null, temperature.node, power.node, h("dl.stack", null, h("dt", null, "Clock"), clock, h("dt", null, "Fan"), fan)),
    memory.node, trend.node);
  memory.node.append(h("span.name.pcie", null, "PCIe"), flow);
  const update = ({ device, trend: { tracks }, range }) => {
    state.update(device);
    node.classList.toggle("ill", !isFine(device));
    attr(link, "href", href(`device/${encodeURIComponent(device.id)}`));
    put(board, f.word(device.board));
    put(where, [f.word(device.pci_address), device.pcie.generation && linkText(device)].filter(Boolean).join(" · "));
    node.classList.toggle("far", device.state === "remote");
    put(sick, complaint(device));
    put(far, device.state === "remote" ? stateOf(device)[2] : "");
    temperature.update(device.asic_temp_celsius, device.asic_temp_max_celsius, "°C");
    power.update(device.power_watts, device.power_max_watts, "W");
    put(clock, f.megahertz(device.aiclk_megahertz));
    put(fan, f.rpm(device.fan_rpm));
    put(flow, `→ ${f.rate(device.pcie.host_to_device_bytes_per_second)}  ← ${f.rate(device.pcie.device_to_host_bytes_per_second)}`);
    memory.update(device);
    trend.show(tracks.get(`${device.id} power_watts`), device.power_max_watts, now(), range);
  };
  return { node, update };
}

function small(device) {
  const state = statePill();
  const [temperature, power, amount] = [h("b"), h("b"), h("span.n")];
  const dram = bar("DRAM");
  const trend = spark(`Power of device ${device.id} over time`);
  const link = cardLink(device);
  const node = h("article.card", null,
    h("header", null, link, state.node),
    h("div.figures", null, temperature, power), h("div.bars", null, dram.node, amount), trend.node);
  const update = ({ device, trend: { tracks }, range }) => {
    state.update(device);
    node.classList.toggle("ill", !isFine(device));
    attr(link, "href", href(`device/${encodeURIComponent(device.id)}`));
    for (const [part, value, limit, unit] of [[temperature, device.asic_temp_celsius, device.asic_temp_max_celsius, "°C"], [power, device.power_watts, device.power_max_watts, "W"]]) {
      const isAt = limit > 0 && value >= limit;
      put(part, value === null ? f.MISSING : `${isAt ? "▲ " : ""}${f.whole(value)} ${unit}`);
      part.className = isAt ? "bad" : "";
      attr(part, "title", limit ? `${isAt ? "at its limit" : "of"} ${limit} ${unit}` : null);
    }
    const { memory } = device;
    put(amount, f.ofBytes(memory.dram_used_bytes, memory.dram_total_bytes, memory.untracked_processes ? "≥ " : ""));
    dram.show(memoryParts(memory).dram, amount.shown);
    trend.show(tracks.get(`${device.id} power_watts`), device.power_max_watts, now(), range);
  };
  return { node, update };
}

function process(columns) {
  const link = h("a");
  const { node, cells } = row(columns, link);
  const update = (row) => {
    attr(link, "href", href(`process/${row.pid}`));
    put(link, String(row.pid));
    [f.word(row.process.name), f.ids(row.process.devices), f.bytes(row.dram), f.bytes(row.l1), f.word(row.source)].forEach((text, n) => put(cells[n + 1], text));
    attr(cells[1], "title", row.process.command);
  };
  return { node, update };
}
