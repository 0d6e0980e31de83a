"""The syntax tree of a random kernel. `cuda.py` prints it, `interpreter.py` runs it, `generator.py` grows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.random_kernels.operations import Operation
from tests.random_kernels.scalars import PRED, U32, Scalar

# --- expressions: no side effects -----------------------------------------------------------------


@dataclass(eq=False)
class Variable:
    name: str
    type: Scalar
    uniform: bool = False
    """The same in all threads of a block."""


@dataclass(eq=False)
class Constant:
    type: Scalar
    bits: int


@dataclass(eq=False)
class Apply:
    operation: Operation
    operands: list[Expression]

    @property
    def type(self) -> Scalar:
        return self.operation.result


@dataclass(eq=False)
class Array:
    """Memory of one element type.

    ``space`` is ``"local"`` (a thread's own stack), ``"own"`` (its slice of global memory), ``"column"`` (the same,
    interleaved with the others'), ``"shared"``, ``"constant"``, ``"input"`` (read only, global), or for atomic
    operations ``"shared total"`` and ``"total"`` (global).
    """

    name: str
    type: Scalar
    length: int
    space: str
    values: list[int] = field(default_factory=list)
    atomic: str = ""
    """The one atomic operation that this array is for."""


@dataclass(eq=False)
class Load:
    array: Array
    index: Expression
    as_bytes: bool = False
    type: Scalar = U32


@dataclass(eq=False)
class Warp:
    """A warp operation by the lanes in ``mask``; only ever the whole right-hand side of a `Let` or `Assign`."""

    name: str
    type: Scalar
    mask: Expression
    operands: list[Expression]
    width: int = 32


@dataclass(eq=False)
class Call:
    """A call; with ``other``, one through a pointer: to that function where ``selector`` holds."""

    function: Function
    arguments: list[Expression]
    other: Function | None = None
    selector: Expression | None = None

    @property
    def type(self) -> Scalar:
        return self.function.result


Expression = Variable | Constant | Apply | Load | Warp | Call

# --- statements -----------------------------------------------------------------------------------


@dataclass(eq=False)
class Let:
    variable: Variable
    value: Expression


@dataclass(eq=False)
class Assign:
    variable: Variable
    value: Expression


@dataclass(eq=False)
class Store:
    array: Array
    index: Expression
    value: Expression
    as_bytes: bool = False


@dataclass(eq=False)
class LoadVector:
    """``targets`` = elements from ``index * len(targets)`` on, in one access."""

    array: Array
    index: Expression
    targets: list[Variable]


@dataclass(eq=False)
class StoreVector:
    array: Array
    index: Expression
    values: list[Expression]


@dataclass(eq=False)
class Mix:
    """Stir a value into one of the thread's state words."""

    state: int
    value: Expression


@dataclass(eq=False)
class If:
    condition: Expression
    then: list[Statement]
    otherwise: list[Statement]


@dataclass(eq=False)
class Switch:
    selector: Expression
    cases: list[tuple[list[int], list[Statement], bool]]
    """Labels (none: default), statements, and whether control falls through to the next case."""


@dataclass(eq=False)
class Loop:
    """``form``: ``"for"``, ``"down"``, ``"do"``, or ``"endless"`` (the body leaves by itself)."""

    counter: Variable
    limit: Expression
    body: list[Statement]
    form: str


@dataclass(eq=False)
class Break:
    pass


@dataclass(eq=False)
class Continue:
    pass


@dataclass(eq=False)
class Leave:
    """End the thread, after writing down where."""

    site: int


@dataclass(eq=False)
class Return:
    """Return from a function."""

    value: Expression


@dataclass(eq=False)
class Barrier:
    """``kind`` is "" or the reduction of ``__syncthreads_*``, whose result goes to ``target``."""

    kind: str = ""
    target: Variable | None = None
    value: Expression | None = None


@dataclass(eq=False)
class SyncWarp:
    mask: Expression


@dataclass(eq=False)
class Atomic:
    array: Array
    index: Expression
    value: Expression


Statement = (
    Let | Assign | Store | LoadVector | StoreVector | Mix | If | Switch | Loop | Break | Continue | Leave | Return
    | Barrier | SyncWarp | Atomic
)  # fmt: skip

# --- the whole ------------------------------------------------------------------------------------

STATES = 3
"""Words of mixed state of a thread."""


@dataclass(eq=False)
class Function:
    name: str
    parameters: list[Variable]
    result: Scalar
    inline: bool
    arrays: list[Array] = field(default_factory=list)
    body: list[Statement] = field(default_factory=list)


@dataclass(eq=False)
class Kernel:
    seed: int
    grid: tuple[int, int]
    block: tuple[int, int, int]
    parameters: list[Variable]
    arguments: list[int]
    """Bit patterns of the parameters."""
    arrays: list[Array]
    functions: list[Function]
    body: list[Statement] = field(default_factory=list)
    results: list[Variable] = field(default_factory=list)
    """Variables that every thread writes at its end, after the state words."""

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def block_threads(self) -> int:
        x, y, z = self.block
        return x * y * z

    @property
    def threads(self) -> int:
        return self.blocks * self.block_threads

    @property
    def words(self) -> int:
        """Output words of a thread."""
        return STATES + len(self.results)

    def in_space(self, *spaces: str) -> list[Array]:
        return [array for array in self.arrays if array.space in spaces]


TID, LANE, GLOBAL = Variable("tid", U32), Variable("lane", U32), Variable("gid", U32)
BLOCK, THREADS = Variable("block", U32, True), Variable("threads", U32, True)
BUILT_IN = (TID, LANE, GLOBAL, BLOCK, THREADS)
TRUE = Constant(PRED, 1)

INPUT_WORDS = 256
"""64-bit words of the input of a kernel."""


def bodies(statement: Statement) -> list[list[Statement]]:
    """The lists of statements inside a statement."""
    match statement:
        case If():
            return [statement.then, statement.otherwise]
        case Switch():
            return [case[1] for case in statement.cases]
        case Loop():
            return [statement.body]
    return []


def walk(statements: list[Statement]) -> Iterator[Statement]:
    for statement in statements:
        yield statement
        for body in bodies(statement):
            yield from walk(body)
