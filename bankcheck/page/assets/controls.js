// The switches of the access view: padding, swizzle, the symbols' values.

// layoutControls(data, layout, onchange(layout)) has `element` and `show(layout)`.
function layoutControls(data, layout, onchange) {
  let current = layout;
  const { array } = data;
  const widths = [...new Set([...Array(data.mostPadding + 1).keys(), data.start.pad])].sort((a, b) => a - b);
  const padding = choices("Padding: elements added to each row", widths.map((width) => [width, String(width)]),
    layout.pad, (pad) => change({ pad, swizzle: pad && current.swizzle === "xor" ? "off" : current.swizzle }));
  const kinds = [["off", "off"], ["xor", "column ^ row"], ["bms", "B,M,S"]];
  const swizzle = choices("Swizzle", kinds, kindOf(layout), (kind) => change(withSwizzle(kind)));
  const inputs = ["B", "M", "S"].map((name, at) => make("input", {
    type: "number", min: name === "S" ? -20 : 0, max: 20, step: 1, value: (triple() ?? usualSwizzle(data))[at],
    "aria-label": `${name} of Swizzle<B,M,S>`, oninput: () => change(withSwizzle("bms")),
  }));
  const triples = make("span", { class: "triple" }, inputs);
  const element = make("div", { class: "layout-controls" },
    labelledGroup("Padding per row, in elements", padding.group, data.noPadding),
    labelledGroup(`Swizzle${array.swizzleUnitBytes === 1 && array.elementBytes > 1 ? " (B,M,S on bytes)" : ""}`,
      make("span", { class: "swizzle" }, swizzle.group, triples), data.noXor && `column ^ row: ${data.noXor}`));
  if (data.noPadding) for (const button of padding.buttons) button.disabled = Number(button.dataset.key) > 0;
  if (data.noXor) swizzle.buttons[1].disabled = true;
  show(layout);

  function triple() {
    return Array.isArray(current.swizzle) ? current.swizzle : null;
  }
  function withSwizzle(kind) {
    if (kind === "xor") return { pad: 0, swizzle: "xor" };
    const numbers = inputs.map((input) => (input.value === "" ? NaN : Number(input.value)));
    return { pad: current.pad, swizzle: kind === "bms" ? numbers : "off" };
  }
  function change(wanted) {
    show(wanted);
    onchange(wanted);
  }
  function show(wanted) {
    current = wanted;
    padding.choose(wanted.pad, false);
    swizzle.choose(kindOf(wanted), false);
    triples.hidden = !Array.isArray(wanted.swizzle);
    triple()?.forEach((number, at) => {
      if (!Number.isNaN(number) && Number(inputs[at].value) !== number) inputs[at].value = number;
    });
  }
  return { element, show };
}

const kindOf = (layout) => (Array.isArray(layout.swizzle) ? "bms" : layout.swizzle);

function labelledGroup(label, control, note = "") {
  return make("div", { class: "field" }, make("span", { class: "label", "aria-hidden": "true" }, label), control,
    note ? make("p", { class: "note" }, note) : null);
}

// A swizzle of the row's low bits onto the columns that keeps a lane's bytes together: what one would try first.
function usualSwizzle({ array, rule, hardware }) {
  const log2 = (value) => Math.max(0, Math.floor(Math.log2(value)));
  const unit = array.swizzleUnitBytes;
  const base = log2(Math.max(rule.bytesPerLane, hardware.wordBytes) / unit);
  const shift = Math.max(1, log2((array.columns * array.elementBytes) / unit) - base);
  return [Math.min(shift, log2(hardware.rowBytes / Math.max(rule.bytesPerLane, hardware.wordBytes))), base, shift];
}

// A slider for every symbol that has several values; `choice` is changed in place.
function knobControls(data, choice, onchange) {
  const sliders = data.knobs.map((knob, k) => valueSlider(knob.name, knob.values, () => choice.indices[k], (at) => {
    choice.indices[k] = at;
    onchange();
  }));
  if (data.bases.length > 1) {
    const name = `${data.array.name} starts at byte (mod ${data.bases.length * (data.bases[1] - data.bases[0])})`;
    sliders.push(valueSlider(name, data.bases, () => data.bases.indexOf(choice.base), (at) => {
      choice.base = data.bases[at];
      onchange();
    }));
  }
  return { elements: sliders.map(({ element }) => element), show: () => sliders.forEach(({ show }) => show()) };
}

function valueSlider(name, values, position, onmove) {
  const output = make("output", {});
  const slider = make("input", { type: "range", min: 0, max: values.length - 1,
    oninput: () => { onmove(Number(slider.value)); show(); } });
  const element = field([`${name} = `, output], slider);
  element.classList.add("knob");
  if (values.length < 2) slider.disabled = true;
  function show() {
    slider.value = position();
    say(output, String(values[position()]));
    mark(slider, "aria-valuetext", `${name} = ${values[position()]}`);
  }
  show();
  return { element, show };
}
