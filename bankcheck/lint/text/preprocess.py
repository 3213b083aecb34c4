"""The C preprocessor, as far as device code needs it: macros, conditions, and where each character came from.

Expanding text before it is parsed gives macros C's meaning for free: `#define N 4+1` makes `N*2` six, and a macro
around inline assembly is the assembly. Every character of the result knows its place in the file as written.
Directives and regions that are switched off become blanks, so that lines keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bankcheck.errors import BankcheckError
from bankcheck.expr import Const, Node, Span
from bankcheck.lint.text.expansion import Expanded, Header, Macro, append, with_headers
from bankcheck.lint.text.headers import Declared, HeaderFile, declarations_of
from bankcheck.lint.text.prefilter import Include
from bankcheck.lint.text.textfile import Comment, TextFile
from bankcheck.lower import Lowering
from bankcheck.places import Array, Entity, Place
from bankcheck.syntax import Snippet

MAX_EXPANSION = 50_000
"""Characters one use of a macro may become."""
MAX_TOTAL = 4_000_000
MAX_DEPTH = 60
MAX_HEADERS, MAX_OPEN = 60, 16
"""Headers that are read for one file, and how deep they may include each other."""
MAX_HEADER_TEXT = 1 << 20
"""Characters of headers that are read for one file."""
MAX_CONDITION = 2_000

_QUIET = r"""
       (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
      |(?P<string>R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"?|(?<!\w)'(?:\\.|[^'\\\n])+')"""
"""What a macro or a directive has no meaning in."""
_COMMENT_OR_STRING = re.compile(_QUIET, re.VERBOSE | re.DOTALL)
_TOKEN = re.compile(
    rf"""{_QUIET}
      |(?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
      |(?P<name>[A-Za-z_]\w*)
      |(?P<directive>^[ \t]*\#(?:\\\r?\n|/\*.*?\*/|[^\n])*)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_NAME_BEGINS = re.compile(r"(?<!\w)[A-Za-z_]")
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w*)[ \t]*(.*)", re.DOTALL)
_DEFINE = re.compile(r"(\w+)(\([^)]*\))?[ \t]*(.*)", re.DOTALL)
_COMMENT = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_BETWEEN = rf"""(?s){_COMMENT}|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'|[()\[\]{{}},]"""
"""What may end an argument of a macro, and what hides such characters."""
_PRAGMA = re.compile(r'\b_Pragma\s*\(\s*(?:L|u8|[uU])?"(?:\\.|[^"\\])*"\s*\)')
_PREDEFINED = {
    "__CUDACC__": "1", "__NVCC__": "1", "__CUDA_ARCH__": "900", "__cplusplus": "201703L",
    "__CUDACC_VER_MAJOR__": "12", "__CUDACC_VER_MINOR__": "4", "CUDART_VERSION": "12040", "CUDA_VERSION": "12040",
}  # fmt: skip


def preprocess(text: str, defines: Mapping[str, str], include: Include | None = None) -> Expanded:
    """Expand `text`. `defines` are macros given from outside; `include` finds headers, for their macros."""
    preprocessor = _Preprocessor({**_PREDEFINED, **defines}, include)
    result, headers = preprocessor.run(text)
    return with_headers(result, headers) if any(header.declared for header in headers) else result


class _Preprocessor:
    def __init__(self, defines: Mapping[str, str], include: Include | None) -> None:
        self.macros = {name: Macro(name, body) for name, body in defines.items()}
        self._given = frozenset(defines) - _PREDEFINED.keys()
        self._include = include
        self._included: set[str] = set()
        self._open: list[str] = []
        """The folders of the headers being read, outermost first."""
        self._header_bytes = 0
        self._total = 0

    def run(self, text: str) -> tuple[Expanded, list[Header]]:
        """The expanded text, and what its headers declare."""
        headers: list[Header] = []
        result = Expanded(macros=self.macros)
        pieces: list[str] = []
        length = copied = 0
        conditions: list[list[bool]] = []  # [active now, some branch was taken, the surroundings are active]
        dead_from = -1

        def put(piece: str, start: int, origin_length: int) -> None:
            nonlocal length
            length = append(result, pieces, piece, (start, origin_length), length)

        skip_to = 0
        for token in _TOKEN.finditer(text):
            kind, start, end = token.lastgroup, token.start(), token.end()
            if start < skip_to:
                continue
            if kind == "comment":
                result.comments.append(Comment(token.group(), start))
            elif kind == "directive":
                if dead_from < 0:
                    put(text[copied:start], copied, 0)
                    put(_blank(token.group()), start, 0)
                    copied = end
                declared = self._directive(token.group(), conditions)
                if declared is not None:
                    headers.append(Header(declared, len(pieces), (start, end)))
                    if text.count("{", 0, start) > text.count("}", 0, start):
                        result.fragments.append((start, end))
                active = all(state[0] for state in conditions)
                if dead_from < 0 and not active:
                    dead_from = end
                elif dead_from >= 0 and active:
                    put(_blank(text[dead_from:end]), dead_from, 0)
                    result.skipped.append((dead_from, start))
                    dead_from, copied = -1, end
            elif kind == "name" and dead_from < 0 and (token.group() in self.macros or token.group() == "_Pragma"):
                expansion, stop = self._use(token.group(), text, end)
                if expansion is not None:
                    put(text[copied:start], copied, 0)
                    put(expansion or " ", start, stop - start)
                    copied = skip_to = stop
        if dead_from >= 0:
            put(_blank(text[dead_from:]), dead_from, 0)
            result.skipped.append((dead_from, len(text)))
        else:
            put(text[copied:], copied, 0)
        if not pieces:
            result.starts, result.origins = [0], [(0, 0)]
        result.text = "".join(pieces)
        return result, headers

    # Directives

    def _directive(self, line: str, conditions: list[list[bool]]) -> list[Declared] | None:
        """Obey a directive. For a header that is found, returns what it declares."""
        match = _DIRECTIVE.match(re.sub(r"\\\r?\n", " ", line))
        if match is None:
            return None
        name, rest = match[1], _without_comments(match[2]).strip()
        surroundings = all(state[0] for state in conditions)
        if name in ("if", "ifdef", "ifndef"):
            if name == "if":
                holds = surroundings and self._condition(rest)
            else:
                holds = (rest.split()[:1] or [""])[0] in self.macros
                holds = holds == (name == "ifdef")
            conditions.append([holds, holds, surroundings])
        elif name in ("elif", "else") and conditions:
            state = conditions[-1]
            state[0] = not state[1] and state[2] and (name == "else" or self._condition(rest))
            state[1] = state[1] or state[0]
        elif name == "endif" and conditions:
            conditions.pop()
        elif surroundings and name == "define":
            self._define(rest)
        elif surroundings and name == "undef":
            self.macros.pop(rest, None)
        elif surroundings and name == "include":
            return self._header(rest)
        return None

    def _define(self, rest: str) -> None:
        match = _DEFINE.match(rest)
        if match is None or match[1] in self._given:
            return
        parameters = None
        if match[2] is not None:
            parameters = tuple(part.strip() for part in match[2][1:-1].split(",") if part.strip())
        self.macros[match[1]] = Macro(match[1], match[3].strip(), parameters)

    def _header(self, rest: str) -> list[Declared]:
        """Read a header for its macros and declarations; what is not found declares nothing."""
        match = re.match(r'"([^"\n]+)"|(<[^>\n]+>)', rest)
        if match is None or self._include is None or len(self._included) > MAX_HEADERS or len(self._open) > MAX_OPEN:
            return []
        near = f"{self._open[-1]}{match[1]}" if self._open and match[1] else match[1]
        for name in dict.fromkeys((near or match[2], match[1] or match[2])):
            header = self._include(name)
            if header is not None:
                break
        else:
            return []
        text = header.text
        self._header_bytes += len(text)
        if text in self._included or self._header_bytes > MAX_HEADER_TEXT:
            return []
        self._included.add(text)
        self._open.append(name.strip("<>").rpartition("/")[0] + "/" if "/" in name else "")
        bare, headers = self.run(text)
        self._open.pop()
        found = [declared for header in headers for declared in header.declared]
        file = HeaderFile(TextFile(header.name, text, bare.comments), bare.origin)
        return found + declarations_of(_comments_blanked(bare.text), file)

    def _condition(self, text: str) -> bool:
        text = re.sub(r"defined\s*(?:\(\s*(\w+)\s*\)|(\w+))", lambda m: str(int((m[1] or m[2]) in self.macros)), text)
        try:
            snippet = Snippet(self._expand(text, frozenset(), 0)[:MAX_CONDITION])
            value = Lowering(snippet, _Zero()).integer(snippet.statements[0].named_children[0])
        except (BankcheckError, IndexError, KeyError):
            return False
        return isinstance(value, Const) and value.value != 0

    # Expansion

    def _use(self, name: str, text: str, end: int) -> tuple[str | None, int]:
        """The expansion of a macro used in the file and where the use ends; None if it is not a use."""
        if name == "_Pragma":
            _, stop = _arguments(text, end)
            return ("" if stop else None), stop or end
        macro = self.macros[name]
        arguments: list[str] = []
        stop = end
        if macro.parameters is not None:
            arguments, stop = _arguments(text, end)
            if not stop:
                return None, end
        if self._total > MAX_TOTAL:
            return None, end
        expansion = _PRAGMA.sub(" ", self._expand_macro(macro, arguments, frozenset(), 0).replace("\n", " "))
        if len(expansion) > MAX_EXPANSION:
            return None, end
        self._total += len(expansion)
        return expansion, stop

    def _expand_macro(self, macro: Macro, arguments: list[str], hidden: frozenset[str], depth: int) -> str:
        body = macro.body
        if macro.parameters is not None:
            body = self._substitute(macro, arguments, hidden, depth)
        return self._expand(body, hidden | {macro.name}, depth + 1)

    def _substitute(self, macro: Macro, arguments: list[str], hidden: frozenset[str], depth: int) -> str:
        assert macro.parameters is not None
        names = list(macro.parameters)
        if names and names[-1].endswith("..."):
            names[-1] = names[-1][:-3].strip() or "__VA_ARGS__"
            arguments = [*arguments[: len(names) - 1], ", ".join(arguments[len(names) - 1 :])]
        raw = dict(zip(names, arguments + [""] * len(names), strict=False))
        expanded: dict[str, str] = {}
        pastes = "##" in macro.body

        def replaced(match: re.Match[str]) -> str:
            if match["literal"]:
                return match["literal"]
            if match["stringed"] in raw:
                return '"' + raw[match["stringed"]].replace("\\", "\\\\").replace('"', '\\"') + '"'
            name = match["name"]
            if name not in raw:
                return match.group()
            body, start, end = match.string, match.start(), match.end()
            if pastes and (body[:start].rstrip().endswith("##") or body[end:].lstrip().startswith("##")):
                return raw[name]
            if name not in expanded:
                expanded[name] = self._expand(raw[name], hidden, depth + 1)
            return expanded[name]

        pattern = r'(?P<literal>"(?:\\.|[^"\\])*")|(?<!#)\#\s*(?P<stringed>[A-Za-z_]\w*)|(?P<name>[A-Za-z_]\w*)'
        text = re.sub(pattern, replaced, macro.body)
        if len(text) > MAX_EXPANSION:
            return " "
        return re.sub(r"\s*##\s*", "", text)

    def _expand(self, text: str, hidden: frozenset[str], depth: int) -> str:
        """Macros in some text expanded, except those being expanded already."""
        if depth > MAX_DEPTH or len(text) > MAX_EXPANSION:
            return text[:MAX_EXPANSION]
        if not _NAME_BEGINS.search(text):
            return text
        pieces, copied, size = [], 0, 0
        for token in _TOKEN.finditer(text):
            name = token.group()
            if token.start() < copied or token.lastgroup != "name" or name in hidden or name not in self.macros:
                continue
            macro, stop = self.macros[name], token.end()
            arguments: list[str] = []
            if macro.parameters is not None:
                arguments, stop = _arguments(text, token.end())
                if not stop:
                    continue
            pieces += [text[copied : token.start()], self._expand_macro(macro, arguments, hidden, depth)]
            size += len(pieces[-1])
            copied = stop
            if size > MAX_EXPANSION:
                break
        return "".join(pieces) + text[copied:]


class _Zero:
    """In a condition, every name that is left is 0."""

    def variable(self, name: str, span: Span) -> Entity | None:
        return Const(0)

    def named_type(self, name: str) -> None:
        return None

    def implicit_array(self, name: str, subscripts: int, span: Span) -> Array | None:
        return None

    def free_symbol(self, name: str, span: Span) -> Node:
        return Const(0)

    def call(self, name: str, args: list[Entity], span: Span) -> Entity | None:
        return Const(0)

    def loaded(self, place: Place, text: str, span: Span) -> Node:
        return Const(0)


def _arguments(text: str, start: int) -> tuple[list[str], int]:
    """The comma-separated arguments in the parentheses after `start` and where they end; ([], 0) if there are none."""
    opening = re.compile(r"\s*\(").match(text, start)
    if opening is None:
        return [], 0
    depth, arguments, piece_start = 1, [], opening.end()
    for token in re.compile(_BETWEEN).finditer(text, opening.end()):
        character = token.group()
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                arguments.append(_without_comments(text[piece_start : token.start()]).strip())
                return arguments, token.end()
        elif character == "," and depth == 1:
            arguments.append(_without_comments(text[piece_start : token.start()]).strip())
            piece_start = token.end()
        if token.end() - opening.end() > MAX_EXPANSION:
            break
    return [], 0


def _without_comments(text: str) -> str:
    if '"' in text:
        return _COMMENT_OR_STRING.sub(lambda token: " " if token.lastgroup == "comment" else token.group(), text)
    return re.sub(_COMMENT, " ", text, flags=re.DOTALL) if "/" in text else text


def _comments_blanked(text: str) -> str:
    """The text with blanks for comments: every character keeps its place."""
    if '"' in text:
        return _COMMENT_OR_STRING.sub(lambda t: _blank(t.group()) if t.lastgroup == "comment" else t.group(), text)
    return re.sub(_COMMENT, lambda match: _blank(match.group()), text, flags=re.DOTALL) if "/" in text else text


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
