// A request of one warp at chosen values and in a chosen layout: addresses, counts, and who is served when.

const PLAIN = { pad: 0, swizzle: "off" };

// `data` as the Python package exports it; `choice` is { indices, base }: a position for every knob, and the array's
// start address modulo what the banks see. The result is { addresses, places } or { undefined: why there are none }.
function lanesAt(data, choice, layout) {
  const at = data.knobs.reduce((index, knob, k) => index * knob.values.length + choice.indices[k], 0);
  const point = data.points[at];
  if (typeof point === "string") return { undefined: point };
  const [pattern, row, columnBytes] = point;
  const places = data.patterns[pattern].map((place) => place && [place[0] + row, place[1] + columnBytes]);
  const addresses = places.map((place) => place && choice.base + storedBytes(data.array, layout, ...place));
  return { places, addresses };
}

// The count of `countRequest`, or { fault } where the layout or the values give none.
function countAt(data, choice, layout) {
  const problem = swizzleProblem(data.array, layout, data.rule.bytesPerLane);
  if (problem) return { fault: `Swizzle<${layout.swizzle.join(",")}> cannot be used here: ${problem}` };
  const lanes = lanesAt(data, choice, layout);
  if (lanes.undefined) return { fault: lanes.undefined };
  return { ...countRequest(data.rule, data.hardware, lanes.addresses), ...lanes };
}

// The passes in order: pass p hands out, in every bank of group g, the item number `item`. An instruction with a
// multiplier takes that many passes for each item.
function passesOf(count, multiplier) {
  return (count.groups ?? []).flatMap((group, g) =>
    Array.from({ length: group.wavefronts }, (_, pass) => ({ group: g, item: Math.floor(pass / multiplier) })));
}

// Every item of every queue: { group, bank, word, lanes, first, last, length }: the passes (from 1) that hand it out,
// and how long its queue is. The order within a queue is that of the lanes; the hardware's own is not documented.
function itemsOf(count, multiplier) {
  const items = [];
  let before = 0;
  (count.groups ?? []).forEach((group, g) => {
    for (const [bank, queue] of group.queues) {
      queue.forEach(({ word, lanes }, position) => {
        const first = before + position * multiplier + 1;
        items.push({ group: g, bank, word, lanes, first, last: first + multiplier - 1, length: queue.length });
      });
    }
    before += group.wavefronts;
  });
  return items;
}

// The longest queue of a request: { group, bank, queue }; of equally long ones the first.
function busiest(count) {
  let found = null;
  for (const group of count.groups ?? []) {
    for (const [bank, queue] of [...group.queues].sort((a, b) => a[0] - b[0])) {
      if (!found || queue.length > found.queue.length) found = { group, bank, queue };
    }
  }
  return found;
}
