"""What may import what, which module may use which library, how long files are, and what start-up loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "bankcheck"
MODULES = {".".join(("bankcheck", *p.relative_to(PACKAGE).with_suffix("").parts)): p for p in PACKAGE.rglob("*.py")}
MAX_LINES = 400

RANKS = [
    {"digest"},
    {"errors", "cache", "filenames"},
    {"hardware", "expr", "poly"},
    {"banks", "layout", "ctype", "sectors", "boxes", "columns", "launch", "syntax", "substitution"},
    {"symbolic"},
    {"trace", "proof", "conditions", "options", "places", "algebra"},
    {"lower"},
    {"declare", "matrix"},
    {"scope"},
    {"access"},
    {"warps"},
    {"analysis"},
    {"fixes"},
    {"verify", "compiled", "lint"},
    {"solve"},
    {"report"},
    {"page", "stills"},
    {"commands"},
    {"cli"},
    {"__main__", "__init__"},
]
"""Data flows from the top down: a module imports only from its own package and from ranks above."""

LINT = ["text", "interpreter", "launching", "counting", "facts", "checking", "fixing", "pipeline", "run"]
"""The same inside `lint`: each of these imports only from those in front of it, and from what is not named here."""

TRUSTED = ("errors", "hardware", "banks", "expr", "layout")
"""What every claim rests on: standard library only, readable in one sitting."""

LIBRARIES = {
    "click": {"cli", "commands", "report.style"},
    "tree_sitter": {"syntax"},
    "tree_sitter_cuda": {"syntax"},
    "sympy": {"algebra"},
    "rich": {"report.terminal"},
    "cupy": {"verify.device"},
    "numpy": {"compiled"},
    "resvg_py": {"stills.png"},
}
"""Third-party imports, and the only modules (or packages) that may have them."""


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            if node.module == "bankcheck":
                found |= {f"bankcheck.{alias.name}" for alias in node.names}
    return found


def _short(module: str) -> str:
    return module.removeprefix("bankcheck.")


def _rank(module: str) -> int:
    top = _short(module).split(".")[0]
    return next(rank for rank, members in enumerate(RANKS) if top in members)


def test_every_module_has_a_rank() -> None:
    listed = set().union(*RANKS)
    assert {_short(module).split(".")[0] for module in MODULES} == listed


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_up(module: str) -> None:
    for imported in _imports(MODULES[module]):
        if not imported.startswith("bankcheck.") or imported not in MODULES:
            continue
        same_package = _short(imported).split(".")[0] == _short(module).split(".")[0]
        assert same_package or _rank(imported) < _rank(module), f"{module} imports {imported}"


@pytest.mark.parametrize("module", sorted(m for m in MODULES if m.startswith("bankcheck.lint.")))
def test_imports_point_up_in_lint(module: str) -> None:
    part = module.split(".")[2]
    below = LINT[LINT.index(part) + 1 :] if part in LINT else []
    for imported in _imports(MODULES[module]):
        assert not imported.startswith("bankcheck.lint.") or imported.split(".")[2] not in below, imported


@pytest.mark.parametrize("module", sorted(MODULES))
def test_third_party_only_where_named(module: str) -> None:
    for imported in _imports(MODULES[module]):
        library = imported.split(".")[0]
        if library in sys.stdlib_module_names or library == "bankcheck":
            continue
        allowed = LIBRARIES.get(library, set())
        assert any(_short(module) == a or _short(module).startswith(a + ".") for a in allowed), f"{module}: {imported}"


@pytest.mark.parametrize("module", TRUSTED)
def test_the_trusted_core_uses_the_standard_library_only(module: str) -> None:
    for imported in _imports(PACKAGE / f"{module}.py"):
        if imported.startswith("bankcheck."):
            assert _short(imported) in TRUSTED
        else:
            assert imported.split(".")[0] in {*sys.stdlib_module_names, "bankcheck"}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_files_stay_readable(module: str) -> None:
    text = MODULES[module].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    assert ast.get_docstring(ast.parse(text)), f"{module} does not say what it is"


def test_the_oracle_is_independent() -> None:
    assert not any("bankcheck" in name for name in _imports(Path(__file__).parent / "oracle.py"))


HEAVY = ("sympy", "numpy", "rich", "cupy", "resvg_py", "xml.etree", "bankcheck.stills", "bankcheck.report.listing")


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze", "s[tx]", "--dtype", "double"],
        ["analyze", "tile[tx][ty]"],
        ["ldmatrix", "--swizzle", "3,3,3"],
        ["solve", "--decl", "float s[32][32]", "--access", "ld: s[tx][ty]"],
        ["count", "tests/measured/h200_cp_async16.csv", "--help"],
        ["verify", "transpose", "--size", "nothing"],
        ["--help"],
    ],
)
def test_start_up_is_light(arguments: list[str]) -> None:
    code = (
        "import sys; from bankcheck.cli import main\n"
        f"sys.argv = ['bankcheck', *{arguments!r}]\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print('LOADED', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED []"
