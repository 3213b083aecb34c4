"""Inline PTX that touches shared memory: ldmatrix, stmatrix, cp.async, ld/st/atom.shared, and address conversions."""

from __future__ import annotations

import re

from bankcheck import expr
from bankcheck.ctype import Record
from bankcheck.expr import Const, Unknown
from bankcheck.lint.interpreter.place_reader import BYTE
from bankcheck.lint.interpreter.reader import Reader
from bankcheck.lint.text.groups import ITSELF
from bankcheck.places import Address, Entity
from bankcheck.syntax import Tree

ROW = Record("row of 16 bytes", 16, 16, ())
_ADDRESS = r"\[\s*%(\w+|\[\w+\])\s*(?:\+\s*(\d+)\s*)?\]"
_INSTRUCTION = (  # compiled by `re` when first used: most files have no assembly
    rf"\b((?:ld|st)matrix\.[\w.:]+|cp\.async\.c[ag]\.[\w.:]+|(?:ld|st|atom|red)\.[\w.:]*shared[\w.:]*)"
    rf"\s*([^;]*?){_ADDRESS}([^;]*)"
)
_TYPE = r"(?:\.v([24]))?\.([busf]|bf|f16x|bf16x)(8|16|32|64|128|2)\b"
_BITS = {"f16x": 32, "bf16x": 32}


def run_assembly(reader: Reader, node: Tree) -> Entity:
    """Record what the assembly accesses; its outputs become unknown."""
    text = _assembly_text(reader, node.child_by_field_name("assembly_code"))
    outputs = _operands(reader, node.child_by_field_name("output_operands"))
    inputs = _operands(reader, node.child_by_field_name("input_operands"))
    names = {symbol: position for position, (symbol, _) in enumerate(outputs + inputs) if symbol}
    values: dict[int, Entity] = {}
    for position, (_, value) in enumerate(inputs, start=len(outputs)):
        values[position] = reader.value(value)
    span = reader.file.span(node)
    for match in re.finditer(_INSTRUCTION, text):
        position = names.get(match[3].strip("[]"), int(match[3]) if match[3].isdecimal() else -1)
        entity = values.get(position)
        if entity is None or not 0 <= position - len(outputs) < len(inputs):
            continue
        operand = inputs[position - len(outputs)][1]
        _record(reader, match, entity, operand, values)
    for _, target in outputs:
        produced: Entity = Unknown("a result of inline assembly", span)
        if "cvta" in text and len(outputs) == 1 and len(inputs) == 1:
            pointer = values[len(outputs)]
            if isinstance(pointer, Address):
                produced = reader.retyped(pointer, expr.ULONG)
        reader.store(target, produced)
    reader.state.straight += 1
    if "cp.async.wait_" in text:
        reader.state.barrier(span, ITSELF)
    if re.search(r"\b(mbarrier|barrier|bar)\.", text):
        reader.state.maybe_barrier()
    return Unknown("a result of inline assembly", span)


def _record(reader: Reader, match: re.Match[str], entity: Entity, operand: Tree, values: dict[int, Entity]) -> None:
    instruction, rest = match[1], match[5]
    span, text = reader.file.span(operand), reader.file.written(operand)
    op, ctype, why = _operation(instruction, rest, values)
    if not isinstance(entity, Address):
        return
    place = entity.place
    if match[4]:
        moved = expr.binary("+", place.offset_bytes, Const(int(match[4]), expr.LONG))
        place = place._replace(offset_bytes=moved)
    place = place._replace(ctype=ctype or BYTE, step_bytes=ctype.size if ctype else 1, row=None)
    inner = operand
    while inner.type in ("cast_expression", "call_expression", "parenthesized_expression") and inner.named_children:
        last = inner.named_children[-1]
        inner = last.named_children[-1] if last.type == "argument_list" and last.named_children else last
    reader.state.access(place, op, span, reader.file.written(inner) if inner is not operand else text, reason=why)


def _operation(instruction: str, rest: str, values: dict[int, Entity]) -> tuple[str, Record | None, str]:
    """(operation, what a lane accesses, why it is not understood)."""
    parts = instruction.split(".")
    if parts[0] in ("ldmatrix", "stmatrix"):
        count = next((part for part in parts if part in ("x1", "x2", "x4")), "")
        if not count or "m8n8" not in parts:
            return parts[0], ROW, f"'{instruction[:60]}' is not a form that the rules cover"
        return f"{parts[0]}.{count}" + (".trans" if "trans" in parts else ""), ROW, ""
    if parts[0] == "cp":
        size = re.search(r",\s*(\d+|%\d+)\s*(?:,[^,\]]*)?$", rest.strip())
        nbytes = 0
        if size is not None:
            value = values.get(int(size[1][1:])) if size[1].startswith("%") else Const(int(size[1]))
            nbytes = value.value if isinstance(value, Const) else 0
        if nbytes not in (4, 8, 16):
            return "cp.async", None, "the size of this cp.async is not known"
        return f"cp.async.{parts[2]}", Record("copy", nbytes, nbytes, ()), ""
    match = re.search(_TYPE, instruction)
    if match is None:
        return "load", None, f"'{instruction[:60]}' is not a form that the rules cover"
    bits = _BITS.get(match[2], 0) or int(match[3])
    nbytes = bits // 8 * int(match[1] or 1)
    accessed = Record(instruction, nbytes, nbytes, ())
    if parts[0] in ("atom", "red"):
        operation = "cas" if "cas" in parts else "atomic"
        plain = match[2] in ("u", "s", "b") and bits == 32
        return operation, accessed, "" if plain or operation == "cas" else f"{instruction}: its cost depends on data"
    return "load" if parts[0] == "ld" else "store", accessed, ""


def _operands(reader: Reader, node: Tree | None) -> list[tuple[str, Tree]]:
    found = []
    for operand in node.named_children if node is not None else ():
        value = operand.child_by_field_name("value")
        symbol = operand.child_by_field_name("symbol")
        if value is not None:
            found.append((reader.file.source(symbol) if symbol is not None else "", value))
    return found


def _assembly_text(reader: Reader, node: Tree | None) -> str:
    if node is None:
        return ""
    if node.type in ("string_content", "raw_string_content"):
        return reader.file.source(node)
    if node.type == "escape_sequence":
        return " "
    return "".join(_assembly_text(reader, child) for child in node.named_children)
