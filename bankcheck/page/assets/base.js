// What all views share: making elements, text that screen readers announce, and the theme switch.

// VIEWS.KIND(root, data) draws a view into `root`. Each view's script adds itself.
const VIEWS = {};

// An element: make("button", { class: "primary", "aria-pressed": false, onclick: f }, "Play", child, ...).
// Strings become text, never markup. Properties that start with "on" are listeners; null and undefined are left out.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Sets an attribute only where it changes: a page of thousands of cells stays quick.
function mark(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const plural = (count, unit, units = `${unit}s`) => `${count} ${count === 1 ? unit : units}`;

// Numbers as people write them: [0, 1, 2, 3, 7] is "0-3, 7".
function spans(numbers) {
  const parts = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = parts.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else parts.push([number, number]);
  }
  return parts.map(([first, end]) => (first === end ? `${first}` : `${first}\u2013${end}`)).join(", ");
}

// A group of buttons of which one is pressed: choices("Swizzle", [["off", "Off"], ...], "off", (key) => ...).
function choices(label, options, chosen, onchoose) {
  const buttons = options.map(([key, text]) =>
    make("button", { type: "button", "data-key": key, onclick: () => choose(key, true) }, text));
  const group = make("div", { class: "choices", role: "group", "aria-label": label }, buttons);
  function choose(key, tell) {
    for (const button of buttons) mark(button, "aria-pressed", String(button.dataset.key === String(key)));
    if (tell) onchoose(key);
  }
  choose(chosen, false);
  return { group, choose, buttons };
}

// A label over a control, and a note under it.
let labelled = 0;
function field(label, control, note = null) {
  control.id ||= `field-${++labelled}`;
  return make("div", { class: "field" }, make("label", { for: control.id }, label), control, note);
}

function drawTheme(root) {
  const { group } = choices("Colours", [["", "Auto"], ["light", "Light"], ["dark", "Dark"]], "", (theme) =>
    mark(document.documentElement, "data-theme", theme || null));
  root.append(group);
}
