// The solve view: the layouts that were found and the accesses that were solved for; a request of one of them is framed
// in the tile view, before and after.

VIEWS.solve = (root, data) => {
  const { array, hardware } = data;
  const state = { layout: data.best, access: mostHelped(data), request: 0 };
  const sentence = make("p", { class: "lane-text", "aria-live": "polite" });
  const layoutRows = data.layouts.map((one, at) => make("tr", {},
    make("th", { scope: "row" }, one.title),
    ["wavefronts", "excess", "storageBytes", "operations"].map((name) => make("td", {}, numberText(one[name]))),
    make("td", {}, at ? make("button", { type: "button", "aria-label": `Show ${one.title}`,
      onclick: () => { state.layout = at; draw(); } }, "Show") : "before")));
  const accessRows = data.accesses.map((access, at) => make("tr", {},
    make("th", { scope: "row" }, make("code", {}, access.name)),
    make("td", { class: "instruction" }, access.rule.instruction),
    make("td"), make("td"), make("td", {}, numberText(access.ideal)),
    make("td", {}, make("button", { type: "button", "aria-label": `Frame ${access.name}`,
      onclick: () => { state.access = at; state.request = 0; draw(); } }, "Frame"))));
  const slider = make("div", { class: "controls" });

  root.append(
    make("div", { class: "headline", "data-verdict": data.solved ? "good" : "bad" },
      make("strong", {}, data.layouts[data.best].title), make("p", {}, `${capital(data.statement)}.`)),
    make("h3", {}, "Layouts"),
    table(["layout", "wavefronts", "excess", "bytes", "operations", "picture"], layoutRows),
    make("h3", {}, "Accesses, over all warps and values"),
    table(["access", "instruction", "before", "after", "ideal", "picture"], accessRows),
    slider, sentence,
    codeOf(data),
    make("ul", { class: "footnotes" }, data.notes.map((text) => make("li", {}, `${capital(text)}.`))));
  draw();
  document.addEventListener("drawn", tell);

  function places() {
    const access = data.accesses[state.access];
    const [pattern, row, columnBytes] = access.points[state.request];
    return access.patterns[pattern].map((place) => place && [place[0] + row, place[1] + columnBytes]);
  }

  function draw() {
    const access = data.accesses[state.access];
    layoutRows.forEach((row, at) => mark(row, "data-chosen", at === state.layout ? "" : null));
    accessRows.forEach((row, at) => {
      mark(row, "data-chosen", at === state.access ? "" : null);
      const { counts } = data.accesses[at];
      [counts[0], counts[state.layout]].forEach((count, cell) =>
        say(row.cells[2 + cell], numberText(count)));
    });
    const numbers = [...access.points.keys()].map((at) => at + 1);
    const chosen = valueSlider("request", numbers, () => state.request, (at) => { state.request = at; tellRequest(); });
    slider.replaceChildren(chosen.element);
    tellRequest();
  }

  function tellRequest() {
    const access = data.accesses[state.access];
    const asked = places();
    const [before, after] = [0, state.layout].map((at) => {
      const addresses = asked.map((place) => place && storedBytes(array, data.layouts[at].layout, ...place));
      const count = countRequest(access.rule, hardware, addresses);
      return count.fault ? "a fault" : plural(count.wavefronts, "wavefront");
    });
    const order = access.points.length < access.requests ? ", the worst first," : "";
    say(sentence, `Request ${state.request + 1} of ${access.requests}${order} of ${access.name}: ` +
      `${before} before, ${after} after ` +
      `(${data.layouts[state.layout].title}). Its elements are framed in the tile.`);
    tell();
  }

  function tell() {
    const { layout } = data.layouts[state.layout];
    const laneBytes = data.accesses[state.access].rule.bytesPerLane;
    const detail = { key: data.key, layout, base: 0, places: places(), laneBytes };
    document.dispatchEvent(new CustomEvent("layout", { detail }));
  }
};

const numberText = (value) => (value === null ? "faults" : value.toLocaleString("en"));

// The access that gains most from the best layout.
function mostHelped({ accesses, best }) {
  const gain = ({ counts }) => (counts[0] ?? Infinity) - counts[best];
  return accesses.reduce((found, access, at) => (gain(access) > gain(accesses[found]) ? at : found), 0);
}

function codeOf({ code }) {
  if (!code) return "";
  return make("details", {}, make("summary", {}, "The layout as code"), make("pre", { tabindex: "0" }, code));
}

function table(headings, rows) {
  const head = make("tr", {}, headings.map((text) => make("th", { scope: "col" }, text)));
  return make("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": headings[0] },
    make("table", { class: "plain" }, make("thead", {}, head), make("tbody", {}, rows)));
}
