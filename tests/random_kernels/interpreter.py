"""What a random kernel must compute, by interpreting its syntax tree with NumPy.

All threads of the grid go through the program together, each statement under the mask of those for which control is
there; a branch runs both sides, a loop runs until nobody is left in it. Operations of a warp and barriers only see
threads that CUDA guarantees to be there: the interpreter checks that the mask of a warp operation names exactly the
lanes that execute it (votes may name threads that have ended), that a whole block comes to a barrier, and that no
index leaves its array. So it also proves that a kernel is well formed, which lets `reduce` delete what it likes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.random_kernels.cuda import kernel_offset
from tests.random_kernels.operations import word_bits
from tests.random_kernels.program import (
    STATES,
    Apply,
    Array,
    Assign,
    Atomic,
    Barrier,
    Break,
    Call,
    Constant,
    Continue,
    Expression,
    Function,
    If,
    Kernel,
    Leave,
    Let,
    Load,
    LoadVector,
    Loop,
    Mix,
    Return,
    Statement,
    Store,
    StoreVector,
    Switch,
    SyncWarp,
    Variable,
    Warp,
)
from tests.random_kernels.scalars import PRED, Lanes, words


class Malformed(Exception):
    """The kernel does something that CUDA does not define."""


@dataclass
class Buffers:
    """The memory that a kernel gets, and what it leaves there."""

    input: Lanes
    output: Lanes
    """Words by thread."""
    slices: Lanes
    """Bytes."""
    totals: Lanes
    """Words."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffers) and all(
            np.array_equal(a, b) for a, b in zip(vars(self).values(), vars(other).values(), strict=True)
        )


def make_buffers(kernel: Kernel) -> Buffers:
    """The memory before a launch. Values stay clear of signaling NaNs only because nothing looks at their bits."""
    from tests.random_kernels.generator import input_words

    slices = totals = 0
    for array in kernel.in_space("own", "column"):
        slices = kernel_offset(kernel, array) + -(-array.length * array.type.bits // 8 * kernel.threads // 16) * 16
    for array in kernel.in_space("total"):
        totals = kernel_offset(kernel, array) + -(-array.length * array.type.bits // 64)
    return Buffers(
        input=input_words(kernel.seed),
        output=np.zeros((kernel.threads, kernel.words), "u8"),
        slices=words(kernel.seed + (1 << 40), slices // 8).view("u1"),
        totals=words(kernel.seed + (2 << 40), totals),
    )


def settle_nans(kernel: Kernel, buffers: Buffers) -> None:
    """Make the NaNs that the kernel may have stored one: CUDA does not say which it makes."""
    for array in kernel.in_space("own", "column"):
        if array.type.kind == "float":
            start = kernel_offset(kernel, array)
            size = array.length * array.type.bits // 8 * kernel.threads
            floats = buffers.slices[start : start + size].view(array.type.dtype)
            floats[np.isnan(floats)] = np.nan


@dataclass
class _Frame:
    """The variables of the kernel or of one call."""

    variables: dict[str, Lanes] = field(default_factory=dict)
    arrays: dict[str, Lanes] = field(default_factory=dict)
    returned: Lanes = field(default_factory=lambda: np.zeros(0, bool))
    result: Lanes | None = None


class Interpreter:
    """Runs one kernel. Lanes are laid out by block, each block padded to whole warps."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.buffers = make_buffers(kernel)
        self.padded = -(-kernel.block_threads // 32) * 32
        self.count = kernel.blocks * self.padded
        place = np.arange(self.count)
        self.tid = place % self.padded
        self.block = place // self.padded
        self.exists = self.tid < kernel.block_threads
        self.gid = np.where(self.exists, self.block * kernel.block_threads + self.tid, 0)
        self.ended = ~self.exists
        self.left = np.zeros(self.count, bool)
        """Lanes that have left the loop body that is being executed."""
        self.broken = np.zeros(self.count, bool)
        self.states = [self.gid.astype("u8") * np.uint64(2 * i + 3) for i in range(STATES)]
        self.frame = _Frame(returned=np.zeros(self.count, bool))
        self.shared: dict[str, Lanes] = {}
        self.steps = 0

    def run(self) -> Buffers:
        kernel = self.kernel
        built_in = {"tid": self.tid, "lane": self.tid % 32, "gid": self.gid, "block": self.block}
        for name, value in built_in.items():
            self.frame.variables[name] = value.astype("u4")
        self.frame.variables["threads"] = np.full(self.count, kernel.block_threads, "u4")
        for parameter, bits in zip(kernel.parameters, kernel.arguments, strict=True):
            self.frame.variables[parameter.name] = self._constant(Constant(parameter.type, bits))
        for array in kernel.arrays:
            self._allocate(array)
        with np.errstate(all="ignore"):
            self._block(kernel.body, self.exists.copy())
            alive = ~self.ended
            rows = self.gid[alive]
            for index, state in enumerate(self.states):
                self.buffers.output[rows, index] = state[alive]
            for index, variable in enumerate(kernel.results if alive.any() else []):
                self.buffers.output[rows, STATES + index] = self._word(variable, alive)[alive]
        settle_nans(kernel, self.buffers)
        return self.buffers

    # --- memory -----------------------------------------------------------------------------------

    def _allocate(self, array: Array) -> None:
        if array.space == "local":
            self._local(array)
        elif array.space in ("shared", "shared total"):
            start = np.arange(array.length, dtype="u8") * np.uint64(array.values[0])
            self.shared[array.name] = np.tile(start.astype(array.type.dtype), (self.kernel.blocks, 1))

    def _local(self, array: Array) -> None:
        values = _from_bits(array, array.values)
        self.frame.arrays[array.name] = np.tile(values, (self.count, 1))

    def _memory(self, array: Array) -> tuple[Lanes, Lanes]:
        """A table that holds the array, and the row of each lane in it."""
        kernel = self.kernel
        if array.space == "local":
            return self.frame.arrays[array.name], np.arange(self.count)
        if array.space in ("shared", "shared total"):
            return self.shared[array.name], self.block
        if array.space in ("own", "column"):
            start = kernel_offset(kernel, array)
            size = array.length * array.type.bits // 8 * kernel.threads
            flat = self.buffers.slices[start : start + size].view(array.type.dtype)
            if array.space == "own":
                return flat.reshape(kernel.threads, array.length), self.gid
            return flat.reshape(array.length, kernel.threads).T, self.gid
        nobody = np.zeros(self.count, "i8")
        if array.space == "input":
            return self.buffers.input.view(array.type.dtype).reshape(1, -1), nobody
        if array.space == "constant":
            return _from_bits(array, array.values).reshape(1, -1), nobody
        start = kernel_offset(kernel, array)
        size = -(-array.length * array.type.bits // 64)
        return self.buffers.totals[start : start + size].view(array.type.dtype).reshape(1, -1), nobody

    def _place(self, array: Array, index: Expression, active: Lanes, length: int) -> Lanes:
        place = self.value(index, active).astype("i8")
        if ((place < 0) | (place >= length))[active].any():
            raise Malformed(f"index of {array.name}")
        return np.clip(place, 0, length - 1)

    def _load(self, e: Load, active: Lanes) -> Lanes:
        table, rows = self._memory(e.array)
        if e.as_bytes:
            table = np.ascontiguousarray(table).view("u1")
        return table[rows, self._place(e.array, e.index, active, table.shape[1])]

    def _store(self, s: Store, active: Lanes) -> None:
        table, rows = self._memory(s.array)
        if s.as_bytes:
            table = table.view("u1")
        place = self._place(s.array, s.index, active, table.shape[1])[active]
        cells = rows[active] * table.shape[1] + place
        if s.array.space == "shared" and len(np.unique(cells)) != len(cells):
            raise Malformed(f"two threads store to one element of {s.array.name}")
        table[rows[active], place] = self.value(s.value, active)[active]

    def _atomic(self, s: Atomic, active: Lanes) -> None:
        table, rows = self._memory(s.array)
        place = self._place(s.array, s.index, active, s.array.length)[active]
        function = {
            "Add": np.add, "exchange": np.add, "Min": np.minimum, "Max": np.maximum,
            "And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor,
        }[s.array.atomic]  # fmt: skip
        function.at(table, (rows[active], place), self.value(s.value, active)[active])

    # --- expressions ------------------------------------------------------------------------------

    def value(self, e: Expression, active: Lanes) -> Lanes:
        """One value a lane; those of lanes that are not active mean nothing."""
        match e:
            case Variable():
                return self.frame.variables[e.name]
            case Constant():
                return self._constant(e)
            case Apply():
                return e.operation.evaluate(*(self.value(operand, active) for operand in e.operands))
            case Load():
                return self._load(e, active)
            case Warp():
                return self._warp(e, active)
            case Call():
                arguments = [self.value(argument, active) for argument in e.arguments]
                if e.other is None or e.selector is None:
                    return self._call(e.function, arguments, active)
                chosen = self.value(e.selector, active).astype(bool)
                one = self._call(e.function, arguments, active & ~chosen)
                return np.where(chosen, self._call(e.other, arguments, active & chosen), one)
        raise AssertionError(e)

    def _constant(self, e: Constant) -> Lanes:
        dtype = e.type.dtype
        raw = np.array([e.bits], f"u{dtype.itemsize}")
        return np.repeat(raw.astype(bool) if e.type is PRED else raw.view(dtype), self.count)

    def _word(self, e: Expression, active: Lanes) -> Lanes:
        value = self.value(e, active)
        return (word_bits(value) if value.dtype.kind == "f" else value).astype("u8")

    def _call(self, function: Function, arguments: list[Lanes], active: Lanes) -> Lanes:
        outer, left = self.frame, self.left
        self.frame, self.left = _Frame(returned=np.zeros(self.count, bool)), np.zeros(self.count, bool)
        self.frame.result = np.zeros(self.count, function.result.dtype)
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            self.frame.variables[parameter.name] = argument
        for array in function.arrays:
            self._local(array)
        if active.any():
            self._block(function.body, active)
        result = self.frame.result
        if not (self.frame.returned | ~active).all():
            raise Malformed(f"{function.name} ends without a result")
        self.frame, self.left = outer, left
        return result

    # --- warps ------------------------------------------------------------------------------------

    def _check_mask(self, mask: Expression, active: Lanes, votes: bool) -> Lanes:
        """The lanes that a warp operation names, one row a warp."""
        value = self.value(mask, active)
        lanes = active.reshape(-1, 32)
        named = (value[:, None] >> np.arange(32, dtype="u4") & np.uint32(1)).astype(bool)
        there = np.repeat(lanes, 32, axis=0)
        ended = np.repeat(self.ended.reshape(-1, 32), 32, axis=0)
        wrong = (named & ~there & ~ended) | (there & ~named) | ((named & ended) if not votes else False)
        if wrong[active].any():
            raise Malformed("a warp operation whose mask names other lanes than those that execute it")
        return lanes

    def _warp(self, e: Warp, active: Lanes) -> Lanes:
        votes = e.name in ("ballot", "any", "all")
        lanes = self._check_mask(e.mask, active, votes)
        operands = [self.value(operand, active) for operand in e.operands]
        first = operands[0].reshape(-1, 32)
        if votes:
            agree = lanes & first.astype(bool)
            if e.name == "ballot":
                result = _bits(agree)
            else:
                result = agree.any(axis=1) if e.name == "any" else (agree | ~lanes).all(axis=1)
            return np.repeat(result, 32).astype(e.type.dtype)
        if e.name.startswith("shuffle"):
            return self._shuffle(e, lanes, first, operands[1])
        if e.name == "match_any":
            same = (first[:, :, None] == first[:, None, :]) & lanes[:, None, :]
            return _bits(same.reshape(-1, 32)).astype("u4")
        if e.name == "matched_all":
            leader = first[np.arange(len(first)), lanes.argmax(axis=1)]
            together = ((first == leader[:, None]) | ~lanes).all(axis=1)
            mask = _bits(lanes)
            return np.repeat(np.where(together, mask, np.invert(np.uint32(0))), 32).astype("u4")
        function, start = {
            "reduce_add": (np.add, 0), "reduce_or": (np.bitwise_or, 0), "reduce_xor": (np.bitwise_xor, 0),
            "reduce_and": (np.bitwise_and, -1), "reduce_min": (np.minimum, np.iinfo(first.dtype).max),
            "reduce_max": (np.maximum, np.iinfo(first.dtype).min),
        }[e.name]  # fmt: skip
        neutral = np.array([start]).astype(first.dtype)[0]
        total = function.reduce(np.where(lanes, first, neutral), axis=1, dtype=first.dtype)
        return np.repeat(total, 32)

    def _shuffle(self, e: Warp, lanes: Lanes, values: Lanes, operand: Lanes) -> Lanes:
        lane = np.broadcast_to(np.arange(32), values.shape)
        width = e.width
        start, end = lane & ~(width - 1), lane | (width - 1)
        n = operand.astype("i8").reshape(-1, 32)
        if e.name == "shuffle":
            source = start | (n & (width - 1))
        elif e.name == "shuffle_up":
            source = np.where(lane - n < start, lane, lane - n)
        elif e.name == "shuffle_down":
            source = np.where(lane + n > end, lane, lane + n)
        else:
            source = np.where(lane ^ n > end, lane, lane ^ n)
        given = np.take_along_axis(lanes, source, axis=1)
        return np.where(given, np.take_along_axis(values, source, axis=1), values).reshape(-1)

    # --- statements -------------------------------------------------------------------------------

    def _block(self, statements: list[Statement], active: Lanes) -> None:
        for statement in statements:
            active = active & ~self.left & ~self.ended & ~self.frame.returned
            if not active.any():
                return
            self._statement(statement, active)

    def _set(self, variable: Variable, value: Lanes, active: Lanes) -> None:
        old = self.frame.variables.get(variable.name)
        self.frame.variables[variable.name] = value if old is None else np.where(active, value, old)

    def _statement(self, s: Statement, active: Lanes) -> None:
        self.steps += 1
        if self.steps > 50_000:
            raise Malformed("runs too long")
        match s:
            case Let() | Assign():
                self._set(s.variable, self.value(s.value, active), active)
            case Mix():
                state = (self.states[s.state] ^ self._word(s.value, active)) * np.uint64(0x9E3779B97F4A7C15)
                self.states[s.state] = np.where(active, state ^ state >> np.uint64(29), self.states[s.state])
            case Store():
                self._store(s, active)
            case LoadVector():
                table, rows = self._memory(s.array)
                size = len(s.targets)
                place = self._place(s.array, s.index, active, table.shape[1] // size)
                values = [table[rows, place * size + part] for part in range(size)]
                for target, value in zip(s.targets, values, strict=True):
                    self._set(target, value, active)
            case StoreVector():
                table, rows = self._memory(s.array)
                size = len(s.values)
                place = self._place(s.array, s.index, active, table.shape[1] // size)
                values = [self.value(value, active) for value in s.values]
                for part, value in enumerate(values):
                    table[rows[active], place[active] * size + part] = value[active]
            case If():
                condition = self.value(s.condition, active)
                self._block(s.then, active & condition)
                self._block(s.otherwise, active & ~condition)
            case Switch():
                self._switch(s, active)
            case Loop():
                self._loop(s, active)
            case Break():
                self.left |= active
                self.broken |= active
            case Continue():
                self.left |= active
            case Leave():
                rows = self.gid[active]
                self.buffers.output[rows, 0] = (self.states[0] ^ np.uint64(s.site))[active]
                self.buffers.output[rows, 1] = self.states[1][active]
                self.ended |= active
            case Return():
                assert self.frame.result is not None
                self.frame.result = np.where(active, self.value(s.value, active), self.frame.result)
                self.frame.returned |= active
            case Barrier():
                self._barrier(s, active)
            case SyncWarp():
                self._check_mask(s.mask, active, votes=True)
            case Atomic():
                self._atomic(s, active)

    def _switch(self, s: Switch, active: Lanes) -> None:
        selector = self.value(s.selector, active)
        labels = [label for case in s.cases for label in case[0]]
        falling = np.zeros(self.count, bool)
        for own, body, falls in s.cases:
            here = np.isin(selector, own) if own else ~np.isin(selector, labels)
            here = (here | falling) & active
            self._block(body, here)
            falling = here & ~self.left if falls else np.zeros(self.count, bool)

    def _loop(self, s: Loop, active: Lanes) -> None:
        limit = self.value(s.limit, active)
        counter = np.zeros(self.count, "u4") if s.form != "down" else limit.copy()
        outer_left, outer_broken = self.left, self.broken
        self.broken = np.zeros(self.count, bool)
        inside = active.copy()
        first = True
        while True:
            if s.form == "for" or (s.form == "do" and not first):
                inside = inside & (counter < limit)
            elif s.form == "down":
                inside = inside & (counter > 0)
                counter = np.where(inside, counter - np.uint32(1), counter)
            first = False
            if not inside.any():
                break
            self._set(s.counter, counter, inside)
            self.left = outer_left.copy()
            self._block(s.body, inside)
            inside = inside & ~self.broken & ~self.ended & ~self.frame.returned
            if s.form != "down":
                counter = np.where(inside, counter + np.uint32(1), counter)
        self.left, self.broken = outer_left, outer_broken

    def _barrier(self, s: Barrier, active: Lanes) -> None:
        waiting = (~self.ended).reshape(self.kernel.blocks, -1)
        come = active.reshape(self.kernel.blocks, -1)
        if (come.any(axis=1) & (come != waiting).any(axis=1)).any():
            raise Malformed("a barrier that not all threads of the block reach")
        if s.target is None or s.value is None:
            return
        yes = come & self.value(s.value, active).reshape(come.shape).astype(bool)
        result = {"count": yes.sum(axis=1), "or": yes.any(axis=1), "and": (yes | ~come).all(axis=1)}[s.kind]
        self._set(s.target, np.repeat(result, self.padded).astype("i4"), active)


def _from_bits(array: Array, values: list[int]) -> Lanes:
    return np.array(values, f"u{array.type.bits // 8}").view(array.type.dtype)


def _bits(lanes: Lanes) -> Lanes:
    """One word a row of 32 booleans."""
    return np.packbits(lanes, axis=1, bitorder="little").view("u4").reshape(-1)
