// What is known, and how it comes here: a stream that is opened again whenever it ends, and single requests.

import { kept } from "./dom.js";
import { isLoaded, roleOf, take as takeFigures } from "./figures.js";

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
let token = keptToken();

export function unlock(text) {
  token = text;
  keptToken(text);
  retry();
}

async function ask(path, options = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(`api/v1/${path}`, { headers, cache: "no-cache", redirect: "error", ...options });
  if (answer.status === 401) {
    store.link.state = "locked";
    tell("link");
  }
  if (!answer.ok) {
    const problem = await answer.json().catch(() => null);
    throw Object.assign(new Error(problem?.error?.reason ?? `the service answers ${answer.status}`), { status: answer.status });
  }
  return answer;
}

/// One answer of the service: `get("buffers", { pid: 7 })`.
export async function get(path, wanted = {}) {
  const given = Object.entries(wanted).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  return (await ask(query ? `${path}?${query}` : path)).json();
}

/// Why an answer did not come.
export const reasonOf = (error) => (error.name === "AbortError" ? "the service does not respond" : error instanceof TypeError ? "the service cannot be reached" : error.message);

let wake = () => {};
/// Does not wait any longer.
export const retry = () => wake();

/// Opens the stream, for as long as the page is there.
export async function connect() {
  let tries = 0;
  for (;;) {
    const stop = new AbortController();
    let dog;
    try {
      // Before anything is drawn; and another version of the service may have other figures.
      if (takeFigures(await (await ask("figures")).text())) tell("figures");
      const answer = await ask("stream", { signal: stop.signal, headers: { Accept: "text/event-stream", ...(token && { Authorization: `Bearer ${token}` }) } });
      const refreshed = refresh();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        // The service says something every 15 seconds. When it does not, the connection is lost.
        clearTimeout(dog);
        dog = setTimeout(() => stop.abort(), Math.max(40000, 5 * interval()));
        const { done, value } = await reader.read();
        if (done) break;
        text += value.replaceAll("\r", "");
        const blocks = text.split("\n\n");
        text = blocks.pop();
        for (const block of blocks) if (take(block)) tries = 0;
      }
      await refreshed;
      store.link.reason = "the service closed the connection";
    } catch (error) {
      store.link.reason = reasonOf(error);
    }
    clearTimeout(dog);
    stop.abort();
    tries += 1;
    const wait = Math.min(15000, 1000 * 2 ** (tries - 1)) * (0.8 + 0.4 * Math.random());
    if (store.link.state !== "locked") store.link.state = "waiting";
    store.link.nextTry = Date.now() + wait;
    tell("link");
    await new Promise((resolve) => {
      wake = resolve;
      // Without a token there is nothing to try.
      if (store.link.state !== "locked") setTimeout(resolve, wait);
    });
    store.link.state = "connecting";
    tell("link");
  }
}

/// Which card has which number. The driver may give numbers to other cards when it is loaded again.
export const cards = ({ devices }) => devices.map((device) => [device.id, isLoaded() && roleOf("device", "address", device)]).join();

/// Takes one event of the stream.
function take(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5));
  }
  if (!data.length) return false;
  const value = JSON.parse(data.join("\n"));
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
  return true;
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
