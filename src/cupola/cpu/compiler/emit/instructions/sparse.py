"""``mma.sp``: a sparse matrix A times a dense B (PTX ISA, "Matrix multiply-accumulate operation using mma.sp").

Half of each row of A is zero, in a fixed proportion: of four elements two are stored (f16, bf16, and 8-bit types), of
two one (tf32), of four pairs two (4-bit types). Four bits of metadata for each such *chunk* say where the stored ones
belong: two indices of two bits. (For tf32 an index counts halves of an element, so its upper bit says it all; for the
4-bit types it counts pairs, that is bytes.) What is not stored is not multiplied: an infinity of B that would meet
such a zero leaves no NaN.

The metadata of a row are in the lanes of its quad, which ones says an immediate, the selector. Rows ``g`` and ``g + 8``
share lanes if a row takes 16 bits or if its elements have 16 bits or more, then in the lower and the upper half of
the words; otherwise they have lanes of their own.
"""

from __future__ import annotations

from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import Value

from .fragments import ELEMENT_BITS, Product
from .registry import Operation
from .tiles import Vectors, along_columns, along_rows, begin, element, elements, finish, multiply_add, pick


def chunks_of(p: Product) -> int:
    """Chunks in a row: as many as there are groups of four bits of metadata."""
    return p.size[2] // {4: 8, 8: 4, 16: 4, 32: 2}[ELEMENT_BITS[p.type("a")]]


def selectors(p: Product) -> int:
    """How many selectors there are: the metadata take all lanes of a quad, a half, or one."""
    return 16 // chunks_of(p)


def place_of_metadata(p: Product, selector: int, half: int, chunk: int) -> tuple[int, int]:
    """The lane of the quad, and the first bit, with the metadata of a chunk of row ``g`` (half 0) or ``g + 8``."""
    count = chunks_of(p)
    if ELEMENT_BITS[p.type("a")] >= 16:
        return selector * count // 4 + chunk // 4, 16 * half + 4 * (chunk % 4)
    return (2 * selector if count == 8 else 0) + half + 2 * (chunk // 8), 4 * (chunk % 8)


def multiply_sparse(
    b: Builder, op: Operation, p: Product, x: Vectors, y: Vectors, z: Vectors, metadata: Value, selector: int
) -> Vectors:
    """D = A * B + C."""
    sums = begin(b, op, p, z)
    known: dict[int, Value] = {}

    def indices(half: int, chunk: int) -> Value:
        """The metadata of a chunk of each lane's row, in the low bits."""
        lane, bit = place_of_metadata(p, selector, half, chunk)
        if lane not in known:
            known[lane] = pick(b, metadata, along_rows(lane))
        return b.binary("lshr", known[lane], constant("i32", bit)) if bit else known[lane]

    columns = [elements(b, register, p.type("b")) for register in y] if p.type("d") != "s32" else []
    for chunk in range(chunks_of(p)):
        if p.type("d") == "s32":
            _integer_chunk(b, op, p, x, y, sums, [indices(half, chunk) for half in (0, 1)], chunk)
        else:
            _floating_chunk(b, op, p, x, columns, sums, [indices(half, chunk) for half in (0, 1)], chunk)
    return finish(b, op, p, sums, z)


def _integer_chunk(
    b: Builder, op: Operation, p: Product, x: Vectors, y: Vectors, sums: list[Value], places: list[Value], chunk: int
) -> None:
    """A chunk of integers is one word of the dense row, of which two bytes are stored."""
    fa, fb = p.fragment("a"), p.fragment("b")
    column = y[fb.tile(0, chunk // 4)]
    rights = [elements(b, pick(b, column, along_columns(chunk % 4, odd)), p.type("b")) for odd in (0, 1)]
    stored, upper = divmod(chunk, 2)
    for half in (0, 1):
        word = pick(b, x[fa.tile(half, stored // 4)], along_rows(stored % 4))
        dense = b.splat(constant("i32", 0))
        for which in (0, 1):
            byte = element(b, word, "u8", 16 * upper + 8 * which)
            index = b.binary("and", b.binary("lshr", places[half], constant("i32", 2 * which)), constant("i32", 3))
            dense = b.binary("or", dense, b.binary("shl", byte, b.binary("shl", index, constant("i32", 3))))
        for left, *right in zip(elements(b, dense, p.type("a")), *rights, strict=True):
            for odd in (0, 1):
                at = 2 * half + odd
                sums[at] = multiply_add(b, op, p.type("a"), left, right[odd], sums[at])


def _floating_chunk(
    b: Builder,
    op: Operation,
    p: Product,
    x: Vectors,
    columns: list[list[Value]],
    sums: list[Value],
    places: list[Value],
    chunk: int,
) -> None:
    """Choose the elements of B that belong to the stored ones of A."""
    fa, fb, bits = p.fragment("a"), p.fragment("b"), ELEMENT_BITS[p.type("a")]
    per_word, length, stored = 32 // bits, (2 if bits == 32 else 4), (1 if bits == 32 else 2)
    candidates: list[list[Value]] = []
    for odd in (0, 1):
        found = []
        for k in range(chunk * length, (chunk + 1) * length):
            word, at = divmod(k, per_word)
            found.append(pick(b, columns[fb.tile(0, word // 4)][at], along_columns(word % 4, odd)))
        candidates.append(found)
    for half in (0, 1):
        for which in range(stored):
            word, at = divmod(chunk * stored + which, per_word)
            left = pick(b, elements(b, x[fa.tile(half, word // 4)], p.type("a"))[at], along_rows(word % 4))
            first, second = (
                b.cast("trunc", b.binary("lshr", places[half], constant("i32", 2 * which + bit)), "i1")
                for bit in (0, 1)
            )
            for odd in (0, 1):
                c = candidates[odd]
                if length == 2:
                    right = b.select(second, c[1], c[0])
                else:
                    right = b.select(second, b.select(first, c[3], c[2]), b.select(first, c[1], c[0]))
                sums[2 * half + odd] = multiply_add(b, op, p.type("a"), left, right, sums[2 * half + odd])
