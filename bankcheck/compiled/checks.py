"""`--check` limits: judging a profile against numbers."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple

from bankcheck.compiled.names import split_signature
from bankcheck.compiled.results import UNKNOWN, KernelProfile
from bankcheck.errors import BankcheckError

_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def _ways(profile: KernelProfile) -> int:
    return max((row.ways for row in profile.instructions if row.status != UNKNOWN), default=0)


_QUANTITIES: dict[str, Callable[[KernelProfile], int]] = {
    "wavefronts": lambda p: p.total("shared_wavefronts"),
    "ideal": lambda p: p.total("shared_ideal"),
    "excess": lambda p: p.total("shared_wavefronts") - p.total("shared_ideal"),
    "ways": _ways,
    "sectors": lambda p: p.total("global_sectors"),
    "global_excess": lambda p: p.total("global_sectors") - p.total("global_ideal"),
    "unknown": lambda p: p.exact_share[1] - p.exact_share[0],
}


class Check(NamedTuple):
    """One limit, such as `excess<=0`, that every kernel must keep."""

    text: str
    quantity: str
    operator: str
    limit: int

    def judge(self, profile: KernelProfile, allow_unknown: bool) -> str:
        """What is wrong with the profile, or an empty text. Unknown counts cannot keep a limit."""
        value = _QUANTITIES[self.quantity](profile)
        name = split_signature(profile.kernel)[0]
        if not _OPERATORS[self.operator](value, self.limit):
            return f"check failed: {name}: {self.quantity} is {value:,}, limit {self.text}"
        if profile.is_sampled and not allow_unknown:
            return (
                f"check not decided: {name}: {profile.blocks_run} of {profile.blocks} blocks were run "
                "(--blocks N runs more, --allow-unknown takes them for the kernel)"
            )
        known, every = profile.exact_share
        if known < every and not allow_unknown and self.quantity != "unknown":
            return (
                f"check not decided: {name}: {self.quantity} of {every - known} of {every} memory instructions "
                "is unknown (--allow-unknown to leave them out)"
            )
        return ""


def parse_check(text: str) -> Check:
    """`excess<=0` -> a limit. Raises `BankcheckError` with a caret for anything else."""
    found = re.fullmatch(r"\s*([a-z_]+)\s*(<=|>=|==|!=|<|>)\s*(\d{1,18})\s*", text)
    if not found or found[1] not in _QUANTITIES:
        known = ", ".join(_QUANTITIES)
        raise BankcheckError(f"--check '{text[:40]}' is not QUANTITY<=NUMBER with one of: {known}")
    return Check(text.strip(), found[1], found[2], int(found[3]))
