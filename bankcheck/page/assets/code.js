// The code view: source lines with their counts in the margin, what is known of each line below it, and a table of all.

const KIND_NAMES = {
  conflict: "conflict", problem: "finding", unknown: "not analysed", aside: "set aside", clean: "clean",
};
const number = (value) => (value === null || value === undefined ? "" : value.toLocaleString("en"));
let codeViews = 0;

// data: { summary, unit, columns, everyLine, leftOut: [[text, names]], listings: [{ title, notes, total, excess,
// regions: [[first, lines]], lines: { number: [wavefronts, ideal, heat, partly, items] } }] }, an item being
// [kind, title, details, counts by column, span].
VIEWS.code = (root, data) => {
  const key = `code${(codeViews += 1)}`;
  const entries = data.listings.flatMap((listing, at) =>
    Object.entries(listing.lines).flatMap(([line, [, , , , items]]) =>
      items.map((item, position) =>
        ({ listing, line: Number(line), item, id: `${key}-${at}-${line}-${position}` }))));
  const listed = entries.filter(({ item }) => data.everyLine || item[0] !== "clean");
  const files = data.listings.map((listing, at) => drawListing(listing, `${key}-${at}`, data));

  // Goes to a line (or a row of the table), opening what hides it.
  function go(id) {
    const file = files.find((one) => id.startsWith(`${one.id}-`));
    if (file) file.open();
    const target = document.getElementById(id) ?? file?.element;
    if (!target) return;
    for (let at = target.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    target.scrollIntoView({ block: "center" });
    (target.querySelector("summary, a") ?? target).focus({ preventScroll: true });
  }
  root.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link) return;
    event.preventDefault();
    go(link.getAttribute("href").slice(1));
  });
  window.addEventListener("beforeprint", () => files.forEach((file) => file.open()));

  root.append(make("p", { class: "code-summary" }, data.summary), make("p", { class: "note" }, data.unit));
  if (data.leftOut.length) root.append(drawLeftOut(data.leftOut));
  if (listed.length) {
    root.append(make("h3", {}, data.everyLine ? "Lines" : "Findings"), drawTable(listed, data.columns));
  }
  if (files.length) root.append(make("h3", {}, "Source"), ...files.map(({ element }) => element));
  files.slice(0, files.length <= 3 ? 3 : 1).forEach((file) => file.open());
  if (listed.length <= 3) root.querySelectorAll(".item").forEach((item) => mark(item, "open", ""));
};

function drawLeftOut(leftOut) {
  return make("div", { class: "left-out" }, make("p", {}, make("strong", {}, "Not shown:")),
    make("ul", {}, leftOut.map(([text, names]) => make("li", {},
      make("details", {}, make("summary", {}, text), make("ul", { class: "names" },
        names.map((name) => make("li", {}, name))))))));
}

// The sortable table. A heading is a button: the largest numbers (the first letters) first, again for the reverse.
function drawTable(entries, columns) {
  const keys = ["place", ...columns, "what"];
  const value = ({ listing, line, item }, key) => {
    if (key === "place") return [listing.title, line];
    if (key === "what") return [Object.keys(KIND_NAMES).indexOf(item[0]), item[1]];
    const count = item[3][columns.indexOf(key)];
    return [count ?? -1];
  };
  const isText = (key) => key === "place" || key === "what";
  const body = make("tbody", {});
  const heads = keys.map((key) => {
    const head = make("th", { scope: "col", class: isText(key) ? null : `count of-${key}` },
      make("button", { type: "button", onclick: () => sort(key) }, key === "place" ? "line" : key));
    return head;
  });
  const rows = entries.map((entry) => [entry, drawRow(entry, columns)]);
  let sorted = null;

  function sort(key) {
    const natural = isText(key) ? "ascending" : "descending";
    const reverse = natural === "ascending" ? "descending" : "ascending";
    const direction = sorted?.key === key && sorted.direction === natural ? reverse : natural;
    sorted = { key, direction };
    const sign = direction === "ascending" ? 1 : -1;
    rows.sort(([one], [other]) => {
      const [a, b] = [value(one, key), value(other, key)];
      const at = a.findIndex((part, position) => part !== b[position]);
      if (at < 0) return 0;
      return sign * (typeof a[at] === "string" ? a[at].localeCompare(b[at], "en") : a[at] - b[at]);
    });
    body.append(...rows.map(([, row]) => row));
    heads.forEach((head, position) => mark(head, "aria-sort", keys[position] === key ? direction : null));
  }
  sort("excess");
  const table = make("table", { class: "findings" },
    make("caption", { class: "hidden-text" }, "Everything found; the headings sort"),
    make("thead", {}, make("tr", {}, heads)), body);
  const box = { class: "scroller findings-box", tabindex: "0", role: "region", "aria-label": "Findings" };
  return make("div", box, table);
}

function drawRow({ listing, line, item, id }, columns) {
  const [kind, title, , counts] = item;
  const name = `${listing.title}:${line}`;
  return make("tr", { id: `row-${id}`, class: `is-${kind}` },
    make("th", { scope: "row" }, make("a", { href: `#${id}`, title: name }, shortened(listing.title, line))),
    counts.map((count, at) => make("td", { class: `count of-${columns[at]}` },
      kind === "unknown" && count === null ? "?" : number(count))),
    make("td", { class: "what" }, badge(kind), title));
}

// The last two folders of a path say enough; the whole is in the link's title and above the listing.
function shortened(title, line) {
  const parts = title.split("/");
  return `${parts.length > 2 ? `…/${parts.slice(-2).join("/")}` : title}:${line}`;
}

const badge = (kind) => (kind === "conflict" ? null : make("span", { class: "badge" }, KIND_NAMES[kind]));

// One file: its head now, its lines when it is opened for the first time.
function drawListing(listing, id, data) {
  const items = Object.values(listing.lines).flatMap(([, , , , all]) => all);
  const found = items.filter(([kind]) => kind === "conflict" || kind === "problem").length;
  const unknown = items.filter(([kind]) => kind === "unknown").length;
  const facts = [`${number(listing.excess)} excess`, found ? plural(found, "finding") : null,
    unknown ? `${unknown} not analysed` : null].filter(Boolean).join(", ");
  const element = make("details", { class: "file", id },
    make("summary", {}, make("code", {}, listing.title), make("span", { class: "quiet" }, ` ${facts}`)));
  let drawn = false;
  const draw = () => {
    if (drawn) return;
    drawn = true;
    element.append(...listing.notes.map((note) => make("p", { class: "note" }, note)), drawSource(listing, id, data));
  };
  element.addEventListener("toggle", () => element.open && draw());
  return { id, element, open: () => { draw(); element.open = true; } };
}

function drawSource(listing, id, data) {
  const heads = ["wavefronts", "ideal", "excess", "line", "source"];
  const body = make("tbody", {});
  let before = 0;
  for (const [first, texts] of listing.regions) {
    drawGap(body, first - before - 1);
    texts.forEach((text, at) => drawLine(body, listing.lines[first + at], first + at, text, id, data));
    before = first + texts.length - 1;
  }
  if (listing.regions.length) drawGap(body, listing.total - before);
  else {
    body.append(make("tr", { class: "gap" }, make("td", { colspan: "5" }, "the source cannot be read")));
    Object.entries(listing.lines).forEach(([line, known]) => drawLine(body, known, Number(line), "", id, data));
  }
  const table = make("table", { class: "source" },
    make("caption", { class: "hidden-text" }, `${listing.title}, with the counts of each line`),
    make("thead", {}, make("tr", {},
      heads.map((head) => make("th", { scope: "col", class: `of-${head}` }, head)))), body);
  return make("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": `Source of ${listing.title}` },
    table);
}

function drawGap(body, count) {
  if (count > 0) {
    body.append(make("tr", { class: "gap" }, make("td", { colspan: "5" },
      `${plural(count, "line")} with nothing to report`)));
  }
}

function drawLine(body, known, line, text, id, data) {
  const [wavefronts, ideal, heat, partly, items] = known ?? [null, null, 0, false, []];
  const excess = wavefronts === null || ideal === null ? null : wavefronts - ideal;
  const unknown = items.some(([kind]) => kind === "unknown");
  const count = (value) => (value === null ? (unknown ? "?" : "") : number(value) + (partly ? "+?" : ""));
  const attention = items.length > 0;
  body.append(make("tr", { "data-heat": heat || null, class: attention ? "known" : null },
    make("td", { class: "count of-wavefronts" }, count(wavefronts)),
    make("td", { class: "count of-ideal" }, count(ideal)),
    make("td", { class: "count of-excess" }, count(excess)),
    make("th", { scope: "row", class: "of-line" }, String(line)),
    make("td", { class: "of-source" }, marked(text, items))));
  items.forEach((item, position) => {
    if (item[0] === "clean" && !data.everyLine) return;
    body.append(make("tr", { class: "about" },
      make("td", { colspan: "3", class: "of-margin" }), make("td", { class: "of-line" }),
      make("td", {}, drawItem(item, `${id}-${line}-${position}`, data))));
  });
}

// The text with the parts that findings are about marked.
function marked(text, items) {
  const spanned = items.filter(([kind, , , , span]) => span && kind !== "clean").map(([, , , , span]) => span);
  spanned.sort(([a], [b]) => a - b);
  const parts = [];
  let end = 0;
  for (const [first, last] of spanned) {
    const start = Math.max(first - 1, end);
    if (last - 1 <= start) continue;
    parts.push(text.slice(end, start), make("mark", {}, text.slice(start, last - 1)));
    end = last - 1;
  }
  return [...parts, text.slice(end)];
}

function drawItem([kind, title, details, counts], id, data) {
  const numbers = data.columns.map((column, at) => [column, counts[at]])
    .filter(([, count]) => count !== null && count !== undefined)
    .map(([column, count]) => `${column} ${number(count)}`).join(", ");
  return make("details", { class: `item is-${kind}`, id },
    make("summary", {}, badge(kind), title),
    make("dl", {}, numbers ? [make("dt", {}, "counts"), make("dd", {}, numbers)] : [],
      details.flatMap(([label, text]) => [make("dt", {}, label), make("dd", {}, text)])),
    kind === "clean" && !data.everyLine ? null
      : make("p", { class: "note" }, make("a", { href: `#row-${id}` }, "Show it in the table")));
}
