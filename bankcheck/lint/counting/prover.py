"""Proofs for the accesses of one run, within a budget: lint has many accesses, and must not wait for one.

What has been asked in the file before is not asked again. Accesses that depend on the same unknowns tend to resist
alike: after each that did, the next one gets half the work.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from bankcheck import expr
from bankcheck.boxes import Box, Effort
from bankcheck.expr import Node
from bankcheck.hardware import WARP_LANES, Rule
from bankcheck.lint.counting.lanes import Numbering

if TYPE_CHECKING:
    from bankcheck.proof import Outcome, Proof

MAX_OPERATIONS = 50_000
"""Work that may be spent on one access."""
MAX_OPERATIONS_IN_ALL = 300_000
"""And on all accesses of one kernel and launch together."""


class Proofs:
    """The proofs of a file: runs for other launches ask much that has been asked before."""

    def __init__(self) -> None:
        self.number = Numbering()
        self.known: dict[Hashable, tuple[Proof, int, int]] = {}
        """What was proved or not, the work that was granted for it, and what is left of that."""


class Prover:
    """Proves for the accesses of one kernel and launch."""

    def __init__(self, proofs: Proofs) -> None:
        self._proofs = proofs
        self._left = MAX_OPERATIONS_IN_ALL
        self._resisted: Tally[frozenset[str]] = Tally()
        """How many accesses that depend on some unknowns took more work than they were granted."""

    def __call__(
        self, rule: Rule, address: Node, active: Node, box: Box, is_hopeless: Callable[[Outcome], bool] | None
    ) -> Proof:
        """`prove` for a request to shared memory of the 32 lanes of a warp; `box`: what all other symbols can be."""
        from bankcheck.proof import bank_request, prove  # few files need the prover

        key = (rule.instruction, self._proofs.number(address), self._proofs.number(active), *box.items())
        unknowns = frozenset(expr.symbols_of(address, active)) - {"lane", "warp"}
        granted = min(MAX_OPERATIONS >> self._resisted[unknowns], self._left)
        proof, before, left = self._proofs.known.get(key, (None, 0, 0))
        if proof is None or (proof.failure and before < granted):
            effort = Effort(granted)
            proof = prove(bank_request(rule, address, active, {"lane": range(WARP_LANES)}), box, effort, is_hopeless)
            left = effort.left
            self._left -= granted - max(left, 0)
            self._proofs.known[key] = proof, granted, left
        self._resisted[unknowns] += left < 0
        return proof
