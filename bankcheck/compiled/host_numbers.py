"""Whole numbers that host code writes with names: `dim3(TILE, 2 * ROWS)`, where macros and constants give them."""

from __future__ import annotations

import ast
import re

_MAX_TEXT = 200
_MAX_NAMES = 16
_MAX_VALUE = 1 << 40
_TYPES = r"(?:int|unsigned|long|short|size_t|auto|u?int(?:8|16|32|64)_t|dim3)"
_NAME = re.compile(r"[A-Za-z_]\w*")


class HostConstants:
    """What is known of names at one place of a source without comments: the text before it, and its function's part."""

    def __init__(self, before: str, function_start: int) -> None:
        self._before = before
        self._function = before[function_start:]

    def shape(self, text: str) -> str:
        """`128`, `dim3(TILE, 8)` or the name of a `dim3` variable, as "32,8"; empty where a number is not known."""
        text = text.strip()
        if _NAME.fullmatch(text) and (written := self._dim3(text)) is not None:
            text = written
        inside = re.fullmatch(r"dim3\s*[({](.*)[)}]", text, re.S)
        values = [self.number(part) for part in _parts(inside[1] if inside else text)]
        if not 1 <= len(values) <= 3 or (len(values) > 1 and not inside):
            return ""
        return ",".join(map(str, values)) if all(value is not None and value > 0 for value in values) else ""

    def number(self, text: str) -> int | None:
        """The value of an integer expression over numbers, macros and constants, or None."""
        for _ in range(_MAX_NAMES):
            name = next(iter(_names(text)), None)
            if name is None:
                return _value(text)
            written = self._definition(name)
            if written is None:
                return None
            text = f"({written})".join(re.split(rf"\b{name}\b", text))
            if len(text) > _MAX_TEXT:
                return None
        return None

    def _dim3(self, name: str) -> str | None:
        """The initialiser of a `dim3` variable of this function that nothing changes later."""
        pattern = rf"\bdim3\s+(?:const\s+)?{name}\s*(?:=\s*(?:dim3\s*)?)?([({{][^;]{{0,{_MAX_TEXT}}}?[)}}])\s*;"
        found = re.findall(pattern, self._function)
        set_later = re.search(rf"(?<!dim3)(?<!const)\s{name}\s*=(?!=)", self._function)
        if len(found) != 1 or set_later or self._changes(rf"{name}\s*\.\s*[xyz]"):
            return None
        return f"dim3{found[0]}"

    def _changes(self, target: str) -> int:
        """How often the function assigns to `target`, its declaration included."""
        step = r"(?:\+\+|--)"
        assigned = rf"\b{target}\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)"
        return len(re.findall(rf"{assigned}|{step}\s*{target}\b|\b{target}\s*{step}", self._function))

    def _definition(self, name: str) -> str | None:
        """What a macro, a constant or a variable that is set once stands for."""
        macros = re.findall(rf"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+(.+)$", self._before, re.M)
        if macros:
            return str(macros[0]).strip() if len({text.strip() for text in macros}) == 1 else None
        declared = len(re.findall(rf"\b{_TYPES}\b[\s&]+(?:const\s+)?{name}\b", self._function))
        place = self._function if declared else self._before
        constant = "" if declared else r"\b(?:const|constexpr)\s[\w\s]*?"
        found = re.findall(rf"{constant}\b{_TYPES}\s+(?:const\s+)?{name}\s*=\s*([^;,{{}}]+);", place)
        if len(found) != 1 or declared > 1 or (declared and self._changes(name) != 1):
            return None
        return str(found[0]).strip()


def _parts(text: str) -> list[str]:
    """Cut at the commas outside parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _names(text: str) -> list[str]:
    """The names in an expression; the suffix of a number is none."""
    return re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)


def _value(text: str) -> int | None:
    """The value of a C expression of decimal and hexadecimal numbers."""
    text = re.sub(r"\b(0[xX][\da-fA-F]+|\d+)[uUlL]*\b", r"\1", text.strip())
    if len(text) > _MAX_TEXT or not re.fullmatch(r"[\dxXa-fA-F\s()+*/%<>-]+", text):
        return None
    try:
        return _evaluated(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _evaluated(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and node.value < _MAX_VALUE else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _evaluated(node.left), _evaluated(node.right)
    if left is None or right is None or left < 0 or right < 0:
        return None  # C and Python divide negative numbers differently: a launch has none
    match node.op:
        case ast.Add():
            value = left + right
        case ast.Sub():
            value = left - right
        case ast.Mult():
            value = left * right
        case ast.Div() if right:
            value = left // right
        case ast.Mod() if right:
            value = left % right
        case ast.LShift() if right < 40:
            value = left << right
        case ast.RShift() if right < 40:
            value = left >> right
        case _:
            return None
    return value if abs(value) < _MAX_VALUE else None
