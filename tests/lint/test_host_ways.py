"""Random host functions against running them: every block that they launch with is judged, or one is assumed."""

from __future__ import annotations

import random

import pytest

from tests.lint.helpers import lint

KERNEL = "__global__ void k(float* o) { __shared__ float s[4096]; s[threadIdx.x] = 1; }\n"
NAMES = ("x", "y", "t")
CONDITIONS = {"n > 5": "n > 5", "n % 2": "n % 2", "!(n > 5)": "not n > 5", "n == 3": "n == 3", "m": "m"}


class Host:
    """A host function as C++ and as Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.cuda, self.python = "", ""
        for _ in range(4):
            self._statement(0)

    def _add(self, depth: int, cuda: str, python: str = "") -> None:
        self.cuda += f"{cuda}\n"
        self.python += f"{'  ' * depth}{python}\n" if python else ""

    def _value(self) -> tuple[str, str]:
        one, other = self._random.choice([*NAMES, "2", "8"]), self._random.choice([*NAMES, "4"])
        condition = self._random.choice(list(CONDITIONS))
        choice = f"({condition}) ? {one} : {other}", f"{one} if {CONDITIONS[condition]} else {other}"
        return self._random.choice([(one, one), (one, one), choice, (f"{one} + 1", f"{one} + 1")])

    def _block(self, depth: int) -> None:
        for _ in range(self._random.randint(1, 2)):
            self._statement(depth)

    def _statement(self, depth: int) -> None:
        name, (cuda, python) = self._random.choice(NAMES), self._value()
        condition = self._random.choice(list(CONDITIONS))
        kind = self._random.choice(["set", "set", "add", "if", "if", "return", "switch", "loop", "change"])
        if kind in ("if", "switch", "loop") and depth > 1:
            kind = "set"
        if kind == "set":
            self._add(depth, f"{name} = {cuda};", f"{name} = {python}")
        elif kind == "add":
            self._add(depth, f"{name} += 2;", f"{name} += 2")
        elif kind == "return":
            self._add(depth, f"if ({condition}) return;", f"if {CONDITIONS[condition]}: return None")
        elif kind == "change":
            self._add(depth, "m = n > 3;", "m = n > 3")
        elif kind == "loop":
            self._add(depth, "for (int i = 0; i < n; ++i) {", "for i in range(n):")
            self._block(depth + 1)
            self._add(depth, "}")
        elif kind == "if":
            self._add(depth, f"if ({condition}) {{", f"if {CONDITIONS[condition]}:")
            self._block(depth + 1)
            self._add(depth, "} else {", "else:")
            self._block(depth + 1)
            self._add(depth, "}")
        else:
            self._add(depth, "switch (n) {")
            for position, value in enumerate((1, 2)):
                self._add(depth, f"case {value}:", f"{'el' * (position > 0)}if n == {value}:")
                self._block(depth + 1)
                self._add(depth, "break;")
            self._add(depth, "}")

    def blocks(self) -> set[tuple[int, int, int]]:
        """The blocks that it launches with."""
        body = "".join(f"  {line}\n" for line in self.python.splitlines())
        scope: dict[str, object] = {}
        exec(f"def f(n, m):\n  x, y, t = 1, 2, 4\n{body}  return x, y, t\n", scope)
        found = {scope["f"](n, m) for n in range(9) for m in (False, True)}  # type: ignore[operator]
        return {block for block in found if block is not None and block[0] * block[1] * block[2] <= 1024}


@pytest.mark.parametrize("seed", range(60))
def test_no_block_of_a_host_function_is_missed(seed: int) -> None:
    host = Host(seed)
    text = f"{KERNEL}void f(float* a, int n, bool m) {{\nint x = 1, y = 2, t = 4;\n{host.cuda}"
    result = lint(f"{text}k<<<1, dim3(x, y, t)>>>(a);\n}}\n")
    judged = {row.block: row.basis for row in result.rows}
    merged = any("is judged for blocks" in f.message for f in result.findings)
    assert "assumed" in judged.values() or merged or host.blocks() <= judged.keys()


def test_many_of_them_are_known_completely() -> None:
    known = 0
    for seed in range(60):
        text = f"{KERNEL}void f(float* a, int n, bool m) {{\nint x = 1, y = 2, t = 4;\n{Host(seed).cuda}"
        known += "assumed" not in {row.basis for row in lint(f"{text}k<<<1, dim3(x, y, t)>>>(a);\n}}\n").rows}
    assert known > 20
