// What is wrong now, one entry for each fault: devices that are not fine, and alerts that fire. What an alert says of a state is
// said once.

import { h, keyed, put } from "./dom.js";
import { isFine, roleOf, stateOf, worse } from "./figures.js";
import * as f from "./format.js";
import { SIGNS, deviceLink, pill } from "./pieces.js";
import { href } from "./route.js";
import { shownNow } from "./store.js";


/// The problems, the worst first: `{ key, judgement, word, title, meaning, devices, processes, since }`.
export function problemsOf({ snapshot, alerts }) {
  const groups = new Map();
  const group = (key, fresh) => groups.get(key) ?? (groups.set(key, { key, devices: [], processes: [], since: null, ...fresh }), groups.get(key));
  const devices = new Map((snapshot?.devices ?? []).map((device) => [device.id, device]));
  for (const device of devices.values()) {
    if (isFine(device)) continue;
    const { judgement, meaning } = stateOf(device);
    const one = group(`state ${device.state}`, { judgement, word: device.state, isState: true, meaning });
    one.devices.push(device);
    one.age = Math.max(one.age ?? 0, roleOf("device", "age", device) ?? 0);
  }
  // What is good to know is no problem.
  for (const alert of alerts.filter(({ state, severity }) => state === "firing" && severity !== "info")) {
    const device = devices.get(alert.device);
    const isSaid = device && !isFine(device) && (alert.text ?? "").includes(`(state ${device.state})`);
    const one = isSaid ? groups.get(`state ${device.state}`) : group(`alert ${alert.name} ${alert.severity}`, { judgement: alert.severity === "critical" ? "critical" : "warning", word: alert.severity, name: alert.name, meaning: alert.text ?? "" });
    const since = Date.parse(alert.since);
    one.since = Math.min(one.since ?? since, since);
    if (isSaid) continue;
    if (device) one.devices.push(device);
    if (alert.process !== null) one.processes.push(alert.process);
    one.count = (one.count ?? 0) + 1;
  }
  // One device becoming several is another line, since its title is no link then.
  const all = [...groups.values()].map((one) => ({ ...one, title: titleOf(one), key: `${one.key} ${one.devices.length > 1}` }));
  return all.sort((a, b) => (a.judgement === b.judgement ? 0 : worse(a.judgement, b.judgement) === a.judgement ? -1 : 1));
}

function titleOf({ isState, devices, word, name, count }) {
  if (!isState) return (count ?? 0) > 1 ? `${name} (${count})` : name;
  return devices.length > 1 ? `${devices.length} devices are ${word}` : `device ${devices[0].id} is ${word}`;
}

/// So many devices of one problem are links.
const LINKS = 12;

/// A line about a problem. Devices and processes of another machine have other links.
export function problemRow(first, linkTo = deviceLink, processLink = (pid) => h("a", { href: href(`process/${pid}`) }, `process ${pid}`)) {
  const title = first.isState && first.devices.length === 1 ? linkTo(first.devices[0].id) : h("b");
  const meaning = h("span");
  const links = h("span.links");
  const time = h("span.dim");
  const node = h("li", null, pill(SIGNS[first.judgement], first.word), title, meaning, links, time);
  const update = ({ isState, title: text, meaning: words, devices, processes, since, age, count }) => {
    put(title, text);
    // Of several alerts with one name, each says something else.
    put(meaning, (count ?? 1) > 1 ? "" : words);
    const more = devices.length - LINKS;
    // The title is the link to one device alone.
    keyed(links, [...devices.slice(isState && devices.length === 1 ? 1 : 0, LINKS).map(({ id }) => ({ id })), ...processes.slice(0, LINKS).map((pid) => ({ pid })), ...(more > 0 ? [{ more }] : [])], ({ id, pid, more }) => `${id} ${pid} ${more}`, ({ id, pid, more }) => ({
      node: more ? h("span", null, `and ${more} more`) : pid ? processLink(pid) : linkTo(id, `device ${id}`),
    }));
    const old = age >= 1 ? `Last values ${f.age(age)} old.` : "";
    put(time, [since === null ? "" : `${isState ? "for" : "firing for"} ${f.age((shownNow() - since) / 1000)}.`, old].filter(Boolean).join(" "));
  };
  return { node, update };
}

/// All problems in a few words: `30 lost, 31 hung`.
export const inShort = (problems) => problems.map(({ isState, devices, word, name }) => (isState ? `${devices.length > 3 ? `${devices.length} devices` : f.ids(devices)} ${word}` : `${name}${devices.length ? ` on ${devices.length > 3 ? `${devices.length} devices` : f.ids(devices)}` : ""}`)).join(", ");
