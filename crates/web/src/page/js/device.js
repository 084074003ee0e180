// One device: what it is, and its charts.

import { Chart } from "./chart.js";
import { attr, h, keyed, put } from "./dom.js";
import * as f from "./format.js";
import { RANGES, SERIES, follow } from "./history.js";
import { linkText } from "./overview.js";
import { complaint, panel, row, statePill, table } from "./pieces.js";
import { currentRange, go, href, route } from "./route.js";
import { isOld, now, store } from "./store.js";
import { rowsOf } from "./processes.js";

const FACTS = [
  ["Board", (d) => f.word(d.board)],
  ["Chip", (d) => f.word(d.arch)],
  ["PCI address", (d) => f.word(d.pci_address)],
  ["Link", (d) => `${linkText(d)}${d.pcie.max_generation ? `, at best Gen${d.pcie.max_generation} x${d.pcie.max_width ?? "?"}` : ""}`],
  ["Serial", (d) => f.word(d.serial)],
  ["Firmware", (d) => f.word(d.firmware.bundle)],
  ["NUMA node", (d) => f.word(d.numa_node)],
  ["Core", (d) => `${f.volts(d.vcore_volts)}, ${f.amperes(d.current_amperes)}`],
  ["Heartbeat", (d) => f.word(d.heartbeat)],
  ["Thermal trips", (d) => f.word(d.thermal_trips)],
  ["Stale memory", (d) => f.bytes(d.memory.stale_bytes)],
  ["Silent processes", (d) => f.word(d.memory.untracked_processes)],
];

const CHARTS = [
  [{ title: "Temperature", show: f.celsius, floor: 30 }, ["asic_temp_celsius"], (d) => d.asic_temp_max_celsius],
  [{ title: "Power", show: f.watts }, ["power_watts"], (d) => d.power_max_watts],
  [{ title: "DRAM", show: f.bytes, base: 2, bound: "all" }, ["dram_used_bytes"], (d) => d.memory.dram_total_bytes],
  [{ title: "L1", show: f.bytes, base: 2, bound: "all" }, ["l1_used_bytes"], (d) => d.memory.l1_total_bytes],
  [{ title: "Clock", show: f.megahertz }, ["aiclk_megahertz"], () => null],
  [{ title: "PCIe", show: f.rate, base: 2, lines: ["to device", "to host"] }, ["host_to_device_bytes_per_second", "device_to_host_bytes_per_second"], () => null],
  [{ title: "Fan", show: f.rpm }, ["fan_rpm"], () => null],
];

export function make() {
  const others = h("nav.chips", { "aria-label": "Devices" });
  const name = h("h1");
  const state = statePill();
  const sick = h("p.sick");
  const facts = FACTS.map(([label, show]) => ({ show, name: h("dt", null, label), value: h("dd") }));
  const charts = CHARTS.map(([options, series, limit]) => ({ chart: new Chart(options), series, limit }));
  const columns = [["PID", "n"], ["Name"], ["DRAM", "n"], ["L1", "n"], ["Source"]];
  const holders = table(columns, "Processes on this device");
  const nobody = h("p.empty", null, "No process holds memory here.");
  const gone = h("p.empty");
  const body = h("div.view", null,
    h("header.title", null, name, state.node), sick,
    h("div.charts", null, charts.map(({ chart }) => chart.node), panel("Processes", holders.node, nobody), panel("About", h("dl.facts.wide", null, facts.map(({ name, value }) => h("div", null, name, value))))));
  const node = h("div.view", null, others, gone, body);

  const update = ({ snapshot }) => {
    const id = route.id ?? "";
    const device = snapshot.devices.find((device) => device.id === id);
    keyed(others, snapshot.devices, (device) => device.id, chip);
    body.hidden = !device;
    put(gone, device ? "" : `There is no device ${id} here.`);
    if (!device) return;
    put(name, `Device ${id}`);
    state.update(device);
    put(sick, complaint(device));
    for (const { show, value } of facts) put(value, show(device));
    const range = currentRange();
    const { tracks, reason } = follow(Object.keys(SERIES), id, range);
    // Without new samples time stands still: an old picture is not pushed out of sight.
    const to = isOld() ? Date.parse(snapshot.taken_at) : now();
    for (const { chart, series, limit } of charts) {
      const latest = series.map((name) => SERIES[name](device));
      chart.update({ tracks: series.map((name) => tracks.get(`${id} ${name}`)), latest, most: limit(device), to, range: RANGES[range][0], reason });
    }
    const held = rowsOf(snapshot, id).sort((a, b) => (b.dram ?? -1) - (a.dram ?? -1));
    keyed(holders.body, held, (row) => row.pid, () => holder(columns));
    holders.node.hidden = !held.length;
    nobody.hidden = held.length > 0;
  };

  /// Goes to the next device.
  const step = (by) => {
    const all = store.snapshot?.devices ?? [];
    const at = all.findIndex((device) => device.id === route.id);
    const next = all[(at + by + all.length) % all.length];
    if (next) go(href(`device/${encodeURIComponent(next.id)}`));
  };
  return { node, update, step };
}

function chip(device) {
  const state = statePill();
  const link = h("a", null, h("b", null, device.id), state.node);
  const update = (device) => {
    attr(link, "href", href(`device/${encodeURIComponent(device.id)}`));
    attr(link, "aria-current", device.id === route.id ? "page" : null);
    attr(link, "aria-label", `Device ${device.id}, ${device.state}`);
    state.update(device);
  };
  return { node: link, update };
}

function holder(columns) {
  const link = h("a", { "data-item": true });
  const { node, cells } = row(columns, link);
  const update = (row) => {
    attr(link, "href", href(`process/${row.pid}`));
    put(link, String(row.pid));
    [f.word(row.process.name), f.bytes(row.dram), f.bytes(row.l1), f.word(row.source)].forEach((text, n) => put(cells[n + 1], text));
    attr(cells[1], "title", row.process.command);
  };
  return { node, update };
}
