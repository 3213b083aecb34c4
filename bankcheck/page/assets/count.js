// Counts one request by a rule: data from the hardware table, interpreted here as in the Python package.

const floorMod = (value, modulus) => ((value % modulus) + modulus) % modulus;

// The wavefronts of one request. `addresses` holds a byte address for each lane, null where it takes no part.
// A fault (a misaligned lane) has only `fault`. Otherwise: `wavefronts`, `ideal`, `excess` (null where the rule
// predicts no number), `ways`, `merged`, `rowPasses` (null unless the rule has row writes), and `groups`, in the
// order served: { lanes, wavefronts, queues }, where queues maps a bank to what it hands out one by one, in the
// order of the lanes: { word, lanes }.
function countRequest(rule, hardware, addresses) {
  const lanes = [...new Set(rule.groups.flat())].filter((lane) => (addresses[lane] ?? null) !== null);
  const stray = lanes.find((lane) => floorMod(addresses[lane], rule.bytesPerLane) !== 0);
  if (stray !== undefined) {
    const place = `lane ${stray} accesses byte ${addresses[stray]}, not a multiple of ${rule.bytesPerLane}`;
    return { fault: `${place}: ${rule.instruction} would fault` };
  }
  const merged = rule.mergedGroups.length > 0 && pairCondition(hardware, addresses);
  const groups = (merged ? rule.mergedGroups : rule.groups)
    .map((group) => group.filter((lane) => lanes.includes(lane)))
    .filter((group) => group.length > 0)
    .map((group) => serveGroup(rule, hardware, addresses, group));
  const ways = Math.max(0, ...groups.map((group) => group.wavefronts / rule.multiplier));
  const result = { fault: "", wavefronts: null, ideal: null, excess: null, ways, merged, groups };
  result.rowPasses = rule.rowWrites ? rowPasses(rule, hardware, addresses) : null;
  if (rule.loop) return result;
  result.wavefronts = groups.reduce((sum, group) => sum + group.wavefronts, 0);
  const moved = Math.ceil((lanes.length * rule.bytesPerLane) / hardware.rowBytes) * rule.multiplier;
  result.ideal = Math.min(result.wavefronts, rule.matrices || moved);
  result.excess = result.wavefronts - result.ideal;
  return result;
}

function serveGroup(rule, hardware, addresses, lanes) {
  const queues = new Map();
  for (const lane of lanes) {
    const first = Math.floor(addresses[lane] / hardware.wordBytes);
    const words = Math.max(1, Math.floor(rule.bytesPerLane / hardware.wordBytes));
    for (let word = first; word < first + words; word += 1) {
      const bank = floorMod(word, hardware.banks);
      if (!queues.has(bank)) queues.set(bank, []);
      const queue = queues.get(bank);
      const same = rule.counts === "words" ? queue.find((item) => item.word === word) : undefined;
      if (same) same.lanes.push(lane);
      else queue.push({ word, lanes: [lane] });
    }
  }
  const longest = Math.max(...[...queues.values()].map((queue) => queue.length));
  return { lanes, wavefronts: longest * rule.multiplier, queues };
}

// Whether every lane agrees with its partner at one of the distances: same address, or one of them inactive.
function pairCondition(hardware, addresses) {
  const at = (lane) => addresses[lane] ?? null;
  const agree = (one, other) => one === null || other === null || one === other;
  return hardware.pairDistances.some((distance) =>
    Array.from({ length: hardware.lanes }, (_, lane) => lane).every((lane) => agree(at(lane), at(lane ^ distance))));
}

// cp.async.cg: every (group, 128-byte row) is one row write; rows that agree modulo `rowQueues` wait for each other.
function rowPasses(rule, hardware, addresses) {
  const queues = Array.from({ length: hardware.rowQueues }, () => 0);
  for (const group of rule.groups) {
    const active = group.filter((lane) => (addresses[lane] ?? null) !== null);
    for (const row of new Set(active.map((lane) => Math.floor(addresses[lane] / hardware.rowBytes)))) {
      queues[floorMod(row, hardware.rowQueues)] += 1;
    }
  }
  return Math.max(...queues);
}
