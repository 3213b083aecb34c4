"""The 32 banks as a strip: the distinct words each bank delivers to a service group, and to how many lanes.

banks         0       4       8      12      16      20      24      28
lanes 0-31   32  .  .  .   ...       words: bank 0 has 32, so the group takes 32 wavefronts
"""

from __future__ import annotations

from bankcheck.banks import GroupLoad, Traffic
from bankcheck.hardware import BANKS

_LABEL = 12
_CELL = 2


def bank_strip(traffic: Traffic, most_groups: int = 4) -> list[str]:
    """The strip as lines of at most 78 characters; equal groups are shown once."""
    groups = traffic.groups
    if not groups:
        return ["no lane takes part"]
    head = "".join(f"{bank:>{_CELL}}" if bank % 4 == 0 else " " * _CELL for bank in range(BANKS))
    lines = [f"{'banks':<{_LABEL}}{head}".rstrip()]
    rows: list[tuple[list[int], list[int], list[GroupLoad]]] = []
    for group in groups:
        words = [len(group.banks.get(bank, {})) for bank in range(BANKS)]
        lanes = [len({lane for want in group.banks.get(bank, {}).values() for lane in want}) for bank in range(BANKS)]
        for known_words, known_lanes, members in rows:
            if known_words == words and known_lanes == lanes:
                members.append(group)
                break
        else:
            rows.append((words, lanes, [group]))
    for words, lanes, members in rows[:most_groups]:
        lines.append(f"{_lanes_text(members):<{_LABEL}}{_cells(words)} words")
        if lanes != words:
            lines.append(f"{'':<{_LABEL}}{_cells(lanes)} lanes")
    if len(rows) > most_groups:
        lines.append(f"and {len(rows) - most_groups} more groups")
    return lines


def _cells(counts: list[int]) -> str:
    return "".join(f"{count or '.':>{_CELL}}" for count in counts)


def _lanes_text(members: list[GroupLoad]) -> str:
    """ "lanes 0-31", or "4x 8 lanes" where several groups look alike."""
    if len(members) == 1:
        lanes = members[0].lanes
        return f"lanes {lanes[0]}-{lanes[-1]}" if len(lanes) > 1 else f"lane {lanes[0]}"
    return f"{len(members)} groups"
