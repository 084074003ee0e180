// The language in which processes are filtered, the same as in the monitor on the terminal.
//
// `word` is anywhere in name, command, user or container. `field:text` equals, `field~text` contains. `field>number` with
// `>`, `<`, `>=`, `<=` compares, with K, M, G, T behind bytes, % behind percent, s, m, h, d behind ages. Terms must all
// hold; `or`, `not` or `-`, and brackets do what they say. What is not known matches nothing.

const TEXTS = {
  dev: (row) => row.process.devices.map((held) => held.id),
  user: (row) => [row.process.user],
  container: (row) => [row.process.container],
  name: (row) => [row.process.name],
  command: (row) => [row.process.command],
  source: (row) => row.process.devices.map((held) => held.source),
  runtime: (row) => [row.process.runtime],
};
const NUMBERS = ["pid", "dram", "l1", "l1_small", "trace", "cb", "total", "rss", "growth", "cpu", "share", "age"];
const UNITS = { K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4, "%": 1, s: 1, m: 60, h: 3600, d: 86400 };
const DEEPEST = 50;

export const FIELDS = [...Object.keys(TEXTS), ...NUMBERS];

/// From a text to a function that says whether it is true of a row. Throws an error with a sentence.
export function parse(text) {
  const tokens = text.match(/[()]|(?:"(?:\\.|[^"\\])*"?|\\.|[^\s()"])+/g) ?? [];
  let at = 0;
  let depth = 0;
  const is = (word) => tokens[at]?.toLowerCase() === word;
  const any = () => {
    const all = [every()];
    while (is("or")) {
      at += 1;
      all.push(every());
    }
    return all.length > 1 ? (row) => all.some((one) => one(row)) : all[0];
  };
  const every = () => {
    const all = [term()];
    for (;;) {
      const joined = is("and");
      if (joined) at += 1;
      if (!joined && (at >= tokens.length || is(")") || is("or"))) return (row) => all.every((one) => one(row));
      all.push(term());
    }
  };
  const term = () => {
    depth += 1;
    if (depth > DEEPEST) throw new Error("too many brackets or nots in each other");
    const made = inner();
    depth -= 1;
    return made;
  };
  const inner = () => {
    const token = tokens[at];
    if (token === undefined || token === ")" || is("or") || is("and")) throw new Error("something to look for is missing");
    at += 1;
    if (token.toLowerCase() === "not" || token === "-") {
      const made = term();
      return (row) => !made(row);
    }
    if (token === "(") {
      const made = any();
      if (tokens[at] !== ")") throw new Error("a bracket is never closed");
      at += 1;
      return made;
    }
    if (token.startsWith("-")) {
      const made = test(token.slice(1));
      return (row) => !made(row);
    }
    return test(token);
  };
  if (!tokens.length) return () => true;
  const made = any();
  if (at < tokens.length) throw new Error("a bracket was never opened");
  return made;
}

function test(token) {
  const found = /^([^":~<>]*)(>=|<=|[:~<>])(.*)$/s.exec(token);
  if (!found) {
    const wanted = plain(token);
    return (row) => ["name", "command", "user", "container"].some((field) => has(TEXTS[field](row), (text) => text.includes(wanted)));
  }
  const [, name, operator, rest] = found;
  const field = name.toLowerCase();
  if (TEXTS[field]) {
    const wanted = plain(rest);
    if (operator === ":" && !wanted) throw new Error(`a text must follow ${field}:`);
    if (operator === ":") return (row) => has(TEXTS[field](row), (text) => text === wanted);
    if (operator === "~") return (row) => has(TEXTS[field](row), (text) => text.includes(wanted));
    throw new Error(`${field} takes : or ~, as it is no number`);
  }
  if (!NUMBERS.includes(field)) throw new Error(`there is no field "${name}": ${FIELDS.join(" ")}`);
  if (operator === "~" || (operator === ":" && field !== "pid")) throw new Error(`${field} takes > < >= or <=, as it is a number`);
  return compare(field, operator, rest);
}

function compare(field, operator, rest) {
  const units = { pid: "", cpu: "%", share: "%", age: "smhd" }[field] ?? "KMGT";
  const [, digits, letter] = /^(-?\d+(?:\.\d+)?)(.?)$/.exec(rest) ?? [];
  const unit = units === "KMGT" ? letter?.toUpperCase() : letter;
  if (digits === undefined || (unit && !units.includes(unit))) {
    throw new Error(`"${rest}" is not a number for ${field}${units ? `, which may end in ${[...units].join(" ")}` : ""}`);
  }
  const wanted = Number(digits) * (UNITS[unit] ?? 1);
  return (row) => {
    const value = row[field];
    if (value === null || value === undefined) return false;
    return { ">": value > wanted, "<": value < wanted, ">=": value >= wanted, "<=": value <= wanted, ":": value === wanted }[operator];
  };
}

const has = (texts, is) => texts.some((text) => text !== null && text !== undefined && is(String(text).toLowerCase()));
const plain = (token) => token.replace(/"|\\(.)/g, (_, escaped) => escaped ?? "").toLowerCase();
