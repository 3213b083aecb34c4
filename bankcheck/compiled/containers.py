"""Device code inside fat binaries, objects and executables: the `.nv_fatbin` format, uncompressed or LZ4.

A fat binary starts with the magic number 0xBA55ED50 and holds entries of kind 1 (PTX), 2 (cubin) or 8 (intermediate
code for link-time optimisation). Entries that are compressed with another method (zstd, CUDA 12.4 and later) are left
to `cuobjdump`.
"""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

from bankcheck.compiled.processes import run_tool
from bankcheck.compiled.toolchain import find_tool
from bankcheck.errors import BankcheckError

_MAGIC = struct.pack("<I", 0xBA55ED50)
_PTX, _ELF, _LTO_IR = 1, 2, 8
_LZ4 = 0x2000
_ZSTD_MAGIC = bytes.fromhex("28b52ffd")
_MAX_IMAGES = 10_000
_MAX_IMAGE_BYTES = 256 << 20


def device_images(data: bytes) -> list[bytes]:
    """All device images (cubins first, then PTX) in a file; empty if it has none.

    Raises `BankcheckError` for a damaged fat binary, one whose compression needs `cuobjdump` where that is missing, or
    one without machine code because that is made when the program is linked.
    """
    cubins: list[bytes] = []
    texts: list[bytes] = []
    unread: set[int] = set()
    at = data.find(_MAGIC)
    while at >= 0 and len(cubins) + len(texts) < _MAX_IMAGES:
        end = _read_binary(data, at, cubins, texts, unread)
        at = data.find(_MAGIC, max(end, at + 4))
    if _ELF in unread:
        cubins = _by_cuobjdump(data, "-xelf", "*.cubin")
    if not cubins and _LTO_IR in unread:
        raise BankcheckError("the machine code is made when the program is linked (-dlto): profile the linked program")
    if not cubins and not texts and _PTX in unread:
        texts = _by_cuobjdump(data, "-xptx", "*.ptx")
    return [*cubins, *texts]


def _read_binary(data: bytes, at: int, cubins: list[bytes], texts: list[bytes], unread: set[int]) -> int:
    """Read one fat binary; its end. `unread` receives the kinds of the entries that are not read here."""
    try:
        header, size = struct.unpack_from("<HQ", data, at + 6)
        cursor, end = at + header, int(at + header + size)
        if end > len(data) or header < 16:
            return at + 4
        while cursor + 64 <= end:
            kind, _, entry_header, payload, packed_size = struct.unpack_from("<HHIQI", data, cursor)
            flags, _, unpacked_size = struct.unpack_from("<QQQ", data, cursor + 40)
            if entry_header < 64 or payload == 0 or cursor + entry_header + payload > end:
                break
            image = data[cursor + entry_header : cursor + entry_header + payload]
            if kind == _LTO_IR or image[:4] == _ZSTD_MAGIC:
                unread.add(kind)
                image = b""
            elif flags & _LZ4:
                image = decompress_lz4(image[:packed_size], unpacked_size)
            if image:
                (cubins if kind == _ELF else texts).append(image.rstrip(b"\0") if kind == _PTX else image)
            cursor += entry_header + payload
    except struct.error:
        raise BankcheckError("the fat binary is truncated") from None
    return end


def decompress_lz4(packed: bytes, size: int) -> bytes:
    """One LZ4 block (the public block format) of known size. Raises `BankcheckError` if it is damaged."""
    if size > _MAX_IMAGE_BYTES:
        raise BankcheckError("a compressed image claims to be larger than 256 MiB")
    out = bytearray()
    at = 0
    try:
        while at < len(packed) and len(out) < size:
            token = packed[at]
            at += 1
            literals, at = _length(packed, at, token >> 4)
            out += packed[at : at + literals]
            at += literals
            if at >= len(packed) or len(out) >= size:
                break
            distance = packed[at] | packed[at + 1] << 8
            at += 2
            match, at = _length(packed, at, token & 15)
            start = len(out) - distance
            if not 0 <= start < len(out):
                raise BankcheckError("a compressed image is damaged")
            for position in range(match + 4):
                out.append(out[start + position])
    except IndexError:
        raise BankcheckError("a compressed image is damaged") from None
    return bytes(out[:size])


def _length(packed: bytes, at: int, first: int) -> tuple[int, int]:
    if first == 15:
        while True:
            more = packed[at]
            at += 1
            first += more
            if more != 255:
                break
    return first, at


def _by_cuobjdump(data: bytes, option: str, names: str) -> list[bytes]:
    tool = find_tool("cuobjdump")
    if tool is None:
        raise BankcheckError(
            "the device code is compressed with zstd: install nvidia-cuda-cuobjdump, or compile with -no-compress"
        )
    with tempfile.TemporaryDirectory(prefix="bankcheck-") as folder:
        path = Path(folder) / "program"
        path.write_bytes(data)
        # cuobjdump writes the images into the working directory.
        run_tool([tool, option, "all", str(path)], "cuobjdump", folder)
        return [image.read_bytes() for image in sorted(Path(folder).glob(names))]
