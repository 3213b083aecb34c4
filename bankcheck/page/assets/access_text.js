// The words around the grid of the access view: passes, lanes, suggestions, cases.

// How long a queue is, in four steps that the colours follow.
const heatOf = (length) => (length < 1 ? null : length === 1 ? 1 : length < 5 ? 2 : length < 16 ? 3 : 4);

const STATES = { waiting: "waiting", now: "served in this pass", done: "served" };

function stateOf(item, position) {
  return item.first > position ? "waiting" : item.last < position ? "done" : "now";
}

function passSentence(rule, position, total, count, items) {
  if (!total) return "";
  const left = items.filter((item) => item.last > position);
  const wait = left.length === 1 ? "waits" : "wait";
  const waiting = left.length ? `${plural(left.length, "word")} still ${wait}` : "all are served";
  if (position === 0) {
    const where = plural(new Set(left.map((item) => item.bank)).size, "bank");
    return `Before the first of ${passesText(total)}: ${plural(left.length, "word")} ${wait} in ${where}.`;
  }
  const { give, gives, to } = verbsOf(rule);
  const current = items.filter((item) => item.first <= position && position <= item.last);
  const [{ group, bank, word }] = current;
  const who = laneNames([...new Set(current.flatMap((item) => item.lanes))]);
  const part = count.groups.length > 1 ? ` (${laneNames(count.groups[group].lanes)})` : "";
  const what = current.length === 1
    ? `bank ${bank} ${gives} word ${word} ${to} ${who}`
    : `${current.length} banks ${give} a word each, ${to} ${who}`;
  return `Pass ${position} of ${total}${part}: ${what}; ${waiting}.`;
}

// One lane: its byte address, words and banks, the lanes it waits for and those that wait for it.
function laneSentence(data, count, items, lane) {
  const address = count.fault ? null : count.addresses?.[lane] ?? null;
  const mine = items.filter((item) => item.lanes.includes(lane));
  if (address === null || !mine.length) return `Lane ${lane} takes no part.`;
  const last = address + data.rule.bytesPerLane - 1;
  const words = mine.map((item) => item.word);
  const bytes = last > address ? `bytes ${address}\u2013${last}` : `byte ${address}`;
  const s = words.length > 1 ? "s" : "";
  const banks = mine.map((one) => one.bank);
  const { wants } = verbsOf(data.rule);
  const where = `Lane ${lane} ${wants} ${bytes}: word${s} ${spans(words)}, bank${s} ${spans(banks)}.`;
  const [item] = mine;
  const queue = items.filter((other) => other.group === item.group && other.bank === item.bank);
  const others = (wanted) => queue.filter(wanted).flatMap((other) => other.lanes);
  const shares = item.lanes.filter((other) => other !== lane);
  const ahead = others((other) => other.last < item.first);
  const behind = others((other) => other.first > item.last);
  return [
    where,
    shares.length ? `It shares the word with ${laneNames(shares)}.` : "",
    ahead.length ? `It waits for ${laneNames(ahead)}.` : "It waits for no other lane.",
    behind.length ? `${capital(laneNames(behind))} wait${behind.length === 1 ? "s" : ""} for it.` : "",
    `It is served in pass ${item.last}.`,
  ].filter(Boolean).join(" ");
}

// Layouts that cost less: those that the package found (for every value), or the best padding at the values shown.
function suggestedLayouts(data, choice, count) {
  const known = data.fixes.map((fix) => ({ ...fix, known: fix.standing }));
  if (!known.length && !data.noPadding) {
    for (let pad = 1; pad <= data.mostPadding; pad += 1) {
      known.push({ layout: { pad, swizzle: "off" }, code: declarationOf(data.array, { pad }), known: "" });
    }
  }
  const counted = known.map((fix) => ({ ...fix, count: countAt(data, choice, fix.layout) }))
    .filter((fix) => !fix.count.fault && fix.count.excess < count.excess);
  const enough = data.fixes.length ? counted : counted.sort((a, b) => a.count.excess - b.count.excess).slice(0, 1);
  return enough.map((fix) => {
    const padded = fix.layout.swizzle === "off";
    const button = padded ? `Pad the rows by ${fix.layout.pad}` : `Use ${layoutName(data.array, fix.layout)}`;
    const cost = fix.addedBytes ? `, for ${fix.addedBytes} bytes more` : padded ? "" : ", for no more memory";
    return { layout: fix.layout, button, code: fix.code, text: `${passesText(fix.count.wavefronts)}${cost}` };
  });
}

// What the number on show rests on.
function standingOf(data, choice, layout) {
  const values = data.knobs.map((knob, k) => `${knob.name} = ${knob.values[choice.indices[k]]}`).join(", ");
  const fix = data.fixes.find((one) => sameLayout(one.layout, layout));
  const known = sameLayout(layout, data.start) ? data.standing : fix ? fix.standing : "";
  return known || `computed here${values ? ` for ${values}` : ""}`;
}

// Every case of the proof, with a button that shows it.
function casesTable(data, choose) {
  if (!data.cases.length) return null;
  const rows = data.cases.map((one) => make("tr", {},
    make("td", {}, one.fault ? "\u2013" : `${one.exact ? "" : "at most "}${one.wavefronts ?? "\u2013"}`),
    make("td", {}, one.ideal ?? "\u2013"), make("td", {}, [one.when, one.fault].filter(Boolean).join(": ")),
    make("td", {}, shown(data, one)
      ? make("button", { type: "button", onclick: () => choose(one.values), "aria-label": `Show ${one.when}` }, "Show")
      : null)));
  return make("div", { class: "cases" },
    make("h3", {}, data.notProved ? "Some of the values" : "Every value of the unknowns"),
    make("table", { class: "plain" },
      make("thead", {}, make("tr", {}, ["wavefronts", "ideal", "when", "picture"].map((text) =>
        make("th", { scope: "col" }, text)))),
      make("tbody", {}, rows)),
    data.moreCases ? make("p", { class: "note" }, `and ${plural(data.moreCases, "more case")}`) : null);
}

function shown(data, one) {
  const offered = ({ name, values }) => !(name in one.values) || values.includes(one.values[name]);
  return !one.fault && data.knobs.every(offered);
}

function legend() {
  const entries = [["1", "waiting", "waits, alone in its bank"], ["4", "waiting", "waits in a queue"],
    ["4", "now", "served now"], ["1", "done", "served"]];
  return make("ul", { class: "legend", "aria-label": "Colours" }, entries.map(([heat, state, text]) =>
    make("li", {}, make("span", { class: "cell swatch", "data-heat": heat, "data-state": state }, "0"), text)));
}

function footnotes(data) {
  const notes = [
    ...data.assumptions.map((text) => `Assumed: ${text}.`),
    `Rule of ${data.instruction}: ${data.rule.source}.`,
    "A pass is what Nsight Compute counts as a wavefront. Queues are drawn in the order of the lanes; " +
      "the hardware's own order is not documented and changes no count.",
  ];
  return make("ul", { class: "footnotes" }, notes.map((text) => make("li", {}, text)));
}
