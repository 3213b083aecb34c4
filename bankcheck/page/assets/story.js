// Why a request takes as many passes as it does, in words for someone who has not met a bank conflict before.

// { verdict: "good" | "bad", lead, sentences } for a count in a layout; `plain` is the count without any change.
function storyOf(data, layout, count, plain) {
  if (count.fault) return { verdict: "bad", lead: "No count:", sentences: [`${count.fault}.`] };
  if (!count.groups.length) return { verdict: "good", lead: "Nothing to serve:", sentences: ["no lane takes part."] };
  const sentences = [];
  if (count.wavefronts === null) sentences.push(`${data.rule.loop}. One round of it is drawn here.`);
  if (count.ways > 1) sentences.push(bankSentence(data), ...meetings(data, count), ...costs(data, count));
  else sentences.push(...noMeetings(data, count));
  const reason = strideReason(data, count) || xorReason(layout, count);
  if (reason) sentences.push(reason);
  if (!sameLayout(layout, PLAIN) && plain.excess > 0 && count.excess < plain.excess) {
    const one = busiest(plain);
    sentences.push(`Without ${layout.swizzle === "off" ? "the padding" : "the change of layout"}, ` +
      `${lanesOf(one.queue)} would meet in bank ${one.bank}: ${plural(plain.wavefronts, "pass", "passes")}.`);
  }
  return { verdict: count.excess === 0 ? "good" : "bad", lead: leadOf(count), sentences };
}

// What lanes do to words, and what a bank does in a pass.
function verbsOf(rule) {
  if (/^(st|cp\.async)/.test(rule.instruction)) {
    const once = "it costs no more than one";
    return { want: "write", wants: "writes", give: "take in", gives: "takes in", to: "from", once };
  }
  const once = "it is read once, for all";
  return { want: "want", wants: "wants", give: "hand out", gives: "hands out", to: "to", once };
}

const passesText = (count) => plural(count, "pass", "passes");

function leadOf(count) {
  if (count.wavefronts === null) return "No count is predicted:";
  if (count.excess > 0) return `${passesText(count.wavefronts)} instead of ${count.ideal}.`;
  return count.wavefronts === 1 ? "1 pass: no bank conflict." : `${passesText(count.wavefronts)}, the fewest possible.`;
}

// "lanes 0-31", "lane 5".
function laneNames(lanes) {
  return `${lanes.length === 1 ? "lane" : "lanes"} ${spans(lanes)}`;
}

const lanesOf = (queue) => laneNames([...new Set(queue.flatMap((item) => item.lanes))]);

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function bankSentence({ hardware: { banks, wordBytes } }) {
  return `Shared memory is dealt out to ${banks} banks, one ${wordBytes}-byte word after the other.`;
}

function meetings(data, count) {
  const { group, bank, queue } = busiest(count);
  const alike = [...group.queues.values()].filter((other) => other.length === queue.length).length - 1;
  const others = alike ? `, and so it is in ${plural(alike, "other bank")}` : "";
  if (data.rule.counts === "lanes") {
    return [`${capital(lanesOf(queue))} all update bank ${bank}${others}. ` +
      "An atomic or asynchronous write is served lane by lane, even where lanes name the same word."];
  }
  const lanes = [...new Set(queue.flatMap((item) => item.lanes))];
  const words = queue.map((item) => item.word);
  const shown = words.length > 4 ? `${words.slice(0, 3).join(", ")}, \u2026, ${words.at(-1)}` : words.join(", ");
  const all = lanes.length === group.lanes.length && lanes.length === words.length;
  const { want } = verbsOf(data.rule);
  return [`${capital(laneNames(lanes))} ${all ? `all ${want}` : `${want} ${words.length}`} different words ` +
    `of bank ${bank} (words ${shown})${others}.`];
}

function costs(data, count) {
  const { queue } = busiest(count);
  const { multiplier } = data.rule;
  const pace = multiplier > 1 ? `in ${multiplier} passes` : "per pass";
  const unit = data.rule.counts === "lanes" ? "serves one lane" : `${verbsOf(data.rule).gives} one word`;
  const sentences = [`A bank ${unit} ${pace}, so they queue: ` +
    `${passesText(queue.length * multiplier)} until the last is served.`];
  if (count.groups.length > 1) sentences.push(groupSum(data, count));
  return sentences;
}

function groupSum(data, count) {
  const sizes = count.groups.map((group) => group.wavefronts);
  const what = data.rule.matrices
    ? `${plural(sizes.length, "matrix", "matrices")} of 8 rows`
    : `${sizes.length} groups of up to ${Math.max(...count.groups.map((group) => group.lanes.length))} lanes`;
  const total = sizes.reduce((sum, size) => sum + size, 0);
  return `The hardware serves ${what} one after the other: ${sizes.join(" + ")} = ${passesText(total)}.`;
}

function noMeetings(data, count) {
  const group = count.groups[0];
  const shared = [...group.queues.values()].some((queue) => queue[0].lanes.length > 1);
  const words = new Set([...group.queues.values()].map((queue) => queue[0].word)).size;
  const sentences = [];
  const { want, once } = verbsOf(data.rule);
  if (words === 1) sentences.push(`${capital(laneNames(group.lanes))} ${want} the same word: ${once}.`);
  else if (shared) sentences.push(`Lanes that meet in a bank ${want} the same word: ${once}.`);
  else sentences.push(ownBanks(group));
  if (count.groups.length > 1) {
    sentences.push(groupSum(data, count));
    const bytes = count.groups.reduce((sum, { lanes }) => sum + lanes.length, 0) * data.rule.bytesPerLane;
    if (bytes > data.hardware.rowBytes) {
      sentences.push(`${bytes} bytes take that long: a pass moves at most ${data.hardware.rowBytes}, a word per bank.`);
    }
  }
  return sentences;
}

function ownBanks({ lanes, queues }) {
  const many = queues.size > lanes.length ? `its own ${queues.size / lanes.length} banks` : "a bank of its own";
  return `Every lane ${lanes.length < queues.size ? "of a group " : ""}has ${many}, ` +
    `so ${queues.size === 1 ? "it is" : `all ${lanes.length} are`} served at the same time.`;
}

// The step from lane to lane, where it is the same throughout, against the round of all banks.
function strideReason(data, count) {
  const lanes = busiest(count).group.lanes;
  if (lanes.length < 3 || lanes.at(-1) - lanes[0] !== lanes.length - 1) return "";
  const step = count.addresses[lanes[1]] - count.addresses[lanes[0]];
  if (!lanes.slice(1).every((lane) => count.addresses[lane] - count.addresses[lane - 1] === step)) return "";
  const { rowBytes, wordBytes, banks } = data.hardware;
  if (step === 0 || step % wordBytes || Math.abs(step) < data.rule.bytesPerLane) return "";
  const words = Math.abs(step) / wordBytes;
  const start = `From lane to lane the address ${step > 0 ? "grows" : "falls"} by ${Math.abs(step)} bytes, ` +
    `${plural(words, "word")}`;
  if (step % rowBytes === 0) {
    const rounds = words === banks ? "exactly one round" : `exactly ${words / banks} rounds`;
    return `${start}: ${rounds} of the ${banks} banks, so every lane comes back to the same bank.`;
  }
  if (words % banks === 1 && words > 1) {
    return `${start}: one more than a round of the ${banks} banks, so each lane lands one bank further than the last.`;
  }
  const reached = banks / greatestDivisor(words, banks);
  if (data.rule.bytesPerLane > wordBytes || reached === banks) {
    return `${start}, and the banks repeat every ${banks} words.`;
  }
  return `${start}; the banks repeat every ${banks} words, so the lanes reach only ${reached} of them.`;
}

function greatestDivisor(a, b) {
  return b ? greatestDivisor(b, a % b) : a;
}

function xorReason(layout, count) {
  if (layout.swizzle !== "xor" || count.ways > 1) return "";
  return "Column c of row r is stored at column c ^ r: every row has its own order, " +
    "so going down a column passes through all banks.";
}
