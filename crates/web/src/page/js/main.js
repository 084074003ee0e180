// The frame around the views: header, alerts, navigation, keys, theme.

import * as deaths from "./deaths.js";
import * as device from "./device.js";
import { attr, attrs, h, kept, keyed, put } from "./dom.js";
import { isFine, isLoaded, roleOf, tables } from "./figures.js";
import * as fleet from "./fleet.js";
import * as f from "./format.js";
import { RANGES, hasRange } from "./history.js";
import * as log from "./log.js";
import * as memory from "./memory.js";
import * as mesh from "./mesh.js";
import * as overview from "./overview.js";
import * as past from "./past.js";
import { inShort, problemRow, problemsOf } from "./problems.js";
import * as process from "./process.js";
import * as processes from "./processes.js";
import { change, currentAt, currentRange, currentZoom, go, href, read, route } from "./route.js";
import { connect, isOld, listen, retry, sampleAge, store, unlock } from "./store.js";
import { summaryOf } from "./summary.js";
import * as wall from "./wall.js";

const VIEWS = { overview, memory, mesh, processes, deaths, events: log, fleet, device, process, wall };
const TABS = ["overview", "memory", "mesh", "processes", "deaths", "events", "fleet"];
/// What a tab is called, where it is not the view itself.
const TITLES = { deaths: "Exited" };
const PARENTS = { device: "overview", process: "processes", wall: "overview" };
const $ = (id) => document.getElementById(id);

/// The view that is shown.
let shown = { name: null, view: null };
const bar = past.makeBar();
let isPlanned = false;
let hasNews = true;

/// Draws soon, once for all that has happened until then. A hidden page is not drawn.
function plan() {
  if (isPlanned || document.hidden) return;
  isPlanned = true;
  requestAnimationFrame(() => {
    isPlanned = false;
    if (hasNews) draw();
    else drawFrame();
  });
}

function draw() {
  hasNews = false;
  if (isLoaded() && store.snapshot) past.follow();
  drawView();
  drawFrame();
}

function drawView() {
  // Views are made of the tables of figures.
  if (!isLoaded()) return;
  const name = route.view in VIEWS ? route.view : "overview";
  if (shown.name !== name) {
    shown.view?.end?.();
    shown = { name, view: VIEWS[name].make() };
    $("view").replaceChildren(shown.view.node);
    document.body.classList.toggle("is-wall", name === "wall");
  }
  shown.path = `${name} ${route.id} ${route.part}`;
  shown.view.node.hidden = !store.snapshot;
  if (store.snapshot) shown.view.update(store);
}

function drawFrame() {
  const { snapshot, link } = store;
  const fact = (role) => (snapshot ? roleOf("machine", role, snapshot) : null);
  const host = fact("host");
  put($("host"), host ?? "");
  put($("about"), snapshot ? `driver ${f.word(fact("driver"))} · Linux ${f.word(fact("kernel"))}` : "");
  $("simulated").hidden = !fact("simulated");
  document.title = `${titleMark()}${host ? `${host} · ` : ""}ttmon`;
  for (const tab of $("tabs").children) {
    const isHere = tab.dataset.view === (PARENTS[route.view] ?? route.view);
    attr(tab, "aria-current", isHere ? "page" : null);
    attr(tab, "href", href(tab.dataset.view));
    // Only a service that watches other machines has a fleet.
    if (tab.dataset.view === "fleet") tab.hidden = !store.status?.fleet && route.view !== "fleet";
  }
  $("show-past").hidden = !store.status?.black_box;
  attr($("show-past"), "aria-pressed", String(currentAt() !== null));
  bar.update();
  for (const button of $("ranges").children) button.hidden = !hasRange(button.dataset.range);
  for (const button of $("ranges").children) attr(button, "aria-pressed", String(button.dataset.range === currentRange() && !currentZoom()));
  drawLink(link);
  const news = isLoaded() ? log.unseen() : 0;
  put($("badge"), news ? String(news) : "");
  attr($("badge"), "title", news ? `${news} warning${news > 1 ? "s" : ""} and critical events not looked at` : null);
  if (isLoaded()) drawProblems();
  $("waiting").hidden = snapshot !== null;
}

function titleMark() {
  if (store.past) return "(past) ";
  if (store.link.state !== "live" || isOld()) return "(old) ";
  const wrong = store.snapshot?.devices.filter((device) => !isFine(device)).length;
  return wrong ? `(${wrong} problem${wrong > 1 ? "s" : ""}) ` : "";
}

/// Whether the values are current, and if not, what is being done about it.
function drawLink({ state, nextTry, reason }) {
  const old = !store.past && (isOld() || (state !== "live" && store.snapshot !== null));
  const since = store.snapshot ? `last sample ${f.age(sampleAge())} ago` : "no sample yet";
  const [sign, word, tone] = store.past ? ["◷", "past", "warn"] : old || state === "locked" ? ["▲", state === "live" ? "old" : state === "locked" ? "locked" : "reconnecting", "critical"] : state === "live" ? ["●", "live", "good"] : ["↻", "connecting", "warn"];
  put($("live-sign"), sign);
  put($("live-word"), word);
  $("live").className = `pill ${tone}`;
  put($("sampled"), store.snapshot ? f.clock(Date.parse(store.snapshot.taken_at)) : "");
  const wait = Math.max(0, Math.ceil((nextTry - Date.now()) / 1000));
  const next = state === "waiting" ? `Next try in ${wait} s.` : state === "connecting" ? "Waiting for a connection to the service." : "The service is connected but takes no new samples.";
  const isTold = old || (state === "waiting" && !store.snapshot);
  $("old").hidden = !isTold || state === "locked";
  const lost = state === "live" || !reason ? "" : `Connection lost: ${reason}. `;
  if (isTold) put($("old-text"), `Out of date: ${since}. ${lost}${next}`);
  // Said once: a screen reader shall not count seconds.
  put($("old-said"), isTold ? `The values shown are out of date. ${lost}` : "");
  $("retry").hidden = state !== "waiting";
  document.body.classList.toggle("is-old", old);
  if (state === "locked" && !$("token").open) {
    put($("token-note"), reason);
    $("token").showModal();
  }
}

/// What is wrong, one line for each fault. On phones only how many, until they are asked for.
function drawProblems() {
  const all = store.snapshot ? problemsOf(store) : [];
  // The list of machines says what is wrong with each of them.
  const isFleet = route.view === "fleet";
  const isOpen = wantsProblems ?? !matchMedia("(max-width: 720px)").matches;
  const worst = all[0]?.judgement;
  $("problems").hidden = !all.length || isFleet;
  $("problems").className = worst === "critical" ? "critical" : "";
  attr($("problem-toggle"), "aria-expanded", String(isOpen));
  put($("problem-count"), `${isOpen ? "▾" : "▸"} ${all.length} problem${all.length > 1 ? "s" : ""}`);
  put($("problem-short"), isOpen ? "" : inShort(all));
  $("problem-list").hidden = !isOpen;
  if (isOpen) keyed($("problem-list"), all, ({ key }) => key, problemRow);
  if (store.snapshot) speak(all);
}

let stateSaid = 0;
/// Whether the list of problems is open, once somebody has said so.
let wantsProblems = null;

/// For screen readers: the state when the page opens, and again when it is another. Values alone are not spoken.
function speak(problems) {
  const { devices } = store.snapshot;
  const ok = devices.filter(isFine).length;
  put($("spoken"), `${ok} of ${devices.length} devices ok. ${problems.length ? `${problems.length} problem${problems.length > 1 ? "s" : ""}: ${inShort(problems)}.` : "No problems."}`);
  // All numbers, for whoever asks. They need not be of this second.
  if (Date.now() - stateSaid < 10e3) return;
  stateSaid = Date.now();
  put($("state"), summaryOf(store).map(({ title, value, note }) => `${title}: ${value}${note && `, ${note}`}.`).join(" "));
}

/// What can be set, where it is kept, and with which key it changes. An address can say so, too: `#/wall?theme=dark`.
const SETTINGS = {
  theme: { values: ["auto", "light", "dark"], names: ["as the system", "light", "dark"], key: "t" },
  palette: { values: ["standard", "safe"], names: ["standard", "colour-blind safe"], key: "c" },
};
const keptSetting = (name, value) => kept(() => localStorage, `ttmon-${name}`, value);

function set(name, value) {
  document.documentElement.dataset[name] = value;
  for (const button of $(`set-${name}`).children) attr(button, "aria-pressed", String(button.dataset.value === value));
  if (name === "theme") {
    put($("theme"), { auto: "◐", light: "○", dark: "●" }[value]);
    attrs($("theme"), { "aria-label": `Theme: ${value}`, title: `Theme: ${value} (t)` });
  }
  // What is drawn on a canvas has other colours now.
  hasNews = true;
  plan();
}

function choose(name, value) {
  keptSetting(name, value);
  set(name, value);
}

function next(name) {
  const { values } = SETTINGS[name];
  choose(name, values[(values.indexOf(document.documentElement.dataset[name]) + 1) % values.length]);
}

function applySettings() {
  for (const [name, { values }] of Object.entries(SETTINGS)) {
    const wanted = [route.words.get(name), keptSetting(name), values[0]].find((value) => values.includes(value));
    if (document.documentElement.dataset[name] !== wanted || !$(`set-${name}`).querySelector("[aria-pressed=true]")) set(name, wanted);
  }
}

/// Moves the focus among the things of a view: by one, or by a row of a grid.
function move(by, isRow) {
  const items = [...$("view").querySelectorAll("[data-item]")].filter((item) => item.getClientRects().length);
  if (!items.length) return false;
  const at = items.indexOf(document.activeElement);
  const tops = items.map((item) => Math.round(item.getBoundingClientRect().top));
  const columns = isRow ? Math.max(1, tops.filter((top) => top === tops[0]).length) : 1;
  const to = at < 0 ? 0 : Math.min(items.length - 1, Math.max(0, at + by * columns));
  items[to].focus();
  items[to].scrollIntoView({ block: "nearest" });
  return true;
}

function press(event) {
  const isTyping = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    if (isTyping) event.target.blur();
    else if (route.words.get("zoom")) change({ zoom: "" });
    else if (currentAt()) past.toggle();
    else if (route.part !== null) go(href(`${route.view}/${encodeURIComponent(route.id)}`));
    else if (route.view === "fleet" && route.id !== null) go(href("fleet"));
    else if (PARENTS[route.view]) go(href(PARENTS[route.view]));
    else if (route.words.get("q")) change({ q: "" });
    else document.activeElement?.blur();
    return;
  }
  if (isTyping) return;
  const ranges = Object.keys(RANGES).filter(hasRange);
  const range = (by) => change({ zoom: "", range: ranges[Math.min(ranges.length - 1, Math.max(0, ranges.indexOf(currentRange()) + by))] });
  const step = (by, isRow) => (shown.view.step ? !isRow && shown.view.step(by) : move(by, isRow));
  const keys = {
    "?": () => $("help").showModal(),
    "/": () => (shown.view.focus ? shown.view.focus() : go(href("processes", { focus: "1" }))),
    t: () => next("theme"),
    c: () => next("palette"),
    w: () => go(href("wall")),
    p: () => store.status?.black_box && past.toggle(),
    j: () => step(1),
    k: () => step(-1),
    ArrowDown: () => step(1, true),
    ArrowUp: () => step(-1, true),
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    "[": () => range(-1),
    "]": () => range(1),
  };
  if (shown.view?.press?.(event.key)) return event.preventDefault();
  // Where something long is scrolled, arrows scroll it.
  if (event.key.startsWith("Arrow") && event.target.closest(".scroll") && !event.target.matches("[data-item]")) return;
  const act = TABS[Number(event.key) - 1] && !$("tabs").children[Number(event.key) - 1].hidden ? () => go(href(TABS[Number(event.key) - 1])) : keys[event.key];
  // What does nothing here is left to the browser.
  if (act && act() !== false) event.preventDefault();
}

function start() {
  for (const [name, { values, names }] of Object.entries(SETTINGS)) $(`set-${name}`).append(...values.map((value, n) => h("button", { "data-value": value, onclick: () => choose(name, value) }, names[n])));
  $("tabs").append(...TABS.map((name, n) => h("a", { "data-view": name, title: `${n + 1}` }, TITLES[name] ?? name[0].toUpperCase() + name.slice(1), name === "events" && h("span", { id: "badge" }))));
  $("ranges").append(...Object.keys(RANGES).map((range) => h("button", { "data-range": range, onclick: () => change({ range, zoom: "" }) }, range)));
  $("past").append(bar.node);
  $("show-past").addEventListener("click", past.toggle);
  $("theme").addEventListener("click", () => next("theme"));
  $("problem-toggle").addEventListener("click", () => {
    wantsProblems = $("problem-toggle").getAttribute("aria-expanded") !== "true";
    drawProblems();
  });
  $("show-wall").addEventListener("click", () => go(href("wall")));
  $("show-help").addEventListener("click", () => $("help").showModal());
  $("close-help").addEventListener("click", () => $("help").close());
  $("retry").addEventListener("click", retry);
  $("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    $("token").close();
    unlock($("token-text").value.trim());
  });
  // Without a token there is nothing to see.
  $("token").addEventListener("cancel", (event) => event.preventDefault());
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("view").focus();
  });
  addEventListener("keydown", press);
  addEventListener("hashchange", () => {
    read();
    applySettings();
    const before = shown.path;
    draw();
    if (route.words.get("focus")) {
      change({ focus: "" }, true);
      shown.view.focus?.();
    } else if (before !== shown.path) scrollTo(0, 0);
  });
  addEventListener("online", retry);
  document.addEventListener("visibilitychange", plan);
  listen((what) => {
    // Other figures make other views.
    if (what === "figures") {
      shown.name = null;
      put($("filter-syntax"), tables.filter.syntax);
      put($("filter-fields"), `Fields: ${tables.filter.fields.join(" ")}`);
    }
    hasNews = true;
    // Nothing is drawn between the return to a page and its first picture.
    if (what === "left") drawFrame();
    plan();
  });
  // Ages grow without news.
  setInterval(plan, 1000);
  read();
  applySettings();
  draw();
  connect();
}

start();
