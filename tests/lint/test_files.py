"""Which files are read, what they are called in every format, and what is said of those that hold no source."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from conftest import ROOT, Finished
from hypothesis import given
from hypothesis import strategies as st

from bankcheck.commands.explain import example
from bankcheck.filenames import name_bytes, shown_name
from bankcheck.lint.config import Config
from bankcheck.lint.files import Input, find_files
from bankcheck.lint.run import check_one, with_headers

BAD = example("BC101_bad.cu")
FORMATS = ("text", "json", "github", "sarif")
posix = pytest.mark.skipif(sys.platform == "win32", reason="names are text there, and links need rights")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def lint(*arguments: str, encoding: str = "utf-8:strict") -> Finished:
    """Run lint in a process whose standard output takes only what its encoding has."""
    done = subprocess.run(
        [sys.executable, "-m", "bankcheck", "lint", *arguments], capture_output=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )  # fmt: skip
    return Finished(done.returncode, done.stdout.decode(encoding.partition(":")[0]), done.stderr.decode())


NO_SOURCES = {
    "NUL": b"__global__ void k() {}\0",
    "UTF-16": BAD.encode("utf-16"),
    "compressed": bytes(range(1, 256)),
    "high bytes": bytes(range(128, 256)) * 3,
    "control characters": b"__shared__ \x01\x02\x03",
    "another encoding": "\N{CYRILLIC SMALL LETTER A}".encode("utf-8")[1:] * 50,
}


@pytest.mark.parametrize("name", NO_SOURCES)
def test_what_is_no_text_is_not_clean_and_stops_nothing(name: str) -> None:
    Path("a.cu").write_bytes(NO_SOURCES[name])
    Path("b.cu").write_text(BAD)
    done = lint(".")
    assert done.code == 2 and "a.cu: is no source text" in done.err and "b.cu:6" in done.out
    done = lint("a.cu", "--format", "json")
    (failure,) = json.loads(done.out)["failures"]
    assert failure["path"] == "a.cu" and "not analysed" in failure["message"]


@given(st.binary(min_size=400))
def test_no_random_bytes_are_clean(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        noise = bytes(byte for byte in data if byte != 10) + bytes(range(1, 32))
        assert check_one(Input("k.cu", noise), Config(), ()).failure


@pytest.mark.parametrize("encoding", ["latin-1", "gb2312", "shift-jis", "utf-8-sig"])
def test_comments_in_another_encoding_are_no_hindrance(encoding: str) -> None:
    comment = "\N{LATIN SMALL LETTER E WITH ACUTE}" if encoding == "latin-1" else "\N{CJK UNIFIED IDEOGRAPH-4E2D}"
    text = f"// {comment * 300}\n{BAD}".encode(encoding)
    result = check_one(Input("k.cu", text), Config(), ())
    assert not result.failure and [f.code for f in result.findings] == ["BC101"]


def test_another_language_with_the_words_of_cuda_is_not_parsed() -> None:
    text = "lorem ipsum ) dolor ( sit amet } " * 300 + "__shared__ is a word { of CUDA"
    result = check_one(Input("k.cu", text.encode()), Config(), ())
    assert [f.code for f in result.findings] == ["BC902"]


# Names


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name))
def test_every_name_can_be_shown_and_had_back(name: bytes) -> None:
    shown = shown_name(os.fsdecode(name))
    assert name_bytes(shown) == name or os.sep == "\\"
    assert shown.isprintable()


ODD = (
    b"odd\xff.cu",
    b"two\nlines.cu",
    b"back\\slash.cu",
    b"\\xff.cu",
    b"100%.cu",
    b"\xe2\x80\xae.cu",
    b"caf\xc3\xa9.cu",
    b"\xe4\xb8\xad.cu",
)


@posix
@pytest.mark.parametrize("name", ODD, ids=repr)
@pytest.mark.parametrize("encoding", ["utf-8:strict", "cp1252:strict"])
def test_every_format_has_one_name_for_a_file(name: bytes, encoding: str) -> None:
    try:
        Path(os.fsdecode(name)).write_text(BAD)
    except OSError:
        pytest.skip("the file system takes no such names")
    shown = shown_name(os.fsdecode(name))
    printed = shown.encode(encoding.partition(":")[0], "backslashreplace").decode(encoding.partition(":")[0])
    for output in FORMATS:
        done = lint(".", "--format", output, encoding=encoding)
        assert done.code == 1 and not done.err, done.err
        if output == "text":
            assert done.out.startswith(printed + ":6:")
        elif output == "json":
            assert {f["path"] for f in json.loads(done.out)["findings"]} == {shown}
        elif output == "github":
            assert f"file={printed.replace('%', '%25')}," in done.out
        else:
            (result,) = json.loads(done.out)["runs"][0]["results"]
            uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            assert uri.isascii() and unquote_to_bytes(uri) == name
    page, baseline = Path("page.html"), Path("known.json")
    assert lint(".", "--html", str(page)).code == 1 and page.stat().st_size
    assert lint(".", "--write-baseline", str(baseline)).code == 0
    assert lint(".", "--baseline", str(baseline)).code == 0


@posix
def test_a_name_that_is_not_there_is_shown_the_same_way() -> None:
    done = lint(os.fsdecode(b"none\xff.cu"))
    assert done.code == 2 and done.err == "bankcheck: error: none\\xff.cu: no such file or directory\n"


# Links


@posix
def test_a_link_has_the_name_under_which_it_was_found(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "real.cu").write_text(BAD)
    (elsewhere / "folder").mkdir()
    (elsewhere / "folder/inner.cu").write_text(BAD)
    Path("link.cu").symlink_to(elsewhere / "real.cu")
    Path("near.cu").write_text(BAD)
    Path("twin.cu").symlink_to("near.cu")
    Path("folder").symlink_to(elsewhere / "folder")
    lines = lint(".").out.splitlines()
    assert [line.split(":")[0] for line in lines if "BC101" in line] == ["link.cu", "near.cu", "twin.cu"]
    assert lint("folder/inner.cu").out.startswith("folder/inner.cu:6")
    assert lint("folder").out.startswith("folder/inner.cu:6")
    assert lint("folder/../real.cu").out.startswith("folder/../real.cu:6"), "not ./real.cu, which is not there"


@posix
def test_the_working_directory_may_be_reached_through_a_link(tmp_path: Path) -> None:
    Path("k.cu").write_text(BAD)
    (tmp_path / "way").symlink_to(Path.cwd())
    assert lint(str(tmp_path / "way/k.cu")).out.startswith("k.cu:6")


@posix
def test_headers_are_looked_for_beside_the_link(tmp_path: Path) -> None:
    """As compilers do."""
    (tmp_path / "k.cu").write_text('#include "size.h"\n' + BAD.replace("[32][32]", "[32][WIDTH]"))
    (tmp_path / "size.h").write_text("#define WIDTH 33\n")
    Path("size.h").write_text("#define WIDTH 32\n")
    Path("k.cu").symlink_to("../k.cu")
    assert lint("k.cu").code == 1 and lint("../k.cu").code == 0


@posix
@pytest.mark.parametrize("target", ["gone.cu", "here.cu", "../project/here.cu", "two.cu", "gone/gone.cu"])
def test_a_link_that_leads_nowhere_is_told_and_stops_nothing(target: str) -> None:
    Path("good.cu").write_text(example("BC101_good.cu"))
    Path("here.cu").symlink_to(target)
    if target == "two.cu":
        Path(target).symlink_to("here.cu")
    done = lint(".")
    assert (done.code, done.err) == (0, "")
    line = next(line for line in done.out.splitlines() if line.startswith("here.cu"))
    assert line.startswith(f"here.cu:1:1 BC902 this is a link to '{target}': ") and line.endswith(
        ": not analysed [note]"
    )
    Path("bad.cu").write_text(BAD)
    assert lint(".").code == 1 and "bad.cu:6" in lint(".", "--jobs", "2").out
    assert "here.cu" not in lint(".", "--ignore", "BC902").out
    done = lint("here.cu")
    assert done.code == 2 and done.err.startswith(f"bankcheck: error: here.cu: a link to '{target}': ")


@posix
def test_links_from_folder_to_folder_come_to_an_end() -> None:
    Path("a/b").mkdir(parents=True)
    Path("a/b/k.cu").write_text(BAD)
    Path("a/b/up").symlink_to("..")
    Path("a/round").symlink_to("round")
    assert lint(".").out.count("BC101") == 1
    assert lint("a/b/up/b/k.cu").out.startswith("a/b/up/b/k.cu:6")
    assert lint("a/round/k.cu").code == 2


def make_pipe(path: Path) -> str:
    os.mkfifo(path)
    return "a pipe"


def make_socket(path: Path) -> str:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    return "a socket"


def make_device(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return "a device"


def make_link_to_pipe(path: Path) -> str:
    path.with_suffix(".pipe").exists() or os.mkfifo(path.with_suffix(".pipe"))
    path.symlink_to(path.with_suffix(".pipe").name)
    return "a pipe"


def make_loop(path: Path) -> str:
    path.symlink_to(path.name)
    return f"a link to '{path.name}': {os.strerror(errno.ELOOP)}"


@posix
@pytest.mark.parametrize("make", [make_pipe, make_socket, make_device, make_link_to_pipe, make_loop])
def test_only_regular_files_are_read_and_what_else_there_is_is_told(make: Callable[[Path], str]) -> None:
    what = make(Path("odd.cu"))
    Path("bad.cu").write_text(BAD)
    done = lint(".")
    assert (done.code, done.err) == (1, "")
    assert "bad.cu:6" in done.out and f"odd.cu:1:1 BC902 this is {what}: not analysed" in done.out
    done = lint("odd.cu", "bad.cu")
    assert done.code == 2 and "bad.cu:6" in done.out
    assert f"bankcheck: error: odd.cu: {'is ' if make is not make_loop else ''}{what}" in done.err
    os.rename("odd.cu", "odd.h")
    Path("bad.cu").write_text('#include "odd.h"\n' + BAD)
    assert lint("bad.cu").out.startswith("bad.cu:7")


def test_what_is_not_there_is_an_error_that_stops_nothing() -> None:
    Path("bad.cu").write_text(BAD)
    done = lint("nowhere.cu", "bad.cu", "nothing")
    assert done.code == 2 and done.out.startswith("bad.cu:6")
    assert done.err.splitlines() == [
        "bankcheck: error: nowhere.cu: no such file or directory",
        "bankcheck: error: nothing: no such file or directory",
    ]


def test_a_file_is_checked_once_however_it_is_spelled() -> None:
    Path("sub").mkdir()
    Path("sub/bad.cu").write_text(BAD)
    ways = ["sub/bad.cu", "./sub/bad.cu", "sub/../sub/bad.cu", str(Path("sub/bad.cu").resolve()), ".", "sub", "sub/."]
    for first in ways:
        done = lint(first, *ways)
        assert "1 finding in 1 file;" in done.out and done.out.startswith("sub/bad.cu:6")


def test_paths_that_give_no_file_are_told() -> None:
    Path("empty").mkdir()
    Path("sub").mkdir()
    Path("sub/bad.cu").write_text(BAD)
    assert lint("empty").err == "bankcheck: empty: no .cu or .cuh files in it\n"
    Path("bankcheck.toml").write_text('exclude = ["bad.cu"]\n')
    for path, what in (("sub/bad.cu", "is"), ("sub", "all CUDA files in it are")):
        done = lint(path)
        assert done.code == 0 and done.err.startswith(f"bankcheck: {path}: {what} excluded by ")
        assert done.err.endswith("bankcheck.toml\n")
    Path("sub/good.cu").write_text(example("BC101_good.cu"))
    assert lint("sub").err == ""


def test_a_folder_that_cannot_be_looked_into_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("open").mkdir()
    Path("open/k.cu").write_text(BAD)
    Path("shut").mkdir()
    scandir = os.scandir

    def guarded(path: str) -> object:
        if path.endswith("shut"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    results = [check_one(item, Config(), ()) for item in find_files(["."], Config()).inputs]
    assert [(result.path, result.failure) for result in results] == [
        ("shut", "cannot be looked into: Permission denied"), ("open/k.cu", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "unit", ["__global__ ", "__global__ k(", "k<<<", "a<", '#include "a.h"\n', "<<< >", "(" * 9 + "k "]
)
def test_what_looks_like_many_kernels_or_launches_is_looked_through_once(unit: str) -> None:
    Path("a.h").write_text(unit * 1000)
    item = Input("k.cu", (unit * (300_000 // len(unit))).encode())
    start = time.process_time()
    with_headers([item, Input("other.cu", b"void f() { k<<<1, 2>>>(); }")], Config())
    assert time.process_time() - start < 3
