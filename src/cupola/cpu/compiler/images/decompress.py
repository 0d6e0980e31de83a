"""The two compressions of entries in fat binaries: an LZ4 block, and a Zstandard frame (RFC 8878).

Python has neither before 3.14, and a few kilobytes of PTX are no reason for a dependency. Whatever is wrong with the
data is a `ValueError`; nothing that it says can make more than the promised size.
"""

from __future__ import annotations

from collections.abc import Callable

_ZSTD_MAGIC = 0xFD2FB528


def _copy_match(out: bytearray, distance: int, length: int, limit: int) -> None:
    """Repeat what was written ``distance`` bytes ago; it may overlap what it writes."""
    if not 0 < distance <= len(out) or len(out) + length > limit:
        raise ValueError("a match lies outside the data")
    if distance >= length:
        start = len(out) - distance
        out += out[start : start + length]
    else:
        piece = bytes(out[-distance:])
        out += (piece * (length // distance + 1))[:length]


def lz4_block(data: bytes, size: int) -> bytes:
    """The ``size`` bytes that an LZ4 block holds."""
    out = bytearray()
    at = 0
    try:
        while at < len(data):
            token = data[at]
            at += 1
            literals = token >> 4
            if literals == 15:
                while True:
                    literals += data[at]
                    at += 1
                    if data[at - 1] != 255:
                        break
            if at + literals > len(data) or len(out) + literals > size:
                raise ValueError("the literals are longer than the data")
            out += data[at : at + literals]
            at += literals
            if at == len(data):
                break
            distance = data[at] | data[at + 1] << 8
            at += 2
            length = token & 15
            if length == 15:
                while True:
                    length += data[at]
                    at += 1
                    if data[at - 1] != 255:
                        break
            _copy_match(out, distance, length + 4, size)
    except IndexError as error:
        raise ValueError("the data ends too early") from error
    if len(out) != size:
        raise ValueError(f"there are {len(out)} of {size} bytes")
    return bytes(out)


def zstandard(data: bytes, size: int) -> bytes:
    """The ``size`` bytes that a Zstandard frame without a dictionary holds."""
    try:
        out = _Frame(data, size).read()
    except IndexError as error:
        raise ValueError("the data ends too early") from error
    if len(out) != size:
        raise ValueError(f"there are {len(out)} of {size} bytes")
    return bytes(out)


# ---- streams of bits (RFC 8878, 4) ----------------------------------------------------------------------------------


class _Backward:
    """Bits from the last one, which is set, to the first; behind the end there are zeros."""

    __slots__ = ("bits", "left")

    def __init__(self, data: bytes) -> None:
        self.bits = int.from_bytes(data, "little")
        if not data or not data[-1]:
            raise ValueError("a stream of bits does not end with a set bit")
        self.left = self.bits.bit_length() - 1

    def take(self, count: int) -> int:
        self.left -= count
        if self.left >= 0:
            return self.bits >> self.left & (1 << count) - 1
        if self.left < -64:
            raise ValueError("a stream of bits ends too early")
        return self.bits << -self.left & (1 << count) - 1


_Table = list[tuple[int, int, int]]  # of each state: symbol, bits to read, base of the next state


def _distribution(data: bytes, at: int, largest_log: int, symbols: int) -> tuple[list[int], int, int]:
    """Normalized counts of an FSE table (4.1.1), its accuracy, and where they end."""
    bits = int.from_bytes(data[at : at + 512], "little")
    log = (bits & 15) + 5
    if log > largest_log:
        raise ValueError("a table is too large")
    place, left = 4, 1 << log
    counts: list[int] = []
    while left > 0:
        width = (left + 1).bit_length()
        value = bits >> place & (1 << width) - 1
        short = (1 << width) - 1 - (left + 1)
        if value & (1 << width - 1) - 1 < short:
            value &= (1 << width - 1) - 1
            place += width - 1
        else:
            if value >= 1 << width - 1:
                value -= short
            place += width
        count = value - 1
        left -= abs(count)
        counts.append(count)
        if not count:
            while True:
                repeat = bits >> place & 3
                place += 2
                counts += [0] * repeat
                if repeat != 3:
                    break
        if len(counts) > symbols:
            raise ValueError("a table has too many symbols")
    end = at + (place + 7) // 8
    if left or end > len(data):
        raise ValueError("the counts of a table do not add up")
    return counts, log, end


def _fse_table(counts: list[int], log: int) -> _Table:
    size = 1 << log
    owner = [0] * size
    high = size - 1
    following = list(counts)
    for symbol, count in enumerate(counts):
        if count == -1:
            owner[high] = symbol
            high -= 1
            following[symbol] = 1
    place = 0
    step = (size >> 1) + (size >> 3) + 3
    for symbol, count in enumerate(counts):
        for _ in range(count):
            owner[place] = symbol
            place = (place + step) % size
            while place > high:
                place = (place + step) % size
    table = []
    for symbol in owner:
        state = following[symbol]
        following[symbol] += 1
        bits = log + 1 - state.bit_length()
        table.append((symbol, bits, (state << bits) - size))
    return table


# ---- literals (3.1.1.3.1, 4.2) --------------------------------------------------------------------------------------


class _Huffman:
    """The decoding table: the next ``log`` bits give the symbol and how many of them it has."""

    def __init__(self, weights: list[int]) -> None:
        total = sum(1 << weight >> 1 for weight in weights)
        if not total:
            raise ValueError("a Huffman table is empty")
        self.log = log = total.bit_length()
        rest = (1 << log) - total
        if rest & rest - 1 or log > 11:
            raise ValueError("the weights of a Huffman table do not add up")
        weights = [*weights, rest.bit_length()]
        self.table: list[tuple[int, int]] = []
        for weight in range(1, log + 1):
            for symbol, own in enumerate(weights):
                if own == weight:
                    self.table += [(symbol, log + 1 - weight)] * (1 << weight - 1)

    def decode(self, data: bytes, count: int) -> bytearray:
        stream = _Backward(data)
        bits, left, log, table = stream.bits, stream.left, self.log, self.table
        bits <<= log  # zeros behind the end
        mask = (1 << log) - 1
        out = bytearray()
        while left > 0 and len(out) < count:
            symbol, width = table[bits >> left & mask]
            out.append(symbol)
            left -= width
        if left or len(out) != count:
            raise ValueError("a stream of literals has the wrong length")
        return out


def _huffman(data: bytes, at: int) -> tuple[_Huffman, int]:
    head = data[at]
    at += 1
    weights: list[int] = []
    if head >= 128:
        count = head - 127
        for index in range(count):
            byte = data[at + index // 2]
            weights.append(byte & 15 if index % 2 else byte >> 4)
        return _Huffman(weights), at + (count + 1) // 2
    end = at + head
    counts, log, at = _distribution(data[:end], at, 6, 256)
    table = _fse_table(counts, log)
    stream = _Backward(data[at:end])
    states = [stream.take(log), stream.take(log)]
    turn = 0
    while True:  # two states by turns, until one would need bits that are not there
        symbol, bits, base = table[states[turn]]
        weights.append(symbol)
        if len(weights) > 255:
            raise ValueError("a Huffman table has too many weights")
        if stream.left < bits:
            weights.append(table[states[1 - turn]][0])
            return _Huffman(weights), end
        states[turn] = base + stream.take(bits)
        turn = 1 - turn


# ---- sequences (3.1.1.3.2) ------------------------------------------------------------------------------------------


def _codes(direct: int, widths: list[int]) -> list[tuple[int, int]]:
    """Base and extra bits of each code: the first ones mean themselves, then the ranges follow each other."""
    codes = [(value, 0) for value in range(direct)]
    base = direct
    for width in widths:
        codes.append((base, width))
        base += 1 << width
    return codes


_LITERAL_LENGTHS = _codes(16, [1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
_MATCH_LENGTHS = [
    (base + 3, bits)
    for base, bits in _codes(32, [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
]
_OFFSETS = [(1 << code, code) for code in range(32)]
_KINDS: list[tuple[int, int, list[tuple[int, int]], list[int]]] = [  # accuracy given, predefined, codes, its counts
    (9, 6, _LITERAL_LENGTHS, [4, 3, *[2] * 6, *[2] * 5, 1, 1, 1, *[2] * 9, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1]),
    (8, 5, _OFFSETS, [*[1] * 6, 2, 2, 2, *[1] * 15, *[-1] * 5]),
    (9, 6, _MATCH_LENGTHS, [1, 4, 3, *[2] * 6, *[1] * 37, *[-1] * 7]),
]


class _Frame:
    def __init__(self, data: bytes, size: int) -> None:
        self.data = data
        self.size = size
        self.out = bytearray()
        self.huffman: _Huffman | None = None
        self.tables: list[tuple[_Table, int] | None] = [None, None, None]
        self.recent = [1, 4, 8]

    def read(self) -> bytearray:
        data = self.data
        if int.from_bytes(data[:4], "little") != _ZSTD_MAGIC:
            raise ValueError("this is not a Zstandard frame")
        descriptor = data[4]
        single = descriptor >> 5 & 1
        if descriptor & 3:
            raise ValueError("the frame needs a dictionary")
        at = 5 + (not single) + (single, 2, 4, 8)[descriptor >> 6]
        while True:
            header = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            at += 3
            kind, length = header >> 1 & 3, header >> 3
            if kind == 1:
                self._append(data[at : at + 1] * min(length, self.size + 1))
                at += 1
            else:
                block = data[at : at + length]
                at += length
                if len(block) < length or kind == 3:
                    raise ValueError("a block is cut off")
                if kind == 0:
                    self._append(block)
                else:
                    self._block(block)
            if header & 1:
                return self.out

    def _append(self, piece: bytes | bytearray) -> None:
        if len(self.out) + len(piece) > self.size:
            raise ValueError("there are more bytes than promised")
        self.out += piece

    def _literals(self, data: bytes) -> tuple[bytes | bytearray, int]:
        kind, form = data[0] & 3, data[0] >> 2 & 3
        if kind < 2:
            length = (1, 2, 1, 3)[form]
            count = int.from_bytes(data[:length], "little") >> (4 if form & 1 else 3)
            if count > self.size:
                raise ValueError("there are more bytes than promised")
            if kind == 1:
                return data[length : length + 1] * count, length + 1
            return data[length : length + count], length + count
        length, width = ((3, 10), (3, 10), (4, 14), (5, 18))[form]
        header = int.from_bytes(data[:length], "little") >> 4
        count, packed = header & (1 << width) - 1, header >> width
        at, end = length, length + packed
        if end > len(data) or count > self.size:
            raise ValueError("the literals are longer than the data")
        if kind == 2:
            self.huffman, at = _huffman(data[:end], at)
        if self.huffman is None:
            raise ValueError("there is no Huffman table to use again")
        if not form:
            return self.huffman.decode(data[at:end], count), end
        out = bytearray()
        starts = [at + 6]
        for index in range(3):
            starts.append(starts[-1] + (data[at + 2 * index] | data[at + 2 * index + 1] << 8))
        quarter = (count + 3) // 4
        for index in range(4):
            stop = end if index == 3 else starts[index + 1]
            part = count - 3 * quarter if index == 3 else quarter
            if stop > end or part < 0:
                raise ValueError("the streams of literals do not fit")
            out += self.huffman.decode(data[starts[index] : stop], part)
        return out, end

    def _table(self, kind: int, mode: int, data: bytes, at: int) -> tuple[tuple[_Table, int], int]:
        largest, accuracy, codes, counts = _KINDS[kind]
        if mode == 0:
            return (_fse_table(counts, accuracy), accuracy), at
        if mode == 1:
            return ([(data[at], 0, 0)], 0), at + 1
        if mode == 2:
            counts, log, at = _distribution(data, at, largest, len(codes))
            return (_fse_table(counts, log), log), at
        known = self.tables[kind]
        if known is None:
            raise ValueError("there is no table to use again")
        return known, at

    def _block(self, data: bytes) -> None:
        literals, at = self._literals(data)
        count = data[at]
        at += 1
        if count > 127:
            if count < 255:
                count = (count - 128 << 8) + data[at]
                at += 1
            else:
                count = (data[at] | data[at + 1] << 8) + 0x7F00
                at += 2
        if not count:
            self._append(literals)
            return
        modes = data[at]
        at += 1
        for kind, shift in enumerate((6, 4, 2)):
            self.tables[kind], at = self._table(kind, modes >> shift & 3, data, at)
        self._sequences(literals, count, _Backward(data[at:]).take)

    def _sequences(self, literals: bytes | bytearray, count: int, take: Callable[[int], int]) -> None:
        (lengths, a), (offsets, b), (matches, c) = (table for table in self.tables if table is not None)
        length_state, offset_state, match_state = take(a), take(b), take(c)
        out, recent, used = self.out, self.recent, 0
        for remaining in range(count - 1, -1, -1):
            length_code, length_bits, length_base = lengths[length_state]
            offset_code, offset_bits, offset_base = offsets[offset_state]
            match_code, match_bits, match_base = matches[match_state]
            offset = (1 << offset_code) + take(offset_code)
            base, extra = _MATCH_LENGTHS[match_code]
            match = base + take(extra)
            base, extra = _LITERAL_LENGTHS[length_code]
            length = base + take(extra)
            self._append(literals[used : used + length])
            used += length
            distance = self._distance(offset, length, recent)
            _copy_match(out, distance, match, self.size)
            if remaining:
                length_state = length_base + take(length_bits)
                match_state = match_base + take(match_bits)
                offset_state = offset_base + take(offset_bits)
        if used > len(literals):
            raise ValueError("the sequences take more literals than there are")
        self._append(literals[used:])

    @staticmethod
    def _distance(offset: int, length: int, recent: list[int]) -> int:
        """Offsets 1 to 3 are those used last (3.1.1.5)."""
        if offset > 3:
            recent[:] = [offset - 3, recent[0], recent[1]]
            return recent[0]
        index = offset - 1 + (not length)
        distance = recent[0] - 1 if index == 3 else recent[index]
        if index:
            recent.insert(0, distance)
            del recent[3 if index == 3 else index + 1]
        return distance
