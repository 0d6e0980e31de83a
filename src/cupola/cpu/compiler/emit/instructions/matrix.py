"""Products of matrices that a warp holds: ``mma``, ``wmma.mma``, ``movmatrix`` (PTX ISA 9.7.14).

All work on the tiles of fragments.py. The element of an accumulator in lane ``4 * g + t`` is in row ``g`` and column
``2 * t`` or ``2 * t + 1`` of its tile. So for each element along K, two shuffles bring the elements of A and B that
meet there to every lane, and a multiplication of whole vectors advances all the sums of a tile at once.

The ISA leaves the order and the rounding of floating sums open ("at least single precision"). Here the products are
exact in single precision and added to the accumulator one after the other, in ascending order of K; f16 accumulators
are rounded once, at the end. In double precision the sum is a chain of fused multiply-adds, as the ISA has it.

The code of one instruction is long, so each is an internal function of the module, which all its uses call.
"""

from __future__ import annotations

from collections.abc import Sequence

from cupola.cpu.compiler.emit.values.builder import Builder
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.ptx import ast

from .fragments import ELEMENT_BITS, Product, products
from .registry import OperandTypes, Operation, fixed, instruction, operation_of
from .sparse import multiply_sparse, selectors
from .tiles import LANES, Vectors, along_columns, along_rows, begin, elements, finish, multiply_add, pick

SIZES = " ".join(sorted({shape for kind in ("mma", "sparse", "wmma") for shape in products(kind)}))
NEWER = (
    "kind::f8f6f4 kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4 block_scale scale_vec::1X scale_vec::2X scale_vec::4X "
    "ue8m0 ue4m3 e3m2 e2m3 e2m1"
)
"""Modifiers of sm_120a."""
MODIFIERS = f"sync aligned row col satfinite {SIZES} {NEWER} {' '.join(ELEMENT_BITS)}"


def product_of(op: Operation) -> Product:
    """Shape and types of an instruction."""
    shape = op.one_of(*SIZES.split())
    types = [m for m in op.modifiers if m in ELEMENT_BITS]
    if len(types) == 2:  # wmma on f16 names the accumulators only
        types = [types[0], "f16", "f16", types[1]]
    sparse = any(m.split("::")[0] == "sp" for m in op.modifiers)
    return Product(shape, tuple(types), sparse=sparse, is_wmma=op.opcode == "wmma")


def objection(op: Operation, sources: int) -> str | None:
    """What is wrong with a product, or None."""
    newer = next((m for m in op.modifiers if m in NEWER.split()), None)
    if newer is not None:
        return f"'.{newer}' needs compute capability 12.0a, which the CPU device does not have"
    p = product_of(op)
    kind = "wmma" if p.is_wmma else "sparse" if p.sparse else "mma"
    if p.types not in products(kind).get(p.shape, ()):
        return f"there is no such product of shape '.{p.shape}' with the types '{'.'.join(p.types)}'"
    layouts = tuple(m for m in op.modifiers if m in ("row", "col"))
    free = p.is_quad or (p.is_wmma and ELEMENT_BITS[p.type("a")] >= 8)
    if layouts != ("row", "col") and not free:
        return f"'.{p.shape}' with '.{p.type('a')}' takes A by rows and B by columns ('.row.col')"
    if p.type("d") != "f64" and op.one_of("rn", "rz", "rm", "rp"):
        return "only products in double precision have a rounding mode"
    if op.has("satfinite") and (p.type("d") != "s32" or p.type("a") == "b1"):
        return "'.satfinite' is for sums of integers"
    if (p.type("a") == "b1") != (op.has("popc") and (op.has("xor") or op.has("and"))):
        return "'.xor.popc' and '.and.popc' are required for products of bits, and for no others"
    wanted = sum(p.registers(role) for role in "abc") + (2 if p.sparse else 0)
    if op.destinations != p.registers("d") or sources != wanted:
        counts = ", ".join(f"{role} {p.registers(role)}" for role in "dabc")
        return f"the fragments must have these numbers of registers: {counts}"
    return None


def selector_problem(instruction: ast.Instruction) -> str | None:
    """What is wrong with the selector of a sparse product, or None."""
    if not any(m.partition("::")[0] == "sp" for m in instruction.modifiers):
        return None
    selector, count = instruction.operands[5], selectors(product_of(operation_of(instruction)))
    if isinstance(selector, ast.Immediate) and 0 <= selector.value < count:
        return None
    return f"the selector must be a number below {count}" if count > 1 else "the selector must be 0"


LLVM = {"f64": "double", "f32": "float"}


def product_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    p = product_of(op)
    parts = [(LLVM.get(p.type(role), "i32"),) * p.registers(role) for role in "abc"]
    extra = ("i32", "i32") if p.sparse else ()
    return OperandTypes((LLVM.get(p.type("d"), "i32"),) * p.registers("d"), (*parts[0], *parts[1], *parts[2], *extra))


@instruction(
    "mma",
    "wmma",
    on="f16 f32 f64 s32",
    modifiers=f"{MODIFIERS} mma sp sp::ordered_metadata xor and popc rn rz rm rp",
    sources=tuple(range(3, 33)),
    types=product_types,
    objection=objection,
    operands=selector_problem,
)
def multiply(b: Builder, op: Operation, *sources: Value) -> Vectors:
    p = product_of(op)
    name = ".".join((op.opcode, *(m.partition("::")[0] for m in op.modifiers)))
    arguments = list(sources)
    if p.sparse:
        selector = arguments.pop().integer
        name += f".{selector}"

    def body(inner: Builder, values: list[Value]) -> Vectors:
        counts = [p.registers(role) for role in "abc"]
        x, y, z = values[: counts[0]], values[counts[0] : counts[0] + counts[1]], values[counts[0] + counts[1] :]
        if p.is_quad:
            return multiply_quads(inner, op, p, x, y, z)
        if p.sparse:
            return multiply_sparse(inner, op, p, x, y, z[:-1], z[-1], selector or 0)
        return multiply_tiles(inner, op, p, x, y, z)

    result = LLVM.get(p.type("d"), "i32")
    return b.function_of_many(name, (result,) * p.registers("d"), arguments, body)


# Tiles


def multiply_tiles(b: Builder, op: Operation, p: Product, x: Vectors, y: Vectors, z: Vectors) -> Vectors:
    """D = A * B + C."""
    fa, fb, fc = (p.fragment(role) for role in "abc")
    rows = [elements(b, register, p.type("a")) for register in x[: fa.distinct]]
    columns = [elements(b, register, p.type("b")) for register in y[: fb.distinct]]
    sums = begin(b, op, p, z)
    for across in range(fa.across):
        for word in range(4):
            for at in range(len(rows[0])):
                lefts = [pick(b, rows[fa.tile(i, across)][at], along_rows(word)) for i in range(fa.lines)]
                for j in range(fb.lines):
                    column = columns[fb.tile(j, across)][at]
                    for odd in (0, 1):
                        right = pick(b, column, along_columns(word, odd))
                        for i, left in enumerate(lefts):
                            index = 2 * fc.tile(i, j) + odd
                            sums[index] = multiply_add(b, op, p.type("a"), left, right, sums[index])
    return finish(b, op, p, sums, z)


# mma.m8n8k4 on f16


def multiply_quads(b: Builder, op: Operation, p: Product, x: Vectors, y: Vectors, z: Vectors) -> Vectors:
    """Four products of 8x4 and 4x8, each by the four lanes ``4 q ... 4 q + 3`` and those 16 further on.

    Of A by rows a lane has four elements of one row, the upper lanes rows 4 to 7; by columns four rows of one column.
    B is the mirror image. Accumulators of f16 are a row in each lane, those of f32 are pairs in two rows.
    """
    layouts = [m for m in op.modifiers if m in ("row", "col")]
    left = [e for word in x for e in elements(b, word, "f16")]
    right = [e for word in y for e in elements(b, word, "f16")]

    def line(lane: int, number: int) -> int:
        """The lane of the same product that has a line's elements along K."""
        return lane & 12 | number & 3 | (16 if number & 4 else 0)

    def spread(e: Sequence[Value], along_k: bool, k: int, numbers: Sequence[int]) -> Value:
        """For each lane the element ``k`` of the line that it wants."""
        if along_k:
            return pick(b, e[k], [line(lane, number) for lane, number in enumerate(numbers)])
        lanes = [lane & 12 | k | (16 if number & 4 else 0) for lane, number in enumerate(numbers)]
        result = pick(b, e[0], lanes)
        for index in (1, 2, 3):
            here = b.per_lane("i1", [int(number & 3 == index) for number in numbers])
            result = b.select(here, pick(b, e[index], lanes), result)
        return result

    def places(type: str) -> list[tuple[list[int], list[int]]]:
        """Row and column of each accumulator in each lane."""
        high = [4 if lane >= 16 else 0 for lane in range(LANES)]
        if type == "f16":
            return [([lane % 4 + high[lane] for lane in range(LANES)], [i] * LANES) for i in range(8)]
        return [
            (
                [(lane & 1) + (i & 2) + high[lane] for lane in range(LANES)],
                [(i & 4) + (lane & 2) + (i & 1) for lane in range(LANES)],
            )
            for i in range(8)
        ]

    sums = begin(b, op, p, z)
    if p.type("c") != p.type("d"):  # f16 accumulators in, f32 out
        sums = rearrange(b, sums, places("f16"), places("f32"))
    for i, (rows, columns) in enumerate(places(p.type("d"))):
        for k in range(4):
            u = spread(left, layouts[0] == "row", k, rows)
            v = spread(right, layouts[1] == "col", k, columns)
            sums[i] = multiply_add(b, op, "f16", u, v, sums[i])
    return finish(b, op, p, sums, z)


Places = list[tuple[list[int], list[int]]]


def rearrange(b: Builder, values: Vectors, here: Places, there: Places) -> list[Value]:
    """Accumulators laid out in one way, as another way has them."""
    where = {
        (lane & 12, rows[lane], columns[lane]): (index, lane)
        for index, (rows, columns) in enumerate(here)
        for lane in range(LANES)
    }
    results = []
    for rows, columns in there:
        sources = [where[lane & 12, rows[lane], columns[lane]] for lane in range(LANES)]
        result = None
        for index in sorted({index for index, _ in sources}):
            part = pick(b, values[index], [lane for _, lane in sources])
            mine = b.per_lane("i1", [int(i == index) for i, _ in sources])
            result = part if result is None else b.select(mine, part, result)
        assert result is not None
        results.append(result)
    return results


# movmatrix


@instruction("movmatrix", on="b16", modifiers="sync aligned m8n8 trans", sources=1, types=fixed("i32", "i32"))
def transpose(b: Builder, op: Operation, x: Value) -> Value:
    """An 8x8 matrix of 16-bit elements, transposed over the lanes."""
    x = b.splat(x)
    picks = []
    for lane in range(LANES):
        line, pair = lane >> 2, lane & 3
        picks += [2 * (4 * (2 * pair + odd) + (line >> 1)) + (line & 1) for odd in (0, 1)]
    halves = b.emit(f"bitcast {b.typed(x)} to <64 x i16>")
    indices = ", ".join(f"i32 {p}" for p in picks)
    moved = b.emit(f"shufflevector <64 x i16> {halves}, <64 x i16> poison, <64 x i32> <{indices}>")
    return Value(b.emit(f"bitcast <64 x i16> {moved} to <32 x i32>"), "i32", True)
