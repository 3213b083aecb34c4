"""Control flow of a kernel: basic blocks, which instructions matter for addresses, where branches meet again.

Only what the *roots* need is executed: addresses of memory accesses, predicates, branch targets. That is
ordinary liveness, started from the roots instead of from every use (a slice). Register sets are integers.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bankcheck.compiled import sass
from bankcheck.compiled.sass import INSTRUCTION_BYTES, Function, Instruction, Operand, words
from bankcheck.errors import BankcheckError

MEMORY = words(
    """
    LDS STS LDSM STSM ATOMS LDGSTS LDG STG RED REDG ATOMG ATOM LD ST LDL STL REDS UBLKCP UTMALDG UTMASTG
    """
)
_ENDS = words(
    """
    EXIT RET BRX JMP JMX BRA CALL BSYNC KILL WARPSYNC BSSY BREAK
    """
)
INDIRECT = frozenset(("BRX", "JMX"))
_LANE_CONTROL = frozenset(["BSSY", "BSYNC", "BREAK", "WARPSYNC", "BMOV"])


@dataclass(frozen=True, slots=True)
class Flow:
    """`needed[i]`: instruction i is in the slice. `used[i]`: the slice reads its result. `live[i]`: registers the slice
    needs just before instruction i."""

    function: Function
    successors: tuple[tuple[int, ...], ...]
    needed: tuple[bool, ...]
    used: tuple[bool, ...]
    live: tuple[int, ...]
    targets: frozenset[int]
    """Instructions that a branch can jump to."""
    local_successors: tuple[tuple[int, ...], ...]
    """Successors within one function: a call goes on behind itself, a return nowhere."""
    exits: frozenset[int]
    """Guarded exits: some lanes may end there."""
    unreached: frozenset[int] = frozenset()
    """What no direct way leads to: it runs only if it is called through a pointer."""
    recursive: frozenset[int] = frozenset()
    """Returns of functions that may call themselves."""

    def between(self, branch: int) -> tuple[frozenset[int], int | None]:
        """What runs on some but not every way on from `branch`, and where all ways meet (None: at the end)."""
        return _region(self, branch)

    def reachable(self, index: int) -> frozenset[int]:
        """Everything that may run after instruction `index`, callers included."""
        return _reachable(self, index)


def _reachable(flow: Flow, index: int) -> frozenset[int]:
    seen: set[int] = set()
    stack = list(flow.successors[index]) if index < len(flow.successors) else []
    while stack:
        at = stack.pop()
        if at not in seen:
            seen.add(at)
            stack += flow.successors[at]
    return frozenset(seen)


def control_flow(
    function: Function, entries: Mapping[str, int], tables: Sequence[int] = ()
) -> tuple[tuple[int, ...], ...]:
    """Successor indices of every instruction. `entries`: byte offset of each function symbol in this section;
    `tables`: byte offsets that indirect branches (`switch`) may go to.

    Raises `BankcheckError` for a branch out of the kernel.
    """
    instructions = function.instructions
    starts = sorted(set(entries.values()) | {0})
    call_sites: dict[int, list[int]] = {}
    for index, instruction in enumerate(instructions):
        if instruction.opcode == "CALL" and (target := branch_target(instruction, entries)) is not None:
            call_sites.setdefault(target, []).append(index + 1)
    successors = []
    for index, instruction in enumerate(instructions):
        following = _successors(instruction, index, entries, starts, call_sites)
        if instruction.opcode in INDIRECT:
            following += [
                offset // INSTRUCTION_BYTES for offset in tables if offset < len(instructions) * INSTRUCTION_BYTES
            ]
        if any(not 0 <= target <= len(instructions) for target in following):
            raise BankcheckError(f"{function.name}: the branch at {instruction.pc:#x} leaves the kernel")
        successors.append(tuple(sorted({target for target in following if target < len(instructions)})))
    return tuple(successors)


def branch_target(instruction: Instruction, entries: Mapping[str, int]) -> int | None:
    """Index that a direct branch or call goes to; None if it is not a place in this kernel."""
    last = instruction.operands[-1] if instruction.operands else None
    if last is None or (instruction.opcode in ("CALL", "JMP") and instruction.operands[0].kind == "register"):
        return None
    if last.kind == "immediate" and last.value % INSTRUCTION_BYTES == 0:
        return last.value // INSTRUCTION_BYTES
    if last.kind == "name" and last.text in entries:
        return entries[last.text] // INSTRUCTION_BYTES
    return None


def _successors(
    instruction: Instruction,
    index: int,
    entries: Mapping[str, int],
    starts: list[int],
    call_sites: Mapping[int, list[int]],
) -> list[int]:
    opcode = instruction.opcode
    conditional = instruction.guard is not None or any(o.kind == "predicate" for o in instruction.operands[:-1])
    conditional = conditional or (opcode == "BRA" and "DIV" in instruction.modifiers)
    if opcode in ("EXIT", "KILL"):
        return [index + 1] if conditional else []
    if opcode in ("BRA", "CALL", "JMP"):
        target = branch_target(instruction, entries)
        if target is None:
            return [index + 1]
        return [target, index + 1] if conditional else [target]
    if opcode == "RET":
        entry = max(start for start in starts if start <= instruction.pc) // INSTRUCTION_BYTES
        returns = list(call_sites.get(entry, ()))
        return [*returns, index + 1] if conditional else returns
    return [index + 1]


def unreached(successors: Sequence[tuple[int, ...]]) -> frozenset[int]:
    """Instructions to which no direct way leads: functions that are called through a pointer."""
    seen: set[int] = set()
    pending = [0]
    while pending:
        index = pending.pop()
        if index not in seen and index < len(successors):
            seen.add(index)
            pending += successors[index]
    return frozenset(range(len(successors))) - seen


def _recursive(instructions: Sequence[Instruction], entries: Mapping[str, int]) -> frozenset[int]:
    starts = sorted({0, *(offset // INSTRUCTION_BYTES for offset in entries.values())})
    calls: dict[int, set[int]] = {start: set() for start in starts}
    returns: dict[int, list[int]] = {start: [] for start in starts}
    for index, instruction in enumerate(instructions):
        if instruction.opcode not in ("CALL", "RET"):
            continue
        owner = starts[bisect.bisect_right(starts, index) - 1]
        if instruction.opcode == "RET":
            returns[owner].append(index)
        elif (target := branch_target(instruction, entries)) is not None and target in calls:
            calls[owner].add(target)
    for middle in starts:  # all that a function calls, however indirectly
        for called in calls.values():
            if middle in called:
                called |= calls[middle]
    return frozenset(index for start in starts if start in calls[start] for index in returns[start])


def read_registers(instruction: Instruction) -> int:
    """The registers whose values a memory access, branch or barrier needs; data to be stored is not needed."""
    needed = 0
    for operand in instruction.operands:
        if operand.kind in ("memory", "constant"):
            for index, _, wide in operand.terms:
                needed |= 1 << index | (1 << index + 1 if wide or index >= sass.UR else 0)
    if instruction.opcode == "LDGSTS":  # which lanes copy
        needed |= sum(1 << operand.index for operand in instruction.operands if operand.kind == "predicate")
    if instruction.opcode == "STL" and instruction.operands[-1].kind == "register":
        # What is spilled may be an address or a return address that is loaded again.
        words = 4 if "128" in instruction.modifiers else 2 if "64" in instruction.modifiers else 1
        needed |= sum(1 << instruction.operands[-1].index + word for word in range(words))
    if instruction.opcode not in MEMORY:
        for operand in instruction.operands:
            if operand.kind in ("register", "predicate"):
                needed |= 1 << operand.index
    return needed


def all_sources(instruction: Instruction) -> int:
    """The registers that the result depends on; of opcodes that are not modelled, to tell what makes it unknown."""
    needed = read_registers(instruction) if instruction.opcode in MEMORY else 0
    if instruction.opcode in MEMORY:
        return needed
    sources = instruction.operands[sass.destination_operands(instruction) :]
    for operand in sources:
        if operand.kind in ("register", "predicate"):
            needed |= 1 << operand.index
        elif operand.kind in ("constant", "memory"):
            needed |= sum(1 << index for index, _, _ in operand.terms)
            needed |= sum(2 << index for index, _, _ in operand.terms) if operand.kind == "memory" else 0
        elif operand.text == "PR":
            needed |= 0x7F << sass.P
    if instruction.opcode[0] == "D" or not {"64", "U64", "S64", "F64"}.isdisjoint(instruction.modifiers):
        needed |= sum(2 << o.index for o in sources if o.kind == "register" and o.index not in sass.ZERO_REGISTERS)
    if instruction.opcode in ("IMAD", "UIMAD") and not {"WIDE", "HI"}.isdisjoint(instruction.modifiers):
        # The addend of a wide product is a register pair.
        last = [operand.index for operand in sources if operand.kind == "register"][-1:]
        needed |= sum(2 << index for index in last if index not in sass.ZERO_REGISTERS)
    return needed


def guard_bit(guard: Operand | None) -> int:
    """The guard predicate as a register set."""
    return 0 if guard is None else 1 << guard.index


def is_root(instruction: Instruction) -> bool:
    """Must this instruction run whatever its results are used for?"""
    return instruction.opcode in MEMORY or instruction.opcode in _ENDS or instruction.opcode in _LANE_CONTROL


def analyse(function: Function, entries: Mapping[str, int], tables: Sequence[int] = ()) -> Flow:
    """Control flow, slice and liveness of a kernel. Cost: a few passes over the instructions."""
    instructions = function.instructions
    successors = control_flow(function, entries, tables)
    constants = sum(1 << index for index in sass.ZERO_REGISTERS)
    defines, strong, roots, uses = [], [], [], []
    for instruction in instructions:
        written = sum(1 << index for index in set(instruction.writes))
        defines.append(written & ~constants)
        strong.append(written if instruction.guard is None and instruction.opcode in _STRONG else 0)
        root = is_root(instruction)
        guard = guard_bit(instruction.guard)
        roots.append((read_registers(instruction) if root else 0) | (guard if root else 0))
        uses.append(all_sources(instruction) | guard)
    live = [0] * (len(instructions) + 1)
    predecessors: list[list[int]] = [[] for _ in instructions]
    for index, following in enumerate(successors):
        for target in following:
            predecessors[target].append(index)
    pending = list(range(len(instructions)))
    queued = [True] * len(instructions)
    while pending:
        index = pending.pop()
        queued[index] = False
        after = 0
        for target in successors[index]:
            after |= live[target]
        before = (after & ~strong[index]) | roots[index]
        if after & defines[index]:
            before |= uses[index]
        before &= ~constants
        if before != live[index]:
            live[index] = before
            for source in predecessors[index]:
                if not queued[source]:
                    queued[source] = True
                    pending.append(source)
    used = []
    for index in range(len(instructions)):
        after = 0
        for target in successors[index]:
            after |= live[target]
        used.append(bool(after & defines[index]))
    needed = [is_root(instruction) or result for instruction, result in zip(instructions, used, strict=True)]
    jumps = frozenset(t for i, following in enumerate(successors) for t in following if t != i + 1)
    local = tuple(
        (index + 1,) if instructions[index].opcode == "CALL" and index + 1 < len(instructions)
        else () if instructions[index].opcode == "RET" else following
        for index, following in enumerate(successors)
    )  # fmt: skip
    exits = frozenset(index for index, instruction in enumerate(instructions) if instruction.opcode in ("EXIT", "KILL"))
    return Flow(
        function,
        successors,
        tuple(needed),
        tuple(used),
        tuple(live),
        jumps,
        local,
        exits,
        unreached(successors),
        _recursive(instructions, entries),
    )


_STRONG = sass.ONE_WORD | words(
    """
    MOV IADD3 IADD IMAD LEA SHF LOP3 SEL UMOV UIADD3 UIMAD ULEA USHF ULOP3 USEL UISETP UPLOP3 UPRMT ULDC LDC
    LDCU LDG LDS LD LDL LDSM ATOM ATOMS ATOMG CS2R I2F F2I S2UR DADD DMUL DFMA UVIADD UVIMNMX UIABS UFLO UPOPC
    UBREV USGXT UBMSK
    """
)


def _region(flow: Flow, branch: int) -> tuple[frozenset[int], int | None]:
    """What is reachable before the meeting point, called functions included. A call is one step on the way."""
    local = flow.local_successors
    meeting = immediate_postdominator(local, branch, flow.exits)
    seen: set[int] = set()
    pending = list(local[branch])
    while pending:
        index = pending.pop()
        if index in seen or index == meeting:
            continue
        seen.add(index)
        pending += local[index]
        if flow.function.instructions[index].opcode == "CALL":
            pending += flow.successors[index]
    return frozenset(seen), meeting


def immediate_postdominator(
    successors: tuple[tuple[int, ...], ...], start: int, exits: frozenset[int] = frozenset()
) -> int | None:
    """The first instruction that every way from `start` to an end passes, or None. At `exits` a way may end.

    Cooper, Harvey and Kennedy's iteration on the reversed graph, limited to what `start` reaches.
    """
    end = len(successors)
    following: dict[int, tuple[int, ...]] = {}
    pending = [start]
    while pending:
        node = pending.pop()
        if node not in following and node != end:
            leaves = node in exits or not successors[node]
            following[node] = (*successors[node], end) if leaves else successors[node]
            pending += following[node]
    order = _backwards(following, end)
    rank = {node: position for position, node in enumerate(order)}
    parent: dict[int, int] = {end: end}
    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            meeting = None
            for target in following[node]:
                if target in parent:
                    meeting = target if meeting is None else _meet(meeting, target, parent, rank)
            if meeting is not None and parent.get(node) != meeting:
                parent[node] = meeting
                changed = True
    found = parent.get(start, end)
    return None if found == end else found


def _backwards(following: Mapping[int, tuple[int, ...]], end: int) -> list[int]:
    """Nodes that can reach `end`, in depth-first postorder of the reversed graph (`end` comes last)."""
    before: dict[int, list[int]] = {}
    for node, targets in following.items():
        for target in targets:
            before.setdefault(target, []).append(node)
    order: list[int] = []
    seen = {end}
    stack = [(end, 0)]
    while stack:
        node, position = stack.pop()
        sources = before.get(node, [])
        if position < len(sources):
            stack.append((node, position + 1))
            if sources[position] not in seen:
                seen.add(sources[position])
                stack.append((sources[position], 0))
        else:
            order.append(node)
    return order


def _meet(a: int, b: int, parent: Mapping[int, int], rank: Mapping[int, int]) -> int:
    while a != b:
        while rank[a] < rank[b]:
            a = parent[a]
        while rank[b] < rank[a]:
            b = parent[b]
    return a
