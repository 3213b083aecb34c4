"""What a CUDA source file says that its machine code does not: parameter names, and how kernels are launched."""

from __future__ import annotations

import re
from typing import NamedTuple

from bankcheck.compiled.host_numbers import HostConstants
from bankcheck.compiled.names import normal_name, split_commas

_KERNEL = re.compile(r"__global__\b")
_NAME_BEFORE_PARAMETERS = re.compile(r"([A-Za-z_]\w*)\s*$")
# Possessive quantifiers and the look-behind keep these linear in a hostile file.
_LAUNCH = re.compile(r"(?<![\w:])([A-Za-z_][\w:]*+)\s*+(<[^;{}]{0,300}?>)?\s*+<<<\s*([^;]{0,600}?)>>>\s*\(", re.S)
_LAST_WORD = re.compile(r"(?<!\w)([A-Za-z_]\w*+)\s*+(?:\[[^\]]*\])?\s*+(?:=.*)?$", re.S)


class SourceFacts(NamedTuple):
    """Kernel name -> parameter names; kernel name -> template instances that the file launches."""

    parameters: dict[str, tuple[str, ...]]
    instances: dict[str, tuple[str, ...]]
    templates: frozenset[str]
    shapes: dict[str, tuple[str, str]]
    """Kernel name, also with template arguments -> (grid, block) of its first launch, as "32,8".

    A size is empty where constants do not give it.
    """


NO_SOURCE = SourceFacts({}, {}, frozenset(), {})


def without_comments(text: str) -> str:
    """The source with comments and strings blanked out, every character in its place."""
    pattern = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def read_source(text: str) -> SourceFacts:
    """Scan a source file; what cannot be read is left out, never an error."""
    plain = without_comments(text)
    parameters: dict[str, tuple[str, ...]] = {}
    templates = set()
    for mark in _KERNEL.finditer(plain):
        found = _parameter_list(plain, mark.end())
        if found is None:
            continue
        name, inside = found
        words = [_LAST_WORD.search(part) for part in split_commas(inside)]
        parameters[name] = tuple(word[1] if word else "" for word in words)
        before = plain[max(0, mark.start() - 400) : mark.start()]
        if re.search(r"template\s*<[^;{}]*>\s*(?:static\s+|inline\s+|extern\s+)*$", before):
            templates.add(name)
    instances: dict[str, list[str]] = {}
    shapes: dict[str, tuple[str, str]] = {}
    items = top_level_items(plain) if "<<<" in plain else []
    for launch in _LAUNCH.finditer(plain):
        configuration = split_commas(launch[3])
        kernel = launch[1].split("::")[-1]
        if kernel in parameters and len(configuration) >= 2:
            function = max((start for start, end in items if start <= launch.start() < end), default=0)
            known = HostConstants(plain[: launch.start()], function)
            shape = known.shape(configuration[0]), known.shape(configuration[1])
            shapes.setdefault(kernel, shape)
            if launch[2]:
                shapes.setdefault(normal_name(kernel + launch[2]), shape)
        if launch[2] and launch[1] in parameters:
            instances.setdefault(launch[1], []).append(re.sub(r"\s+", " ", launch[1] + launch[2]))
    unique = {name: tuple(dict.fromkeys(found)) for name, found in instances.items()}
    return SourceFacts(parameters, unique, frozenset(templates), shapes)


def _parameter_list(text: str, start: int) -> tuple[str, str] | None:
    """The name and the text between the parentheses of the function that begins at `start`."""
    at = start
    for _ in range(6):
        opening = text.find("(", at)
        if opening < 0 or opening - at > 2000:
            return None
        depth, end = 0, opening
        while end < len(text) and end - opening < 20_000:
            depth += (text[end] == "(") - (text[end] == ")")
            if depth == 0:
                break
            end += 1
        name = _NAME_BEFORE_PARAMETERS.search(text[at:opening])
        if name is None:
            return None
        if name[1] not in ("__launch_bounds__", "__cluster_dims__", "__attribute__", "__align__", "__maxnreg__"):
            return name[1], text[opening + 1 : end]
        at = end + 1
    return None


_ITEM_ENDS = re.compile(r"[;{}]")


def top_level_items(plain: str) -> list[tuple[int, int]]:
    """(start, end) of every top-level declaration or definition of a source without comments; directives are skipped.

    Namespaces and `extern "C"` blocks are entered, so that one bad function does not take its namespace with it.
    """
    blanked = re.sub(r"^[ \t]*#(?:[^\n\\]|\\[^\n]|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m[0]), plain, flags=re.M)
    items = []
    start = at = 0
    while found := _ITEM_ENDS.search(blanked, at):
        at = found.end()
        if found[0] == "{":
            head = blanked[start : found.start()]
            if re.search(r"\b(namespace(\s+[\w:]+)?|extern)\s*$", head.rstrip()):
                start = at
                continue
            at = _closing(blanked, found.start())
            tail = re.compile(r"\s*;").match(blanked, at)
            outside = re.sub(r"\([^()]*\)", "", head)
            if (re.search(r"\b(struct|class|union|enum)\b", head) and "(" not in head) or "=" in outside:
                at = blanked.find(";", at) + 1 or len(blanked)
            elif tail:
                at = tail.end()
        elif found[0] == "}":
            start = at
            continue
        items.append((start, at))
        start = at
    return items


def _closing(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)


def blank(text: str, start: int, end: int) -> str:
    """`text` with a range replaced by blanks, line breaks kept."""
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


_DEVICE = re.compile(r"\b(__global__|__device__|__constant__|__shared__|__managed__)\b")
_FUNCTION = re.compile(r"\)\s*(const|noexcept|->[^{]*)?\s*$")


def blank_host_code(text: str) -> str:
    """The source without functions that only the host can run: those with a body and no device qualifier.

    `constexpr` functions and function templates stay: device code may call them.
    """
    plain = without_comments(text)
    for start, end in top_level_items(plain):
        item = plain[start:end]
        body = item.find("{")
        head = item[:body] if body >= 0 else item
        is_function = body >= 0 and _FUNCTION.search(head) and not re.search(r"\b(struct|class|union|enum)\b", head)
        if is_function and not _DEVICE.search(head) and not re.search(r"\b(constexpr|template|operator)\b", head):
            text = blank(text, start, end)
    return text
