// The ldmatrix view: tile rows against the bank groups G0..G7, the lane that supplies a row's address, the lanes that
// receive it, and the words in each bank, with and without XOR.

VIEWS.ldmatrix = (root, data) => {
  const { rule, hardware, array } = data;
  const blocks = [...new Set(data.requests.map(([block]) => block))];
  const segments = [...new Set(data.requests.map(([, q]) => q))];
  const state = { layout: data.start, block: 0, q: 0, lane: 0, trans: data.trans };

  const story = make("div", { class: "headline", role: "status" });
  const numbers = make("dl", { class: "numbers" });
  const matrices = rule.groups.map((lanes, matrix) => matrixGrid(data, matrix, (row) => {
    state.lane = lanes[row];
    sliders.forEach(({ show }) => show());
    drawRow();
  }));
  const rowText = make("p", { class: "lane-text", "aria-live": "polite" });
  const strip = laneStrip(data);
  const registers = make("tbody");
  const layouts = choices("XOR swizzle and padding", data.layouts.map(({ name, layout }, at) =>
    [at, layout.swizzle === "off" ? name : `${name}: ${layoutName(array, { ...layout, pad: 0 })}`]), state.layout,
  (at) => { state.layout = at; draw(); });
  const form = choices("Form", [[0, "plain"], [1, ".trans"]], Number(state.trans), (at) => {
    state.trans = Boolean(at);
    drawRow();
  });
  const indices = (count) => [...Array(count).keys()];
  const sliders = [
    valueSlider("q", segments, () => state.q, (at) => { state.q = at; draw(); }),
    valueSlider(rule.matrices > 1 ? "address lane" : "r", indices(rule.groups.flat().length), () => state.lane,
      (at) => { state.lane = at; drawRow(); }),
  ];
  if (blocks.length > 1) {
    sliders.push(valueSlider("row block", blocks, () => state.block, (at) => { state.block = at; draw(); }));
  }

  root.append(
    story,
    make("div", { class: "controls" }, labelledGroup("Layout", layouts.group), labelledGroup("Form", form.group),
      sliders.map(({ element }) => element)),
    make("div", { class: "matrices" }, matrices.map(({ element }) => element)),
    rowText,
    make("div", { class: "scroller" }, strip.table),
    make("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Registers" },
      make("table", { class: "plain" },
        make("thead", {}, make("tr", {}, ["lane", "register", "low half", "high half"].map((text) =>
          make("th", { scope: "col" }, text)))), registers)),
    numbers, notes());
  draw();
  document.addEventListener("drawn", tell);

  function request() {
    return data.requests.findIndex(([block, q]) => block === blocks[state.block] && q === segments[state.q]);
  }

  function current(at = state.layout) {
    const [pattern, row, columnBytes] = data.points[Math.max(0, request())];
    const places = data.patterns[pattern].map(([r, c]) => [r + row, c + columnBytes]);
    const addresses = places.map((place) => data.base + storedBytes(array, data.layouts[at].layout, ...place));
    return { places, addresses, count: countRequest(rule, hardware, addresses) };
  }

  function draw() {
    const missing = request() < 0;
    const { places, addresses, count } = current();
    drawStory(missing, places, count);
    matrices.forEach((matrix, at) => matrix.draw(state, places, addresses, count.groups?.[at]));
    drawNumbers(count);
    drawRow();
    tell();
  }

  function drawStory(missing, places, count) {
    if (missing) {
      mark(story, "data-verdict", "bad");
      story.replaceChildren(make("strong", {}, "Not analysed:"), make("p", {}, "no request has this q and row block."));
      return;
    }
    mark(story, "data-verdict", count.excess === 0 ? "good" : "bad");
    story.replaceChildren(make("strong", {}, leadOf(count)),
      make("p", {}, matrixStory(data, data.layouts[state.layout].layout, count).join(" ")));
  }

  function drawNumbers(count) {
    const { layout } = data.layouts[state.layout];
    const pitch = (array.columns + layout.pad) * array.elementBytes;
    const bytes = (array.sizeBytes / array.columns) * (array.columns + layout.pad);
    const rows = [["layout", declarationOf(array, layout)], ["rows apart", `${pitch} B`], ["storage", `${bytes} B`],
      ["wavefronts", count.wavefronts], ["ideal", count.ideal], ["excess", count.excess], ["n-way", count.ways]];
    numbers.replaceChildren(...rows.map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", { "data-number": name }, String(value ?? "\u2013")))));
  }

  // The chosen row: its place, its supplier and its receivers.
  function drawRow() {
    const { places, addresses } = current();
    const matrix = Math.floor(state.lane / 8);
    const index = state.lane % 8;
    const rows = places.slice(8 * matrix, 8 * matrix + 8);
    const holders = data.holders[Number(state.trans)][index];
    const group = groupOf(data, addresses[state.lane]);
    const moved = addresses[state.lane] - current(0).addresses[state.lane];
    const verb = data.stores ? "gives" : "receives";
    say(rowText, [
      `Row ${places[state.lane][0]}, columns ${columnsOf(array, places[state.lane], data)}: stored at byte`,
      `${addresses[state.lane]}${moved ? ` (without XOR or padding ${addresses[state.lane] - moved})` : ""},`,
      `in G${group}, banks ${bankSpan(data, group)}. Its address comes from lane ${state.lane};`,
      `${laneNames(holders.map(([lane]) => lane))} ${data.stores ? "give" : "receive"} it`,
      `in register d${matrix}${state.trans ? " (.trans)" : ""}.`,
    ].join(" "));
    strip.draw(state.lane, new Set(holders.map(([lane]) => lane)), verb);
    registers.replaceChildren(...holders.map(([lane, low, high]) => make("tr", {},
      make("td", {}, String(lane)), make("td", {}, `d${matrix}`),
      make("td", {}, unitName(array, rows[low[0]], low[1])), make("td", {}, unitName(array, rows[high[0]], high[1])))));
    matrices.forEach((one, at) => one.choose(at === matrix ? index : null));
  }

  function tell() {
    const { places } = current();
    const { layout } = data.layouts[state.layout];
    document.dispatchEvent(new CustomEvent("layout", { detail: { key: data.key, layout, base: data.base, places } }));
  }

  function notes() {
    return make("ul", { class: "footnotes" }, [
      ...data.assumptions.map((text) => `${capital(text)}.`), `Rule of ${rule.instruction}: ${rule.source}.`,
      "q counts 16-byte column segments; .trans changes who gets which element, not what it costs.",
    ].map((text) => make("li", {}, text)));
  }
};

const groupOf = (data, address) => floorMod(Math.floor(address / data.segmentBytes), data.bankGroups);

function bankSpan({ hardware, bankGroups }, group) {
  const each = hardware.banks / bankGroups;
  return `${each * group}\u2013${each * group + each - 1}`;
}

function columnsOf(array, [, columnBytes], data) {
  const first = columnBytes / array.elementBytes;
  return `${first}\u2013${first + data.segmentBytes / array.elementBytes - 1}`;
}

// A 16-bit unit of a row segment by the elements it holds.
function unitName({ elementBytes }, [row, columnBytes], unit) {
  const column = columnBytes / elementBytes;
  if (elementBytes === 1) return `A[${row}][${column + 2 * unit}..${column + 2 * unit + 1}]`;
  if (elementBytes === 2) return `A[${row}][${column + unit}]`;
  return `A[${row}][${column + Math.floor(unit / 2)}] ${unit % 2 ? "high" : "low"} half`;
}

function matrixStory(data, layout, count) {
  const { group, bank, queue } = busiest(count);
  const pitch = (data.array.columns + layout.pad) * data.array.elementBytes;
  const g = Math.floor(bank / (data.hardware.banks / data.bankGroups));
  const sentences = [];
  if (count.ways > 1) {
    sentences.push(`The rows that ${lanesOf(queue)} point at all lie in G${g}, banks ${bankSpan(data, g)}: ` +
      `each of these banks has ${queue.length} words to ${verbsOf(data.rule).give}, one a pass.`);
    if (layout.swizzle === "off" && pitch % data.hardware.rowBytes === 0) {
      sentences.push(`Rows are ${pitch} bytes apart, whole rounds of all ${data.hardware.banks} banks, ` +
        "so the same segment of every row is in the same group.");
    }
  } else {
    const reached = group.queues.size / (data.hardware.banks / data.bankGroups);
    const { gives } = verbsOf(data.rule);
    sentences.push(`The rows of a matrix lie in ${reached} different groups: every bank ${gives} one word.`);
    if (layout.swizzle !== "off") sentences.push("XOR moves each row's segment to a place that depends on the row.");
    else if (layout.pad) sentences.push(`Rows are ${pitch} bytes apart: each starts in another group than the last.`);
  }
  if (count.groups.length > 1) sentences.push(groupSum(data, count));
  return sentences;
}

// One matrix: its 8 rows against the bank groups; the cell of a row's segment shows its byte address, the others which
// segments of the row lie there.
function matrixGrid(data, matrix, onrow) {
  const lanes = data.rule.groups[matrix];
  const groups = [...Array(data.bankGroups).keys()];
  const view = grid({
    label: `Matrix ${matrix}: rows and bank groups`, corner: "lane \u2192 row", counts: "words per bank",
    rows: lanes.map(() => ""), columns: groups.map((group) => `G${group}`),
    onfocus: (row) => onrow(row),
  });
  view.table.classList.add("matrix-grid");
  for (const g of groups) view.head(g).append(make("span", { class: "banks" },
    make("span", { class: "hidden-text" }, "banks "), bankSpan(data, g)));
  const title = data.rule.groups.length > 1 ? make("h3", {}, `Matrix ${matrix}: lanes ${spans(lanes)}`) : null;

  function draw(state, places, addresses, group) {
    const { layout } = data.layouts[state.layout];
    const each = data.hardware.banks / data.bankGroups;
    const words = (g) => group?.queues.get(each * g)?.length ?? 0;
    for (const g of groups) {
      say(view.count(g), String(words(g)));
      mark(view.count(g), "data-heat", heatOf(words(g)));
      mark(view.count(g), "aria-label", `G${g}, banks ${bankSpan(data, g)}: ${plural(words(g), "word")} in each bank`);
    }
    lanes.forEach((lane, row) => {
      const [tileRow] = places[lane];
      say(view.side(row), `T${lane} \u2192 row ${tileRow}`);
      for (const g of groups) {
        const here = groupOf(data, addresses[lane]) === g;
        const cell = view.cell(row, g);
        const others = segmentsIn(data, layout, tileRow, g);
        say(cell, here ? `${addresses[lane]} B` : others);
        mark(cell, "data-heat", here ? heatOf(words(g)) : null);
        mark(cell, "aria-label", `lane ${lane}, row ${tileRow}, G${g}: ` +
          (here ? `the row's segment, byte ${addresses[lane]}` : others || "nothing of this row"));
      }
    });
  }
  function choose(index) {
    lanes.forEach((_, row) => mark(view.side(row), "data-role", row === index ? "focused" : null));
  }
  return { element: make("div", { class: "matrix" }, title, view.table), draw, choose };
}

// The column segments of a row that are stored in a bank group, as "q3" or "q3 q11".
function segmentsIn(data, layout, row, group) {
  const { array, segmentBytes } = data;
  const found = [];
  for (let q = 0; q < (array.columns * array.elementBytes) / segmentBytes && found.length < 3; q += 1) {
    if (groupOf(data, data.base + storedBytes(array, layout, row, q * segmentBytes)) === group) found.push(`q${q}`);
  }
  return found.length > 2 ? `${found[0]} \u2026` : found.join(" ");
}

// The 32 lanes: who supplies the chosen row's address, and who holds the row.
function laneStrip(data) {
  const lanes = [...Array(data.hardware.lanes).keys()];
  const rows = ["supplies", data.stores ? "gives" : "receives"];
  const view = grid({ label: "Lanes of the chosen row", corner: "lane", rows, columns: lanes.map(String) });
  view.table.classList.add("dense", "strip-grid");
  function draw(supplier, holders, verb) {
    for (const lane of lanes) {
      const cells = [lane === supplier, holders.has(lane)];
      cells.forEach((is, row) => {
        say(view.cell(row, lane), is ? "\u25cf" : "");
        mark(view.cell(row, lane), "data-state", is ? "now" : null);
        const what = row === 0 ? "supplies the address" : `${verb} elements`;
        mark(view.cell(row, lane), "aria-label", `lane ${lane} ${is ? what : "does not"}`);
      });
    }
  }
  return { table: view.table, draw };
}
