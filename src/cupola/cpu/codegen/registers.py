"""The registers of a kernel while its body is written.

A register that lives within one basic block is no more than a name for an SSA value. One that lives across
blocks has a *home*: stack slots that LLVM turns into SSA values in the convergent body, a slot of the frame in the
independent one (abi.h tells the two apart). In the convergent body the analysis says how much the home must
hold: one scalar for all lanes (uniform), the scalar of lane 0 (affine), or a vector (varying).

The frame has a slot with room for all lanes for each register with a home, whichever body runs, so that a unit
can change from the convergent to the independent body: `save_all` writes every lane. At a barrier that all
threads reach together only what is needed afterwards is saved, and uniform and affine registers as scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from .builder import Builder, constant
from .instructions import settle_nans
from .values import BITS, Affine, Value

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


@dataclass(slots=True)
class Home:
    """Where a register lives across blocks."""

    type: str
    kind: Kind
    slot: int
    flag_slot: int
    scalar: str = ""
    vector: str = ""
    exact: str = ""

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
        inexact: set[str],
        floats: frozenset[str] = frozenset(),
    ) -> None:
        self.builder = builder
        self.declared = declared
        self.in_frame = in_frame
        self.inexact = inexact
        self.floats = floats
        """Registers of which `nans` says that they hold results of f32 arithmetic only."""
        self.first_lane: Callable[[], Value] = lambda: constant("i32", 0)
        """Tells a lane that runs the current block."""
        self.irregular: set[str] = set()
        """Registers that received less regular values than their kind promises; the body must be written again."""
        self.values: dict[str, Value] = {}
        self.homes: dict[str, Home] = {}
        offset = frame_offset
        for name in sorted(crossing):
            type = REGISTER_TYPE[declared[name]]
            self.homes[name] = Home(type, kinds.get(name), offset, 0)
            offset += self._slot_bytes(type)
        for home in self.homes.values():
            home.flag_slot = offset
            offset += 1
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
            home.scalar = self._alloca(f"%s.{label}", home.type)
        if home.is_varying or (home.is_affine and name in self.inexact):
            home.vector = self._alloca(f"%v.{label}", builder.vector_type(home.type))
        if home.is_affine and name in self.inexact:
            home.exact = self._alloca(f"%e.{label}", "i1")

    def _alloca(self, name: str, type: str) -> str:
        self.builder.allocas.append(f"  {name} = alloca {type}")
        return name

    # Within a block

    def begin_block(self) -> None:
        """Forget the SSA values: what is read next comes from its home."""
        self.values.clear()

    def natural_type(self, name: str) -> str:
        return REGISTER_TYPE[self.declared[name]]

    def current(self, name: str) -> Value | None:
        """The value of a register in whatever type it was written, or None when it was never written."""
        value = self.values.get(name)
        if value is None and name in self.homes:
            value = self._load_home(name, self.homes[name])
            value = self.values[name] = replace(value, raw_nan=name in self.floats)
        return value

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

    def convert(self, name: str, value: Value, *, signed: bool) -> Value:
        """What the register holds after a value of another width was written to it."""
        bits = BITS[self.natural_type(name)]
        if BITS[value.type] == bits:
            return value
        value = settle_nans(self.builder, value)
        return self.builder.extend(self.as_integer(value), f"i{bits}", is_signed=signed)

    def write(self, name: str, value: Value, lanes: Value, *, signed: bool = False) -> None:
        """Write a register in the lanes of a mask (an i1 value; the constant true: in all that matter)."""
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
                    old = self.builder.bitcast(self.as_integer(old), self.as_integer(value).type)
                    value = self.as_integer(value)
                value = replace(self.builder.select(lanes, value, old), raw_nan=raw)
        self.values[name] = value
        home = self.homes.get(name)
        if home is not None:
            self._store_home(name, home, value)

    # Homes

    def _load_home(self, name: str, home: Home) -> Value:
        builder, type = self.builder, home.type
        if self.in_frame:
            return self._load_slot(home, home.slot)
        if home.kind == 0:
            return Value(builder.emit(f"load {type}, ptr {home.scalar}"), type)
        if not home.is_affine:
            return Value(builder.emit(f"load {builder.vector_type(type)}, ptr {home.vector}"), type, True)
        base = builder.emit(f"load {type}, ptr {home.scalar}")
        assert home.kind is not None
        if not home.exact:
            return self._on_a_line(base, type, home.kind)
        exact = builder.emit(f"load i1, ptr {home.exact}")
        vector = builder.emit(f"load {builder.vector_type(type)}, ptr {home.vector}")
        return Value(vector, type, True, Affine(base, home.kind, exact))

    def _on_a_line(self, base: str, type: str, stride: int) -> Value:
        builder = self.builder
        first = builder.splat(Value(base, type))
        steps = builder.per_lane(type, [lane * stride for lane in range(builder.width)])
        return replace(builder.binary("add", first, steps), affine=Affine(base, stride))

    def _store_home(self, name: str, home: Home, value: Value) -> None:
        builder = self.builder
        value = self.as_integer(value)
        if self.in_frame:
            self._store_slot(home, builder.splat(value))
        elif home.kind == 0:
            # A lowering may make a vector of what is the same in all running lanes.
            value = builder.lane(value, self.first_lane()) if value.vector else value
            builder.line(f"store {home.type} {value.ir}, ptr {home.scalar}")
        elif home.is_affine:
            line = value.line()
            if line is None or line.stride != home.kind or (line.exact != "true" and name not in self.inexact):
                self.irregular.add(name)
                return
            builder.line(f"store {home.type} {line.base}, ptr {home.scalar}")
            if home.exact:
                builder.line(f"store {builder.typed(builder.splat(value))}, ptr {home.vector}")
                builder.line(f"store i1 {line.exact}, ptr {home.exact}")
        else:
            builder.line(f"store {builder.typed(builder.splat(value))}, ptr {home.vector}")

    def clear(self, names: Iterable[str]) -> None:
        """Set registers that may be read before they are written to zero."""
        for name in names:
            home = self.homes.get(name)
            if home is None or self.in_frame:
                continue
            vector = self.builder.vector_type(home.type)
            if home.scalar:
                self.builder.line(f"store {home.type} {_zero(home.type)}, ptr {home.scalar}")
            if home.vector:
                zero = "zeroinitializer" if self.builder.width > 1 else _zero(home.type)
                self.builder.line(f"store {vector} {zero}, ptr {home.vector}")
            if home.exact:
                self.builder.line(f"store i1 false, ptr {home.exact}")

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
        builder = self.builder
        for name in sorted(names):
            home = self.homes.get(name)
            if home is None or self.in_frame:
                continue
            value = self.current(name)
            assert value is not None
            value = self.as_integer(value)
            if home.is_varying or home.exact:
                self._store_slot(home, builder.splat(value))
            if home.is_affine:
                line = value.affine
                assert line is not None
                if home.exact:
                    flag = builder.cast("zext", Value(line.exact, "i1"), "i8")
                    builder.line(f"store i8 {flag.ir}, ptr {self.slot_pointer(home.flag_slot)}")
                else:
                    self._store_scalar(home, line.base)
            if home.kind == 0:
                self._store_scalar(home, value.ir)

    def _store_scalar(self, home: Home, ir: str) -> None:
        wide = self.builder.cast("zext", Value(ir, "i1"), "i32") if home.type == "i1" else Value(ir, home.type)
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
            if home.vector:
                value = self._load_slot(home, home.slot)
                builder.line(f"store {builder.typed(builder.splat(value))}, ptr {home.vector}")
                if home.is_affine:
                    base = builder.lane(value, 0)
                    builder.line(f"store {home.type} {base.ir}, ptr {home.scalar}")
            else:
                builder.line(f"store {home.type} {self._load_scalar(home)}, ptr {home.scalar}")
            if home.exact:
                flag = Value(builder.emit(f"load i8, ptr {self.slot_pointer(home.flag_slot)}"), "i8")
                builder.line(f"store i1 {builder.cast('trunc', flag, 'i1').ir}, ptr {home.exact}")

    def save_all(self) -> None:
        """Write every lane of every register that has a home, as the independent body wants them."""
        builder = self.builder
        for name, home in self.homes.items():
            self.values.pop(name, None)
            value = self._load_home(name, home)
            self._store_slot(home, builder.splat(value))
            if home.exact and value.affine is not None:
                flag = builder.cast("zext", Value(value.affine.exact, "i1"), "i8")
                builder.line(f"store i8 {flag.ir}, ptr {self.slot_pointer(home.flag_slot)}")


def _zero(type: str) -> str:
    return "false" if type == "i1" else "0"
