// Making parts of the page and changing them in place. Text always becomes a text node: what a process calls itself is
// never read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/// An element: `h("button.ghost", { onclick }, "Retry")`.
export const h = (name, attributes, ...children) => fill(document.createElement(name.split(".")[0]), name, attributes, children);

/// The same within a drawing.
export const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name.split(".")[0]), name, attributes, children);

function fill(node, name, attributes, children) {
  const classes = name.split(".").slice(1);
  if (classes.length) node.classList.add(...classes);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/// Sets the text of an element where it is another one.
export function put(node, text) {
  if (node.shown !== text) node.textContent = node.shown = text;
}

/// Sets an attribute where it is another one. `null` takes it away.
export function attr(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/// Sets several attributes: `attrs(line, { x1: 0, x2: 9 })`.
export const attrs = (node, all) => Object.entries(all).forEach(([name, value]) => attr(node, name, value));

/// Sets a style where it is another one. The page's policy forbids style attributes, but not this.
export function style(node, name, value) {
  if (node.style.getPropertyValue(name) !== value) node.style.setProperty(name, value);
}

/// Makes the children of an element those of a list: `make(item)` gives `{ node, update }` once for each key.
export function keyed(parent, items, key, make) {
  const before = parent.parts ?? new Map();
  const keys = new Set(items.map(key));
  const focus = parent.contains(document.activeElement) ? document.activeElement : null;
  for (const [name, part] of before) {
    if (!keys.has(name)) {
      part.node.remove();
      before.delete(name);
    }
  }
  let next = parent.firstChild;
  for (const item of items) {
    let part = before.get(key(item));
    if (!part) before.set(key(item), (part = make(item)));
    if (part.node === next) next = next.nextSibling;
    else parent.insertBefore(part.node, next);
    part.update?.(item);
  }
  parent.parts = before;
  // An element that is moved loses the focus.
  if (focus?.isConnected && document.activeElement !== focus) focus.focus({ preventScroll: true });
}

/// What the browser keeps under a name: a new value where one is given. It may keep nothing.
export function kept(storage, name, value) {
  try {
    if (value !== undefined) storage().setItem(name, value);
    return storage().getItem(name);
  } catch {
    return null;
  }
}

/// A bar of parts: `show([[class, share, title], …])`, shares of 1.
export function bar(label) {
  const node = h("span.bar", { role: "img", "aria-label": label });
  const show = (parts, text) => {
    attr(node, "aria-label", `${label}: ${text}`);
    keyed(node, parts.filter(([, share]) => share > 0), ([name]) => name, ([name]) => {
      const part = h(`i.${name.split(" ")[0]}`);
      return {
        node: part,
        update: ([, share, words]) => {
          style(part, "width", `${(Math.min(share, 1) * 100).toFixed(2)}%`);
          if (words) {
            attr(part, "title", words);
            put(part, share > 0.12 ? words : "");
          }
        },
      };
    });
  };
  return { node, show };
}
