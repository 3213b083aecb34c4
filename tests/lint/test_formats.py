"""Every format on the same two hand-made findings; SARIF against its schema and, more strictly, the parts in use.

`pydantic_sarif` is generated from the OASIS file sarif-schema-2.1.0.json, and allows no properties that are not in it.
"""

from __future__ import annotations

import json

import click
import jsonschema
import pydantic
import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog

from bankcheck.lint.findings import AccessRow, FileResult, Finding, Label, Place, Summary, with_fingerprints
from bankcheck.report import lint_github, lint_json, lint_sarif, lint_text
from tests.lint.sarif_schema import SCHEMA

PLACE = Place("src/tile.cu", 6, 14, 6, 25)
DECLARED = Label(Place("src/tile.cu", 3, 20, 3, 32), "'tile' is declared here")
FINDINGS = with_fingerprints(
    [
        Finding("BC101", "warning", "32-way bank conflict: 100% of it", PLACE, "transpose", "assumed", "tile", {"i": 0},
                32, 1, 32, ("blocks of 256 threads",), (DECLARED,),
                "pad its rows: float tile[32][33]", "  out[i] = tile[x][y];\t// column"),
        Finding("BC401", "error", "this barrier, reached by\nsome: bad", Place("src/a,b:c.cu", 9, 5, 10, 2), "k",
                source_line="    __syncthreads();"),
    ]
)  # fmt: skip
ROWS = (
    AccessRow(
        PLACE, "tile", "load", "tile[x][y]", 4, "transpose", (32, 8, 1), {"i": 0}, 0, 32, 1, 32, "computed", "", ()
    ),
    AccessRow(
        PLACE, "tile", "load", "tile[a[x]]", 4, "transpose", (32, 8, 1), {}, None, None, None, None, None, "data", ()
    ),
)
RESULTS = [
    FileResult("src/tile.cu", tuple(FINDINGS), ROWS, Summary(3, 1, 1)),
    FileResult("src/broken.cu", failure="cannot be read"),
]


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("frames", [False, True])
def test_text(golden, everything: bool, frames: bool) -> None:
    name = f"lint/formats{'_all' * everything}{'_frames' * frames}.txt"
    golden(name, lint_text.render(RESULTS, everything=everything, frames=frames) + "\n")


def test_json(golden) -> None:
    text = lint_json.render(RESULTS, everything=True)
    golden("lint/formats.json", text + "\n")
    data = json.loads(text)
    assert data["schema"] == 1 and len(data["findings"]) == 2
    unknown = data["accesses"][1]
    assert unknown["wavefronts"] is unknown["excess"] is None and unknown["reason"] == "data"
    assert json.loads(lint_json.render(RESULTS, everything=False))["accesses"] == data["accesses"][:1]


def test_github_escapes_what_its_syntax_needs(golden) -> None:
    text = lint_github.render(RESULTS)
    golden("lint/formats.github", text + "\n")
    assert len(text.splitlines()) == 2
    assert "100%25" in text and "file=src/a%2Cb%3Ac.cu" in text
    assert "col=" not in text.splitlines()[0] or "endLine=6" in text.splitlines()[0]


def test_sarif(golden) -> None:
    text = lint_sarif.render(RESULTS)
    golden("lint/formats.sarif", text + "\n")
    jsonschema.validate(json.loads(text), SCHEMA)
    SarifLog.model_validate_json(text)


def test_sarif_paths_are_relative_and_fingerprints_differ() -> None:
    run = json.loads(lint_sarif.render(RESULTS))["runs"][0]
    uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]]
    assert all(not uri.startswith(("/", "file:")) for uri in uris)
    prints = [r["partialFingerprints"]["bankcheck/v1"] for r in run["results"]]
    assert len(set(prints)) == len(prints)
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in run["results"])


def test_the_schema_check_can_fail() -> None:
    data = json.loads(lint_sarif.render(RESULTS))
    data["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA)
    with pytest.raises(pydantic.ValidationError):
        SarifLog.model_validate(data)
    data = json.loads(lint_sarif.render(RESULTS))
    data["runs"][0]["results"][0]["unheardOf"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA)
    with pytest.raises(pydantic.ValidationError):
        SarifLog.model_validate(data)


def test_fingerprints_survive_edits_elsewhere_and_tell_twins_apart() -> None:
    one = Finding("BC101", "warning", "m", PLACE, source_line="a[i] + a[i];")
    twin = Finding("BC101", "warning", "m", Place("src/tile.cu", 6, 30, 6, 40), source_line="a[i] + a[i];")
    moved = Finding("BC101", "warning", "m", Place("src/tile.cu", 90, 14, 90, 25), source_line="   a[i] +   a[i];")
    first, second = (f.fingerprint for f in with_fingerprints([one, twin]))
    assert first != second
    assert with_fingerprints([moved])[0].fingerprint == first


def test_control_characters_do_not_reach_the_terminal() -> None:
    evil = Finding("BC101", "warning", "\x1b[2Jgone", Place("a\x1b]0;x\x07.cu", 1, 1, 1, 2), source_line="\x1b[31m")
    text = lint_text.render([FileResult("a.cu", (evil,))], everything=True, frames=True)
    assert "\x1b[2J" not in text and "\x1b]" not in text and "\x07" not in text


@pytest.mark.parametrize("column", [1, 2500, 4990])
@pytest.mark.parametrize("width", [10, 80, 200])
def test_a_long_line_is_cut_to_the_terminal_and_its_mark_stays_below_the_access(column: int, width: int) -> None:
    line = "x" * (column - 1) + "tile[a]" + "y" * (5000 - column - 6)
    finding = Finding("BC101", "warning", "m", Place("a.cu", 6, column, 6, column + 7), source_line=line)
    text = lint_text.render([FileResult("a.cu", (finding,))], everything=False, frames=True, width=width)
    shown, marks = click.unstyle(text).splitlines()[1:3]
    assert max(len(shown), len(marks)) <= max(width, 46)
    assert shown[marks.index("^") : marks.rindex("^") + 1] == "tile[a]"
    assert (shown[6:9] == "...") == (column > 100) and shown.endswith("...") == (column < 4900)


@pytest.mark.parametrize("width", [40, 80])
def test_a_line_that_fits_is_shown_whole(width: int) -> None:
    line = "  tile[a] = 0;"
    finding = Finding("BC101", "warning", "m", Place("a.cu", 6, 3, 6, 10), source_line=line)
    text = lint_text.render([FileResult("a.cu", (finding,))], everything=False, frames=True, width=width)
    assert click.unstyle(text).splitlines()[1:3] == [f"  6 | {line}", "    |   ^^^^^^^"]
