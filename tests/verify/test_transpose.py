"""The transposes' host side: what the table predicts and how checks and times become lines."""

from __future__ import annotations

import pytest

from bankcheck.verify.device import COPY, CUPY
from bankcheck.verify.report import checks_text, speeds_text
from bankcheck.verify.transpose import CHECKED_SIZES, DESIGNS, check_transposes, time_transposes

from .model import ModelDevice

BY_NAME = {design.kernel.name: design for design in DESIGNS}


def test_predicted_traffic_says_which_transpose_is_slow() -> None:
    """For 32 floats: (shared store, shared load), (global load, global store)."""
    predicted = {name: (design.wavefronts(), design.sectors(8192, 8192)) for name, design in BY_NAME.items()}
    assert predicted == {
        "naive": (None, (4, 32)),
        "32x32 tile, conflicts": ((1, 32), (4, 4)),
        "32x33 tile, padded": ((1, 1), (4, 4)),
        "32x32 tile, swizzled": ((1, 1), (4, 4)),
        "fastest": ((1, 1), (4, 4)),
    }


def test_odd_sizes_touch_more_sectors() -> None:
    assert BY_NAME["naive"].sectors(33, 31) == (5, 32)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.kernel.name)
@pytest.mark.parametrize("size", [*CHECKED_SIZES, (65, 64), (64, 65)])
def test_the_grid_covers_the_input(design, size: tuple[int, int]) -> None:  # type: ignore[no-untyped-def]
    kernel, (rows, columns) = design.kernel, size
    grid = kernel.grid(rows, columns)
    down, across = -(-rows // kernel.tile[0]), -(-columns // kernel.tile[1])
    if kernel.flat_grid:
        assert down * across <= grid[0] < down * across + kernel.cluster
        assert grid[0] % kernel.cluster == 0
    else:
        assert grid == (across, down)


def test_sizes_that_are_not_square_are_checked() -> None:
    assert {(31, 33), (33, 31), (1, 1), (1024, 2048), (2048, 1024), (8192, 8192)} <= set(CHECKED_SIZES)


def test_a_kernel_that_exchanges_rows_and_columns_is_named() -> None:
    device = ModelDevice()
    device.wrong_transposes["fastest"] = (31, 33)
    checks = check_transposes(device, CHECKED_SIZES)
    assert len(checks) == len(CHECKED_SIZES) * len(DESIGNS)
    lines = list(checks_text(checks))
    assert lines[1] == "31 x 33: fastest wrong in 7 elements"
    assert lines[2] == "33 x 31: all 5 kernels right"


def test_the_table_shows_medians_and_shares_of_the_copy() -> None:
    speeds = time_transposes(ModelDevice(), (8192, 8192), 3)
    by_name = {speed.name: speed for speed in speeds}
    assert by_name[COPY].gbytes_per_s == pytest.approx(8 * 8192**2 / 0.125e-3 / 1e9)
    assert (by_name[COPY].share_of_copy, by_name["fastest"].share_of_copy, by_name[CUPY].share_of_copy) == (
        1,
        0.5,
        0.25,
    )
    lines = list(speeds_text(speeds))
    assert lines[2].split() == ["device", "copy", "0.1250", "4295", "100.0%", "-", "-"]
    assert [line.split()[-4:] for line in lines if "conflicts" in line] == [["1,", "32", "4,", "4"]]
