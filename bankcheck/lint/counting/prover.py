"""Proofs for the accesses of one run, within a budget: lint has many accesses, and must not wait for one.

What has been asked in the file before is not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from bankcheck.boxes import Box, Effort
from bankcheck.expr import Node
from bankcheck.hardware import WARP_LANES, Rule
from bankcheck.lint.counting.lanes import Numbering

if TYPE_CHECKING:
    from bankcheck.proof import Outcome, Proof

Hopeless = Callable[["Outcome"], bool]
MAX_OPERATIONS = 50_000
"""Work that may be spent on one access."""
MAX_OPERATIONS_IN_ALL = 300_000
"""And on all accesses of one kernel and launch together."""


class Proofs:
    """The proofs of a file: runs for other launches ask much that has been asked before."""

    def __init__(self, number: Numbering) -> None:
        self.number = number
        self.known: dict[Hashable, tuple[Proof, int]] = {}
        """What was proved or not, and the work that was granted for it."""


class Prover:
    """Proves for the accesses of one kernel and launch."""

    def __init__(self, proofs: Proofs) -> None:
        self._proofs = proofs
        self._left = MAX_OPERATIONS_IN_ALL

    def __call__(
        self, rule: Rule, address: Node, active: Node, box: Box, is_hopeless: Hopeless | None, about: Hashable
    ) -> Proof:
        """`prove` for a request to shared memory of the 32 lanes of a warp; `box`: what all other symbols can be.

        `about`: what else `is_hopeless` depends on.
        """
        from bankcheck.proof import bank_request, prove  # few files need the prover

        key = (rule.instruction, self._proofs.number(address), self._proofs.number(active), *box.items(), about)
        granted = min(MAX_OPERATIONS, self._left)
        proof, before = self._proofs.known.get(key, (None, 0))
        if proof is None or (proof.failure and before < granted):
            effort = Effort(granted)
            proof = prove(bank_request(rule, address, active, {"lane": range(WARP_LANES)}), box, effort, is_hopeless)
            self._left -= granted - max(effort.left, 0)
            self._proofs.known[key] = proof, granted
        return proof
