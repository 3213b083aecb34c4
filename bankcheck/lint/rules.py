"""The rules: one table. Each has a code, a name, what it means and why it matters, and a bad and a good example.

The examples are files in `bankcheck/lint/examples`: `explain` prints them, and the tests run them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bankcheck.errors import BankcheckError
from bankcheck.lint.findings import Severity


class Rule(NamedTuple):
    """One thing that lint reports."""

    code: str
    slug: str
    severity: Severity
    summary: str
    why: str
    enabled: bool = True
    """Whether it is on without being selected."""

    @property
    def bad(self) -> str:
        """The file name of the example that it reports; empty for rules about the tool itself."""
        return f"{self.code}_bad.cu"

    @property
    def good(self) -> str:
        """The file name of the example that it does not report."""
        return f"{self.code}_good.cu"


RULES: tuple[Rule, ...] = (
    Rule("BC101", "bank-conflict", "warning",
         "A shared-memory access needs more wavefronts than its bytes: lanes want different words of one bank.",
         "Shared memory has 32 banks, each of which delivers one 4-byte word per wavefront. Where several lanes of a "
         "warp want different words of the same bank, the request is served one word after the other: a 32-way "
         "conflict takes 32 times as long as the same access without one."),
    Rule("BC102", "conflict-for-some-values", "warning",
         "A shared-memory access conflicts for some values of a launch parameter or template argument.",
         "The row length or stride is chosen at launch. The finding names the values with a conflict; if the program "
         "never uses one of those, say so with a directive such as `// bankcheck: stride=33` above the kernel."),
    Rule("BC103", "matrix-row-conflict", "warning",
         "The eight row addresses of an ldmatrix or stmatrix matrix fall into the same banks.",
         "ldmatrix reads eight rows of 16 bytes per matrix. They are served together only if they cover all 32 banks; "
         "rows a multiple of 128 bytes apart all start in the same bank and are served one by one."),
    Rule("BC104", "fill-row-passes", "warning",
         "A cp.async.cg fill takes more than one row pass: its 128-byte row writes queue behind each other.",
         "cp.async.cg writes shared memory in rows of 128 bytes, and rows whose numbers agree modulo 4 queue. Rows "
         "padded to 144 bytes, or 512 bytes apart, make the fill slower although no bank conflict is counted. An XOR "
         "swizzle inside a 128-byte row costs nothing."),
    Rule("BC105", "atomic-contention", "warning",
         "Several lanes of a warp update the same shared address atomically: they are served one at a time.",
         "Atomics on shared memory serialise lanes, not words: 32 lanes on one address take 32 wavefronts. Reduce "
         "within the warp first, or give each lane its own copy. nvcc adds up the lanes itself in `atomicAdd(p, 1)` "
         "whose result is not used, and in integer updates of an address that is plainly the same for all lanes: "
         "these are counted so, and are only a note."),
    Rule("BC201", "one-sided-swizzle", "warning",
         "An array is stored through a swizzle and loaded without it, or the other way round.",
         "A swizzle such as tile[row][column ^ row] only renames places if both sides use it. It is reported where one "
         "side has an XOR of the row and the other side is what it would be without, be it transposed. If the kernel "
         "means to exchange elements in this way, suppress the finding."),
    Rule("BC202", "ineffective-padding", "warning",
         "An array's rows are padded, but this access conflicts as much with the padding as without it.",
         "Padding moves rows to other banks; it helps an access whose lanes walk down a column, and costs memory for "
         "all others. The wrong amount, such as 5 words for a stride of 8, changes nothing."),
    Rule("BC203", "harmful-padding", "warning",
         "The padding of an array makes this access conflict: without it there would be fewer excess wavefronts.",
         "A pad of one word cures a column of 4-byte accesses, but a warp that covers several short rows then wraps "
         "onto banks in use. Pad so that all accesses agree, or swizzle."),
    Rule("BC204", "padding-not-in-index", "warning",
         "An array is padded, but this index does not step over rows, so the padding has no effect on it.",
         "Padding acts through the row index: tile[row][column] skips the pad once per row. An index that stays in one "
         "row, such as tile[0][lane * 32], runs through the array without ever meeting it."),
    Rule("BC301", "misaligned-access", "error",
         "A vector, matrix-row or asynchronous access at an address that is not a multiple of its width: it faults.",
         "8- and 16-byte accesses need addresses that are multiples of 8 and 16. Padding rows by one float puts every "
         "other row of float4 off its place; pad by four floats. It is reported where no launch can avoid it: a row "
         "length that the launch chooses is taken to fit, and the assumption is listed."),
    Rule("BC401", "divergent-barrier", "error",
         "__syncthreads() under a condition that differs between the threads of the block.",
         "All threads of the block must arrive at the same barrier. If some do not, the kernel hangs or the barrier "
         "means nothing (CUDA C++ Programming Guide, synchronization functions). A condition on data that the threads "
         "load from different addresses is one that may differ, and so is `i < n` if n need not be a multiple of the "
         "block: these are warnings."),
    Rule("BC402", "missing-barrier", "error",
         "One thread writes a shared element and another reads it, with no barrier between.",
         "Threads run in no particular order: without a barrier the reader may come first. Threads of one warp need "
         "__syncwarp(), others __syncthreads(). Atomic updates need the same against plain reads and writes, and what "
         "cp.async copies is there only behind a wait (cp.async.wait_all, __pipeline_wait_prior)."),
    Rule("BC501", "uncoalesced-global", "warning",
         "A global access touches at least twice the 32-byte sectors that its bytes need (off by default).",
         "Global memory moves in sectors of 32 bytes. Lanes that step over memory in strides fetch a sector each and "
         "use a few bytes of it. Often a transposition through shared memory is the cure.", False),
    Rule("BC900", "unused-suppression", "warning",
         "A comment suppresses nothing, names no rule, or a directive is not understood.",
         "A suppression that is no longer needed hides the next finding on its line. Nothing is said of one that "
         "another run may need: beside accesses that are not analysed, in code that nothing calls here, where the file "
         "does not tell the launch."),
    Rule("BC901", "not-analysed", "note",
         "A shared-memory access could not be counted; the message says why.",
         "Indices read from memory and code that lint does not see stay unknown. They are never counted as clean: the "
         "summary says how many there are, --all lists them, and with `extend-select = [\"BC901\"]` each is a note in "
         "every format.", False),
    Rule("BC902", "not-parsed", "note",
         "A region of the file could not be parsed; accesses in it are not seen.",
         "Lint reads CUDA without a compiler. Unusual macros may hide the structure of a region; give their values "
         "with --define or in the configuration (`-D NAME=` makes a macro that stands for nothing)."),
)  # fmt: skip
BY_CODE = {rule.code: rule for rule in RULES}


def codes_matching(names: Iterable[str], where: str) -> frozenset[str]:
    """The codes that `BC101`, a prefix such as `BC1`, a rule's name or `ALL` stand for. Raises `BankcheckError`."""
    found: set[str] = set()
    for name in names:
        matching = {r.code for r in RULES if name == "ALL" or r.code.startswith(name.upper()) or r.slug == name}
        if not matching or not name:
            raise BankcheckError(f"{where}: '{name[:40]}' is no rule (see 'bankcheck explain')")
        found |= matching
    return frozenset(found)
