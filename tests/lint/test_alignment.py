"""BC301: an access that faults whatever the launch chooses; values for which it does not are taken for granted."""

from __future__ import annotations

import pytest

from tests.lint.helpers import kernel, lint

START = "extern __shared__ float s[]; int t = threadIdx.x;\n"
SIGNATURE = "const float* g, float* o, int n, int m, int j"


def found(body: str, directive: str = "32") -> tuple[bool, list[str]]:
    """(whether a fault is reported, all that is taken for granted)."""
    result = lint(kernel(START + body, directive, SIGNATURE))
    faults = [f for f in result.findings if f.code == "BC301"]
    assert all(f.severity == "error" for f in faults)
    return bool(faults), sorted({text for row in result.rows for text in row.assumptions})


GENERIC = "the addresses are multiples of 16, as the access needs"


@pytest.mark.parametrize(
    ("index", "assumed"),
    [
        ("t * n", "n % 4 = 0, as this 16-byte access needs"),
        ("t * 2 * n", "n % 2 = 0, as this 16-byte access needs"),
        ("t * n + m", GENERIC),
        ("t * n + j", GENERIC),
        ("(t + 1) * n", GENERIC),
        ("t * n + t", "n % 4 = 3, as this 16-byte access needs"),
    ],
)
def test_what_a_launch_can_choose_is_taken_for_granted(index: str, assumed: str) -> None:
    assert found(f"*(float4*)&s[{index}] = *(float4*)g;") == (False, [assumed])


@pytest.mark.parametrize(
    "index",
    ["t", "t * 2", "4 * t + 1", "t * (2 * n + 1)", "t * n + 1", "t * n + t + 1", "t * (4 * n + 2)"],
)
def test_a_fault_for_all_values_is_an_error(index: str) -> None:
    assert found(f"*(float4*)&s[{index}] = *(float4*)g;")[0]


@pytest.mark.parametrize(("value", "faults"), [(4, False), (8, False), (2, True), (33, True)])
def test_known_values_decide(value: int, faults: bool) -> None:
    assert found("*(float4*)&s[t * n] = *(float4*)g;", f"32 n={value}") == (faults, [])


def test_rows_of_a_matrix_with_a_pitch_of_the_launch() -> None:
    row = """
        unsigned a, at = __cvta_generic_to_shared(&s[t * PITCH]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(a) : "r"(at));
    """
    assert found(row.replace("PITCH", "n"))[0] is False
    assert found(row.replace("PITCH", "(4 * n + 1)"))[0] is True
