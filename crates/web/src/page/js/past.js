// The past of the machine, from the service's black box: a bar with a time line, on which events can be gone to and time can run.

import { point } from "./chart.js";
import { attr, attrs, h, keyed, put, s } from "./dom.js";
import { tables } from "./figures.js";
import * as f from "./format.js";
import { AROUND } from "./history.js";
import { toneOf } from "./log.js";
import { change, currentAt } from "./route.js";
import { get, leavePast, now, showPast, store, tell } from "./store.js";

/// How many times faster than it was.
const SPEEDS = [1, 10, 60, 100, 1000];
/// From one picture to the next while time runs, in milliseconds.
const FRAME = 500;
/// So far back the past begins where nothing else is asked for.
const A_WHILE = 300e3;

/// The stretch that the line shows, and what happened in it.
let stretch = { from: 0, to: 0, reason: "" };
let speed = SPEEDS[2];
let clockwork = null;
let isAsking = false;

/// Goes to the past, or back.
export const toggle = () => (currentAt() ? leave() : change({ at: Math.round(now() - A_WHILE) }));

function leave() {
  stop();
  change({ at: "" });
}

/// Shows what the address asks for. Called whenever it changes.
export function follow() {
  const at = currentAt();
  if (!at) {
    stop();
    if (store.past) leavePast();
    return;
  }
  if (at < stretch.from || at > stretch.to) load(at);
  if (store.past?.at === at || isAsking) return;
  isAsking = true;
  get("past/snapshot", { at })
    .then(({ snapshot, reason }) => currentAt() && showPast(at, snapshot, reason), (error) => currentAt() && showPast(at, null, error.message))
    .finally(() => {
      isAsking = false;
      // The line may have been moved on meanwhile.
      if (currentAt() !== at) follow();
    });
}

/// The events of the stretch around a moment.
async function load(at) {
  const wanted = { from: at - AROUND, to: at + AROUND };
  const asked = { ...wanted, to: Math.min(wanted.to, now()), reason: "" };
  stretch = asked;
  const figure = tables.device.find(({ history }) => history);
  try {
    const answer = await get("past", { ...wanted, step: 2 * AROUND, series: figure.name });
    // Another stretch may be asked for meanwhile.
    if (stretch !== asked) return;
    // The service's clock may be a little ahead of what is known of it here.
    asked.to = Math.max(asked.to, ...answer.events.map(({ time }) => Date.parse(time)));
    asked.reason = answer.reason ?? "";
    if (store.past || currentAt()) store.pastEvents = answer.events.map((event, seq) => ({ ...event, seq: seq + 1 }));
    if (store.past) store.events = store.pastEvents;
  } catch (error) {
    asked.reason = error.message;
  }
  if (store.past) tell("past");
}

function stop() {
  clearInterval(clockwork);
  clockwork = null;
}

function play() {
  if (clockwork) return stop();
  let last = Date.now();
  clockwork = setInterval(() => {
    const passed = Date.now() - last;
    last += passed;
    // A slow answer is waited for, so that nothing is skipped unseen.
    if (isAsking) return;
    const to = currentAt() + passed * speed;
    if (to >= now()) return leave();
    change({ at: Math.round(to) }, true);
  }, FRAME);
}

const problems = () => store.events.filter(({ weight }) => weight === "warning" || weight === "bad").map((event) => ({ ...event, at: Date.parse(event.time) }));

/// To the next problem, or to the one before.
function jump(by) {
  const at = currentAt();
  const times = problems().map((event) => event.at);
  const to = by > 0 ? Math.min(...times.filter((time) => time > at + 999)) : Math.max(...times.filter((time) => time < at - 999));
  if (Number.isFinite(to)) change({ at: to });
}

const button = (word, title, act) => h("button", { title, "aria-label": title, onclick: act }, word);

export function makeBar() {
  const time = h("b");
  const note = h("span.dim", { role: "status" });
  const marks = s("g");
  const hand = s("line.hand", { y1: 2, y2: 22 });
  const line = s("svg.timeline", { height: 24, role: "slider", tabindex: 0, "aria-label": "Time" }, s("line.axis", { x1: "0%", x2: "100%", y1: 12, y2: 12 }), marks, hand);
  const ends = [h("span.dim"), h("span.dim")];
  const run = button("▶", "Play", () => {
    play();
    update();
  });
  const pace = h("select", { "aria-label": "Speed", onchange: () => (speed = Number(pace.value)) }, SPEEDS.map((one) => h("option", { value: one, selected: one === speed }, `${one}×`)));
  const share = button("Copy link", "Copy the address of this moment", () =>
    navigator.clipboard?.writeText(location.href).then(() => put(share, "Copied"), () => put(share, "Copy the address above")));
  const node = h("section.past", { "aria-label": "The past", hidden: true },
    h("div.bar-row", null, time, note,
      h("span.buttons", null, button("‹ problem", "Problem before", () => jump(-1)), button("−1 min", "A minute back", () => change({ at: currentAt() - 60e3 })), run, pace, button("+1 min", "A minute on", () => change({ at: currentAt() + 60e3 })), button("problem ›", "Next problem", () => jump(1))),
      share, button("Back to now", "Show the present", leave)),
    h("div.line-row", null, ends[0], line, ends[1]));
  const partOf = (at) => ((at - stretch.from) / Math.max(1, stretch.to - stretch.from)) * 100;
  const goTo = (event) => {
    const { left, width } = line.getBoundingClientRect();
    change({ at: Math.round(stretch.from + ((event.clientX - left) / width) * (stretch.to - stretch.from)) });
  };
  line.addEventListener("click", goTo);
  line.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1e3, ArrowRight: 1e3, PageUp: -60e3, PageDown: 60e3 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    change({ at: currentAt() + by }, true);
  });
  const update = () => {
    const at = currentAt();
    node.hidden = !at;
    if (!at) return;
    put(time, f.clock(at));
    put(note, store.past?.reason ?? stretch.reason);
    put(run, clockwork ? "⏸" : "▶");
    attrs(run, { title: clockwork ? "Pause" : "Play", "aria-label": clockwork ? "Pause" : "Play" });
    if (share.at !== at) put(share, "Copy link");
    share.at = at;
    [stretch.from, stretch.to].forEach((end, n) => put(ends[n], end ? f.clock(end) : ""));
    attrs(hand, { x1: `${partOf(at)}%`, x2: `${partOf(at)}%` });
    attrs(line, { "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(partOf(at)), "aria-valuetext": f.clock(at) });
    keyed(marks, problems().filter((event) => event.at >= stretch.from && event.at <= stretch.to), ({ seq }) => `${stretch.from} ${seq}`, (event) => ({
      node: s(`path.mark.${toneOf(event.weight)}`, { d: "M-5 5L0-5L5 5Z", "data-at": event.at }, s("title", null, `${f.clock(event.at)} ${event.text}`)),
    }));
    // A path has no place in percent.
    for (const mark of marks.children) attr(mark, "transform", `translate(${(partOf(Number(mark.dataset.at)) / 100) * line.clientWidth} 12)`);
    point(at);
  };
  return { node, update };
}
