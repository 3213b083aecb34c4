// The access view: a grid of lanes and banks with the word in each cell, played pass by pass, in any layout.

VIEWS.access = (root, data) => {
  const choice = { indices: data.knobs.map((knob) => knob.start), base: data.base };
  const multiplier = data.rule.multiplier;
  let layout = data.start;
  let count = null;
  let items = [];
  let position = 0;
  let focused = null;

  const story = make("div", { class: "headline", role: "status", tabindex: "-1" });
  const advice = make("div", { class: "advice" });
  const numbers = make("dl", { class: "numbers" });
  const passText = make("p", { class: "pass-text", "aria-live": "polite" });
  const laneText = make("p", { class: "lane-text" }, "Point at a cell, or walk with the arrow keys: one lane's story.");
  const lanes = [...Array(data.hardware.lanes).keys()];
  const banks = [...Array(data.hardware.banks).keys()];
  const cells = grid({
    label: "Which lane wants which word of which bank", corner: "lane", counts: "queue",
    rows: lanes.map(String), columns: banks.map(String),
    onfocus: (lane, bank) => { focused = [lane, bank]; drawLane(); },
  });
  cells.table.classList.add("dense", "access-grid");
  const play = player({
    total: () => passesOf(count, multiplier).length,
    onmove: (at, playing) => { position = at; mark(passText, "aria-live", playing ? "off" : "polite"); drawPass(); },
  });
  const switches = layoutControls(data, layout, setLayout);
  const knobs = knobControls(data, choice, update);

  root.append(
    story, advice,
    make("div", { class: "controls" }, switches.element, knobs.elements),
    play.element, passText,
    make("p", { class: "axis quiet" }, "bank \u2192 (each cell: the number of the lane's word there)"),
    cells.table, legend(), laneText, numbers, ...[casesTable(data, choose)].filter(Boolean), footnotes(data));
  update();
  document.addEventListener("drawn", tell);

  function setLayout(wanted) {
    layout = wanted;
    switches.show(layout);
    update();
  }

  function choose(values) {
    data.knobs.forEach((knob, k) => {
      if (knob.name in values) choice.indices[k] = knob.values.indexOf(values[knob.name]);
    });
    knobs.show();
    update();
  }

  // Everything that depends on the layout and the values; then back to before the first pass.
  function update() {
    count = countAt(data, choice, layout);
    items = itemsOf(count, multiplier);
    drawStory();
    drawNumbers();
    play.reset();
    tell();
  }

  // For the tile view of the same access.
  function tell() {
    if (count.fault) return;
    const { places = [] } = lanesAt(data, choice, layout);
    document.dispatchEvent(new CustomEvent("layout", { detail: { key: data.key, layout, base: choice.base, places } }));
  }

  function drawStory() {
    const plain = sameLayout(layout, PLAIN) ? count : countAt(data, choice, PLAIN);
    const { verdict, lead, sentences } = storyOf(data, layout, count, plain);
    mark(story, "data-verdict", verdict);
    story.replaceChildren(make("strong", {}, lead), make("p", {}, sentences.join(" ")));
    const better = count.excess > 0 ? suggestedLayouts(data, choice, count) : [];
    advice.replaceChildren(...better.map((one) => make("p", {},
      make("button", { type: "button", onclick: () => { setLayout(one.layout); story.focus(); } }, one.button),
      ` ${one.text}: `, make("code", {}, one.code))));
  }

  function drawNumbers() {
    const swizzle = layout.swizzle === "off" ? "" : `, ${layoutName(data.array, { ...layout, pad: 0 })}`;
    const rows = [
      ["layout", `${declarationOf(data.array, layout)}${swizzle}`], ["wavefronts", count.wavefronts],
      ["ideal", count.ideal], ["excess", count.excess], ["n-way", count.fault ? null : count.ways],
    ];
    if ((count.rowPasses ?? null) !== null) rows.push(["row passes", count.rowPasses]);
    rows.push(["how it is known", count.fault ? null : standingOf(data, choice, layout)]);
    numbers.replaceChildren(...rows.map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", { "data-number": name }, String(value ?? "\u2013")))));
  }

  function drawPass() {
    say(passText, passSentence(data.rule, position, passesOf(count, multiplier).length, count, items));
    const waiting = new Map();
    for (const item of items) if (item.last > position) waiting.set(item.bank, (waiting.get(item.bank) ?? 0) + 1);
    for (const bank of banks) {
      say(cells.count(bank), String(waiting.get(bank) ?? ""));
      mark(cells.count(bank), "data-heat", heatOf(waiting.get(bank) ?? 0));
    }
    drawCells();
    drawLane();
  }

  function drawCells() {
    const wanted = new Map(items.flatMap((item) => item.lanes.map((lane) => [`${lane},${item.bank}`, item])));
    const starts = new Set((count.groups ?? []).slice(1).map((group) => group.lanes[0]));
    for (const lane of lanes) {
      mark(cells.side(lane).parentElement, "data-start", starts.has(lane) ? "group" : null);
      for (const bank of banks) {
        const cell = cells.cell(lane, bank);
        const item = wanted.get(`${lane},${bank}`);
        const state = item && stateOf(item, position);
        say(cell, item ? String(item.word) : "");
        mark(cell, "data-heat", item && heatOf(item.length));
        mark(cell, "data-state", state);
        const content = item ? `word ${item.word}, ${STATES[state]}` : "nothing";
        mark(cell, "aria-label", `lane ${lane}, bank ${bank}: ${content}`);
      }
    }
  }

  // The lane under the pointer or in focus, and the lanes that are served before it.
  function drawLane() {
    if (focused === null) return;
    const [lane, bank] = focused;
    say(laneText, laneSentence(data, count, items, lane));
    const mine = items.filter((item) => item.lanes.includes(lane));
    const item = mine.find((one) => one.bank === bank) ?? mine[0];
    const before = (other) => item && other.group === item.group && other.bank === item.bank && other.last < item.first;
    const ahead = new Set(items.filter(before).flatMap((other) => other.lanes));
    for (const other of lanes) {
      mark(cells.side(other), "data-role", other === lane ? "focused" : ahead.has(other) ? "ahead" : null);
    }
  }
};
