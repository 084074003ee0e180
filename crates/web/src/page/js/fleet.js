// Other machines that the service watches: all of them, the worst first, or one of them (`fleet_host.js`).

import { attr, bar, h, keyed, put } from "./dom.js";
import { gauges, judgeShare, show, stateOf, tables } from "./figures.js";
import { JUDGEMENTS, ageOf, make as makeHost, needPill, problemOf, signOf } from "./fleet_host.js";
import * as f from "./format.js";
import { SIGNS, row, table, tile } from "./pieces.js";
import { change, href, route } from "./route.js";
import { get, store } from "./store.js";
import { reasonOf } from "./stream.js";
import { watts } from "./summary.js";

/// How often the service is asked, in milliseconds. It has asked the machines itself by then.
const EVERY = 2000;
/// So many machines are drawn unless all are asked for.
const ROWS = 200;
const usedTitle = () => `${tables.memory[0].title} used`;
const columns = () => [["State"], ["Machine"], ["Problem", "words"], ["Devices ok"], ["Hottest", "n"], ["Power", "n"], [usedTitle(), "n"], ["Processes", "n"], ["Last data", "n"]];

const heatFigure = () => gauges().find((figure) => figure.judge.by === "heat");
const powerFigure = () => gauges().find((figure) => figure.judge.by === "load");
const dramFigure = () => tables.device.find(({ path }) => path === tables.memory[0].used);
const part = (value, most) => (value !== null && most > 0 ? value / most : null);
const toneOf = (figure, share) => {
  const judgement = judgeShare(figure, share) ?? "normal";
  return judgement === "normal" ? "" : SIGNS[judgement][1];
};

/// The fleet in a few numbers. Machines that do not answer are part of no sum.
function tilesOf({ totals, hosts }) {
  const { hottest, power, dram } = totals;
  const [least, heat, share] = [totals.at_least ? "≥ " : "", part(hottest?.celsius ?? null, hottest?.limit_celsius), part(dram.used, dram.total)];
  const counts = Object.keys(JUDGEMENTS).map((need) => [need, hosts.filter((host) => host.need === need).length]).filter(([need, count]) => count && need !== "ok");
  const worst = counts.map(([need]) => JUDGEMENTS[need]).find(Boolean);
  const known = (value, text) => (value === null ? f.MISSING : text);
  return [
    { name: "machines", title: "Machines", value: counts.length ? `${totals.hosts_ok} of ${totals.hosts} ok` : `${totals.hosts} ok`, note: counts.map(([need, count]) => `${signOf(need)[0]} ${count} ${need}`).join(", ") || "no problems", tone: worst ? SIGNS[worst][1] : "" },
    { name: "devices", title: "Devices", value: `${totals.devices_ok} of ${totals.devices} ok`, note: totals.devices_ok < totals.devices ? `${totals.devices - totals.devices_ok} not ok or not known` : "", tone: "" },
    { name: "power", title: powerFigure().title, value: known(power.watts, least + watts(powerFigure(), power.watts)), note: power.limit_watts ? `of ${watts(powerFigure(), power.limit_watts)}` : "", share: part(power.watts, power.limit_watts) },
    { name: "hottest", title: "Hottest", value: hottest ? show(heatFigure(), hottest.celsius, 0) : f.MISSING, note: hottest ? `${hottest.host}${hottest.limit_celsius ? `, of ${show(heatFigure(), hottest.limit_celsius, 0)}` : ""}` : "", share: heat, tone: toneOf(heatFigure(), heat) },
    { name: "dram", title: usedTitle(), value: known(dram.used, (least || (dram.at_least ? "≥ " : "")) + f.bytes(dram.used)), note: `of ${f.bytes(dram.total)}${share === null ? "" : `, ${(share * 100).toFixed(0)} %`}`, share, tone: toneOf(dramFigure(), share) },
    { name: "processes", title: "Processes", value: `${least}${totals.processes}`, note: "" },
  ];
}

/// A square for each device in the tone of its state. More than this are only a number.
const SQUARES = 64;
function strip() {
  const node = h("span.strip", { role: "img" });
  let drawn = null;
  const show = ({ states, devices_ok: ok, devices, is_old: isOld }) => {
    const key = `${states} ${isOld}`;
    if (key === drawn) return;
    drawn = key;
    node.hidden = states.length < 2 || states.length > SQUARES;
    const tone = (state) => (isOld ? "plain" : SIGNS[stateOf({ state }).judgement][1]);
    node.replaceChildren(...states.slice(0, SQUARES).map((state) => h(`i.${tone(state)}`)));
    const wrong = states.map((state, n) => (stateOf({ state }).judgement === "normal" ? null : `${n} ${state}`)).filter(Boolean);
    attr(node, "aria-label", isOld ? `${devices} devices, not known now` : `${ok} of ${devices} devices ok${wrong.length ? `, ${wrong.slice(0, 8).join(", ")}` : ""}`);
  };
  return { node, show };
}

/// A line about a machine.
function hostRow() {
  const link = h("a", { "data-item": true });
  const { node, cells } = row(columns());
  const amount = h("span");
  const used = bar(usedTitle());
  const [devices, squares] = [h("span"), strip()];
  cells[1].append(link);
  cells[3].append(devices, squares.node);
  cells[6].append(amount, used.node);
  let need = null;
  const update = (host) => {
    if (need !== host.need) cells[0].replaceChildren(needPill((need = host.need)));
    put(link, host.host);
    attr(link, "href", href(`fleet/${encodeURIComponent(host.host)}`));
    put(cells[2], problemOf(host));
    cells[2].className = `words ${need === "ok" || need === "waiting" ? "" : signOf(need)[1]}`;
    put(devices, host.devices ? `${host.devices_ok} of ${host.devices}` : f.MISSING);
    squares.show(host);
    const heat = part(host.hottest?.celsius ?? null, host.hottest?.limit_celsius);
    put(cells[4], host.hottest ? show(heatFigure(), host.hottest.celsius, 0) : f.MISSING);
    cells[4].className = `n ${host.is_old ? "" : toneOf(heatFigure(), heat)}`;
    put(cells[5], host.power.watts === null ? f.MISSING : watts(powerFigure(), host.power.watts));
    const share = part(host.dram.used, host.dram.total);
    put(amount, host.dram.total === null ? f.MISSING : `${host.dram.at_least ? "≥ " : ""}${f.bytes(host.dram.used)} / ${f.bytes(host.dram.total)}`);
    amount.className = host.is_old ? "" : toneOf(dramFigure(), share);
    used.node.hidden = share === null;
    used.show([["dram", share ?? 0]], amount.shown);
    put(cells[7], host.state === "waiting" || host.age_seconds === null ? f.MISSING : String(host.processes));
    put(cells[8], ageOf(host));
    node.classList.toggle("aged", host.is_old);
  };
  return { node, update };
}

/// All machines.
function list() {
  const sums = h("div.tiles");
  const search = h("input", { type: "search", placeholder: "name or problem", "aria-label": "Find machines", autocomplete: "off" });
  search.addEventListener("input", () => change({ find: search.value }, true));
  const choices = ["", "problems"].map((only) => h("button", { onclick: () => change({ only }), "data-only": only }, only ? "with problems" : "all"));
  const count = h("span.note", { role: "status" });
  const hosts = table(columns(), "Machines");
  const nothing = h("p.empty");
  const more = h("button", { onclick: () => change({ rows: "all" }) });
  const node = h("div.view.fleet", null, h("h1.unseen", null, "Fleet"), sums,
    h("section.panel", null, h("div.bar-row", null, h("h2", null, "Machines"), h("div.segments", { role: "group", "aria-label": "Which machines" }, choices), search, count), hosts.node, nothing, more));
  const update = (answer) => {
    const [find, only] = ["find", "only"].map((name) => route.words.get(name) ?? "");
    if (search.value !== find) search.value = find;
    for (const choice of choices) attr(choice, "aria-pressed", String(choice.dataset.only === only));
    keyed(sums, tilesOf(answer), ({ name }) => name, tile);
    const isFound = (host) => (!only || host.need !== "ok") && `${host.host} ${problemOf(host)}`.toLowerCase().includes(find.toLowerCase());
    const found = answer.hosts.filter(isFound);
    const most = route.words.get("rows") === "all" ? found.length : ROWS;
    keyed(hosts.body, found.slice(0, most), ({ host }) => host, hostRow);
    hosts.node.hidden = !found.length;
    put(count, found.length < answer.hosts.length ? `${found.length} of ${answer.hosts.length}` : `${answer.hosts.length} in all, worst first`);
    put(nothing, found.length ? "" : answer.hosts.length ? "No such machine." : "No machine is watched.");
    more.hidden = found.length <= most;
    put(more, `Show ${found.length - most} more`);
  };
  return { node, update, focus: () => search.select() };
}

export function make() {
  const [all, one] = [list(), makeHost()];
  const note = h("p.empty", { role: "status" });
  const node = h("div.view", null, note, all.node, one.node);
  /// The last answer, and the machine that it is about.
  let [answer, about, reason, asked] = [null, null, "", undefined];
  /// The machine that an answer is awaited about.
  let awaited;
  const load = async () => {
    if (document.hidden || store.link.state !== "live" || awaited === route.id) return;
    const name = (asked = awaited = route.id);
    try {
      const got = await get("fleet", { host: name });
      if (name !== route.id) return;
      [answer, about, reason] = [got, name, ""];
    } catch (error) {
      reason = reasonOf(error);
    } finally {
      if (awaited === name) awaited = undefined;
    }
    if (node.isConnected) update();
  };
  const update = () => {
    if (asked !== route.id) load();
    const isHere = answer !== null && about === route.id;
    const host = isHere && route.id !== null ? answer.hosts[0] : undefined;
    const isMissing = isHere && answer.watched && route.id !== null && !host;
    all.node.hidden = !isHere || !answer.watched || route.id !== null;
    one.node.hidden = !host;
    put(note, reason || (!isHere ? "Asking the service…" : !answer.watched ? "The service watches no other machines: name them under [fleet] in its configuration." : isMissing ? `No machine ${route.id} is watched.` : ""));
    if (!all.node.hidden) all.update(answer);
    if (host) one.update(host);
  };
  const timer = setInterval(load, EVERY);
  return { node, update, end: () => clearInterval(timer), focus: () => route.id === null && all.focus() };
}
