"""The page of `bankcheck solve`: its counts are the package's, and its tile follows the tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Finished

from bankcheck.page.solution import MOST_REQUESTS, solution_data
from bankcheck.solve.counting import count_access
from bankcheck.solve.layouts import Layout
from bankcheck.solve.prepared import addresses_of
from bankcheck.solve.search import solve
from bankcheck.solve.spec import read_problem

PROBLEMS: list[tuple[str, list[str]]] = [
    (
        "half A[64][64]",
        ["st16: A[tid/8 + 16*i][tid%8*8] for i=0:2", "ldmatrix.x4: row=lane%16, col=16*k + lane/16*8 for k=0:4"],
    ),
    ("float t[32][32]", ["st: t[ty][tx]", "ld: t[tx][ty]"]),
    ("float t[32][33]", ["ld: t[tx][ty]"]),
    ("float t[24][24]", ["ld: t[tx%24][ty]", "st: t[ty][tx%24]"]),
    ("float2 t[32][32]", ["ld: t[tx][ty]", "ld: t[ty][tx].y"]),
    ("half t[32][48]", ["ld: t[tx][ty]"]),
    ("float3 t[32][32]", ["ld: t[tx][ty].x", "st: t[ty][tx].y"]),
    ("float s[1024]", ["ld: s[32*tx + ty]"]),
]
COUNT = """
const { data } = input;
return data.accesses.map((access) => data.layouts.map(({ layout }) => access.points.map(([pattern, row, at]) => {
  const addresses = access.patterns[pattern].map((place) =>
    place && storedBytes(data.array, layout, place[0] + row, place[1] + at));
  const count = countRequest(access.rule, data.hardware, addresses);
  return [addresses, count.fault ? null : count.wavefronts];
})));
"""


@pytest.mark.parametrize(("declaration", "accesses"), PROBLEMS, ids=[declaration for declaration, _ in PROBLEMS])
def test_every_request_in_every_layout_is_counted_alike(
    scripts: Callable[[str, Any], Any], declaration: str, accesses: list[str]
) -> None:
    solution = solve(read_problem(declaration, accesses, None, None))
    data = solution_data(solution)
    in_order = [Layout(), *(row.layout for row in solution.ranked if row.layout != Layout())]
    for access, by_layout in zip(solution.problem.accesses, scripts(COUNT, {"data": data}), strict=True):
        assert len(access.requests) <= MOST_REQUESTS, "so that all are on the page, in their order"
        for layout, requests in zip(in_order, by_layout, strict=True):
            tile = solution.problem.tile
            assert [addresses for addresses, _ in requests] == [
                addresses_of(request, access, layout, tile) for request in access.requests
            ]
            if all(count is not None for _, count in requests):
                total = sum(weight * count for weight, (_, count) in zip(access.weights, requests, strict=True))
                assert total == count_access(access, layout, tile).wavefronts


def test_the_problems_have_layouts_of_all_kinds() -> None:
    found = set()
    for declaration, accesses in PROBLEMS:
        for row in solve(read_problem(declaration, accesses, None, None)).ranked:
            layout = row.layout
            found |= {name for name in ("pad", "xor", "rotation", "swizzle") if getattr(layout, name)}
    assert found == {"pad", "xor", "rotation", "swizzle"}


def test_the_tables_choose_what_the_tile_shows(
    bankcheck: Callable[..., Finished], tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    path = tmp_path / "solve.html"
    declaration, (fill, load) = PROBLEMS[0]
    done = bankcheck("solve", "--decl", declaration, "--access", fill, "--access", load, "--html", str(path))
    assert done.code == 0 and done.err == f"wrote {path}\n"
    page = open_page(path)
    assert page.locator(".headline strong").inner_text() == "Swizzle<3,3,3>"
    text, heads = page.locator("#view-1 .lane-text"), page.locator(".panel h3")
    assert f"of {load}: 32 wavefronts before, 4 wavefronts after (Swizzle<3,3,3>)" in text.inner_text()
    assert heads.all_inner_texts() == ["Before: half A[64][64]", "After: half A[64][64], Swizzle<3,3,3>"]
    page.get_by_role("button", name="Show half A[64][72]").click()
    assert "4 wavefronts after (half A[64][72])" in text.inner_text()
    assert heads.last.inner_text() == "After: half A[64][72]"
    page.get_by_role("button", name=f"Frame {fill}").click()
    assert f"of {fill}: 4 wavefronts before, 4 wavefronts after" in text.inner_text()
    assert page.locator(".logical-grid").first.locator("[data-wanted]").count() == 4 * 32


SOURCE = """__global__ void a(const float* in, float* out) {
  __shared__ float tile[32][36];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[0] = tile[threadIdx.x][threadIdx.y];
}
__global__ void b(const float* in, const int* p, float* out) {
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[0] = tile[threadIdx.x][threadIdx.y] + tile[p[threadIdx.x]][0];
}
void launch(float* o) { a<<<1, dim3(32, 8)>>>(o, o); b<<<1, dim3(32, 8)>>>(o, nullptr, o); }
"""


def test_every_kernel_of_a_source_has_its_own_views(
    bankcheck: Callable[..., Finished], tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    source, path = tmp_path / "k.cu", tmp_path / "solve.html"
    source.write_text(SOURCE)
    done = bankcheck("solve", str(source), "--array", "tile", "--html", str(path))
    assert done.code == 1 and done.err == f"wrote {path}\n"
    page = open_page(path)
    heads = page.locator(".panel h3")
    assert heads.all_inner_texts() == [
        "Before: float tile[32][36]", "After: float tile[32][32], Swizzle<5,0,5>",
        "Before: float tile[32][32]", "After: float tile[32][32], Swizzle<5,0,5>",
    ]  # fmt: skip
    texts = page.locator(".view-solve .lane-text").all_inner_texts()
    assert "5: tile[threadIdx.x][threadIdx.y]: 4 wavefronts before, 1 wavefront after" in texts[0]
    assert "11: tile[threadIdx.x][threadIdx.y]: 32 wavefronts before, 1 wavefront after" in texts[1]
    page.locator("#view-1").get_by_role("button", name="Show float tile[32][33]").click()
    assert heads.all_inner_texts()[1::2] == ["After: float tile[32][33]", "After: float tile[32][32], Swizzle<5,0,5>"]
    assert "Not solved for: 11: tile[p[threadIdx.x]][0]" in page.locator("#view-3 .footnotes").inner_text()
    page.locator("#view-1 summary", has_text="The layout as code").click()
    change = page.locator("pre").first.inner_text().splitlines()
    assert {"-  __shared__ float tile[32][36];", "+  __shared__ float tile[32][32];"} <= set(change)


def test_the_solve_page_is_accessible_and_fits(
    bankcheck: Callable[..., Finished], tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    path = tmp_path / "solve.html"
    bankcheck(
        "solve",
        "--decl",
        "float t[32][32]",
        "--access",
        "st: t[ty][tx]",
        "--access",
        "ld: t[tx][ty]",
        "--html",
        str(path),
    )
    page = open_page(path, width=400, bypass_csp=True)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.evaluate("document.querySelectorAll('.grid tbody tr:nth-child(n+3)').forEach((row) => row.remove())")
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
