// The tables of figures, as the service has them: what there is to show, in which unit, and how it is judged.

import { MISSING, binary } from "./format.js";

/// What `api/v1/figures` says; empty until it has come.
export const tables = {};
export const isLoaded = () => "device" in tables;

/// Takes the tables. Says whether they differ from those that were known.
export function take(text) {
  if (tables.text === text) return false;
  Object.assign(tables, JSON.parse(text), { text });
  return true;
}

const keys = new Map();
/// The value at a path inside of a subject; null where there is none.
export function valueAt(subject, path) {
  let parts = keys.get(path);
  if (!parts) keys.set(path, (parts = path.split(".")));
  let value = subject;
  for (const part of parts) value = value?.[part];
  return value ?? null;
}

/// The figures of a table that JSON has, one for each label where they have labels. Some may keep the values of all labels together.
export function fieldsOf(table, isJoined = () => false) {
  return tables[table].filter((figure) => figure.path !== null).flatMap((figure) => {
    if (!figure.dimension) return [figure];
    if (isJoined(figure)) return [{ ...figure, path: figure.path.replace(".{label}", "") }];
    return figure.dimension.labels.map((label) => {
      const kind = figure.dimension.name === "kind" && tables.memory_kinds.find((kind) => kind.name === label);
      const [name, title] = kind ? [`${label}_${figure.name}`, `${kind.title} ${figure.title}`] : [`${figure.name}.${label}`, `${figure.title} ${label}`];
      return { ...figure, name, title, path: figure.path.replace("{label}", label), label };
    });
  });
}

/// What history keeps of a device.
export const keptFields = () => fieldsOf("device").filter((figure) => figure.history);

/// The value that a view has to know by what it means: `roleOf("device", "stale", device)`.
export const roleOf = (table, role, subject) => valueAt(subject, tables.roles[table][role]);
/// The figure that has a role.
export const figureOf = (table, role) => tables[table].find((figure) => figure.path === tables.roles[table][role]);

export const read = (figure, subject) => valueAt(subject, figure.path);
export const limitOf = (figure, subject) => (figure.limit === null ? null : valueAt(subject, figure.limit));

/// The value as a part of its limit; null where either is not known.
export function shareOf(figure, subject) {
  const [value, limit] = [read(figure, subject), limitOf(figure, subject)];
  return value !== null && limit > 0 ? value / limit : null;
}

/// A value for people, with its unit: `51.2 °C`, `2.4 GiB`.
export function show({ unit }, value, decimals = unit.decimals) {
  if (value === null || value === undefined || Number.isNaN(value)) return MISSING;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (unit.binary) return binary(value, unit.symbol);
  if (unit.name === "share") return `${(value * 100).toFixed(2)} %`;
  return `${value.toFixed(decimals)}${unit.symbol && ` ${unit.symbol}`}`;
}

/// The value of a subject for people: `≥ 62.5 %` where it is a lower bound.
export function showOf(figure, subject, decimals) {
  const isBound = figure.lower_bound && valueAt(subject, figure.lower_bound) && read(figure, subject) !== null;
  return (isBound ? "≥ " : "") + show(figure, read(figure, subject), decimals);
}

/// Why a figure is not known: `{ name, meaning }`; null where it is known, or nobody says.
export function whyUnknown(figure, subject) {
  const name = figure.reason && read(figure, subject) === null ? valueAt(subject, figure.reason) : null;
  return name === null ? null : (tables.reasons.find((reason) => reason.name === name) ?? { name, meaning: "" });
}
/// Figures that say more of another one are shown with it.
export const isBeside = (table, figure) => tables[table].some((other) => figure.path !== null && [other.lower_bound, other.reason].includes(figure.path));

const ORDER = ["normal", "warning", "critical"];
/// The worse of two judgements.
export const worse = (a, b) => (ORDER.indexOf(a) > ORDER.indexOf(b) ? a : b);

/// What a value means: `normal`, `warning` or `critical`; null where it or its limit is not known.
export function judge(figure, subject) {
  const share = shareOf(figure, subject);
  return judgeShare(figure, share);
}

/// The same of a part of the limit.
export function judgeShare(figure, share) {
  if (!figure.judge || share === null) return null;
  const { by, warning, critical } = figure.judge;
  if (by === "link") return share < 1 ? "warning" : "normal";
  if (critical !== null && share >= critical) return "critical";
  return warning !== null && share >= warning ? "warning" : "normal";
}

export function isAtLimit(figure, subject) {
  const share = shareOf(figure, subject);
  return share !== null && share >= tables.at_limit;
}

/// What a device's state means: `{ name, meaning, judgement }`.
export const stateOf = (device) => tables.states.find(({ name }) => name === device.state) ?? { name: device.state, meaning: "", judgement: "warning" };
export const isFine = (device) => stateOf(device).judgement === "normal";

/// Those of deep reads are on the page of a device alone.
const headline = () => tables.device.filter((figure) => figure.history && !figure.dimension && !figure.deep);
/// Figures that are shown against their limit: temperature, power.
export const gauges = () => headline().filter((figure) => figure.limit !== null && figure.judge?.by !== "capacity");
/// What is said first of a device: how busy, how hot, how much power.
export function headlines() {
  const first = (by) => gauges().filter((figure) => figure.judge.by === by).slice(0, 1);
  return [figureOf("device", "utilization"), ...first("heat"), ...first("load")];
}
/// Figures that are shown as a number: clock, fan.
export const numbers = () => headline().filter((figure) => figure.limit === null && !figure.unit.binary);
/// What goes over the link, one figure for each direction.
export const flows = () => headline().filter((figure) => figure.limit === null && figure.unit.binary);
/// Figures of a link that are judged by what it could do.
export const links = () => tables.device.filter((figure) => figure.judge?.by === "link");

/// Nothing can be read from the device itself, and that is as it should be.
export const isUnread = (device) => isFine(device) && gauges().every((figure) => read(figure, device) === null);

/// The kinds of memory that are no capacity by name: shown beside what is used.
export const otherKinds = () => tables.memory_kinds.filter(({ name }) => !tables.memory.some((area) => area.name === name));
export const kindOf = (name) => tables.memory_kinds.find((kind) => kind.name === name);
export const sourceMeaning = (name) => tables.sources.find((source) => source.name === name)?.meaning ?? "";

/// A title without the section that it begins with: `to device` for `PCIe to device`.
export const shortTitle = ({ title, section }) => (title.startsWith(`${section} `) ? title.slice(section.length + 1) : title);

/// What is drawn into one chart: figures of one section and unit that have no limit of their own, and the labels of one figure.
export function charts() {
  const groups = [];
  for (const field of keptFields()) {
    const last = groups.at(-1)?.[0];
    const sameFigure = last && field.label !== undefined && last.help === field.help;
    const alike = last && last.section === field.section && last.unit.name === field.unit.name && last.limit === null && field.limit === null;
    if (sameFigure || alike) groups.at(-1).push(field);
    else groups.push([field]);
  }
  return groups;
}
