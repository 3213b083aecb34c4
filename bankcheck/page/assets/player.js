// Buttons that play a request pass by pass: back, play or pause, step, to either end, and a speed.

// player({ total(), onmove(position, playing) }) has `element` and `reset()`. Position 0 is before the
// first pass. The arrow keys work on the slider, as everywhere.
function player({ total, onmove }) {
  let position = 0;
  let timer = 0;
  const slider = make("input", { type: "range", min: 0, value: 0, "aria-label": "Pass", class: "player-slider",
    oninput: () => { stop(); go(Number(slider.value)); } });
  const play = make("button", { type: "button", class: "primary", onclick: () => (timer ? stop() : start()) }, "Play");
  const back = make("button", { type: "button", onclick: () => { stop(); go(position - 1); } }, "Back");
  const step = make("button", { type: "button", onclick: () => { stop(); go(position + 1); } }, "Step");
  const restart = make("button", { type: "button", onclick: () => { stop(); go(0); } }, "Start");
  const end = make("button", { type: "button", onclick: () => { stop(); go(total()); } }, "End");
  const speed = make("select", { "aria-label": "Speed", onchange: () => { if (timer) { stop(); start(); } } },
    [["1", "1 pass a second"], ["4", "4 passes a second"], ["12", "12 passes a second"]].map(([value, text]) =>
      make("option", { value, ...(value === "4" ? { selected: "" } : {}) }, text)));
  const element = make("div", { class: "player", role: "group", "aria-label": "Play the passes" },
    play, restart, back, step, end, slider, speed);

  function go(wanted, playing = false) {
    position = Math.min(Math.max(wanted, 0), total());
    slider.max = total();
    slider.value = position;
    mark(slider, "aria-valuetext", `pass ${position} of ${total()}`);
    back.disabled = restart.disabled = position === 0;
    step.disabled = end.disabled = position === total();
    play.disabled = total() === 0;
    onmove(position, playing);
  }
  function start() {
    if (position === total()) go(0, true);
    say(play, "Pause");
    timer = setInterval(() => {
      go(position + 1, position + 1 < total());
      if (position === total()) stop();
    }, 1000 / Number(speed.value));
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    say(play, "Play");
  }
  return { element, reset: () => { stop(); go(0); } };
}
