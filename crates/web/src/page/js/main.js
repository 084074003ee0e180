// The frame around the views: header, alerts, navigation, keys, theme.

import * as deaths from "./deaths.js";
import * as device from "./device.js";
import { attr, attrs, h, kept, keyed, put } from "./dom.js";
import { isFine, isLoaded, roleOf, tables } from "./figures.js";
import * as f from "./format.js";
import { RANGES } from "./history.js";
import * as log from "./log.js";
import * as memory from "./memory.js";
import * as mesh from "./mesh.js";
import * as overview from "./overview.js";
import { complaint, deviceLink, pill, signOf } from "./pieces.js";
import * as process from "./process.js";
import * as processes from "./processes.js";
import { change, currentRange, go, href, read, route } from "./route.js";
import { connect, isOld, listen, retry, sampleAge, store, unlock } from "./store.js";

const VIEWS = { overview, memory, mesh, processes, deaths, events: log, device, process };
const TABS = ["overview", "memory", "mesh", "processes", "deaths", "events"];
/// What a tab is called, where it is not the view itself.
const TITLES = { deaths: "Exited" };
const PARENTS = { device: "overview", process: "processes" };
const $ = (id) => document.getElementById(id);

/// The view that is shown.
let shown = { name: null, view: null };
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
  drawFrame();
  // Views are made of the tables of figures.
  if (!isLoaded()) return;
  const name = route.view in VIEWS ? route.view : "overview";
  if (shown.name !== name) {
    shown = { name, view: VIEWS[name].make() };
    $("view").replaceChildren(shown.view.node);
  }
  shown.path = `${name} ${route.id}`;
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
  }
  for (const button of $("ranges").children) attr(button, "aria-pressed", String(button.dataset.range === currentRange()));
  drawLink(link);
  drawAlerts(snapshot);
  $("waiting").hidden = snapshot !== null;
}

function titleMark() {
  if (store.link.state !== "live" || isOld()) return "(old) ";
  const wrong = store.snapshot?.devices.filter((device) => !isFine(device)).length;
  return wrong ? `(${wrong} problem${wrong > 1 ? "s" : ""}) ` : "";
}

/// Whether the values are current, and if not, what is being done about it.
function drawLink({ state, nextTry, reason }) {
  const old = isOld() || (state !== "live" && store.snapshot !== null);
  const since = store.snapshot ? `last sample ${f.age(sampleAge())} ago` : "no sample yet";
  const [sign, word, tone] = old || state === "locked" ? ["▲", state === "live" ? "old" : state === "locked" ? "locked" : "reconnecting", "critical"] : state === "live" ? ["●", "live", "good"] : ["↻", "connecting", "warn"];
  put($("live-sign"), sign);
  put($("live-word"), word);
  $("live").className = `pill ${tone}`;
  put($("sampled"), store.snapshot ? f.clock(Date.parse(store.snapshot.taken_at)) : "");
  const wait = Math.max(0, Math.ceil((nextTry - Date.now()) / 1000));
  const next = state === "waiting" ? `Next try in ${wait} s.` : state === "connecting" ? "Trying now." : "The service is connected but takes no new samples.";
  const isTold = old || (state === "waiting" && !store.snapshot);
  $("old").hidden = !isTold || state === "locked";
  const lost = state === "live" ? "" : `Connection lost: ${reason}. `;
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

/// Devices with problems, and firing alerts.
function drawAlerts(snapshot) {
  const wrong = (snapshot?.devices ?? []).filter((device) => !isFine(device)).map((device) => ({ device, key: `device ${device.id} ${device.state}` }));
  const firing = store.alerts.filter((alert) => alert.state === "firing").map((alert) => ({ alert, key: log.alertKey(alert) }));
  const all = [...wrong, ...firing];
  $("alerts").hidden = !all.length;
  const most = 6;
  keyed($("alert-list"), all.slice(0, most), (one) => one.key, (one) => (one.device ? problemRow(one.device) : wrapped(one.alert)));
  $("alert-more").hidden = all.length <= most;
  put($("alert-more"), all.length > most ? `and ${all.length - most} more` : "");
}

function wrapped(alert) {
  const { node, update } = log.alertRow(alert);
  return { node, update: ({ alert }) => update(alert) };
}

function problemRow(device) {
  const text = h("span");
  const node = h("li", null, pill(signOf(device), device.state), deviceLink(device.id, h("b", null, `device ${device.id} is ${device.state}`)), text);
  return { node, update: ({ device }) => put(text, complaint(device)) };
}

const THEMES = ["auto", "light", "dark"];
const keptTheme = (name) => kept(() => localStorage, "ttmon-theme", name);
function theme(name) {
  document.documentElement.dataset.theme = name;
  put($("theme"), { auto: "◐", light: "○", dark: "●" }[name]);
  attrs($("theme"), { "aria-label": `Theme: ${name}`, title: `Theme: ${name} (t)` });
}

function nextTheme() {
  const name = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  keptTheme(name);
  theme(name);
}

/// Moves the focus among the things of a view: by one, or by a row of a grid.
function move(by, isRow) {
  const items = [...$("view").querySelectorAll("[data-item]")];
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
    else if (PARENTS[route.view]) go(href(PARENTS[route.view]));
    else if (route.words.get("q")) change({ q: "" });
    else document.activeElement?.blur();
    return;
  }
  if (isTyping) return;
  const ranges = Object.keys(RANGES);
  const range = (by) => change({ range: ranges[Math.min(ranges.length - 1, Math.max(0, ranges.indexOf(currentRange()) + by))] });
  const step = (by, isRow) => (shown.view.step ? !isRow && shown.view.step(by) : move(by, isRow));
  const keys = {
    "?": () => $("help").showModal(),
    "/": () => (shown.view.focus ? shown.view.focus() : go(href("processes", { focus: "1" }))),
    t: nextTheme,
    j: () => step(1),
    k: () => step(-1),
    ArrowDown: () => step(1, true),
    ArrowUp: () => step(-1, true),
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    "[": () => range(-1),
    "]": () => range(1),
  };
  // Where something long is scrolled, arrows scroll it.
  if (event.key.startsWith("Arrow") && event.target.closest(".scroll") && !event.target.matches("[data-item]")) return;
  const act = TABS[Number(event.key) - 1] ? () => go(href(TABS[Number(event.key) - 1])) : keys[event.key];
  // What does nothing here is left to the browser.
  if (act && act() !== false) event.preventDefault();
}

function start() {
  theme(THEMES.find((name) => name === keptTheme()) ?? "auto");
  $("tabs").append(...TABS.map((name, n) => h("a", { "data-view": name, title: `${n + 1}` }, TITLES[name] ?? name[0].toUpperCase() + name.slice(1))));
  $("ranges").append(...Object.keys(RANGES).map((range) => h("button", { "data-range": range, onclick: () => change({ range }) }, range)));
  $("theme").addEventListener("click", nextTheme);
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
    plan();
  });
  // Ages grow without news.
  setInterval(plan, 1000);
  read();
  draw();
  connect();
}

start();
