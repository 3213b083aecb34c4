"""Tags: integers that name the logical element of a shared array, and the fragments in which lanes receive them.

Element e of an array is filled with a number that only it carries, so what a lane received says which elements they
were. Elements of 4 bytes and more carry their word number times an odd constant (invertible modulo 2^32), halves their
number times an odd constant (modulo 2^16), bytes their number modulo 239 (a prime: neighbours at powers of two differ).
Numbers start at 1, so that no tag is zero and a load that does nothing cannot pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from bankcheck.hardware import WARP_LANES, Rule

_ODD_32, _ODD_16, _PRIME = 0x9E3779B1, 0x9E35, 239
_INVERSE_32, _INVERSE_16 = pow(_ODD_32, -1, 1 << 32), pow(_ODD_16, -1, 1 << 16)


def tag(element: int, element_bytes: int) -> bytes:
    """The bytes that name `element`, which is 1, 2 or a multiple of 4 bytes wide."""
    if element_bytes == 1:
        return bytes([element % _PRIME + 1])
    if element_bytes == 2:
        return ((element % 65535 + 1) * _ODD_16 % (1 << 16)).to_bytes(2, "little")
    words = element_bytes // 4
    return b"".join(((element * words + word + 1) * _ODD_32 % (1 << 32)).to_bytes(4, "little") for word in range(words))


def tags(elements: int, element_bytes: int) -> bytes:
    """The tags of elements 0 .. elements-1, one after the other."""
    return b"".join(tag(element, element_bytes) for element in range(elements))


def named(data: bytes, element_bytes: int, elements: int) -> int | None:
    """The element whose tag `data` is, or None: it is no tag of the first `elements` elements."""
    if element_bytes == 1:
        element = data[0] - 1
    elif element_bytes == 2:
        element = int.from_bytes(data, "little") * _INVERSE_16 % (1 << 16) - 1
    else:
        element = (int.from_bytes(data[:4], "little") * _INVERSE_32 % (1 << 32) - 1) // (element_bytes // 4)
    return element if 0 <= element < elements and tag(element, element_bytes) == data else None


def matrix_fragment(rows: Sequence[bytes], trans: bool) -> list[bytes]:
    """What each lane holds of the 8x8 matrices with these 16-byte rows (8 a matrix): 4 bytes for each matrix.

    Lane 4r+k holds A[r][2k] and A[r][2k+1]; transposed A[2k][r] and A[2k+1][r] (PTX ISA, ldmatrix and stmatrix).
    """
    lanes = []
    for lane in range(WARP_LANES):
        r, k = divmod(lane, 4)
        held = b""
        for first in range(0, len(rows), 8):
            if trans:
                held += rows[first + 2 * k][2 * r : 2 * r + 2] + rows[first + 2 * k + 1][2 * r : 2 * r + 2]
            else:
                held += rows[first + r][4 * k : 4 * k + 4]
        lanes.append(held)
    return lanes


def matrix_rows(lanes: Sequence[bytes], matrices: int, trans: bool) -> list[bytes]:
    """The 16-byte rows that the lanes' registers make up: the inverse of `matrix_fragment`."""
    rows = [bytearray(16) for _ in range(8 * matrices)]
    for lane, held in enumerate(lanes):
        r, k = divmod(lane, 4)
        for matrix in range(matrices):
            low, high = held[4 * matrix : 4 * matrix + 2], held[4 * matrix + 2 : 4 * matrix + 4]
            if trans:
                rows[8 * matrix + 2 * k][2 * r : 2 * r + 2] = low
                rows[8 * matrix + 2 * k + 1][2 * r : 2 * r + 2] = high
            else:
                rows[8 * matrix + r][4 * k : 4 * k + 4] = low + high
    return [bytes(row) for row in rows]


def is_trans(rule: Rule) -> bool:
    """True for the .trans forms of ldmatrix and stmatrix."""
    return rule.instruction.endswith(".trans")
