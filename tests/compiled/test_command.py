"""The command as a user sees it: reports, limits, comparisons, and what it says to bad input."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bankcheck.compiled.containers import decompress_lz4, device_images
from bankcheck.compiled.cubin import read_cubin
from bankcheck.compiled.files import profile_file
from bankcheck.compiled.inputs import Build
from bankcheck.compiled.launch import Options
from bankcheck.compiled.names import choose_kernels, normal_name, split_signature
from bankcheck.compiled.source import blank_host_code, read_source
from bankcheck.compiled.toolchain import find_library, find_tool
from bankcheck.errors import BankcheckError
from bankcheck.report import profile_text
from compiled.support import DATA, Built, need_tools, run_command, run_process

XOR = DATA / "kernels" / "xor-transpose.cu"


@pytest.fixture(scope="module")
def cubin(opcodes: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("command") / "opcodes.cubin"
    path.write_bytes(opcodes.data)
    return path


def test_source_to_report() -> None:
    found = run_process(str(XOR), "--block", "32,32", "--grid", "1", "--arg", "n=64")
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0].startswith("tx  sm_90  block 32,32,1  grid 1,1,1")
    assert lines[1].strip().startswith("assumed: pointers"), "assumptions come first"
    row = next(line for line in lines if "xor-transpose.cu:3" in line)
    assert "32-way" in row or "1-way" in row
    assert lines[-1].strip() == "4 of 4 memory instructions are counted exactly for this launch"


def test_what_rests_on_a_guess_is_not_called_exact() -> None:
    """Block and grid are given, and n is not: all counts of a kernel that reads it are assumed."""
    arguments = (str(XOR), "--block", "32,32", "--grid", "1")
    last = run_command(*arguments).stdout.splitlines()[-1].strip()
    assert last == "4 of 4 memory instructions are counted, under the assumptions listed"
    (kernel,) = json.loads(run_command(*arguments, "--format", "json").stdout)["kernels"]
    assert {row["status"] for row in kernel["instructions"]} == {"assumed"} and "parameter n" in kernel["assumptions"][
        0
    ]
    (kernel,) = json.loads(run_command(*arguments, "--arg", "n=64", "--format", "json").stdout)["kernels"]
    assert {row["status"] for row in kernel["instructions"]} == {"computed"}


@pytest.mark.parametrize("given", [("--grid", "1", "--arg", "2=64"), ("--block", "32", "--arch", "sm_80")])
def test_a_guessed_block_and_rules_of_another_architecture_are_assumed(given: tuple[str, ...]) -> None:
    found = run_command(str(XOR), *given, "--format", "json")
    (kernel,) = json.loads(found.stdout)["kernels"]
    assert {row["status"] for row in kernel["instructions"]} == {"assumed"}


def test_a_cached_answer_loads_little() -> None:
    need_tools()
    arguments = ["profile", str(XOR), "--block", "32,32", "--arg", "n=64"]
    heavy = ("numpy", "subprocess", "tempfile", "ctypes", "bankcheck.compiled.sass", "bankcheck.compiled.profile")
    code = (
        f"import sys; from bankcheck.cli import main\nsys.argv = ['bankcheck', *{arguments!r}]\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "4 of 4" in done.stdout and done.stdout.splitlines()[-1] == "[]"


def test_json_fields(cubin: Path) -> None:
    found = run_command(str(cubin), "--kernel", "generic_pointer", "--block", "64", "--arg", "1=1", "--format", "json")
    document = json.loads(found.stdout)
    (kernel,) = document["kernels"]
    assert kernel["assumptions"] and kernel["memory_instructions"] == kernel["memory_instructions_known"]
    names = "kernel pc sass source_file line execs shared_wavefronts shared_ideal global_sectors global_ideal status"
    for row in kernel["instructions"]:
        assert set(names.split()) <= set(row)


def test_unknown_is_null_in_json_and_said_in_text(cubin: Path) -> None:
    arguments = (str(cubin), "--kernel", "uniform_data", "--block", "32")
    rows = json.loads(run_command(*arguments, "--format", "json").stdout)["kernels"][0]["instructions"]
    (unknown,) = [row for row in rows if row["status"] == "unknown"]
    assert unknown["shared_wavefronts"] is None and "data" in unknown["reason"]
    text = run_command(*arguments).stdout
    assert "[unknown]" in text and "the address depends on data" in text and "totals leave out the 1 unknown" in text


def test_check(cubin: Path) -> None:
    arguments = (str(cubin), "--kernel", "generic_pointer", "--block", "64", "--arg", "1=1")
    assert run_command(*arguments, "--check", "excess<=2").returncode == 0
    failed = run_command(*arguments, "--check", "ways<=1")
    assert failed.returncode == 1 and "ways is 2, limit ways<=1" in failed.stderr
    undecided = run_command(str(cubin), "--kernel", "uniform_data", "--block", "32", "--check", "excess<=100")
    assert undecided.returncode == 1 and "is unknown" in undecided.stderr
    wrong = run_command(*arguments, "--check", "beauty<=3")
    assert wrong.returncode == 2 and "is not QUANTITY<=NUMBER" in wrong.stderr


def test_diff(tmp_path: Path) -> None:
    source = XOR.read_text()
    plain = tmp_path / "xor-transpose.cu"
    plain.write_text(source.replace("threadIdx.x ^ threadIdx.y", "threadIdx.y"))
    worse = run_command(str(plain), "--diff", str(XOR), "--block", "32,32", "--arg", "n=64")
    assert worse.returncode == 1 and "->" in worse.stdout
    better = run_command(str(XOR), "--diff", str(plain), "--block", "32,32", "--arg", "n=64")
    assert better.returncode == 0
    same = run_command(str(XOR), "--diff", str(XOR), "--block", "32,32", "--arg", "n=64")
    assert same.returncode == 0 and same.stdout.startswith("tx: no change\n  assumed: grid 1,1,1")


def test_a_line_that_moved_to_a_renamed_file_is_the_same_line(tmp_path: Path) -> None:
    old, new = tmp_path / "old.cu", tmp_path / "lib" / "renamed.cu"
    new.parent.mkdir()
    old.write_text(XOR.read_text())
    new.write_text("// moved\n\n" + XOR.read_text().replace("__global__", "\n__global__"))
    launch = ("--block", "32,32", "--arg", "n=64")
    same = run_command(str(new), "--diff", str(old), *launch)
    assert same.returncode == 0 and same.stdout.startswith("tx: no change\n  assumed: grid 1,1,1")
    new.write_text("// moved\n\n" + XOR.read_text().replace("threadIdx.x ^ threadIdx.y", "threadIdx.y"))
    worse = run_command(str(new), "--diff", str(old), *launch, "--format", "json")
    document = json.loads(worse.stdout)
    (kernel,) = document["kernels"]
    (change,) = kernel["changes"]
    assert worse.returncode == 1 and document["excess_grew"]
    assert (change["old"]["excess"], change["new"]["excess"]) == (0, 992), "one edited line, not one gone and one new"
    assert change["new"]["line"] == change["old"]["line"] + 2 and change["new"]["source_file"] == str(new)


def test_kernels_that_only_one_build_has_are_named(tmp_path: Path) -> None:
    kernel = (
        "__global__ void %s(float* p) { __shared__ float s[64]; s[threadIdx.x] = 1; __syncthreads(); *p = s[3]; }\n"
    )
    old, new = tmp_path / "old.cu", tmp_path / "new.cu"
    old.write_text(kernel % "kept" + kernel % "gone")
    new.write_text(kernel % "kept" + kernel % "come")
    arguments = (str(new), "--diff", str(old), "--block", "32")
    found = run_command(*arguments)
    lines = [line for line in found.stdout.splitlines() if "assumed" not in line]
    assert lines == ["kept: no change", "gone: only in the old build", "come: only in the new build"]
    new.write_text(kernel % "kept" + (kernel % "come").replace("s[threadIdx.x]", "s[threadIdx.x * 2]"))
    worse = run_command(*arguments)
    assert found.returncode == 0 and worse.returncode == 1, "a kernel that is renamed and worse is not missed"
    assert worse.stdout.splitlines()[-1] == "come: only in the new build, excess 1"


def test_paths_are_relative_and_no_checkout_sees_anothers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file in two checkouts: annotations name it as seen from where the command runs."""
    text = XOR.read_text().replace("threadIdx.x ^ threadIdx.y", "threadIdx.y")
    for checkout in ("one", "two"):
        folder = tmp_path / checkout / "src" / "a b"
        folder.mkdir(parents=True)
        (folder / "k.cu").write_text(text)
        monkeypatch.chdir(tmp_path / checkout)
        arguments = ("src/a b/k.cu", "--block", "32,32", "--arg", "n=64")
        assert run_command(*arguments, "--format", "github").stdout.startswith("::warning file=src/a b/k.cu,line=")
        sarif = json.loads(run_command(*arguments, "--format", "sarif").stdout)
        place = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        assert place == {"uri": "src/a%20b/k.cu", "uriBaseId": "%SRCROOT%"}
        rows = json.loads(run_command(*arguments, "--format", "json").stdout)["kernels"][0]["instructions"]
        assert {Path(row["source_file"]).resolve() for row in rows} == {(folder / "k.cu").resolve()}


def test_github_and_sarif(cubin: Path) -> None:
    arguments = (str(cubin), "--kernel", "generic_pointer", "--block", "64", "--arg", "1=1")
    assert run_command(*arguments, "--format", "github").stdout.startswith("::warning file=")
    sarif = json.loads(run_command(*arguments, "--format", "sarif").stdout)
    assert sarif["version"] == "2.1.0" and sarif["runs"][0]["results"][0]["ruleId"] == "bank-conflict"


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--kernel", "absent"), "no kernel matches 'absent'"),
        (("--kernel", "("), "no regular expression"),
        (("--block", "2000"), "a block of 2000,1,1 is too large: at most 1024,1024,64"),
        (("--block", "32,64"), "a block of 32,64,1 threads is too large: at most 1024 in all"),
        (("--block", "2,2,65"), "too large"),
        (("--block", "0"), "--block '0': every size is at least 1"),
        (("--grid", "65536,65536,3"), "a grid of 65536,65536,3 is too large: at most 2147483647,65535,65535"),
        (("--smem", "300000"), "--smem 300000 and 8,192 of the kernel's own is too large: a block has 232,448 bytes"),
        (("--arg", "1=0", "--arg", "choose=1"), "no such parameter"),
        (("--arg", "1=0", "--arg", "1=1"), "--arg '1=1': the parameter is given twice"),
        (("--arg", "1=5000000000"), "--arg '1=5000000000': int holds -2147483648 to 2147483647"),
        (("--check", "exces<=0"), "--check 'exces<=0' is not QUANTITY<=NUMBER"),
        (("--diff", "FILE", "--format", "sarif"), "--diff prints text or json, not sarif"),
        (("--block", "x"), "is not a shape"),
        (("--arg", "77=1"), "no such parameter"),
        (("--arg", "1=1e9"), "is not a 64-bit whole number"),
        (("--arch", "sm_80"), "has no code for sm_80 (it has: sm_90)"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(cubin: Path, extra: tuple[str, ...], message: str) -> None:
    extra = tuple(str(cubin) if word == "FILE" else word for word in extra)
    found = run_command(str(cubin), *([] if "--kernel" in extra else ["--kernel", "generic_pointer"]), *extra)
    assert found.returncode == 2 and message in found.stderr, found.stderr
    assert "Traceback" not in found.stderr and not found.stdout and found.stderr.count("\n") == 1


def test_the_largest_grid_is_no_error(cubin: Path) -> None:
    """2^63 blocks that do not look at their number: one is run."""
    found = run_command(str(cubin), "--kernel", "generic_pointer", "--block", "64", "--arg", "1=1",
                        "--grid", "2147483647,65535,65535", "--format", "json")  # fmt: skip
    (kernel,) = json.loads(found.stdout)["kernels"]
    assert found.returncode == 0 and kernel["totals"]["shared_wavefronts"] == 6 * 2147483647 * 65535**2


def test_nothing_known_is_not_called_no_change(tmp_path: Path) -> None:
    source = tmp_path / "endless.cu"
    source.write_text("__global__ void k() { __shared__ volatile int s[32]; while (true) s[threadIdx.x] = 1; }\n")
    found = run_command(str(source), "--diff", str(source), "--block", "32")
    assert found.stdout.startswith("k: no change; lines unknown in both builds: 1\n")


_TWO = """
__global__ void a(float* p, int n) { __shared__ float s[512]; s[threadIdx.x * n] = 1; __syncthreads(); *p = s[3]; }
__global__ void b(float* p, int m, int k) { __shared__ float s[512]; s[threadIdx.x * m + k] = 1; __syncthreads();
  *p = s[3]; }
template <int N> __global__ void t(float* p) { __shared__ float s[1024]; s[threadIdx.x * N] = 1; __syncthreads();
  *p = s[3]; }
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two") / "two.cu"
    path.write_text(_TWO)
    return path


def test_an_argument_is_for_the_kernels_that_have_it(two: Path) -> None:
    found = run_command(str(two), "--block", "32", "--arg", "n=4", "--arg", "m=8", "--arg", "2=1", "--format", "json")
    a, b = json.loads(found.stdout)["kernels"]
    stores = [next(row for row in kernel["instructions"] if row["sass"].startswith("STS")) for kernel in (a, b)]
    assert [row["ways"] for row in stores] == [4, 8]
    assert not any("parameter" in note for kernel in (a, b) for note in kernel["assumptions"])
    nowhere = run_command(str(two), "--block", "32", "--arg", "q=1")
    assert nowhere.returncode == 2 and "--arg 'q=1': no such parameter" in nowhere.stderr


def test_templates_without_an_instance_are_named(two: Path) -> None:
    arguments = (str(two), "--block", "32", "--arg", "1=1", "--arg", "2=1", "--check", "excess<=0")
    left_out = "template t is left out: no instance in the file (--kernel 't<...>')"
    undecided = run_command(*arguments)
    assert undecided.returncode == 1 and undecided.stderr == f"check not decided: {left_out}\n"
    allowed = run_command(*arguments, "--allow-unknown")
    assert allowed.returncode == 0 and allowed.stderr == f"{left_out}\n"
    asked = run_command(str(two), "--kernel", "t")
    assert asked.returncode == 2 and "with which arguments to compile t: --kernel 't<...>'" in asked.stderr
    wrong = run_command(str(two), "--kernel", "t<absent>")
    assert wrong.returncode == 2 and "absent" in wrong.stderr
    made = run_command(str(two), "--kernel", "t<2>", "--block", "32")
    assert made.returncode == 0 and made.stdout.startswith("t<2> ") and not made.stderr


def test_shared_memory_that_the_block_does_not_have(tmp_path: Path) -> None:
    """Not given, as much is assumed as a block can have; past what was given, or what there is, an access faults."""
    source = tmp_path / "dynamic.cu"
    source.write_text(
        "extern __shared__ float s[];\n"
        "__global__ void k(float* p, int n) { s[threadIdx.x * n] = 1; __syncthreads(); *p = s[3]; }\n"
    )

    def run(*arguments: str) -> tuple[list[str], dict[str, object]]:
        found = run_command(str(source), "--block", "32", "--format", "json", *arguments)
        (kernel,) = json.loads(found.stdout)["kernels"]
        return kernel["assumptions"], kernel["instructions"][0]

    notes, store = run("--arg", "n=33")
    assert store["shared_wavefronts"] == 1
    assert (
        f"{31 * 33 * 4 + 4:,} bytes of dynamic shared memory, because accesses reach so far: not given (--smem)"
        in notes
    )
    notes, store = run("--arg", "n=33", "--smem", "4096")
    assert (store["status"], store["shared_wavefronts"]) == ("computed", 1) and not any("dynamic" in n for n in notes)
    notes, store = run("--arg", "n=33", "--smem", "3968")
    assert store["status"] == "unknown" and store["reason"].endswith("3,968 bytes of shared memory: it would fault")
    notes, store = run("--arg", "n=100000")
    assert store["status"] == "unknown" and "232,448 bytes" in store["reason"]


def test_kernels_without_parameters_are_kernels(tmp_path: Path) -> None:
    source = tmp_path / "empty.cu"
    source.write_text("__global__ void empty() {}\n__global__ void other(int* p) { *p = 1; }\n")
    found = run_command(str(source), "--kernel", "^empty", "--block", "32")
    assert found.returncode == 0 and "no shared or global memory instruction" in found.stdout
    absent = run_command(str(source), "--kernel", "^emptied")
    assert absent.returncode == 2 and "the file has: empty, other" in absent.stderr


def test_damaged_files(cubin: Path, tmp_path: Path) -> None:
    data = cubin.read_bytes()
    for size in (0, 3, 64, 200, len(data) // 2, len(data) - 10):
        path = tmp_path / "cut.cubin"
        path.write_bytes(data[:size])
        found = run_command(str(path))
        assert (
            found.returncode == 2 and found.stderr.startswith("bankcheck: error: ") and "Traceback" not in found.stderr
        )
    (tmp_path / "notes.txt").write_text("not device code")
    found = run_command(str(tmp_path / "notes.txt"))
    assert found.returncode == 2 and "is no cubin, PTX, CUDA source or program with device code" in found.stderr


def test_every_byte_of_the_headers_may_be_wrong(opcodes: Built) -> None:
    """A cubin with damaged headers is refused, or read; it never raises anything but `BankcheckError`."""
    data = bytearray(opcodes.data)
    table = struct.unpack_from("<Q", data, 40)[0]
    for at in (*range(16, 64), *range(table, min(table + 640, len(data)), 3)):
        broken = bytearray(data)
        broken[at] ^= 0xFF
        try:
            read_cubin(bytes(broken))
        except BankcheckError as problem:
            assert "\n" not in problem.render()


def test_source_that_does_not_compile(tmp_path: Path) -> None:
    path = tmp_path / "bad.cu"
    path.write_text("__global__ void k(int* p) { p[0] = undeclared; }\n")
    found = run_command(str(path))
    assert found.returncode == 2 and "undeclared" in found.stderr and "Traceback" not in found.stderr


@pytest.mark.parametrize("name", ["a$(touch made).cu", "a`touch made`.cu", 'a"; touch made; ".cu'])
def test_a_file_name_is_no_command(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc passes names to a shell."""
    need_tools()
    if find_tool("nvcc") is None:
        pytest.skip("needs nvcc")
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(XOR.read_text())
    found = run_command(name)
    assert not Path("made").exists()
    assert found.returncode == 2 and "to a shell: not compiled" in found.stderr and found.stderr.count("\n") == 1


def test_a_file_name_is_no_option_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-x.cu").write_text(XOR.read_text())
    assert run_command("--block", "32,32", "--", "-x.cu").stdout.startswith("tx ")


def test_ptx(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n.reqntid 64,1,1\n{\n"
        ".shared .align 4 .b8 s[8192];\n.reg .u32 %r<4>;\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 4;\nmov.u32 %r3, s;\n"
        "add.u32 %r2, %r2, %r3;\nst.volatile.shared.u32 [%r2], %r1;\nret;\n}\n"
    )
    found = run_command(str(path), "--check", "ways<=3")
    assert found.returncode == 1 and "ways is 4" in found.stderr, found.stderr
    assert "sm_80 follows the rules measured on sm_90" in found.stdout and "block 64,1,1" in found.stdout


def test_fat_binaries(opcodes: Built) -> None:
    """Uncompressed entries are found wherever the fat binary is; LZ4 blocks are unpacked; damage is an error."""
    body = opcodes.data + bytes(-len(opcodes.data) % 8)
    entry = struct.pack("<HHIQ", 2, 0x101, 64, len(body)) + bytes(48)
    fat = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(body)) + entry + body
    images = device_images(b"\x7fELF host code" + fat + b"more")
    assert [image[: len(opcodes.data)] for image in images] == [opcodes.data]
    assert decompress_lz4(bytes([0x45, 97, 98, 99, 100, 4, 0, 0x10, 33]), 14) == b"abcdabcdabcda!"
    with pytest.raises(BankcheckError):
        decompress_lz4(bytes([0x0F, 1, 0]), 100)


def test_kernel_names() -> None:
    assert split_signature("void ns::k<int, (2)>(int const*, float)") == ("ns::k<int, (2)>", ("int const*", "float"))
    assert normal_name("void k<(int)3, (bool)1>(const T1 *)") == normal_name("void k<3, true>(int const*)") == "k<3,1>"
    names = ["_Z1kILi1EEvPf", "_Z1kILi2EEvPf", "plain"]
    assert choose_kernels("plain", names) == ["plain"]
    assert choose_kernels("k<2>", names) in (["_Z1kILi2EEvPf"],)
    assert choose_kernels("k", names) == names[:2]
    assert choose_kernels(None, names) == sorted(names)


def test_source_scan() -> None:
    text = """
    template <int N> __global__ void __launch_bounds__(N) k(const float* from, /* size, */ int n = 3) { }
    __global__ void plain(float (*x)[3]) {}
    int main() { k<128><<<1, 128>>>(p, 4); k < 64 ><<<1, 64>>>(p, 4); }
    """
    facts = read_source(text)
    assert facts.parameters["k"] == ("from", "n") and facts.instances["k"] == ("k<128>", "k< 64 >")
    assert facts.templates == {"k"} and facts.shapes["k"] == ("1", "128")
    other = read_source("__global__ void f(int n) {}\nvoid g() { dim3 block(32, 8); f<<<dim3(4, 2), block>>>(3); }")
    assert other.shapes == {"f": ("4,2", "32,8")}
    blanked = blank_host_code(text)
    assert "main" not in blanked and "__global__ void plain" in blanked and blanked.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text", [f"k{' ' * 60_000}__global__", "x" * 60_000, f"__global__ void k(int a{' ' * 19_000}b;)"]
)
def test_long_runs_of_one_character_are_read_at_once(text: str) -> None:
    """Minutes before, if blanks or letters are tried from each of them on."""
    started = time.process_time()
    read_source(text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(("kernel", "ways"), [("swizzled", 1), ("plain", 8)])
def test_library_code_is_shown_at_the_users_line(kernel: str, ways: int) -> None:
    """The access is in a header's template; the report names the line of the file that uses it, and the way there."""
    source = DATA / "swizzled.cu"
    found = run_command(str(source), "--kernel", kernel, "--block", "64", "--format", "json")
    rows = json.loads(found.stdout)["kernels"][0]["instructions"]
    (store,) = [row for row in rows if row["sass"].startswith("STS.128")]
    text = source.read_text().splitlines()
    assert store["ways"] == ways and store["status"] == "computed"
    assert Path(store["source_file"]).name == "swizzled.cu" and "tile.store" in text[store["line"] - 1]
    assert Path(store["inlined"][0]["file"]).name == "tile.hpp" and "fill<" in text[store["inlined"][-1]["line"] - 1]


def test_the_library_can_be_asked_for() -> None:
    need_tools()
    if find_tool("nvcc") is None or find_library("nvrtc") is None:
        pytest.skip("needs nvcc and NVRTC")
    arguments = (str(XOR), "--block", "32,32", "--arg", "n=64", "--format", "json")
    one, other = (json.loads(run_command(*arguments, *extra).stdout) for extra in ((), ("--nvcc", "nvrtc")))
    totals = [document["kernels"][0]["totals"] for document in (one, other)]
    assert totals[0] == totals[1] and totals[0]["shared_wavefronts"] == 64


def test_a_sampled_grid_is_not_called_exact_and_decides_no_check(tmp_path: Path) -> None:
    """Block 37 of 100 conflicts; four blocks of ten thousand do not show it, so nothing is claimed for the grid."""
    source = tmp_path / "rare.cu"
    source.write_text(
        """__global__ void rare(float* out) {
  __shared__ volatile float s[2048];
  int stride = blockIdx.x % 100 == 37 ? 32 : 1;
  s[threadIdx.x * stride] = 1;
  out[blockIdx.x] = s[0];
}
"""
    )
    found = run_command(str(source), "--block", "32", "--grid", "10000", "--check", "excess<=0")
    assert found.returncode == 1 and "check not decided" in found.stderr and "exactly" not in found.stdout
    whole = run_command(str(source), "--block", "32", "--grid", "100", "--check", "excess<=0")
    assert whole.returncode == 1 and "check failed" in whole.stderr


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_cp_async_is_counted_on_every_architecture(arch: str, tmp_path: Path) -> None:
    """sm_90 writes the global address as desc[UR][R]: the shared side must not be lost to it."""
    source = tmp_path / "fill.cu"
    source.write_text(
        """__global__ void fill(const float4* in) {
  __shared__ float4 s[32 * 9];
  unsigned to = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x * 9]);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + threadIdx.x));
  asm volatile("cp.async.wait_all;");
}
"""
    )
    found = run_command(str(source), "--block", "32", "--arch", arch, "--format", "json", "--no-cache")
    (row,) = [row for row in json.loads(found.stdout)["kernels"][0]["instructions"] if "LDGSTS" in row["sass"]]
    assert (row["status"], row["shared_wavefronts"], row["global_sectors"]) != ("unknown", None, None)
    # Rows of 144 bytes: the halves of a 32-byte sector go to two sectors of shared memory, and each way is counted.
    assert row["shared_wavefronts"] == 4 and row["global_sectors"] == 32


def test_a_narrow_terminal_gets_two_lines_a_row(two: Path) -> None:
    profiles = profile_file(str(two), Build(kernel="a"), Options("32", "1", ("n=4",)))
    source = two.read_text().splitlines()
    row = profile_text.text(profiles, {str(two): source}, sass=False, color=False, width=60).splitlines()
    place = next(at for at, line in enumerate(row) if line.startswith("  two.cu:2  __global__ void a(float* p"))
    assert len(row[place]) == 60 and row[place].endswith("...")
    assert row[place + 1].split()[:4] == ["3", "5", "2", "3"] and len(row[place + 1]) <= 60
    wide = profile_text.text(profiles, {str(two): source}, sass=False, color=False, width=120)
    assert any("two.cu:2" in line and "4-way" in line and "__global__" in line for line in wide.splitlines())


def test_a_binary_cannot_put_any_file_into_a_report(tmp_path: Path) -> None:
    from bankcheck.commands.profile import _sources
    from bankcheck.compiled.results import InstructionProfile, KernelProfile

    names = [tmp_path / "kernel.cu", tmp_path / "secret", tmp_path / "key.pem"]
    for name in names:
        name.write_text("text")
    rows = tuple(
        InstructionProfile(
            0, "LDS R0, [R1]", "shared", str(name), 1, (), 1, 1, 32, 1, 1, None, 1, None, None, "computed", ""
        )
        for name in names
    )
    profile = KernelProfile("k", "k", "sm_90", (32, 1, 1), (1, 1, 1), 1, 1, (), rows)
    assert list(_sources([profile], str(tmp_path / "kernel.cu"))) == [str(tmp_path / "kernel.cu")]


def test_a_line_that_goes_on_into_the_next_kernel_is_known(tmp_path: Path) -> None:
    """nvdisasm prints a place only where it changes: of two kernels on one line, the second one gets none."""
    need_tools()
    body = "{ __shared__ float s[32]; s[threadIdx.x] = o[0]; __syncthreads(); o[threadIdx.x] = s[31 - threadIdx.x]; }"
    source = tmp_path / "pair.cu"
    source.write_text(f"\n__global__ void p(float* o) {body} __global__ void q(float* o) {body}\n")
    for arch in ("sm_80", "sm_90"):
        found = profile_file(str(source), Build(arch), Options("32", "1"))
        assert [{record.line for record in profile.instructions} for profile in found] == [{2}, {2}]
