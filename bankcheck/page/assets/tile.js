// The tile view: the logical tile coloured by physical bank, and the memory it lies in, before and after a change.
//
// data: { key, array, hardware, before, after, bytesPerLane }. A view with the same key on the page says, in "layout"
// events, what its lanes ask for and which layout is chosen; without one, `before` and `after` are shown as they are.

const MOST_ROWS = 32;
const MOST_CELLS = 64;

VIEWS.tile = (root, data) => {
  const summary = make("p", { class: "tile-summary" });
  const hint = "Point at a cell, or walk with the arrow keys: one element's places.";
  const detail = make("p", { class: "lane-text" }, hint);
  const panels = make("div", { class: "panels" });
  root.append(summary, panels, detail);
  let shown = [];
  draw(data.before, data.after, 0, []);
  document.addEventListener("layout", ({ detail: told }) => {
    if (told.key !== data.key) return;
    draw(data.before, sameLayout(told.layout, data.before) ? data.after : told.layout, told.base, told.places);
  });

  function draw(before, after, base, places) {
    const wanted = markedPlaces(data, places);
    const layouts = sameLayout(before, after) ? [before] : [before, after];
    const usable = layouts.filter((layout) => !swizzleProblem(data.array, layout, 1));
    const window = windowOf(data, usable, wanted);
    shown = usable.map((layout) => ({ layout, map: mapOf(data, layout, base, window) }));
    say(summary, summaryOf(data, shown, wanted));
    panels.replaceChildren(...shown.map(({ layout, map }, at) => make("div", { class: "panel" },
      make("h3", {}, `${["Before", "After"][at]}: `, make("code", {}, declarationOf(data.array, layout)),
        layout.swizzle === "off" ? "" : `, ${layoutName(data.array, { ...layout, pad: 0 })}`),
      tileGrid(data, map, window, wanted, tell),
      make("h4", {}, "in memory: a line is one word of every bank"),
      memoryGrid(data, map, window, wanted, tell))));
    tell(null);
  }

  // One element in every panel at once.
  function tell(name) {
    for (const cell of panels.querySelectorAll("[data-linked]")) cell.removeAttribute("data-linked");
    if (name === null) return;
    for (const cell of panels.querySelectorAll(`[data-name="${CSS.escape(name)}"]`)) mark(cell, "data-linked", "");
    const parts = shown.map(({ map }, at) => {
      const { byte, word, bank } = map.get(name);
      return `${shown.length > 1 ? ["before", "after"][at] : "it is"} at byte ${byte}, word ${word}, bank ${bank}`;
    });
    say(detail, `${name}: ${parts.join("; ")}.`);
  }
};

// Bytes that one cell stands for: an element, or a word where elements are smaller and no layout takes words apart.
function cellBytes({ array, hardware }, layouts) {
  const small = array.elementBytes < hardware.wordBytes;
  const torn = layouts.some(({ swizzle, pad }) =>
    swizzle === "xor" || (pad * array.elementBytes) % hardware.wordBytes !== 0 ||
    (Array.isArray(swizzle) && 2 ** byteSwizzle(array, swizzle).base < hardware.wordBytes));
  const whole = (array.columns * array.elementBytes) % hardware.wordBytes === 0;
  return small && whole && !torn ? hardware.wordBytes : array.elementBytes;
}

// The part of the tile that is shown: from the row that the lanes start at, if they go beyond the first ones.
function windowOf(data, layouts, wanted) {
  const { array } = data;
  const bytes = cellBytes(data, layouts);
  const rows = array.sizeBytes / (array.columns * array.elementBytes);
  const cells = Math.ceil((array.columns * array.elementBytes) / bytes);
  const asked = [...wanted.values()].map(({ row }) => row);
  const first = asked.length && Math.max(...asked) >= MOST_ROWS ? Math.min(...asked) : 0;
  const start = Math.max(0, Math.min(first, rows - MOST_ROWS));
  return { bytes, start, rows: Math.min(rows, MOST_ROWS), cells: Math.min(cells, MOST_CELLS), all: { rows, cells } };
}

// name -> { row, cell, byte, word, bank } of every cell in the window, in one layout.
function mapOf(data, layout, base, window) {
  const map = new Map();
  for (let row = window.start; row < window.start + window.rows; row += 1) {
    for (let cell = 0; cell < window.cells; cell += 1) {
      const byte = base + storedBytes(data.array, layout, row, cell * window.bytes);
      const word = Math.floor(byte / data.hardware.wordBytes);
      const bank = floorMod(word, data.hardware.banks);
      map.set(elementName(data.array, row, cell * window.bytes, window.bytes), { row, cell, byte, word, bank });
    }
  }
  return map;
}

// "tile[3][4]"; "tile[3][4..5]" where a cell holds several elements.
function elementName(array, row, columnBytes, bytes) {
  const first = Math.floor(columnBytes / array.elementBytes);
  const count = Math.max(1, Math.floor(bytes / array.elementBytes));
  const columns = count > 1 ? `${first}..${first + count - 1}` : `${first}`;
  const indices = [];
  let rest = row;
  for (const size of array.dims.slice(1, -1).reverse()) {
    indices.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return `${array.name}${[rest, ...indices].map((index) => `[${index}]`).join("")}[${columns}]`;
}

// "row,byte" -> { row, byte, lanes } of what the lanes ask for.
function markedPlaces(data, places) {
  const wanted = new Map();
  places.forEach((place, lane) => {
    if (!place) return;
    for (let byte = place[1]; byte < place[1] + (data.bytesPerLane ?? 1); byte += data.array.elementBytes) {
      const key = `${place[0]},${byte}`;
      if (!wanted.has(key)) wanted.set(key, { row: place[0], byte, lanes: [] });
      wanted.get(key).lanes.push(lane);
    }
  });
  return wanted;
}

function lanesOfCell(window, wanted, row, cell) {
  const lanes = new Set();
  for (const place of wanted.values()) {
    if (place.row !== row || Math.floor(place.byte / window.bytes) !== cell) continue;
    for (const lane of place.lanes) lanes.add(lane);
  }
  return [...lanes];
}

function summaryOf(data, shown, wanted) {
  if (!wanted.size) return "Every cell says in which bank its element lies.";
  const lanes = laneNames([...new Set([...wanted.values()].flatMap((place) => place.lanes))]);
  const parts = shown.map(({ layout }, at) => {
    const banks = new Set([...wanted.values()].map(({ row, byte }) =>
      floorMod(Math.floor(storedBytes(data.array, layout, row, byte) / data.hardware.wordBytes), data.hardware.banks)));
    return `${["before", "after"][at]}, they lie in ${plural(banks.size, "bank")}`;
  });
  return `Framed: what ${lanes} ask for. ${capital(parts.join("; "))}.`;
}

function tileGrid(data, map, window, wanted, tell) {
  const cells = [...map.entries()];
  const rows = Array.from({ length: window.rows }, (_, row) => String(window.start + row));
  const columns = Array.from({ length: window.cells }, (_, cell) =>
    String(Math.floor((cell * window.bytes) / data.array.elementBytes)));
  const at = (row, cell) => cells[row * window.cells + cell];
  const view = grid({ label: "The tile: in which bank each element lies", rows, columns, corner: "row",
    onfocus: (row, cell) => tell(at(row, cell)[0]) });
  view.table.classList.add("dense", "tile-grid");
  rows.forEach((_, row) => columns.forEach((__, cell) => {
    const [name, { bank }] = at(row, cell);
    const lanes = lanesOfCell(window, wanted, window.start + row, cell);
    paint(view.cell(row, cell), name, bank, String(bank), lanes, `bank ${bank}`);
  }));
  return scroller(view.table, window, data);
}

function paint(cell, name, bank, text, lanes, place) {
  say(cell, text);
  cell.style.setProperty("--bank", bank);
  cell.dataset.name = name;
  mark(cell, "data-bank", "");
  mark(cell, "data-wanted", lanes.length ? "" : null);
  mark(cell, "aria-label", `${name}: ${place}${lanes.length ? `, wanted by ${laneNames(lanes)}` : ""}`);
}

// The words of shared memory that the window lies in, 32 to a line; what holds no element is padding.
function memoryGrid(data, map, window, wanted, tell) {
  const { banks } = data.hardware;
  const words = new Map();
  for (const [name, place] of map) if (!words.has(place.word)) words.set(place.word, { name, ...place });
  const lines = [...words.keys()].map((word) => Math.floor(word / banks));
  const first = Math.min(...lines);
  const count = Math.min(Math.max(...lines) - first + 1, MOST_ROWS + 4);
  const holder = (line, bank) => words.get((first + line) * banks + bank);
  const view = grid({ label: "Shared memory: what each word holds", corner: "byte",
    rows: Array.from({ length: count }, (_, line) => String((first + line) * data.hardware.rowBytes)),
    columns: Array.from({ length: banks }, (_, bank) => String(bank)),
    onfocus: (line, bank) => tell(holder(line, bank)?.name ?? null) });
  view.table.classList.add("dense", "tile-grid", "memory-grid");
  for (let line = 0; line < count; line += 1) {
    for (let bank = 0; bank < banks; bank += 1) {
      const cell = view.cell(line, bank);
      const held = holder(line, bank);
      const where = `word ${(first + line) * banks + bank}, bank ${bank}`;
      if (!held) {
        mark(cell, "data-empty", "");
        mark(cell, "aria-label", `${where}: no element`);
        continue;
      }
      const lanes = lanesOfCell(window, wanted, held.row, held.cell);
      const column = Math.floor((held.cell * window.bytes) / data.array.elementBytes);
      paint(cell, held.name, bank, String(column), lanes, where);
    }
  }
  return make("div", { class: "scroller" }, view.table);
}

function scroller(table, window, data) {
  const { rows, cells, all, start } = window;
  const cut = rows < all.rows || cells < all.cells;
  const columns = Math.floor((cells * window.bytes) / data.array.elementBytes);
  return make("div", { class: "scroller" }, table,
    cut ? make("p", { class: "note" }, `rows ${start}\u2013${start + rows - 1} of ${all.rows}, ` +
      `columns 0\u2013${columns - 1} of ${data.array.columns}`) : null);
}
