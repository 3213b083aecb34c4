"""An independent count, by brute force, straight from the rules as written. Imports nothing from bankcheck.

Each function walks over lanes and words one at a time and keeps every set in the open; slow and obvious on purpose.
"""

from __future__ import annotations


def degree(addresses: list[int | None], width: int, lanes: range) -> int:
    """The most distinct words that the active lanes among `lanes` want from one bank."""
    words_of_bank: dict[int, set[int]] = {bank: set() for bank in range(32)}
    for lane in lanes:
        address = addresses[lane]
        if address is None:
            continue
        for byte in range(address, address + width):
            word = byte // 4
            words_of_bank[word % 32].add(word)
    return max(len(words) for words in words_of_bank.values())


def requests(addresses: list[int | None], lanes: range) -> int:
    """The most active lanes among `lanes` that touch one bank (first word only), duplicates kept."""
    lanes_of_bank = {bank: 0 for bank in range(32)}
    for lane in lanes:
        address = addresses[lane]
        if address is not None:
            lanes_of_bank[address // 4 % 32] += 1
    return max(lanes_of_bank.values())


def pairs_agree(addresses: list[int | None]) -> bool:
    for distance in (1, 2):
        agreeing = 0
        for lane in range(32):
            mine, other = addresses[lane], addresses[lane ^ distance]
            if mine is None or other is None or mine == other:
                agreeing += 1
        if agreeing == 32:
            return True
    return False


def load(addresses: list[int | None], width: int) -> int:
    """ld.shared of 1 to 16 bytes per lane."""
    if width <= 4:
        return degree(addresses, width, range(32))
    together = 16 if width == 8 else 8
    if pairs_agree(addresses):
        together = together * 2
    return sum(degree(addresses, width, range(start, start + together)) for start in range(0, 32, together))


def store(addresses: list[int | None], width: int) -> int:
    """st.shared of 1 to 16 bytes per lane."""
    together = 32 if width <= 4 else 16 if width == 8 else 8
    return sum(degree(addresses, width, range(start, start + together)) for start in range(0, 32, together))


def matrices(addresses: list[int | None], count: int) -> int:
    """ldmatrix / stmatrix .xN."""
    return sum(degree(addresses, 16, range(8 * matrix, 8 * matrix + 8)) for matrix in range(count))


def row_passes(addresses: list[int | None]) -> int:
    """cp.async.cg: the longest of the four queues of (group of 8 lanes, 128-byte row) writes."""
    queues = [0, 0, 0, 0]
    for start in range(0, 32, 8):
        rows = set()
        for lane in range(start, start + 8):
            address = addresses[lane]
            if address is not None:
                rows.add(address // 128)
        for row in rows:
            queues[row % 4] += 1
    return max(queues)


def wavefronts(instruction: str, addresses: list[int | None]) -> int:
    """The count for an instruction by its PTX name, or by bankcheck's where PTX has none."""
    parts = instruction.split(".")
    width = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "b128": 16}.get(parts[-1], 4)
    if parts[-2] in ("v2", "v4"):
        width = width * int(parts[-2][1])
    if parts[0] in ("ld", "st"):
        if parts[1] == "generic" and width >= 8:
            return store(addresses, width)
        return load(addresses, width) if parts[0] == "ld" else store(addresses, width)
    if parts[0] in ("ldmatrix", "stmatrix"):
        return matrices(addresses, int(parts[1][1:]))
    if parts[0] == "cp":
        size = int(parts[-1])
        if size == 16 and parts[2] == "cg":
            return store(addresses, 16)
        if size == 16:
            return sum(requests(addresses, range(start, start + 8)) for start in range(0, 32, 8))
        return requests(addresses, range(32)) if size == 4 else _halves(addresses)
    if parts[2] == "aggregated":  # lanes that name one word are added up first: they are one request
        return degree(addresses, 4, range(32))
    if parts[2] == "cas":
        return 2 * (_halves(addresses) if parts[3] == "b64" else requests(addresses, range(32)))
    return requests(addresses, range(32))


def _halves(addresses: list[int | None]) -> int:
    return requests(addresses, range(16)) + requests(addresses, range(16, 32))
