"""The tile view: an array's elements coloured by the bank they lie in, before and after a change of layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bankcheck.page.rules import hardware_data
from bankcheck.page.shell import View

PLAIN = {"pad": 0, "swizzle": "off"}


def tile_view(
    array: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any], *, key: str = "", lane_bytes: int = 1
) -> View:
    """The view of an array and two layouts, as `assets/layout.js` takes them.

    With the `key` of an access view of the same page it follows the switches there and frames what the lanes ask for,
    `lane_bytes` each.
    """
    data = {
        "key": key,
        "array": array,
        "hardware": hardware_data(),
        "before": before,
        "after": after,
        "bytesPerLane": lane_bytes,
    }
    return View("tile", "The tile and its banks", data)
