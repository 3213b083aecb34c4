// A grid of cells that is walked with the arrow keys; only one cell is in the tab order (roving tabindex).

// grid({ label, rows, columns, corner, counts, onfocus(row, column) }) makes a table with role=grid. `rows` and
// `columns` are the headings as strings; `counts` adds a second heading row of that name, with a number for each
// column. `onfocus` is told of the cell in focus or under the pointer (column null: a row's heading). The result has
// `table`, `cell(row, column)`, `head(column)`, `count(column)` and `side(row)`.
function grid({ label, rows, columns, corner = "", counts = "", onfocus = () => {} }) {
  const cells = rows.map(() => []);
  const heads = columns.map((text) => make("th", { scope: "col", class: "head" }, text));
  const sides = rows.map((text) => make("th", { scope: "row", class: "side" }, text));
  const body = make("tbody", {}, rows.map((_, row) => make("tr", {}, sides[row], columns.map((_, column) => {
    const cell = make("td", { role: "gridcell", class: "cell", tabindex: "-1" });
    cell.dataset.at = `${row},${column}`;
    cells[row].push(cell);
    return cell;
  }))));
  const numbers = columns.map(() => make("td", { role: "gridcell", class: "count" }));
  const head = make("thead", {}, make("tr", {}, make("th", { scope: "col", class: "corner" }, corner), heads),
    counts ? make("tr", {}, make("th", { scope: "row", class: "corner" }, counts), numbers) : null);
  const table = make("table", { role: "grid", "aria-label": label, class: "grid" }, head, body);
  let current = [0, 0];
  if (rows.length && columns.length) cells[0][0].tabIndex = 0;

  const placeOf = (target) => {
    const cell = target instanceof Element ? target.closest(".cell") : null;
    return cell && table.contains(cell) ? cell.dataset.at.split(",").map(Number) : null;
  };
  function move(row, column) {
    cells[current[0]][current[1]].tabIndex = -1;
    current = [row, column];
    cells[row][column].tabIndex = 0;
  }
  function focus(row, column) {
    move(row, column);
    cells[row][column].focus({ preventScroll: false });
  }
  table.addEventListener("focusin", (event) => {
    const at = placeOf(event.target);
    if (at) { move(...at); onfocus(...at); }
  });
  table.addEventListener("pointerover", (event) => {
    const at = placeOf(event.target);
    const side = event.target instanceof Element ? sides.indexOf(event.target.closest(".side")) : -1;
    if (at) onfocus(...at);
    else if (side >= 0) onfocus(side, null);
  });
  table.addEventListener("click", (event) => {
    const at = placeOf(event.target);
    if (at) focus(...at);
  });
  table.addEventListener("keydown", (event) => {
    const [row, column] = current;
    const last = [rows.length - 1, columns.length - 1];
    const target = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      Home: [event.ctrlKey ? 0 : row, 0], End: [event.ctrlKey ? last[0] : row, last[1]],
      PageUp: [0, column], PageDown: [last[0], column],
    }[event.key];
    if (!target || event.altKey || event.metaKey) return;
    event.preventDefault();
    focus(Math.min(Math.max(target[0], 0), last[0]), Math.min(Math.max(target[1], 0), last[1]));
  });
  const cell = (row, column) => cells[row][column];
  const [headOf, count, side] = [heads, numbers, sides].map((all) => (at) => all[at]);
  return { table, cell, head: headOf, count, side };
}
