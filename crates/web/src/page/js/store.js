// What is known, and how it comes here: the stream, in which the page takes part while it is looked at, and single requests.

import { kept } from "./dom.js";
import { isLoaded, roleOf, take as takeFigures } from "./figures.js";
import { reasonOf, request, takePart } from "./stream.js";

export const store = {
  snapshot: null,
  status: null,
  topology: null,
  /// The latest last.
  events: [],
  newest: 0,
  alerts: [],
  /// `connecting`, `live`, `waiting` for the next try, or `locked` until there is a token.
  link: { state: "connecting", nextTry: 0, reason: "" },
  /// The moment that is shown instead of the present: `{ at, reason }`.
  past: null,
  pastEvents: [],
};

/// What goes on meanwhile while the past is shown.
const present = {};
const OF_A_MOMENT = ["snapshot", "events", "newest", "alerts"];

/// Shows the machine as it was. Without a snapshot, what was shown before stays, and the reason is said.
export function showPast(at, snapshot, reason) {
  if (!store.past) for (const name of OF_A_MOMENT) present[name] = store[name];
  store.past = { at, reason: reason ?? "" };
  Object.assign(store, { events: store.pastEvents, alerts: snapshot?.alerts ?? [] });
  if (snapshot) store.snapshot = snapshot;
  tell("past");
}

/// Shows the present again.
export function leavePast() {
  Object.assign(store, present, { past: null });
  tell("past");
}

const listeners = new Set();
/// Calls a function with the name of what has changed.
export const listen = (listener) => listeners.add(listener);
export const tell = (what) => listeners.forEach((listener) => listener(what));

/// The service's clock is ahead of this one by so many milliseconds.
let skew = null;
export const now = () => Date.now() + (skew ?? 0);
/// The time of what is shown: in the past, that of the moment.
export const shownNow = () => (store.past && store.snapshot ? Date.parse(store.snapshot.taken_at) : now());
export const interval = () => store.status?.interval_ms ?? 1000;
/// How old the last sample is, in seconds.
export const sampleAge = () => (store.snapshot ? Math.max(0, now() - Date.parse(store.snapshot.taken_at)) / 1000 : null);
export const isOld = () => !store.past && store.snapshot !== null && sampleAge() * 1000 > Math.max(4000, 4 * interval());

const keptToken = (text) => kept(() => sessionStorage, "ttmon-token", text);
let token = keptToken() ?? "";

export function unlock(text) {
  token = text;
  keptToken(text);
  retry();
}

/// Notes that the service wants another token.
function lock(error) {
  if (error.status === 401) {
    store.link.state = "locked";
    tell("link");
  }
  throw error;
}

/// One answer of the service: `get("buffers", { pid: 7 })`.
export async function get(path, wanted = {}) {
  const given = Object.entries(wanted).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  return (await request(query ? `${path}?${query}` : path, token).catch(lock)).json();
}

let wake = () => {};
/// Does not wait any longer.
export const retry = () => wake();

/// A page that is hidden for longer leaves the stream, in milliseconds: a browser may stop it, and would keep what comes for it.
const HIDDEN = 120e3;
/// Aborted when the page is left or hidden for long.
let stay = new AbortController();

/// Leaves the stream when the page is left: a browser may keep it for the way back. On return the page takes part again.
function watchPage() {
  let timer;
  const leave = () => {
    stay.abort();
    Object.assign(store.link, { state: "connecting", reason: "" });
    tell("left");
  };
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(leave, HIDDEN);
    else if (stay.signal.aborted) {
      stay = new AbortController();
      retry();
    }
  };
  addEventListener("pagehide", leave);
  document.addEventListener("freeze", leave);
  addEventListener("pageshow", look);
  document.addEventListener("visibilitychange", look);
  look();
}

/// Takes part in the stream, again whenever it ends.
export async function connect() {
  watchPage();
  for (let tries = 0; ; tries += 1) {
    const { signal } = stay;
    try {
      // Before anything is drawn; and another version of the service may have other figures.
      if (takeFigures(await (await request("figures", token, signal)).text())) tell("figures");
      await follow(signal, () => (tries = 0));
    } catch (error) {
      if (!signal.aborted) Object.assign(store.link, { state: error.status === 401 ? "locked" : "waiting", reason: reasonOf(error) });
    }
    const wait = Math.min(15000, 1000 * 2 ** tries) * (0.8 + 0.4 * Math.random());
    store.link.nextTry = Date.now() + wait;
    tell("link");
    await new Promise((resolve) => {
      wake = resolve;
      if (store.link.state === "waiting") setTimeout(resolve, wait);
      // Without a token there is nothing to try. A page that was left waits for its return, which may have come already.
      else if (store.link.state === "connecting" && !stay.signal.aborted) resolve();
    });
    if (!stay.signal.aborted) store.link.state = "connecting";
    tell("link");
  }
}

/// So long nothing may come, in milliseconds. The stream itself ends sooner, unless the browser has ended its worker.
const SILENCE = 60e3;

/// Takes what the stream brings until it ends or the page leaves it.
const follow = (signal, onNews) => new Promise((_, reject) => {
  signal.throwIfAborted();
  let [dog, isBegun] = [null, false];
  // At once: a page that is unloaded does nothing later.
  const end = (error) => {
    clearTimeout(dog);
    leave();
    reject(error);
  };
  const listenOn = () => {
    clearTimeout(dog);
    dog = setTimeout(end, SILENCE, new Error("the service does not respond"));
  };
  const leave = takePart(token, ({ name, data, reason, status }) => {
    if (reason) return end(Object.assign(new Error(reason), { status }));
    listenOn();
    if (!isBegun) refresh();
    isBegun = true;
    if (data) {
      take(name, JSON.parse(data));
      onNews();
    }
  });
  signal.addEventListener("abort", end);
  listenOn();
});

/// Which card has which number. The driver may give numbers to other cards when it is loaded again.
export const cards = ({ devices }) => devices.map((device) => [device.id, isLoaded() && roleOf("device", "address", device)]).join();

/// Takes one event of the stream.
function take(name, value) {
  store.link.state = "live";
  if (name === "snapshot") {
    if (skew === null) skew = Date.parse(value.taken_at) - Date.now();
    const machine = (snapshot) => cards(snapshot) + snapshot.devices.map((device) => device.state);
    // Which links are up is part of the topology, and changes with deep reads.
    const mayHaveChanged = value.devices.some((device) => device.deep) && Date.now() - placed > 10_000;
    const shown = store.past ? present : store;
    if (shown.snapshot && (machine(shown.snapshot) !== machine(value) || mayHaveChanged)) place();
    shown.snapshot = value;
  }
  if (name === "events") note(value);
  if (name === "alerts") (store.past ? present : store).alerts = value.alerts ?? [];
  tell(name);
}

function note({ newest, events }) {
  const shown = store.past ? present : store;
  const fresh = events.filter((event) => event.seq > shown.newest);
  shown.events = shown.events.concat(fresh).slice(-1000);
  shown.newest = Math.max(shown.newest, newest ?? 0, ...fresh.map((event) => event.seq));
}

/// When the topology was last asked for.
let placed = 0;

const place = () => {
  placed = Date.now();
  return get("topology").then((topology) => {
    store.topology = topology;
    tell("topology");
  }, () => {});
};

/// What the stream does not bring at its beginning.
async function refresh() {
  const quietly = (promise) => promise.catch(() => null);
  const asked = Date.now();
  const [status, events, alerts] = await Promise.all([quietly(get("status")), quietly(get("events")), quietly(get("alerts")), place()]);
  if (status) {
    // A service that was restarted counts its events from 1.
    if (store.status && store.status.started_at !== status.started_at) Object.assign(store.past ? present : store, { events: [], newest: 0 });
    store.status = status;
    skew = Date.parse(status.now) - (asked + Date.now()) / 2;
  }
  if (events) note(events);
  if (alerts) (store.past ? present : store).alerts = alerts.alerts;
  tell("refresh");
}
