"""Which launches a kernel is judged for: each that is written, with a block that is assumed where it is not known."""

from __future__ import annotations

import pytest

from tests.lint.helpers import lint

KERNEL = "__global__ void {} k(float* o) {{ __shared__ float s[2048]; s[threadIdx.x * 2{}] = 1; }}\n"


def blocks(host: str, bounds: str = "", index: str = "") -> dict[tuple[int, int, int], str | None]:
    """The blocks that are judged, and the basis of each."""
    return {row.block: row.basis for row in lint(KERNEL.format(bounds, index) + host).rows}


def notes(host: str) -> list[str]:
    """What is said of launches that cannot be judged."""
    return [f.message for f in lint(KERNEL.format("", "") + host).findings if f.code == "BC902"]


@pytest.mark.parametrize("order", [1, -1])
def test_a_launch_that_is_not_known_is_judged_beside_one_that_is(order: int) -> None:
    hosts = ["void f(float* a, int n) { k<<<1, n>>>(a); }\n", "void g(float* a) { k<<<1, dim3(16)>>>(a); }\n"]
    assert blocks("".join(hosts[::order])) == {(16, 1, 1): "computed", (256, 1, 1): "assumed"}


def test_a_block_that_is_known_is_not_assumed_as_well() -> None:
    host = "void f(float* a, int n) { k<<<1, n>>>(a); k<<<1, 256>>>(a); }\n"
    assert blocks(host) == {(256, 1, 1): "computed"}


@pytest.mark.parametrize(
    ("bounds", "written", "index", "block"),
    [
        ("__launch_bounds__(256)", "dim3(n, 8)", " + threadIdx.y", (32, 8, 1)),
        ("__launch_bounds__(128)", "dim3(n, 8)", " + threadIdx.y", (16, 8, 1)),
        ("__launch_bounds__(512)", "dim3(8, n, 4)", " + threadIdx.y", (8, 16, 4)),
        ("__launch_bounds__(96)", "dim3(16, n, n)", " + threadIdx.y", (16, 6, 1)),
        ("__launch_bounds__(256)", "n", " + threadIdx.y", (32, 8, 1)),
        ("__launch_bounds__(64)", "n", "", (64, 1, 1)),
        ("", "dim3(n, 4)", "", (64, 4, 1)),
        ("", "dim3(n, 512)", "", (2, 512, 1)),
        ("", "n", " + threadIdx.z", (8, 8, 4)),
    ],
)
def test_an_assumed_block_fits_what_is_known(
    bounds: str, written: str, index: str, block: tuple[int, int, int]
) -> None:  # fmt: skip
    host = f"void f(float* a, int n) {{ k<<<1, {written}>>>(a); }}\n"
    assert blocks(host, bounds, index) == {block: "assumed"}


@pytest.mark.parametrize(
    ("written", "shown"), [("2048", "2048 x 1 x 1"), ("0", "0 x 1 x 1"), ("dim3(64, 32)", "64 x 32 x 1")]
)
def test_what_is_wrong_with_an_impossible_launch_is_said(written: str, shown: str) -> None:
    bad = f"void f(float* a) {{ k<<<1, {written}>>>(a); }}\n"
    (note,) = notes(bad)
    assert "k.cu:2 fails: a block has 1 to 1024 threads" in note and shown in note
    (finding,) = [f for f in lint(KERNEL.format("", "") + bad).findings if f.code == "BC101"]
    assert shown in finding.assumptions[0] and "constant" not in finding.assumptions[0]
    good = "void g(float* a) { k<<<1, 64>>>(a); }\n"
    assert blocks(bad + good) == {(64, 1, 1): "computed"} and len(notes(bad + good)) == 1
