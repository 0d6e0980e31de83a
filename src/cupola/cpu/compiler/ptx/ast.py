"""The typed syntax tree of a PTX module: what the parser makes and every pass reads.

Nested scopes are already flattened (a register or label of an inner scope has a unique name), vectors and
several statements a line are already taken apart, and every instruction carries its own source location, so
nothing after the parser looks at text. Types are PTX's own spelling without the dot (``"u32"``, ``"pred"``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from cupola.cpu.compiler.ptx import grammar
from cupola.cpu.compiler.ptx.grammar.descriptions import Description
from cupola.cpu.compiler.records import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """Where an instruction comes from: the PTX line, and with ``-lineinfo`` the CUDA source.

    ``inlined_at`` is the call site when the instruction was inlined; the chain ends in the kernel itself.
    """

    ptx_line: int
    file: str | None = None
    line: int = 0
    column: int = 0
    function: str | None = None
    inlined_at: Location | None = None


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register; its declared type is ``Function.registers[name]``."""

    name: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as ``%tid.x`` (name ``"tid"``, component ``"x"``) or ``%laneid``."""

    name: str
    component: str | None = None


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant. ``kind`` is ``"int"`` (value: Python int), ``"f32"`` or ``"f64"`` (value: the IEEE bits)."""

    value: int
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable, parameter or function, plus a byte offset.

    The function's own variables hide its parameters, and these the names of the module.
    """

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand ``[base+offset]``; ``base`` is None for an absolute address."""

    base: Register | Symbol | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """A brace-enclosed operand ``{a, b}``; as a destination an item may be ``Sink``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Sink:
    """The destination ``_``: the result is dropped."""


@dataclass(frozen=True, slots=True)
class LabelRef:
    """The target of a branch."""

    name: str


@dataclass(frozen=True, slots=True)
class Negated:
    """A predicate source operand written ``!p``."""

    register: Register


@dataclass(frozen=True, slots=True)
class Pair:
    """A destination pair ``p|q`` (setp, shfl, match), or ``{a, b, c, d}|p`` (tex, tld4)."""

    first: Register | Vector | Sink
    second: Register | Sink


@dataclass(frozen=True, slots=True)
class ArgumentList:
    """The parenthesized returns or arguments of a call."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class AddressList:
    """A bracketed list: ``[texture, {x, y}]``, ``[texture, sampler, {x, y}]``, ``[map, {c0, c1}]``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Selector:
    """A part of a register in a video instruction: ``%r1.b0``, ``%r1.h1``, ``%r1.b3210``; ``-%r1`` has none."""

    register: Register
    part: str
    negated: bool = False


Operand = (
    Register
    | Special
    | Immediate
    | Symbol
    | Address
    | Vector
    | Sink
    | LabelRef
    | Negated
    | Pair
    | ArgumentList
    | AddressList
    | Selector
)


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate ``@p`` or ``@!p`` in front of an instruction."""

    register: Register
    negated: bool = False


@dataclass(slots=True)
class Instruction:
    """One instruction. ``modifiers`` are the dotted parts after the opcode, in order: ``("rn", "f32")``.

    A call always has the operands ``ArgumentList`` (returns), ``Symbol`` or ``Register`` (the function),
    ``ArgumentList`` (arguments), and for an indirect call a ``LabelRef`` to its prototype or list of targets, or the
    ``Symbol`` of a variable that holds the addresses of the targets.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    location: Location
    text: str

    @property
    def description(self) -> Description:
        """What the instruction does, from the table of all of them."""
        return grammar.description(self.opcode, self.modifiers)


@dataclass(slots=True)
class Label:
    name: str


Statement = Instruction | Label


@dataclass(slots=True)
class Variable:
    """A variable of a state space, at module scope or in a function.

    ``size`` is 0 for an unsized ``extern .shared`` array (dynamic shared memory). ``initializer`` holds the
    bytes, or None for zero; it may be shorter than ``size``, the rest is zero. ``relocations`` are
    ``(byte offset, width, symbol, addend, is_generic)``: the address of ``symbol`` plus ``addend`` goes there.
    ``type`` is the element's, ``managed`` says ``.attribute(.managed)``.
    """

    name: str
    space: str
    type: str
    size: int
    align: int
    initializer: bytes | None = None
    relocations: tuple[tuple[int, int, str, int, bool], ...] = ()
    linkage: str | None = None
    location: Location | None = None
    managed: bool = False


@dataclass(slots=True)
class Parameter:
    """A parameter or return value of a function: in ``.param`` space, or a register (``is_register``).

    ``offset`` is where it lies in the buffer of kernel parameters, ``size`` its bytes.
    """

    name: str
    type: str
    size: int
    align: int
    offset: int
    is_pointer: bool = False
    is_register: bool = False


@dataclass(slots=True)
class Prototype:
    """The ``.callprototype`` of an indirect call."""

    returns: list[Parameter]
    parameters: list[Parameter]


@dataclass(frozen=True, slots=True)
class Part:
    """A function that is called within a kernel, once `passes.join_functions` has made it a part of the kernel.

    ``label`` is where its code begins, ``number`` identifies its address, ``recursive`` says that a thread may be in
    several calls of it. Then its local variables are at offsets, the ``slots``, in a frame on the thread's stack, which
    begins where the register ``frame`` says (`passes.make_frames`).
    """

    name: str
    label: str
    number: int
    recursive: bool
    frame: str = ""
    slots: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class Function:
    """A ``.entry`` or ``.func``; ``body`` is None for a declaration.

    ``registers`` holds those that the body names, with their types. ``directives`` are the numbers behind
    ``.maxntid``, ``.reqntid``, ``.minnctapersm``, ``.maxnreg`` and the like, keyed without the dot.
    ``branch_targets`` are the lists of labels (``.branchtargets``) and functions (``.calltargets``) by their name.
    For the passes are ``parts``, the functions that are called in a kernel, by label, whose code follows its own;
    ``call_sites``, the calls of them, which are numbered from 1; ``stack_bytes``, what their frames take on a thread's
    stack, and ``stack_grows``: that is not all, because of recursion or ``alloca``.
    """

    name: str
    is_entry: bool
    parameters: list[Parameter]
    returns: list[Parameter]
    registers: dict[str, str]
    variables: list[Variable]
    body: list[Statement] | None
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    linkage: str | None = None
    location: Location | None = None
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: dict[str, Prototype] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)
    call_sites: tuple[Instruction, ...] = ()
    stack_bytes: int = 0
    stack_grows: bool = False


@dataclass(slots=True)
class Module:
    version: tuple[int, int]
    target: str
    address_size: int
    files: dict[int, str]
    variables: dict[str, Variable]
    functions: dict[str, Function]
    code_base: int = 0
    """How far behind the beginning of all addresses of functions those of this module's functions are."""
    unread: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What reads the bodies of kernels that have not been read yet."""

    def read_body(self, function: Function) -> None:
        """Have the body of a function of a module that was parsed lazily.

        Raises
        ------
        PtxSyntaxError
            As `parse` would have; each time.
        """
        read = self.unread.get(function.name)
        if read is not None:
            read()
            del self.unread[function.name]
