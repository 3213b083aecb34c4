"""`bankcheck lint --compiled`: what the source does not tell is counted in the machine code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Finished

from compiled.support import need_tools

# What a template is specialised to is nothing that the source level works out.
KERNELS = """\
template <int N> struct Pitch; template <> struct Pitch<32> { enum { words = 32 }; }; \
template <> struct Pitch<33> { enum { words = 33 }; };
template <int N> __global__ void column(float* out) {
  __shared__ float s[33 * 32];
  s[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = s[Pitch<N>::words * threadIdx.x];
}
__global__ void looked_up(float* out, const int* table) {
  __shared__ float s[64];
  s[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = s[table[threadIdx.x]];
  out[64] = table[table[64]];
}
void launch(float* p, const int* t) { looked_up<<<1, 64>>>(p, t); INSTANCES }
"""
BAD, GOOD = "column<32><<<1, 32>>>(p);", "column<33><<<1, 32>>>(p);"


def lint(folder: Path, instances: str, *arguments: str, text: str = KERNELS) -> subprocess.CompletedProcess[str]:
    """Lint the kernels in a process of its own."""
    (folder / "k.cu").write_text(text.replace("INSTANCES", instances))
    command = [sys.executable, "-m", "bankcheck", "lint", "k.cu", *arguments]
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=folder, env={**os.environ, "PYTHONPATH": root}
    )


def document(folder: Path, instances: str, *arguments: str, text: str = KERNELS) -> dict[str, Any]:
    """The JSON report, everything listed."""
    return json.loads(lint(folder, instances, "--format", "json", "--all", *arguments, text=text).stdout)  # type: ignore[no-any-return]


def test_the_source_alone_does_not_tell(tmp_path: Path) -> None:
    report = document(tmp_path, BAD)
    assert report["summary"] == {"files": 1, "clean": 2, "conflicting": 0, "not_analysed": 2}
    assert not report["findings"]


def test_a_conflict_that_only_the_machine_code_shows(tmp_path: Path) -> None:
    need_tools()
    found = lint(tmp_path, BAD, "--compiled")
    assert found.returncode == 1, found.stderr
    assert found.stdout.startswith(
        "k.cu:6:22 BC101 32-way bank conflict [compiled]: shared loads of this line take 32 wavefronts instead of 1 "
        "(1 request of one block) [assumed]\n"
    )
    report = document(tmp_path, BAD, "--compiled")
    assert report["summary"] == {"files": 1, "clean": 2, "conflicting": 1, "not_analysed": 1}
    conflict, unknown = report["findings"]
    assert (conflict["code"], conflict["line"], conflict["kernel"]) == ("BC101", 6, "column")
    assert (conflict["wavefronts"], conflict["ideal"], conflict["excess"], conflict["ways"]) == (32, 1, 31, 32)
    (row,) = [row for row in report["accesses"] if row["line"] == 6]
    assert (row["wavefronts"], row["ideal"], row["ways"], row["reason"]) == (32, 1, 32, None)
    assert row["notes"] == ["[compiled] column<32>: shared loads of this line, 1 request of one block"]
    assert (unknown["code"], unknown["line"]) == ("BC901", 12)
    assert "[compiled] the address depends on data" in unknown["message"], "data is unknown there too"


def test_an_access_that_is_clean_in_the_machine_code(tmp_path: Path) -> None:
    need_tools()
    report = document(tmp_path, GOOD, "--compiled")
    assert report["summary"] == {"files": 1, "clean": 3, "conflicting": 0, "not_analysed": 1}
    both = document(tmp_path, GOOD + BAD, "--compiled")
    assert [row["ways"] for row in both["accesses"] if row["line"] == 6] == [32, 1]


@pytest.mark.parametrize(
    ("instances", "reason"),
    [
        ("undeclared();", "[compiled] nvcc failed: "),
        ("", "[compiled] the machine code has no kernel 'column'"),
    ],
)
def test_what_cannot_be_compiled_stays_unknown_and_says_why(tmp_path: Path, instances: str, reason: str) -> None:
    need_tools()
    report = document(tmp_path, instances, "--compiled")
    (finding,) = [finding for finding in report["findings"] if finding["line"] == 6]
    assert finding["code"] == "BC901" and finding["wavefronts"] is None
    assert finding["message"].startswith("not analysed: ")
    assert reason in finding["message"] or "NVRTC" in finding["message"]
    assert report["summary"]["not_analysed"] == 2


def test_an_access_that_the_source_level_does_not_see(tmp_path: Path) -> None:
    need_tools()
    hidden = (
        "__global__ void columns(float* out) {\n  __shared__ float s[32 * 32];\n  float* held[2];\n"
        "  long long bits = (long long)s;\n  memcpy(&held[1], &bits, 8);\n"
        "  held[1][threadIdx.x * 32 + threadIdx.y] = 1;\n  __syncthreads();\n"
        "  out[threadIdx.x] = s[threadIdx.x];\n}\n"
        "void go(float* p) { columns<<<1, dim3(32, 4)>>>(p); }\n"
    )
    report = document(tmp_path, "", "--compiled", text=hidden)
    (conflict,) = [finding for finding in report["findings"] if finding["code"] == "BC101"]
    assert (conflict["line"], conflict["ways"]) == (6, 32)
    assert (conflict["wavefronts"], conflict["ideal"]) == (128, 4)
    assert report["summary"] == {"files": 1, "clean": 1, "conflicting": 1, "not_analysed": 1}


def test_selection_and_limits_apply(tmp_path: Path) -> None:
    need_tools()
    assert lint(tmp_path, BAD, "--compiled", "--min-excess", "32").returncode == 0
    assert lint(tmp_path, BAD, "--compiled", "--ignore", "BC101").returncode == 0


def test_lint_alone_loads_no_compiler(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(KERNELS)
    code = (
        "import sys; from bankcheck.cli import main\n"
        f"sys.argv = ['bankcheck', 'lint', {str(path)!r}]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in sys.modules if m == 'numpy' or m.startswith('bankcheck.compiled')])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.splitlines()[-1] == "[]"


# Without the tools

WITHOUT_NUMPY = """
import sys, threading
class NoNumpy:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "numpy":
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, NoNumpy())
from bankcheck.cli import main
main()
"""


@pytest.mark.parametrize("command", [["lint", "--compiled"], ["profile"]])
def test_without_numpy_one_line_says_what_to_install(tmp_path: Path, command: list[str]) -> None:
    need_tools()
    (tmp_path / "k.cu").write_text(KERNELS.replace("INSTANCES", BAD))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "BANKCHECK_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMPY, *command, "k.cu"], capture_output=True, text=True, timeout=120,
        cwd=tmp_path, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and not done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("bankcheck: error: ") and "numpy" in line and "pip install 'bankcheck[compile]'" in line


@pytest.mark.parametrize("command", [["lint", "--compiled"], ["profile", "--nvcc", "nvrtc", "--no-cache"]])
@pytest.mark.parametrize("missing", ["nvdisasm", "nvcc"])
def test_without_a_tool_one_line_says_what_to_install(
    tmp_path: Path,
    command: list[str],
    missing: str,
    bankcheck: Callable[..., Finished],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from bankcheck.compiled import compilers, toolchain

    (tmp_path / "k.cu").write_text(KERNELS.replace("INSTANCES", BAD))
    for module in (compilers, toolchain):
        if missing == "nvdisasm":
            need_tools()
        else:
            monkeypatch.setattr(module, "find_library", lambda name: None)
        monkeypatch.setattr(module, "find_tool", lambda name: None if name == missing else sys.executable)
    done = bankcheck(*command, str(tmp_path / "k.cu"))
    assert done.code == 2 and not done.out
    (line,) = done.err.splitlines()
    assert missing in line and "was not found" in line.replace("neither nvcc nor NVRTC was found", "was not found")
    assert "pip install 'bankcheck[compile]'" in line
