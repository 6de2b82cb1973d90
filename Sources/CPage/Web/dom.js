/** Creates an element. `on…` properties are listeners, and `class`, `for`, `aria-*` and `data-*` are attributes. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "list") element[name] = value;
    else element.setAttribute(name === "class" ? "class" : name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byID = (id) => document.getElementById(id);

let serial = 0;
/** Returns an `id` that no other element has, for labels. */
export const freshID = () => `field-${++serial}`;

/** Returns an icon. Icons are drawn with `currentColor`, so they have the color of the text. */
export function icon(name) {
  const paths = {
    up: "M4 10l4-4 4 4",
    down: "M4 6l4 4 4-4",
    folder: "M2 4.5h4l1.5 1.5H14v6.5H2z",
    remove: "M4.5 4.5l7 7m0-7l-7 7",
    copy: "M6 6V3.5h6.5V10H10M3.5 6H10v6.5H3.5z",
    divider: "M8 2v12M5.5 5.5L3 8l2.5 2.5M10.5 5.5L13 8l-2.5 2.5",
  };
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", paths[name]);
  svg.append(path);
  return svg;
}

export function bytesText(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = count / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export const millisecondsText = (value) =>
  value < 1 ? `${value.toFixed(2)} ms` : value < 100 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;

/** Returns a function that waits until it has not been called for a while, and then performs the last call. */
export function debounced(milliseconds, action) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

/** Creates a list of tabs, one of which is selected. Arrow keys move the selection (ARIA APG, "Tabs"). */
export function tabList(container, tabs, choose) {
  const buttons = tabs.map(([name, title], index) =>
    h("button", {
      type: "button", role: "tab", class: "tab", "data-name": name, onclick: () => select(index),
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const target =
          event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1
          : step ? (index + step + tabs.length) % tabs.length : null;
        if (target === null) return;
        event.preventDefault();
        select(target);
        buttons[target].focus();
      },
    }, title));
  function select(index) {
    buttons.forEach((button, at) => {
      button.setAttribute("aria-selected", String(at === index));
      button.tabIndex = at === index ? 0 : -1;
    });
    choose(tabs[index][0]);
  }
  container.setAttribute("role", "tablist");
  container.replaceChildren(...buttons);
  select(0);
  return { select: (name) => select(Math.max(0, tabs.findIndex(([own]) => own === name))) };
}

/** Converts text in which backticks mark code, as in the catalogue, to nodes. */
export const marked = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
