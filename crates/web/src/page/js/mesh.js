// Where each chip is, how chips are joined, and a figure of each: as a colour and as a number.

import { attr, attrs, h, keyed, put, s, style } from "./dom.js";
import { headlines, isFine, judge, limitOf, read, roleOf, show, showOf, stateOf, worse } from "./figures.js";
import { shortAge } from "./format.js";
import { heatFigures } from "./heat.js";
import { SIGNS, complaint, fade, isAged, signOf } from "./pieces.js";
import { change, deviceHref, route } from "./route.js";

/// Shares of the scale that have a colour of their own.
const STEPS = 5;
const ROOMY = { wide: 112, high: 70, gap: 34, below: 48, top: 24 };

/// Sizes for so many columns in a width. Where chips do not fit, they are small and say less.
function sizesFor(columns, width) {
  if (columns * (ROOMY.wide + ROOMY.gap) * 0.85 <= width) return ROOMY;
  const gap = 8;
  return { wide: Math.max(34, Math.floor(width / columns) - gap), high: 48, gap, below: 24, top: 18, isSmall: true };
}

export function make() {
  const figures = heatFigures();
  const choices = figures.map(({ name, title, help }) => h("button", { onclick: () => change({ by: name }), "data-by": name, title: help }, title));
  const groups = s("g.groups");
  const links = s("g.links");
  const chips = s("g");
  const svg = s("svg.mesh", { role: "group", "aria-label": "Chips and the links between them" }, links, groups, chips);
  const [least, most] = [h("span"), h("span")];
  const scale = h("span.scale", { "aria-hidden": true }, least, Array.from({ length: STEPS }, (_, n) => h(`i.heat${n}`)), most);
  const key = h("span.key", null, h("span", null, s("svg.swatch.links", { viewBox: "0 0 14 8", "aria-hidden": true }, s("line", { x1: 0, x2: 14, y1: 4, y2: 4 })), "link, ×2: two of them"), h("span", null, s("svg.swatch.links", { viewBox: "0 0 14 8", "aria-hidden": true }, s("g.assumed", null, s("line", { x1: 0, x2: 14, y1: 4, y2: 4 }))), "assumed"));
  const remarks = h("ul.faults");
  const none = h("p.empty");
  const degraded = h("p.warn");
  const box = h("section.panel", { "aria-label": "Mesh" }, svg, none);
  const node = h("div.view", null,
    h("div.bar-row", null, h("h1", null, "Mesh"), h("div.segments", { role: "group", "aria-label": "Figure" }, choices), scale, key), degraded, box, remarks);

  const update = ({ snapshot, topology }) => {
    const figure = figures.find(({ name }) => name === route.words.get("by")) ?? figures[0];
    for (const choice of choices) attr(choice, "aria-pressed", String(choice.dataset.by === figure.name));
    // One scale for all chips, as in the map over time.
    const top = Math.max(figure.full ?? 0, ...snapshot.devices.map((device) => limitOf(figure, device) ?? 0)) || Math.max(1, ...snapshot.devices.map((device) => read(figure, device) ?? 0));
    put(least, show(figure, 0, 0));
    put(most, show(figure, top, 0));
    key.hidden = !topology?.links.length;
    put(degraded, topology?.degraded ? `⚠ Mesh degraded: ${topology.degraded}` : "");
    degraded.hidden = !topology?.degraded;
    put(none, topology ? (topology.links.length ? "" : "No links are known between these chips. “ttmon top --topology FILE” shows links.") : "The service does not know where chips are.");
    if (!topology) return;
    const devices = new Map(snapshot.devices.map((device) => [device.id, device]));
    const placed = topology.chips.filter((chip) => devices.has(chip.id));
    const { rows, columns } = topology.shape;
    const size = sizesFor(columns, Math.max(0, box.clientWidth - 24));
    const at = new Map(placed.map((chip) => [chip.id, { x: size.gap / 2 + chip.column * (size.wide + size.gap), y: size.top + chip.row * (size.high + size.below), size }]));
    const [width, height] = [columns * (size.wide + size.gap), rows * (size.high + size.below) + size.top - size.below + 12];
    svg.classList.toggle("small", Boolean(size.isSmall));
    attr(svg, "viewBox", `0 0 ${width} ${height}`);
    style(svg, "max-width", `${width * (size.isSmall ? 1 : 1.7)}px`);
    keyed(chips, placed.map((chip) => ({ device: devices.get(chip.id), place: at.get(chip.id), figure, top })), ({ device }) => device.id, chipNode);
    keyed(links, topology.links.filter(({ ends }) => ends.every((end) => at.has(end.id))).map((link) => ({ link, live: liveOf(topology, link), ends: link.ends.map((end) => at.get(end.id)) })), ({ link }) => link.ends.map((end) => end.id).join(), linkNode);
    const names = shortNames(topology.groups.map(({ name }) => name));
    keyed(groups, topology.groups.map((group, n) => ({ name: group.name, short: names[n], n, places: placed.filter((chip) => chip.group === n).map((chip) => at.get(chip.id)) })).filter(({ places }) => places.length), ({ n }) => n, groupNode);
    keyed(remarks, topology.remarks, (text) => text, (text) => ({ node: h("li", null, text) }));
  };
  return { node, update };
}

/// Names without the end of a serial number that all share: `n300 …C0C4`. The part that differs is never left out.
function shortNames(names) {
  const words = names.map((name) => name.split(" "));
  const last = words.map((parts) => parts.at(-1));
  if (names.length < 2 || last.some((word) => word.length < 8)) return names;
  let same = 0;
  while (last.every((word) => word[same] !== undefined && word[same] === last[0][same])) same += 1;
  const keep = Math.min(same, Math.max(0, Math.min(...last.map((word) => word.length)) - 4));
  return words.map((parts, n) => `${parts[0]} ${keep > 2 ? "…" : ""}${last[n].slice(keep > 2 ? keep : 0)}`);
}

function chipNode() {
  const box = s("rect", { rx: 6 });
  const [id, state, value, more] = [s("text.id"), s("text.state", { "text-anchor": "end" }), s("text.value"), s("text.more")];
  const title = s("title");
  const node = s("a.chip", { "data-item": true }, title, box, id, state, value, more);
  const update = ({ device, place: { x, y, size }, figure, top }) => {
    const amount = read(figure, device);
    const share = amount === null ? null : amount / top;
    const judgement = worse(stateOf(device).judgement, judge(figure, device) ?? "normal");
    const isOld = isAged(device);
    node.setAttribute("class", `chip ${share === null || isOld ? "" : `heat${Math.min(STEPS - 1, Math.floor(share * STEPS))}`} ${SIGNS[judgement][1]}`);
    fade(node, device);
    attrs(node, { transform: `translate(${x} ${y})`, href: deviceHref(device.id) });
    attrs(box, { width: size.wide, height: size.high });
    const edge = size.isSmall ? 4 : 8;
    attrs(id, { x: edge, y: size.isSmall ? 14 : 20 });
    attrs(state, { x: size.wide - edge, y: size.isSmall ? 44 : 20 });
    attrs(value, { x: edge, y: size.isSmall ? 32 : 44 });
    attrs(more, { x: edge, y: size.isSmall ? 44 : 61 });
    put(id, device.id);
    put(state, size.isSmall ? (isFine(device) ? "" : signOf(device)[0]) : `${signOf(device)[0]} ${device.state}`);
    // A number without its unit, where there is room for no more; the scale has it.
    put(value, size.isSmall && size.wide < 70 ? showOf(figure, device, 0).replace(/^≥ /, "").replace(/ [KMGT]i/, (unit) => unit.trim()[0]).replace(/ .*/, "").replace(/B\/s$|B$/, "") : showOf(figure, device));
    const others = headlines().filter((one) => one !== figure && one.name !== figure.name);
    put(more, size.isSmall ? "" : isOld ? (roleOf("device", "age", device) >= 1 ? `${shortAge(roleOf("device", "age", device))} old` : "") : others.slice(0, 2).map((one) => showOf(one, device, 0)).join(" · "));
    put(title, `device ${device.id}, ${device.state}: ${[figure, ...others].map((one) => `${one.title} ${showOf(one, device)}`).join(", ")}. ${complaint(device)}`);
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
    const { size } = a;
    const [x, y] = [(p) => p.x + size.wide / 2, (p) => p.y + size.high / 2];
    attrs(line, { x1: x(a), y1: y(a), x2: x(b), y2: y(b) });
    node.setAttribute("class", `${link.source}${live.down ? (live.down === link.count ? " down" : " degraded") : ""}`);
    const isFlat = Math.abs(y(a) - y(b)) < 1;
    attrs(count, { x: (x(a) + x(b)) / 2 + (isFlat ? 0 : 12), y: (y(a) + y(b)) / 2 + (isFlat ? -5 : -6) });
    put(count, size.isSmall ? "" : liveText(link, live));
  };
  return { node, update };
}

function groupNode() {
  const box = s("rect", { rx: 9 });
  const name = s("text");
  const title = s("title");
  const update = ({ name: whole, short, places }) => {
    const [{ size }] = places;
    const edge = size.isSmall ? 3 : 7;
    const [left, top] = [Math.min(...places.map((p) => p.x)) - edge, Math.min(...places.map((p) => p.y)) - (size.isSmall ? 14 : 18)];
    const [right, bottom] = [Math.max(...places.map((p) => p.x)) + size.wide + edge, Math.max(...places.map((p) => p.y)) + size.high + edge];
    attrs(box, { x: left, y: top, width: right - left, height: bottom - top });
    attrs(name, { x: left + edge + 1, y: top + 12 });
    const room = Math.floor((right - left - 12) / 6.2);
    put(title, whole);
    // What differs is at the end.
    put(name, whole.length <= room ? whole : short.length <= room ? short : `…${short.slice(1 - room)}`);
  };
  return { node: s("g", null, title, box, name), update };
}
