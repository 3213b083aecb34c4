// The tile view: the logical tile coloured by physical bank, and the memory it lies in, before and after a change.
//
// data: { key, array, hardware, before, after, bytesPerLane }. A view with the same key on the page says, in "layout"
// events, what its lanes ask for and which layout is chosen; without one, `before` and `after` are shown as they are.

const MOST_ROWS = 32;
const MOST_CELLS = 64;
const WIDE_CELLS = 36;
const MOST_LINES = 72;

VIEWS.tile = (root, data) => {
  const summary = make("p", { class: "tile-summary" });
  const hint = "Point at a cell, or walk with the arrow keys: one element's places.";
  const detail = make("p", { class: "lane-text" }, hint);
  const panels = make("div", { class: "panels" });
  root.append(summary, panels, detail);
  const drawn = [];
  let shown = [];
  draw(data.before, data.after, 0, []);
  document.addEventListener("layout", ({ detail: told }) => {
    if (told.key !== data.key) return;
    const after = sameLayout(told.layout, data.before) ? data.after : told.layout;
    draw(data.before, after, told.base, told.places, told.laneBytes);
  });

  function draw(before, after, base, places, laneBytes = data.bytesPerLane) {
    const wanted = markedPlaces(data, places, laneBytes);
    const layouts = sameLayout(before, after) ? [before] : [before, after];
    const window = windowOf(data, layouts, wanted);
    const lanes = lanesByCell(window, wanted);
    shown = layouts.map((layout) => ({ layout, map: mapOf(data, layout, base, window, lanes) }));
    say(summary, summaryOf(data, shown, wanted));
    panels.classList.toggle("wide", window.cells > WIDE_CELLS);
    while (drawn.length < shown.length) drawn.push(panel(data, ["Before", "After"][drawn.length], tell));
    panels.replaceChildren(...shown.map(({ layout, map }, at) => drawn[at](layout, map, window)));
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
  const moves = (elements) => (elements * array.elementBytes) % hardware.wordBytes !== 0;
  const torn = layouts.some(({ swizzle, pad, columnXor, rotation = 0 }) =>
    swizzle === "xor" || moves(pad) || moves(rotation) || (columnXor && moves(2 ** columnXor[2])) ||
    (Array.isArray(swizzle) && 2 ** byteSwizzle(array, swizzle).base < hardware.wordBytes));
  const whole = (array.columns * array.elementBytes) % hardware.wordBytes === 0;
  return small && whole && !torn ? hardware.wordBytes : array.elementBytes;
}

// The part of the tile that is shown: from the row that the lanes start at, if they go beyond the first ones.
function windowOf(data, layouts, wanted) {
  const { array } = data;
  const bytes = cellBytes(data, layouts);
  const rows = rowsOf(array);
  const cells = Math.ceil((array.columns * array.elementBytes) / bytes);
  const asked = [...wanted.values()].map(({ row }) => row);
  const first = asked.length && Math.max(...asked) >= MOST_ROWS ? Math.min(...asked) : 0;
  const start = Math.max(0, Math.min(first, rows - MOST_ROWS));
  return { bytes, start, rows: Math.min(rows, MOST_ROWS), cells: Math.min(cells, MOST_CELLS), all: { rows, cells } };
}

// name -> { row, cell, byte, word, bank, lanes } of every cell in the window, in one layout.
function mapOf(data, layout, base, window, lanes) {
  const map = new Map();
  for (let row = window.start; row < window.start + window.rows; row += 1) {
    for (let cell = 0; cell < window.cells; cell += 1) {
      const byte = base + storedBytes(data.array, layout, row, cell * window.bytes);
      const word = Math.floor(byte / data.hardware.wordBytes);
      const bank = floorMod(word, data.hardware.banks);
      const name = elementName(data.array, row, cell * window.bytes, window.bytes);
      map.set(name, { name, row, cell, byte, word, bank, lanes: lanes.get(`${row},${cell}`) ?? [] });
    }
  }
  return map;
}

// "tile[3][4]"; "tile[3][4..5]" where a cell holds several elements.
function elementName(array, row, columnBytes, bytes) {
  const start = array.dims.length > 1 ? 0 : row * array.columns;
  const first = start + Math.floor(columnBytes / array.elementBytes);
  const count = Math.max(1, Math.floor(bytes / array.elementBytes));
  const columns = count > 1 ? `${first}..${first + count - 1}` : `${first}`;
  if (array.dims.length < 2) return `${array.name}[${columns}]`;
  const indices = [];
  let rest = row;
  for (const size of array.dims.slice(1, -1).reverse()) {
    indices.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return `${array.name}${[rest, ...indices].map((index) => `[${index}]`).join("")}[${columns}]`;
}

// "row,byte" -> { row, byte, lanes } of what the lanes ask for.
function markedPlaces(data, places, laneBytes) {
  const wanted = new Map();
  places.forEach((place, lane) => {
    if (!place) return;
    for (let byte = place[1]; byte < place[1] + laneBytes; byte += data.array.elementBytes) {
      const key = `${place[0]},${byte}`;
      if (!wanted.has(key)) wanted.set(key, { row: place[0], byte, lanes: [] });
      wanted.get(key).lanes.push(lane);
    }
  });
  return wanted;
}

// "row,cell" -> the lanes that ask for something in the cell.
function lanesByCell(window, wanted) {
  const found = new Map();
  for (const { row, byte, lanes } of wanted.values()) {
    const key = `${row},${Math.floor(byte / window.bytes)}`;
    found.set(key, [...new Set([...(found.get(key) ?? []), ...lanes])]);
  }
  return found;
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

// The tile and its memory in one layout: a function of (layout, map, window) that draws and returns the element. The
// cells of a grid are made again only when its shape changes.
function panel(data, title, tell) {
  const heading = make("h3");
  const parts = [make("div"), make("div")];
  const grids = [null, null];
  const shapes = ["", ""];
  const note = make("p", { class: "note" });
  const element = make("div", { class: "panel" }, heading, parts[0], note,
    make("h4", {}, "in memory: a line is one word of every bank"), parts[1]);
  let holders = [() => null, () => null];

  function reuse(at, options, kind) {
    const shape = JSON.stringify([options.rows, options.columns]);
    if (shapes[at] !== shape) {
      shapes[at] = shape;
      grids[at] = grid({ ...options, onfocus: (row, column) => tell(holders[at](row, column ?? 0)?.name ?? null) });
      grids[at].table.classList.add("dense", "tile-grid", kind);
      parts[at].replaceChildren(grids[at].table);
    }
    return grids[at];
  }

  return (layout, map, window) => {
    const { array } = data;
    const padded = sameLayout(layout, { pad: layout.pad, swizzle: "off" });
    const more = padded ? "" : `, ${layoutName(array, { ...layout, pad: 0 })}`;
    heading.replaceChildren(`${title}: `, make("code", {}, declarationOf(array, layout)), more);
    say(note, cutNote(window, array));
    const places = [...map.values()];
    const memory = memoryOf(data, places);
    holders = [(row, cell) => places[row * window.cells + cell], memory.holder];
    const columnOf = (cell) => String(Math.floor((cell * window.bytes) / array.elementBytes));
    const tile = reuse(0, {
      label: "The tile: in which bank each element lies", corner: "row",
      rows: Array.from({ length: window.rows }, (_, row) => String(window.start + row)),
      columns: Array.from({ length: window.cells }, (_, cell) => columnOf(cell)),
    }, "logical-grid");
    for (const place of places) {
      paint(tile.cell(place.row - window.start, place.cell), place, String(place.bank), `bank ${place.bank}`);
    }
    const label = "Shared memory: what each word holds";
    const lines = reuse(1, { label, corner: "byte", ...memory.headings }, "memory-grid");
    memory.headings.rows.forEach((_, line) => memory.headings.columns.forEach((__, bank) => {
      const held = memory.holder(line, bank);
      const where = `word ${memory.word(line, bank)}, bank ${bank}`;
      if (held) paint(lines.cell(line, bank), held, columnOf(held.cell), where);
      else unpaint(lines.cell(line, bank), where);
    }));
    return element;
  };
}

function paint(cell, { name, bank, lanes }, text, where) {
  say(cell, text);
  cell.style.setProperty("--bank", bank);
  mark(cell, "data-name", name);
  mark(cell, "data-bank", "");
  mark(cell, "data-empty", null);
  mark(cell, "data-wanted", lanes.length ? "" : null);
  mark(cell, "aria-label", `${name}: ${where}${lanes.length ? `, wanted by ${laneNames(lanes)}` : ""}`);
}

function unpaint(cell, where) {
  say(cell, "");
  for (const name of ["data-name", "data-bank", "data-wanted"]) mark(cell, name, null);
  mark(cell, "data-empty", "");
  mark(cell, "aria-label", `${where}: no element`);
}

// The lines of shared memory that the places lie in, 32 words each; what holds no element is padding.
function memoryOf({ hardware }, places) {
  const { banks, rowBytes } = hardware;
  const words = new Map();
  for (const place of places) if (!words.has(place.word)) words.set(place.word, place);
  const lines = places.map(({ word }) => Math.floor(word / banks));
  const first = Math.min(...lines);
  const count = Math.min(Math.max(...lines) - first + 1, MOST_LINES);
  const word = (line, bank) => (first + line) * banks + bank;
  const headings = {
    rows: Array.from({ length: count }, (_, line) => String((first + line) * rowBytes)),
    columns: Array.from({ length: banks }, (_, bank) => String(bank)),
  };
  return { headings, word, holder: (line, bank) => words.get(word(line, bank)) };
}

function cutNote({ rows, cells, all, start, bytes }, array) {
  if (rows === all.rows && cells === all.cells) return "";
  const columns = Math.floor((cells * bytes) / array.elementBytes);
  return `rows ${start}\u2013${start + rows - 1} of ${all.rows}, columns 0\u2013${columns - 1} of ${array.columns}`;
}
