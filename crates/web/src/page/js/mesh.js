// Where each chip is, how chips are joined, and a figure of each: as a colour and as a number.

import { attr, attrs, h, keyed, put, s, style } from "./dom.js";
import { judge, keptFields, shareOf, showOf, stateOf, worse } from "./figures.js";
import { SIGNS, signOf } from "./pieces.js";
import { change, deviceHref, route } from "./route.js";

/// Shares of the limit that have a colour of their own.
const STEPS = 5;
const [WIDE, HIGH, GAP, BELOW, TOP] = [104, 64, 34, 48, 24];

export function make() {
  const figures = keptFields();
  const choices = figures.map(({ name, title, help }) => h("button", { onclick: () => change({ by: name }), "data-by": name, title: help }, title));
  const groups = s("g.groups");
  const links = s("g.links");
  const chips = s("g");
  const svg = s("svg.mesh", { role: "group", "aria-label": "Chips and the links between them" }, links, groups, chips);
  const step = (n) => `${(n * 100) / STEPS} %`;
  const scale = h("span.key", null, "of its limit", Array.from({ length: STEPS }, (_, n) => h("span", null, h(`i.heat${n}`), n + 1 < STEPS ? `< ${step(n + 1)}` : `≥ ${step(n)}`)));
  const remarks = h("ul.faults");
  const none = h("p.empty");
  const degraded = h("p.warn");
  const node = h("div.view", null,
    h("div.bar-row", null, h("h1", null, "Mesh"), h("div.segments", { role: "group", "aria-label": "Figure" }, choices), scale), degraded,
    h("section.panel.scroll", { tabindex: 0, "aria-label": "Mesh" }, svg, none), remarks);

  const update = ({ snapshot, topology }) => {
    const figure = figures.find(({ name }) => name === route.words.get("by")) ?? figures[0];
    for (const choice of choices) attr(choice, "aria-pressed", String(choice.dataset.by === figure.name));
    scale.hidden = figure.limit === null;
    put(degraded, topology?.degraded ? `⚠ Mesh degraded: ${topology.degraded}` : "");
    degraded.hidden = !topology?.degraded;
    put(none, topology ? (topology.links.length ? "" : "No links are known between these chips. “ttmon top --topology FILE” shows links.") : "The service does not know where chips are.");
    if (!topology) return;
    const devices = new Map(snapshot.devices.map((device) => [device.id, device]));
    const placed = topology.chips.filter((chip) => devices.has(chip.id));
    const at = new Map(placed.map((chip) => [chip.id, { x: GAP / 2 + chip.column * (WIDE + GAP), y: TOP + chip.row * (HIGH + BELOW) }]));
    const [width, height] = [topology.shape.columns * (WIDE + GAP), topology.shape.rows * (HIGH + BELOW) + TOP - BELOW + 12];
    attr(svg, "viewBox", `0 0 ${width} ${height}`);
    style(svg, "min-width", `${width * 0.75}px`);
    style(svg, "max-width", `${width * 1.7}px`);
    keyed(chips, placed.map((chip) => ({ device: devices.get(chip.id), place: at.get(chip.id), figure })), ({ device }) => device.id, chipNode);
    keyed(links, topology.links.filter(({ ends }) => ends.every((end) => at.has(end.id))).map((link) => ({ link, live: liveOf(topology, link), ends: link.ends.map((end) => at.get(end.id)) })), ({ link }) => link.ends.map((end) => end.id).join(), linkNode);
    keyed(groups, topology.groups.map((group, n) => ({ group, n, places: placed.filter((chip) => chip.group === n).map((chip) => at.get(chip.id)) })).filter(({ places }) => places.length), ({ n }) => n, groupNode);
    keyed(remarks, topology.remarks, (text) => text, (text) => ({ node: h("li", null, text) }));
  };
  return { node, update };
}

function chipNode() {
  const box = s("rect", { width: WIDE, height: HIGH, rx: 6 });
  const id = s("text.id", { x: 8, y: 20 });
  const state = s("text.state", { x: WIDE - 8, y: 20, "text-anchor": "end" });
  const value = s("text.value", { x: 8, y: 50 });
  const node = s("a.chip", { "data-item": true }, box, id, state, value);
  const update = ({ device, place, figure }) => {
    const share = shareOf(figure, device);
    const judgement = worse(stateOf(device).judgement, judge(figure, device) ?? "normal");
    node.setAttribute("class", `chip ${share === null ? "" : `heat${Math.min(STEPS - 1, Math.floor(share * STEPS))}`} ${SIGNS[judgement][1]}`);
    attrs(node, { transform: `translate(${place.x} ${place.y})`, href: deviceHref(device.id) });
    put(id, device.id);
    put(state, `${signOf(device)[0]} ${device.state}`);
    put(value, showOf(figure, device));
  };
  return { node, update };
}

/// Of the links between two chips, how many are up and how many are down, as far as deep reads say so.
function liveOf(topology, link) {
  const same = (topology.live_links ?? []).filter(({ ends }) => ends.every((end, n) => end.id === link.ends[n].id));
  const count = (state) => same.filter((one) => one.state === state).length;
  return { up: count("up"), down: count("down"), disagree: same.some(({ ends: [a, b] }) => a.up !== null && b.up !== null && a.up !== b.up) };
}

function liveText(link, { up, down, disagree }) {
  const state = down ? `, ${down === link.count ? "" : `${down} `}down` : up === link.count ? ", up" : "";
  return `×${link.count}${state}${disagree ? ", ends disagree" : ""}`;
}

function linkNode() {
  const line = s("line");
  const count = s("text", { "text-anchor": "middle" });
  const node = s("g", null, line, count);
  const update = ({ link, live, ends: [a, b] }) => {
    const [x, y] = [(p) => p.x + WIDE / 2, (p) => p.y + HIGH / 2];
    attrs(line, { x1: x(a), y1: y(a), x2: x(b), y2: y(b) });
    node.setAttribute("class", `${link.source}${live.down ? (live.down === link.count ? " down" : " degraded") : ""}`);
    const isFlat = Math.abs(y(a) - y(b)) < 1;
    attrs(count, { x: (x(a) + x(b)) / 2 + (isFlat ? 0 : 12), y: (y(a) + y(b)) / 2 + (isFlat ? -5 : -6) });
    put(count, liveText(link, live));
  };
  return { node, update };
}

function groupNode() {
  const box = s("rect", { rx: 9 });
  const name = s("text");
  const update = ({ group, places }) => {
    const [left, top] = [Math.min(...places.map((p) => p.x)) - 7, Math.min(...places.map((p) => p.y)) - 18];
    const [right, bottom] = [Math.max(...places.map((p) => p.x)) + WIDE + 7, Math.max(...places.map((p) => p.y)) + HIGH + 7];
    attrs(box, { x: left, y: top, width: right - left, height: bottom - top });
    attrs(name, { x: left + 8, y: top + 12 });
    const room = Math.floor((right - left - 12) / 6.2);
    put(name, group.name.length > room ? `${group.name.slice(0, room - 1)}…` : group.name);
  };
  return { node: s("g", null, box, name), update };
}
