"""Profiles the kernels of a cubin: decode, slice, execute, and give every memory instruction its counts."""

from __future__ import annotations

from dataclasses import dataclass

from bankcheck.compiled import disassembly, flow, names, sass
from bankcheck.compiled.blocks import count_blocks
from bankcheck.compiled.bounds import check_reach
from bankcheck.compiled.cubin import Cubin, KernelFacts
from bankcheck.compiled.execute import new_machine
from bankcheck.compiled.launch import (
    SHARED_WINDOW_HIGH,
    STACK_POINTER,
    Launch,
    Options,
    arguments_for,
    build_launch,
    check_shared,
)
from bankcheck.compiled.memory_opcodes import Access, access_of
from bankcheck.compiled.results import ASSUMED, COMPUTED, UNKNOWN, InstructionProfile, KernelProfile
from bankcheck.compiled.sass import Function, Instruction, Place
from bankcheck.compiled.source import NO_SOURCE, SourceFacts
from bankcheck.compiled.special_opcodes import make_geometry
from bankcheck.compiled.tally import Row, Tally
from bankcheck.errors import BankcheckError
from bankcheck.hardware import arch_note

_GLOBAL_BASE = 0x7D00_4000_0000
"""Where `__device__` variables are put, one every 2^28 bytes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much to run: `blocks` (0: choose), and the work limit per run (0: the default)."""

    blocks: int = 0
    cost: int = 0
    fast_forward: bool = True


def profile_kernel(
    cubin: Cubin,
    facts: KernelFacts,
    function: Function,
    options: Options,
    parameter_names: tuple[str, ...] = (),
    site: tuple[str, str] = ("", ""),
    limits: Limits = Limits(),
) -> KernelProfile:
    """Execute one kernel for one launch. Raises `BankcheckError` for a launch or code that cannot be run at all."""
    demangled = names.demangle(facts.name)
    launch = build_launch(facts, names.split_signature(demangled)[1], parameter_names, options, site)
    check_shared(facts, options.dynamic_shared_bytes, cubin.arch)
    entries = {symbol: offset for symbol, (section, offset) in cubin.functions.items() if section == facts.name}
    tables = cubin.constant_banks.get((2, facts.name), b"")
    targets = [int.from_bytes(tables[at : at + 4], "little") for at in range(0, len(tables) - 3, 4)]
    graph = flow.analyse(function, entries, [target for target in targets if target % sass.INSTRUCTION_BYTES == 0])
    assumptions = [note for note in (arch_note(cubin.arch),) if note] + list(launch.assumptions)
    memory = _ConstantMemory(cubin, facts, launch)

    def run(blocks: list[int]) -> Tally:
        tally = Tally()
        machine = new_machine(graph, entries, make_geometry(launch, blocks, memory.word, memory.symbols), tally)
        machine.forward.enabled = limits.fast_forward
        machine.limit = limits.cost or machine.limit
        machine.run()
        return tally

    depends = _depends_on_block(graph) or launch.cluster_blocks > 1
    counted = count_blocks(run, launch, depends, limits.blocks)
    if counted.assumption:
        assumptions.append(counted.assumption)
    if assumption := check_reach(counted.tally, facts, launch, cubin.arch):
        assumptions.append(assumption)
    if memory.used_initialised:
        assumptions.append("__constant__ memory holds its initial values")
    guessed_shape = 0 in launch.guessed or (12 in launch.guessed and depends)
    assumed = guessed_shape or memory.used_guess or memory.used_initialised or bool(arch_note(cubin.arch))
    rows = []
    for index, instruction in enumerate(function.instructions):
        access = access_of(instruction)
        if access is not None and access.space != "local":
            rows.append(_row(instruction, index, access, counted.tally, assumed))
    return KernelProfile(
        demangled, facts.name, cubin.arch, launch.block, launch.grid, launch.blocks,
        counted.blocks_run, tuple(assumptions), tuple(rows),
    )  # fmt: skip


def _depends_on_block(graph: flow.Flow) -> bool:
    """Does the slice look at blockIdx?"""
    return any(
        graph.needed[index] and any(operand.suffix.startswith("SR_CTAID") for operand in instruction.operands)
        for index, instruction in enumerate(graph.function.instructions)
    )


def _row(
    instruction: Instruction,
    index: int,
    access: Access,
    tally: Tally,
    assumed: bool,
) -> InstructionProfile:
    reasons, notes = tally.reasons.get(index, set()), tally.notes.get(index, set())
    counts = tally.rows.get(index, Row())
    file, line, inlined = _place(instruction.stack)
    status = UNKNOWN if reasons else ASSUMED if notes or assumed else COMPUTED
    known = not reasons

    def number(value: int) -> int | None:
        return value if known else None

    return InstructionProfile(
        pc=instruction.pc, sass=instruction.text, space=access.space, source_file=file, line=line, inlined=inlined,
        execs=number(counts.execs), requests=number(counts.requests), threads=number(counts.threads),
        shared_wavefronts=number(counts.shared), shared_ideal=number(counts.ideal),
        ncu_wavefronts=number(counts.ncu) if counts.ncu != counts.shared else None,
        ways=counts.ways, global_sectors=number(counts.sectors), global_ideal=number(counts.sectors_ideal),
        status=status, reason="; ".join(sorted(reasons or notes)),
    )  # fmt: skip


def _place(stack: tuple[Place, ...]) -> tuple[str, int, tuple[Place, ...]]:
    """(file, line) to show: the innermost in the file that the kernel itself is in, the user's own; and the stack."""
    if not stack:
        return "", 0, ()
    file, line = next(place for place in stack if place[0] == stack[-1][0])
    return file, line, stack if len(stack) > 1 else ()


class _ConstantMemory:
    """Constant-bank words as the launch leaves them: parameters, launch shape, `__constant__` data, addresses."""

    def __init__(self, cubin: Cubin, facts: KernelFacts, launch: Launch) -> None:
        self._launch = launch
        self._base = facts.parameter_base
        self._parameters = facts.parameters
        self._size = max((p.offset_bytes + p.size_bytes for p in facts.parameters), default=0)
        self._kernel = facts.name
        self._cubin = cubin
        symbols = sorted(set(cubin.global_addresses.values()))
        self._addresses = {
            offset: _GLOBAL_BASE + (symbols.index(symbol) << 28) for offset, symbol in cubin.global_addresses.items()
        }
        self.symbols = {address: cubin.global_addresses[offset] for offset, address in self._addresses.items()}
        self.used_initialised = False
        self.used_guess = False

    def word(self, bank: int, offset: int) -> tuple[int, str]:
        """(32-bit word, why it is not known or an empty text) at a byte offset of a bank."""
        if bank == 0:
            return self._launch_word(offset)
        if bank == 4 and (offset & ~7) in self._addresses:
            return self._addresses[offset & ~7] >> 8 * (offset & 4) & 0xFFFFFFFF, ""
        data = self._cubin.constant_banks.get((bank, self._kernel)) or self._cubin.constant_banks.get((bank, ""), b"")
        if not 0 <= offset <= len(data) - 4:
            return 0, f"constant bank {bank}, which the file does not give"
        word = int.from_bytes(data[offset : offset + 4], "little")
        if bank == 3:
            # Zero may mean "the host fills it": only a table that has initial values is believed.
            if not any(data):
                return 0, "__constant__ memory, which the host fills"
            self.used_initialised = True
        return word, ""

    def _launch_word(self, offset: int) -> tuple[int, str]:
        if self._base <= offset < self._base + self._size:
            known = self._launch.constants.get(offset)
            if known is None or offset in self._launch.unknown_words:
                return 0, self._parameter(offset)
            self.used_guess |= offset in self._launch.guessed
            return known, ""
        # Before the parameters: launch shape at 0 (0x360 from sm_100), stack pointer, shared window.
        start = 0x360 if self._base >= 0x380 else 0
        place = offset - start
        if place in range(0, 24, 4):
            self.used_guess |= place in self._launch.guessed
            return self._launch.constants[place], ""
        special = {0x28: STACK_POINTER, 0x37C: STACK_POINTER, 0x18: 0, 0x1C: SHARED_WINDOW_HIGH, 0x20: 0, 0x24: 0}
        if (start == 0 and offset in special) or (offset == 0x37C and start):
            return special[offset], ""
        return 0, f"a launch constant that is not modelled (byte {offset:#x})"

    def _parameter(self, offset: int) -> str:
        inside = (p for p in self._parameters if p.offset_bytes <= offset - self._base < p.offset_bytes + p.size_bytes)
        found = next(inside, None)
        return f"parameter {found.position}, which is not given" if found else "a parameter that is not given"


def profile_cubin(
    cubin: Cubin,
    listing: bytes,
    wanted: str | None,
    options: Options,
    source: SourceFacts | None = None,
    limits: Limits = Limits(),
) -> list[KernelProfile]:
    """Profile the kernels that `wanted` names (all if None). Raises `BankcheckError` if there is none."""
    chosen = names.choose_kernels(wanted, cubin.kernels)
    if not chosen:
        raise BankcheckError("the file has no kernels")
    functions = disassembly.read_listing(listing, frozenset(chosen), cubin.lined)
    source = source or NO_SOURCE
    shared = names.shared_names(cubin.kernels) if source.parameters else frozenset()
    plain = {name: names.plain_name(name) for name in chosen}
    plain = {name: "" if found in shared else found for name, found in plain.items()}
    parameters = {name: source.parameters.get(plain[name], ()) for name in chosen}
    arguments = arguments_for(options.arguments, {name: (cubin.kernels[name], parameters[name]) for name in chosen})
    profiles = []
    for name in chosen:
        if name not in functions:
            raise BankcheckError(f"nvdisasm lists no code for the kernel {names.demangle(name)}")
        profiles.append(
            profile_kernel(
                cubin, cubin.kernels[name], functions[name],
                options._replace(arguments=arguments[name]), parameters[name],
                _site(source, name, plain[name]), limits,
            )
        )  # fmt: skip
    return profiles


def _site(source: SourceFacts, name: str, plain: str) -> tuple[str, str]:
    """The (grid, block) of the kernel's first launch in the source, of the same template arguments if there is one."""
    shapes = source.shapes
    if not plain or not shapes:
        return "", ""
    full = names.normal_name(names.demangle(name))
    return shapes.get(full[full.find(plain + "<") :]) or shapes.get(plain, ("", ""))
