// One of the other machines: its numbers, devices and processes; or one device of it. What it has no room for is on its own page.

import { attr, bar, h, keyed, put } from "./dom.js";
import { factsOf, headTiles, memoryPanel } from "./device.js";
import { fieldsOf, headlines, isBeside, isFine, isUnread, judge, numbers, read, roleOf, showOf, stateOf, tables } from "./figures.js";
import * as f from "./format.js";
import { showUsed } from "./overview.js";
import { SIGNS, ageNote, complaint, fade, panel, pill, row, statePill, table, tile } from "./pieces.js";
import { problemRow, problemsOf } from "./problems.js";
import { largestOf, utilText } from "./processes.js";
import { href, route } from "./route.js";
import { summaryOf } from "./summary.js";

/// More devices than this get small cards.
const RICH = 8;
/// So many processes are drawn.
const PROCESSES = 50;

/// What each word for a machine's state means for its tone.
export const JUDGEMENTS = { "no answer": "critical", critical: "critical", warning: "warning", waiting: null, ok: "normal" };
export const signOf = (need) => SIGNS[JUDGEMENTS[need]] ?? ["◇", "plain"];

export const needPill = (need) => pill(signOf(need), need);
/// What is wrong with a machine, in words.
export function problemOf({ problem, reason, unreachable_seconds: seconds, need }) {
  if (need === "waiting") return "no answer yet";
  return seconds === null ? (problem ?? "") : `no answer for ${f.age(seconds)}: ${reason}`;
}

/// How old the last data of a machine are.
export const ageOf = ({ age_seconds: seconds, is_old: isOld }) => (seconds === null ? f.MISSING : isOld ? `${f.age(seconds)} old` : "now");

const hostHref = (host, device) => href(["fleet", host, device].filter((part) => part !== undefined).map(encodeURIComponent).join("/"));
const deviceOf = (host) => (id, ...content) => h("a", { href: hostHref(host, id) }, ...(content.length ? content : [id]));
/// A process is a link nowhere here: its buffers are on the machine's own page.
const processOf = (pid) => h("span", null, `process ${pid}`);

/// A link to a machine's own page, where that is known. Nothing but an address of the web is one.
function ownPage(words) {
  const node = h("a.own", { target: "_blank", rel: "noopener noreferrer" }, words, h("span", { "aria-hidden": true }, " ↗"));
  const update = ({ page }, rest = "") => {
    node.hidden = !/^https?:/.test(page ?? "");
    attr(node, "href", node.hidden ? null : `${page}${rest}`);
  };
  return { node, update };
}

export function make() {
  const [whole, single] = [machineView(), deviceView()];
  const node = h("div.view", null, whole.node, single.node);
  const update = (host) => {
    whole.node.hidden = route.part !== null;
    single.node.hidden = route.part === null;
    (route.part === null ? whole : single).update(host);
  };
  return { node, update };
}

/// The name of a machine or device, how it is, and where there is more.
function heading(words) {
  const [up, name, about, state] = [h("a.more"), h("h1"), h("span.dim"), h("span")];
  const own = ownPage(words);
  const node = h("header.title", null, up, name, state, about, own.node);
  return { node, up, name, about, state, own };
}

function machineView() {
  const head = heading("Open its own page");
  const problem = h("p.wrong");
  const sums = h("div.tiles");
  const problems = h("ol.log");
  const problemPanel = panel("Problems", problems);
  const cards = h("div");
  const held = processTable("Processes", true);
  const failed = h("summary");
  const faults = h("ul.faults");
  const wrong = h("details.panel", null, failed, faults);
  const body = h("div.view", null, sums, problemPanel, h("section", { "aria-label": "Devices" }, cards), held.node, wrong);
  const nothing = h("p.empty");
  const node = h("div.view.fleet", null, head.node, problem, nothing, body);
  let need = null;
  const update = (host) => {
    const { snapshot, alerts } = host;
    put(head.up, "← all machines");
    attr(head.up, "href", href("fleet"));
    put(head.name, host.host);
    if (need !== host.need) head.state.replaceChildren(needPill((need = host.need)));
    put(head.about, [snapshot && `driver ${f.word(roleOf("machine", "driver", snapshot))}`, host.is_old && snapshot && `values ${ageOf(host)}`].filter(Boolean).join(" · "));
    head.own.update(host);
    put(problem, host.state === "reached" ? "" : problemOf(host));
    problem.classList.toggle("critical", host.need === "no answer");
    body.hidden = !snapshot;
    put(nothing, snapshot ? "" : "There are no data of this machine yet.");
    if (!snapshot) return;
    const { devices } = snapshot;
    const about = { snapshot, alerts: alerts ?? [] };
    const isGone = host.state !== "reached";
    // Their addresses would be those of this machine.
    keyed(sums, summaryOf(about).map((one) => ({ ...one, address: undefined, ...(isGone && one.name === "chips" ? unknownChips(host) : {}) })), ({ name }) => name, tile);
    sums.classList.toggle("aged", isGone);
    // Why it does not answer is said above, once for all devices.
    const all = isGone ? [] : problemsOf(about);
    problemPanel.hidden = !all.length;
    keyed(problems, all, ({ key }) => key, (one) => problemRow(one, deviceOf(host.host), processOf));
    const isRich = devices.length <= RICH;
    cards.className = isRich ? "cards" : "heat";
    keyed(cards, devices.map((device) => ({ device, host })), ({ device }) => `${host.host} ${device.id} ${isRich}`, ({ device }) => card(device, isRich));
    held.update(snapshot);
    held.node.classList.toggle("aged", isGone);
    wrong.hidden = !snapshot.faults.length;
    put(failed, `${snapshot.faults.length} reading${snapshot.faults.length > 1 ? "s" : ""} failed`);
    keyed(faults, snapshot.faults, (fault) => `${fault.path} ${fault.reason}`, (fault) => ({ node: h("li", null, h("code", null, fault.path), `: ${fault.reason}`) }));
  };
  return { node, update };
}

/// Of a machine that does not answer, no chip is known to be ok.
const unknownChips = ({ devices }) => ({ value: `0 of ${devices} ok`, note: "not known now", tone: "critical" });

/// A device in a few numbers.
function card(first, isRich) {
  const [state, old] = [statePill(), ageNote()];
  const [link, board, problem] = [h("a.id", { "data-item": true, "aria-label": `Device ${first.id}` }, first.id), h("span.dim"), h("p.wrong")];
  const shown = isRich ? [...headlines(), ...numbers().filter((figure) => !headlines().includes(figure))] : headlines();
  const figures = shown.map((figure) => {
    const value = h(isRich ? "dd" : "b");
    return { figure, value, part: isRich ? h("div", null, h("dt", { title: figure.help }, figure.title), value) : value };
  });
  const values = h(isRich ? "dl.others" : "div.figures", null, figures.map(({ part }) => part));
  const areas = (isRich ? tables.memory : tables.memory.slice(0, 1)).map((area) => ({ area, used: bar(`${area.title} used`), amount: h("span.n") }));
  const memory = h("div.bars", null, areas.map(({ area, used, amount }) => (isRich ? [h("span.name", null, area.title), used.node, amount] : [used.node, h("div.line", null, amount)])));
  const node = h("article.card", null, h("header", null, link, isRich && board, old.node, state.node), isRich && problem, values, memory);
  const update = ({ device, host }) => {
    attr(link, "href", hostHref(host.host, device.id));
    put(board, f.word(device.board));
    state.update(device);
    old.update(device);
    put(problem, isFine(device) || host.state !== "reached" ? "" : complaint(device));
    node.classList.toggle("far", isUnread(device));
    problem.classList.toggle("critical", stateOf(device).judgement === "critical");
    for (const { figure, value, part } of figures) {
      // A board without a fan has no fan to show.
      part.hidden = isRich && read(figure, device) === null && !headlines().includes(figure);
      const judgement = judge(figure, device) ?? "normal";
      put(value, `${judgement === "normal" ? "" : "▲ "}${showOf(figure, device, 0)}`);
      value.className = judgement === "normal" ? "" : SIGNS[judgement][1];
      attr(value, "title", figure.title);
    }
    areas.forEach(({ area, used, amount }) => showUsed(area, device, used, amount));
    node.classList.toggle("problem", !isFine(device));
    fade(node, device);
  };
  return { node, update };
}

/// The largest processes of a machine, or on one device of it.
function processTable(title, hasDevices) {
  const columns = [["PID", "n"], ["Name"], ["User"], ...(hasDevices ? [["Devices"]] : []), ...tables.memory.map(({ title }) => [`${title} used`, "n"]), ["Util", "n"], ["Source"]];
  const list = table(columns, title);
  const note = h("p.empty");
  const node = panel(title, list.node, note);
  const make = () => {
    const { node, cells } = row(columns);
    const update = (one) => {
      const { process } = one;
      const texts = [String(one.pid), f.nameOf(process), f.word(process.user), ...(hasDevices ? [f.ids(process.devices)] : []), ...tables.memory.map(({ name }) => f.bytes(one[name])), utilText(one), f.word(one.source)];
      texts.forEach((text, n) => put(cells[n], text));
      attr(node, "title", process.command);
    };
    return { node, update };
  };
  const update = (snapshot, device = null) => {
    const rows = largestOf(snapshot, device);
    keyed(list.body, rows.slice(0, PROCESSES), ({ pid }) => pid, make);
    list.node.hidden = !rows.length;
    put(note, !rows.length ? (device === null ? "No process to show." : "No process holds memory on this device.") : rows.length > PROCESSES ? `and ${rows.length - PROCESSES} more` : "");
  };
  return { node, update };
}

/// One device of another machine.
function deviceView() {
  const others = h("nav.chips", { "aria-label": "Devices of this machine" });
  const head = heading("Charts on its own page");
  const [state, old, problem, gone] = [statePill(), ageNote(), h("p.wrong"), h("p.empty")];
  head.state.append(state.node);
  head.name.after(old.node);
  const tiles = h("div.tiles");
  const memory = memoryPanel();
  const held = processTable("Processes", false);
  const facts = factsOf(fieldsOf("device", ({ deep }) => deep).filter((figure) => !isBeside("device", figure)));
  const body = h("div.view", null, problem, tiles, h("div.pair", null, memory.node, held.node), panel("Figures", facts.node));
  const node = h("div.view.fleet", null, head.node, others, gone, body);
  const update = (host) => {
    const devices = host.snapshot?.devices ?? [];
    const device = devices.find(({ id }) => id === route.part);
    put(head.up, `← ${host.host}`);
    attr(head.up, "href", hostHref(host.host));
    put(head.name, `Device ${route.part}`);
    head.own.update(host, `#/device/${encodeURIComponent(route.part)}`);
    head.state.hidden = !device;
    keyed(others, devices, ({ id }) => id, (first) => chip(host.host, first));
    body.hidden = !device;
    put(gone, device ? "" : `There is no device ${route.part} on ${host.host}.`);
    if (!device) return;
    put(head.about, [device.board, roleOf("device", "address", device)].filter(Boolean).join(" · "));
    state.update(device);
    old.update(device);
    put(problem, host.state === "reached" ? complaint(device) : problemOf(host));
    problem.classList.toggle("critical", stateOf(device).judgement === "critical");
    keyed(tiles, headTiles(device), ({ name }) => name, tile);
    fade(tiles, device);
    memory.update(device);
    held.update(host.snapshot, device.id);
    held.node.classList.toggle("aged", host.state !== "reached");
    facts.update(device);
    fade(facts.node, device);
  };
  return { node, update };
}

function chip(host, first) {
  const state = statePill();
  const link = h("a", { href: hostHref(host, first.id) }, h("b", null, first.id), state.node);
  const update = (device) => {
    attr(link, "aria-current", device.id === route.part ? "page" : null);
    attr(link, "aria-label", `Device ${device.id}, ${device.state}`);
    state.update(device);
  };
  return { node: link, update };
}
