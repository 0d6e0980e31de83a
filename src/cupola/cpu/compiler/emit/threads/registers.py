"""The registers of a kernel while its body is written.

A register that lives within one basic block is only a name for an SSA value. One that lives across
blocks has a *home*: stack slots that LLVM turns into SSA values in the convergent body, a slot of the frame in the
independent one (abi.h tells the two apart). In the convergent body the analysis says how much the home must
hold: one scalar for all lanes (uniform), the scalar of lane 0 (affine), or a vector (varying).

The frame has a slot with room for all lanes for each register with a home, whichever body runs, so that a unit
can change from the convergent to the independent body: `save_all` writes every lane. At a barrier that all
threads reach together only what is needed afterwards is saved, and uniform and affine registers as scalars.

In the convergent body of a very large kernel (`far`) homes are in those slots, too, instead of on the stack. Turning
thousands of stack slots into SSA values would take the optimizer a time that grows with the number of slots times the
number of blocks, and saving them would take that much code at each barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

from cupola.cpu.compiler.emit.instructions import settle_nans
from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.patterns import Pattern
from cupola.cpu.compiler.emit.values.values import BITS, Affine, Origin, Value

Kind = int | None
"""What a register may hold: the stride from lane to lane, 0 when uniform, None when it is just varying."""

REGISTER_TYPE = {
    "pred": "i1",
    **dict.fromkeys(("b8", "u8", "s8"), "i8"),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), "i16"),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2", "u16x2", "s16x2", "tf32"), "i32"),
    **dict.fromkeys(("b64", "u64", "s64", "f64", "f32x2", "texref", "samplerref", "surfref"), "i64"),
    "b128": "i128",
}
"""How a register of each declared type is kept."""


class Demand(Enum):
    """What a home must be able to hold, when the kind of its register alone promises too much."""

    LOOSE = "affine values whose lanes may have wrapped, nobody knows how"
    VARYING = "any values"


Inexact = Origin | Demand
"""How values of an affine register may be off the line: all from one origin (``narrow`` is empty), or in any way."""


@dataclass(slots=True)
class Home:
    """Where a register lives across blocks.

    A varying register has a ``vector``, a uniform one a ``scalar``. An affine one has the scalar of lane 0; when its
    values are of a common `origin`, lane 0 of the ``narrow`` value; when they are loose, the vector, and the flag
    ``exact``. The frame has room for the vector, and 8 bytes for the narrow scalar or the flag.
    """

    type: str
    kind: Kind
    slot: int
    extra_slot: int = 0
    origin: Origin | None = None
    scalar: str = ""
    narrow: str = ""
    vector: str = ""
    exact: str = ""
    is_used: bool = False
    """Whether code has been written that relies on which of these there are."""

    @property
    def is_affine(self) -> bool:
        return self.kind is not None and self.kind != 0

    @property
    def is_varying(self) -> bool:
        return self.kind is None


class Registers:
    """Reads and writes the registers of one body."""

    def __init__(
        self,
        builder: Builder,
        declared: dict[str, str],
        kinds: Mapping[str, Kind],
        crossing: Iterable[str],
        *,
        frame_offset: int,
        in_frame: bool,
        inexact: Mapping[str, Inexact],
        far: bool = False,
        floats: frozenset[str] = frozenset(),
        warp_lines: Set[str] = frozenset(),
        constants: Mapping[str, Value] = MappingProxyType({}),
    ) -> None:
        self.builder = builder
        self.declared = declared
        self.in_frame = in_frame
        self.far = far
        self.inexact = inexact
        # A conversion may also write a wider register, which then holds other bits, too.
        self.floats = frozenset(name for name in floats if REGISTER_TYPE[declared[name]] == "i32")
        """Registers of which `nans` says that they hold results of f32 arithmetic only."""
        self.warp_lines = warp_lines
        """Registers that are a multiple of the width plus the lane number where they are affine."""
        self.constants = constants
        """What registers hold that always hold one number, so that shifts and shuffles by it see a literal."""
        self.first_lane: Callable[[], Value] = lambda: constant("i32", 0)
        """Tells a lane that runs the current block."""
        self.irregular: dict[str, Inexact] = {}
        """Registers that received less regular values than their home holds; the body must be written again."""
        self.values: dict[str, Value] = {}
        self.homes: dict[str, Home] = {}
        self._held: dict[str, Value] | None = None
        offset = frame_offset
        for name in sorted(crossing):
            type = REGISTER_TYPE[declared[name]]
            self.homes[name] = Home(type, kinds.get(name), offset)
            offset += self._slot_bytes(type)
        for home in self.homes.values():
            home.extra_slot = offset
            offset += 8
        self.frame_bytes = offset
        for name, home in self.homes.items():
            self._make_home(name, home)

    def _slot_bytes(self, type: str) -> int:
        """The room of a slot: a predicate is one bit for each lane, everything else an element."""
        width = self.builder.width
        size = max(4, width // 8) if type == "i1" else width * BITS[type] // 8
        return -(-size // 64) * 64 if width > 1 else max(size, 16)

    def _make_home(self, name: str, home: Home) -> None:
        builder, label = self.builder, name.lstrip("%").replace("$", ".")
        if self.in_frame:
            home.kind = None
            return
        if builder.width == 1:
            home.kind = 0
        if home.kind == 0 or home.is_affine:
            home.scalar = self._room(f"%s.{label}", home.type, home.slot)
        if home.is_varying:
            home.vector = self._room(f"%v.{label}", builder.vector_type(home.type), home.slot)
        if home.is_affine and name in self.inexact:
            self._make_inexact(name, home, self.inexact[name])
            home.is_used = True

    def _make_inexact(self, name: str, home: Home, need: Inexact) -> None:
        """Give an affine home what it takes to hold values whose lanes may have wrapped."""
        label = name.lstrip("%").replace("$", ".")
        if need is Demand.LOOSE:
            home.vector = self._room(f"%v.{label}", self.builder.vector_type(home.type), home.slot)
            home.exact = self._room(f"%e.{label}", "i1", home.extra_slot)
        elif isinstance(need, Origin):
            home.origin = need
            home.narrow = self._room(f"%n.{label}", need.type, home.extra_slot)

    def _room(self, name: str, type: str, slot: int) -> str:
        """A place of a home: a stack slot, or an offset in the frame."""
        if self.far:
            return f"frame+{slot}"
        self.builder.allocas.append(f"  {name} = alloca {type}")
        return name

    def _at(self, place: str) -> str:
        """The pointer to a place of a home."""
        return self.slot_pointer(int(place.removeprefix("frame+"))) if self.far else place

    # Within a block

    def begin_block(self, known: Mapping[str, Value] = MappingProxyType({})) -> None:
        """Forget the SSA values: what is read next comes from its home, unless it is ``known``."""
        self.values.clear()
        self.values.update(known)

    def natural_type(self, name: str) -> str:
        return REGISTER_TYPE[self.declared[name]]

    def current(self, name: str) -> Value | None:
        """The value of a register in whatever type it was written, or None when it was never written."""
        value = self.values.get(name) or self.constants.get(name)
        if value is None and name in self.homes:
            value = self._load_home(name, self.homes[name])
            value = self.values[name] = replace(value, raw_nan=name in self.floats)
        if name in self.warp_lines and value is not None:
            line = value.affine
            if line is not None and line.stride == 1 and line.exact == "true":
                value = replace(value, affine=replace(line, whole=True), pattern=value.pattern or self._lanes(value))
        return value

    def _lanes(self, value: Value) -> Pattern:
        """A line that begins at a multiple of the width, as a pattern."""
        assert value.affine is not None
        width, whole = self.builder.width, (1 << BITS[value.type]) - 1
        return Pattern(value.affine.base, tuple(range(width)), whole & -width)

    def read(self, name: str, type: str, *, raw_nans: bool = False) -> Value:
        """The register's value as an LLVM type: its low bits when it is wider, zeros above when it is narrower.

        ``raw_nans`` says that it does not matter which NaN an f32 result is.
        """
        value = self.current(name)
        if value is None:  # never written: any value will do
            return constant(type, 0)
        builder = self.builder
        if value.raw_nan and not raw_nans:
            value = self.values[name] = settle_nans(builder, value)
        if value.type == type:
            return value
        if value.raw_nan and BITS[type] == BITS[value.type]:
            return replace(builder.bitcast(value, type), raw_nan=True)
        if BITS[type] != BITS[value.type]:
            value = self.as_integer(value)
            value = builder.extend(value, f"i{BITS[type]}", is_signed=False)
        return builder.bitcast(value, type)

    def read_extended(self, name: str, type: str) -> Value:
        """The register as an integer of another width."""
        value = self.current(name)
        if value is None:
            return constant(type, 0)
        return self.builder.extend(self.as_integer(value), type, is_signed=False)

    def as_integer(self, value: Value) -> Value:
        return value if value.type[0] == "i" else self.builder.bitcast(value, f"i{BITS[value.type]}")

    def _as_kept(self, name: str, value: Value) -> Value:
        """A value in the type in which its home is: what is only computed with as numbers need not change its type."""
        return self.builder.bitcast(value, "float") if name in self.floats else self.as_integer(value)

    def convert(self, name: str, value: Value, *, signed: bool) -> Value:
        """What the register holds after a value of another width was written to it."""
        bits = BITS[self.natural_type(name)]
        if BITS[value.type] == bits:
            return value
        value = settle_nans(self.builder, value)
        return self.builder.extend(self.as_integer(value), f"i{bits}", is_signed=signed)

    def write(self, name: str, value: Value, lanes: Value, *, signed: bool = False) -> None:
        """Write a register in the lanes of a mask (an i1 value; the constant true: in all that matter)."""
        if name in self.constants:
            return
        value = self.convert(name, value, signed=signed)
        if name in self.homes and name not in self.floats:
            value = settle_nans(self.builder, value)
        if lanes.ir != "true":
            old = self.current(name)
            if old is not None:
                raw = name in self.floats or (value.raw_nan and old.raw_nan)
                if not raw:
                    value, old = settle_nans(self.builder, value), settle_nans(self.builder, old)
                if old.type != value.type:
                    old, value = self._as_kept(name, old), self._as_kept(name, value)
                value = replace(self.builder.select(lanes, value, old), raw_nan=raw)
        self.values[name] = value
        home = self.homes.get(name)
        if home is not None and self._held is not None:
            self._held[name] = value
        elif home is not None:
            self._store_home(name, home, value)

    def hold(self) -> None:
        """Leave all homes as they are, until `release`."""
        self._held = {}

    def release(self, *, without: Container[str] = ()) -> None:
        """Write to the homes what has been held back from them, but for some."""
        held, self._held = self._held or {}, None
        for name, value in held.items():
            if name not in without:
                self._store_home(name, self.homes[name], value)

    # Homes

    def _load_home(self, name: str, home: Home) -> Value:
        builder, type = self.builder, home.type
        home.is_used = True
        if self.in_frame:
            return self._load_slot(home, home.slot)
        if name in self.floats and not home.is_affine:
            type = "float"
        if home.kind == 0:
            return Value(builder.emit(f"load {type}, ptr {self._at(home.scalar)}"), type)
        if not home.is_affine:
            return Value(builder.emit(f"load {builder.vector_type(type)}, ptr {self._at(home.vector)}"), type, True)
        base = builder.emit(f"load {type}, ptr {self._at(home.scalar)}")
        assert home.kind is not None
        if home.exact:
            exact = builder.emit(f"load i1, ptr {self._at(home.exact)}")
            vector = builder.emit(f"load {builder.vector_type(type)}, ptr {self._at(home.vector)}")
            return Value(vector, type, True, Affine(base, home.kind, exact))
        line = Affine(base, home.kind)
        if home.origin is not None:
            narrow = builder.emit(f"load {home.origin.type}, ptr {self._at(home.narrow)}")
            origin = replace(home.origin, narrow=narrow)
            line = Affine(base, home.kind, builder.stays_on_line(origin), origin)
        return builder.lanes_on_line(type, line)

    def _store_home(self, name: str, home: Home, value: Value) -> None:
        builder = self.builder
        value = self.as_integer(value) if self.in_frame or home.is_affine else self._as_kept(name, value)
        if self.in_frame:
            self._store_slot(home, builder.splat(value))
        elif home.kind == 0:
            # A lowering may make a vector of what is the same in all running lanes.
            value = builder.lane(value, self.first_lane()) if value.vector else value
            builder.line(f"store {value.type} {value.ir}, ptr {self._at(home.scalar)}")
        elif home.is_affine:
            self._store_affine(name, home, value)
        else:
            builder.line(f"store {builder.typed(builder.splat(value))}, ptr {self._at(home.vector)}")

    def _store_affine(self, name: str, home: Home, value: Value) -> None:
        builder, line = self.builder, value.line()
        if line is None or line.stride != home.kind:
            self.irregular[name] = Demand.VARYING
            return
        origin = replace(line.origin, narrow="") if line.origin is not None else None
        if line.exact != "true" and not home.is_used:
            self._make_inexact(name, home, origin if origin is not None else Demand.LOOSE)
        home.is_used = True
        if line.exact != "true" and not home.exact and (origin is None or origin != home.origin):
            known = self.irregular.get(name, origin if home.origin is None else Demand.LOOSE)
            self.irregular[name] = origin if origin is not None and known == origin else Demand.LOOSE
            return
        builder.line(f"store {home.type} {line.base}, ptr {self._at(home.scalar)}")
        if home.exact:
            builder.line(f"store {builder.typed(builder.splat(value))}, ptr {self._at(home.vector)}")
            builder.line(f"store i1 {line.exact}, ptr {self._at(home.exact)}")
        elif home.origin is not None:
            # Lanes that never were anything else have not wrapped: any narrow value that does not will do.
            reach = home.origin.step * (builder.width - 1)
            harmless = str(-reach if reach < 0 and not home.origin.signed else 0)
            narrow = line.origin.narrow if line.origin is not None and line.exact != "true" else harmless
            builder.line(f"store {home.origin.type} {narrow}, ptr {self._at(home.narrow)}")

    def clear(self, names: Iterable[str]) -> None:
        """Set registers that may be read before they are written to zero."""
        for name in names:
            home = self.homes.get(name)
            if home is None or self.in_frame:
                continue
            vector = self.builder.vector_type(home.type)
            if home.scalar:
                self.builder.line(f"store {home.type} {_zero(home.type)}, ptr {self._at(home.scalar)}")
            if home.vector:
                zero = "zeroinitializer" if self.builder.width > 1 else _zero(home.type)
                self.builder.line(f"store {vector} {zero}, ptr {self._at(home.vector)}")
            if home.narrow and home.origin is not None:
                self.builder.line(f"store {home.origin.type} 0, ptr {self._at(home.narrow)}")
            if home.exact:
                self.builder.line(f"store i1 false, ptr {self._at(home.exact)}")

    # The frame

    def slot_pointer(self, offset: int) -> str:
        return self.builder.emit(f"getelementptr i8, ptr %frame, i64 {offset}")

    def _load_slot(self, home: Home, offset: int) -> Value:
        builder, pointer = self.builder, self.slot_pointer(offset)
        if home.type == "i1":
            mask = Value(builder.emit(f"load i32, ptr {pointer}"), "i32")
            return builder.spread(mask)
        vector = builder.width > 1
        return Value(builder.emit(f"load {builder.vector_type(home.type)}, ptr {pointer}, align 16"), home.type, vector)

    def _store_slot(self, home: Home, value: Value) -> None:
        builder, pointer = self.builder, self.slot_pointer(home.slot)
        if home.type == "i1":
            builder.line(f"store i32 {builder.ballot(value).ir}, ptr {pointer}")
        else:
            builder.line(f"store {builder.typed(value)}, ptr {pointer}, align 16")

    def save(self, names: Iterable[str]) -> None:
        """Keep registers in the frame over a barrier, as scalars where those say it all."""
        if self.far:
            return
        builder = self.builder
        for name in sorted(names):
            home = self.homes.get(name)
            if home is None or self.in_frame:
                continue
            home.is_used = True
            if home.vector:
                value = self.current(name)
                assert value is not None
                self._store_slot(home, builder.splat(self.as_integer(value)))
            if not home.vector:
                self._store_scalar(
                    home, Value(builder.emit(f"load {home.type}, ptr {self._at(home.scalar)}"), home.type)
                )
            self._save_extra(home)

    def _save_extra(self, home: Home) -> None:
        """Save what a home holds beside its scalar or its vector."""
        builder = self.builder
        if home.narrow and home.origin is not None:
            type = home.origin.type
            narrow = builder.emit(f"load {type}, ptr {self._at(home.narrow)}")
            builder.line(f"store {type} {narrow}, ptr {self.slot_pointer(home.extra_slot)}")
        if home.exact:
            flag = Value(builder.emit(f"load i1, ptr {self._at(home.exact)}"), "i1")
            wide = builder.cast("zext", flag, "i8")
            builder.line(f"store i8 {wide.ir}, ptr {self.slot_pointer(home.extra_slot)}")

    def _store_scalar(self, home: Home, value: Value) -> None:
        wide = self.builder.cast("zext", value, "i32") if home.type == "i1" else value
        self.builder.line(f"store {wide.type} {wide.ir}, ptr {self.slot_pointer(home.slot)}, align 4")

    def _load_scalar(self, home: Home) -> str:
        builder, pointer = self.builder, self.slot_pointer(home.slot)
        if home.type == "i1":
            return builder.cast("trunc", Value(builder.emit(f"load i32, ptr {pointer}"), "i32"), "i1").ir
        return builder.emit(f"load {home.type}, ptr {pointer}, align 4")

    def restore(self, names: Iterable[str]) -> None:
        """The inverse of `save`, and of `save_all` (whose slots begin with the scalar of lane 0)."""
        builder = self.builder
        for name in sorted(names):
            home = self.homes.get(name)
            if home is None or self.in_frame:
                continue
            home.is_used = True
            if self.far:
                if home.type == "i1" and home.scalar:  # of which `save_all` has made one for each lane
                    builder.line(f"store i1 {self._load_scalar(home)}, ptr {self._at(home.scalar)}")
                continue
            if home.vector:
                value = self._load_slot(home, home.slot)
                builder.line(f"store {builder.typed(builder.splat(value))}, ptr {self._at(home.vector)}")
                if home.is_affine:
                    base = builder.lane(value, 0)
                    builder.line(f"store {home.type} {base.ir}, ptr {self._at(home.scalar)}")
            else:
                builder.line(f"store {home.type} {self._load_scalar(home)}, ptr {self._at(home.scalar)}")
            if home.narrow and home.origin is not None:
                type = home.origin.type
                narrow = builder.emit(f"load {type}, ptr {self.slot_pointer(home.extra_slot)}")
                builder.line(f"store {type} {narrow}, ptr {self._at(home.narrow)}")
            if home.exact:
                flag = Value(builder.emit(f"load i8, ptr {self.slot_pointer(home.extra_slot)}"), "i8")
                builder.line(f"store i1 {builder.cast('trunc', flag, 'i1').ir}, ptr {self._at(home.exact)}")

    def save_all(self) -> None:
        """Write every lane of every register that has a home, as the independent body wants them."""
        builder = self.builder
        for name, home in self.homes.items():
            if self.far and home.vector:
                continue
            self.values.pop(name, None)
            value = self._load_home(name, home)
            self._store_slot(home, builder.splat(value))
            if not self.far:
                self._save_extra(home)


def _zero(type: str) -> str:
    return "false" if type == "i1" else "0"
