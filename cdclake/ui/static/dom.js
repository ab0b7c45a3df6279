// Elements from values. Text becomes a text node, so that no value is ever read as HTML.

export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

// A link has a key: the page is drawn again every few seconds, and the focus stays on it.
export function link(target, text) {
  return el("a", { href: target, "data-focus": target }, text);
}

export function mark(name, kind) {
  return el("span", { class: `mark ${kind}` }, name);
}

export function number(value) {
  return value === null || value === undefined ? "-" : value.toLocaleString("en");
}

export function seconds(value) {
  if (value === null || value === undefined) return "-";
  if (value >= 120) return `${number(Math.round(value / 60))} min`;
  return `${value.toLocaleString("en", { maximumSignificantDigits: 3 })} s`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "-";
  let rest = value;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (rest < 1000) return `${rest.toLocaleString("en", { maximumFractionDigits: 1 })} ${unit}`;
    rest /= 1000;
  }
  return `${rest.toLocaleString("en", { maximumFractionDigits: 1 })} TB`;
}

export function when(time) {
  if (time === null || time === undefined) return "";
  return String(time).replace("T", " ").replace(/(\.\d+)?\+00:00$/, "Z");
}

export function plain(value) {
  if (value === null || value === undefined) return "-";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

// `columns` are [heading, cell of a row, is a number].
export function table(caption, columns, rows) {
  const head = columns.map(([title, , right]) =>
    el("th", { scope: "col", class: right ? "number" : null }, title));
  const body = rows.map((row) => el("tr", {}, columns.map(([, cell, right]) =>
    el("td", { class: right ? "number" : null }, cell(row)))));
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption,
    "data-focus": `wide ${caption}` },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, body)));
}

// Show `nodes` in `place`; keep focus and horizontal scrolling where they were.
export function draw(place, nodes) {
  const focused = place.contains(document.activeElement)
    ? document.activeElement.dataset.focus : undefined;
  const scrolled = new Map([...place.querySelectorAll(".wide")]
    .map((each) => [each.dataset.focus, each.scrollLeft]));
  place.replaceChildren(...nodes);
  for (const each of place.querySelectorAll("[data-focus]")) {
    if (each.dataset.focus === focused) each.focus({ preventScroll: true });
    each.scrollLeft = scrolled.get(each.dataset.focus) ?? 0;
  }
}
