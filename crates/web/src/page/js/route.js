// What is shown is in the address: `#/device/3?range=6h`. So it can be sent to somebody, and back and forward work.

import { AROUND, RANGES } from "./history.js";

/// The last choice of a range counts where an address names none.
let range = "15m";

/// `#/fleet/lab-7/3`: a view, what it is about, and a part of that.
export const route = { view: "overview", id: null, part: null, words: new URLSearchParams() };

export function read() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, id, part] = path.split("/").map(decode);
  route.view = view || "overview";
  route.id = id || null;
  route.part = part || null;
  route.words = new URLSearchParams(query ?? "");
  if (route.words.get("range") in RANGES) range = route.words.get("range");
  return route;
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const currentRange = () => range;

/// The moment of the past that is shown, or null.
export const currentAt = () => Number(route.words.get("at")) || null;

/// The stretch of time that was chosen in a chart, or that is around a moment of the past: `[from, to]`, or null.
export function currentZoom() {
  const [from, to] = (route.words.get("zoom") ?? "").split("-").map(Number);
  if (from > 0 && to - from >= SHORTEST) return [from, to];
  const at = currentAt();
  if (!at) return null;
  // It stays while time runs, so that charts are not asked for again with each step.
  const middle = Math.round(at / AROUND) * AROUND;
  return [middle - AROUND, middle + AROUND];
}
/// A shorter stretch has too few points, in milliseconds.
const SHORTEST = 10e3;

/// Shows only a stretch of time; all of the range again without one.
export function zoomTo(from, to) {
  const middle = (from + to) / 2;
  const half = Math.max(SHORTEST, to - from) / 2;
  change({ zoom: from === undefined ? "" : `${Math.round(middle - half)}-${Math.round(middle + half)}` });
}

/// The address of a view.
export function href(path, words = {}) {
  const query = new URLSearchParams(Object.entries({ range, at: route.words.get("at"), ...words }).filter(([, value]) => value));
  return `#/${path}?${query}`;
}

export const deviceHref = (id) => href(`device/${encodeURIComponent(id)}`);

/// Changes words of the address. Typing does not make steps to go back through.
export function change(words, isTyping = false) {
  const path = [route.view, route.id, route.part].filter((part) => part !== null).map(encodeURIComponent).join("/");
  const address = href(path, { ...Object.fromEntries(route.words), ...words });
  if (!isTyping) return go(address);
  history.replaceState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/// Goes to an address. The browser tells of it later, and the next key may come before.
export function go(address) {
  location.hash = address;
  read();
}
