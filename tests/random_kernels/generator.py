"""Grows a random kernel from a seed.

What CUDA leaves undefined must not happen, so each `Region` knows what may be done in it:

- ``uniform``: all threads of the block that have not ended are here, so barriers may be executed;
- ``mask``: the variable with exactly the lanes of this warp that are here, so warp operations may be executed. Entering
  a branch makes a new one with a ballot before it, a loop with a ballot at the head of each iteration. A ``break`` or
  ``continue`` deep inside makes the mask of the regions around it unknown until they end; after threads may have ended,
  a ballot (which may name such threads) finds out who is left.

Values that are the same in all threads of a block are marked as such; conditions made of them keep regions whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from tests.random_kernels.operations import OPERATIONS, Operation
from tests.random_kernels.program import (
    BUILT_IN,
    GLOBAL,
    INPUT_WORDS,
    LANE,
    STATES,
    THREADS,
    TID,
    TRUE,
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
    walk,
)
from tests.random_kernels.scalars import F16, F32, F64, I32, I64, INTEGERS, PRED, U8, U32, U64, Lanes, Random, Scalar

VALUES = (*INTEGERS, U32, I32, U32, I32, U64, F16, F32, F32, F32, F64, F64)
SHUFFLED = (U32, I32, F32, U64, I64, F64)
SHAPES = (
    (1, 1, 1), (7, 1, 1), (32, 1, 1), (33, 1, 1), (48, 3, 1), (96, 1, 1), (100, 1, 1), (256, 1, 1), (64, 1, 1),
    (16, 4, 1), (8, 8, 2), (5, 3, 7), (128, 1, 1), (31, 2, 1), (4, 4, 4), (24, 1, 1), (40, 1, 1), (1, 70, 1),
    (80, 1, 1), (2, 96, 1),
)  # fmt: skip
RECURSIVE = 2000
"""Seeds from here on have recursive functions, and calls through pointers: the ones below were there before."""

GRIDS = ((1, 1), (2, 1), (3, 1), (2, 2), (5, 1), (1, 3))


def input_words(seed: int) -> Lanes:
    """The input of a kernel: 64-bit words filled with nasty values of some width."""
    random = Random(seed ^ 0x5EED << 32)
    data = np.zeros(INPUT_WORDS, "u8")
    for index in range(INPUT_WORDS):
        scalar = random.choice((U64, U32, U8, F64, F32, F16))
        data[index] = sum(random.pattern(scalar) << at for at in range(0, 64, scalar.bits))
    return data


def generate(seed: int) -> Kernel:
    """The kernel of a seed."""
    return _Generator(seed).kernel()


@dataclass
class _LoopState:
    """What is known of a loop while its body grows."""

    uniform: bool
    """The whole block goes round together, so only uniform conditions may break."""
    mask: Variable | None
    """Lanes still in the loop: a variable outside of it; None when nobody keeps count."""
    continued: bool = False


@dataclass
class _Region:
    variables: list[Variable]
    targets: list[Variable]
    """Variables that may be assigned."""
    uniform: bool
    mask: Variable | None
    parent: _Region | None = None
    loop: _LoopState | None = None
    whole: bool = True
    """Everybody who began this round of the loop, and has not left the loop, is here."""
    is_body: bool = False
    may_end: bool = True
    function: bool = False
    trips: int = 1
    """How often this is executed, about."""
    depth: int = 0
    arrays: list[Array] = field(default_factory=list)

    def inner(self, **changes: object) -> _Region:
        made = replace(self, parent=self, is_body=False, depth=self.depth + 1, **changes)  # type: ignore[arg-type]
        made.variables, made.targets = list(self.variables), list(self.targets)
        return made


class _Generator:
    def __init__(self, seed: int):
        self.seed = seed
        self.random = Random(seed)
        self.names = 0
        self.budget = 0
        self.functions: list[Function] = []
        self.arrays: list[Array] = []
        self.sites = 0
        self.threads = 0

    # --- the kernel -------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        random = self.random
        block, grid = random.choice(SHAPES), random.choice(GRIDS)
        self.threads = block[0] * block[1] * block[2]
        types = [random.choice(VALUES) for _ in range(random.between(2, 6))]
        parameters = [Variable(f"p{i}", t, True) for i, t in enumerate(types)]
        arguments = [random.pattern(t) for t in types]
        self.arrays = self._arrays()
        for index in range(random.below(3)):
            self.functions.append(self._function(index))
        if self.seed >= RECURSIVE and self.functions and not _wants_mask(self.functions[-1]):
            self.functions.append(self._function(len(self.functions), like=self.functions[-1]))
        kernel = Kernel(self.seed, grid, block, parameters, arguments, self.arrays, self.functions)
        region = _Region([*BUILT_IN, *parameters], [], True, None, arrays=self.arrays)
        body = kernel.body
        for _ in range(random.between(4, 7)):
            body += self._first_value(region)
        mask = self._variable(U32)
        # Threads that do not exist are no lanes: the last warp of the block is short.
        size = min(32, self.threads)
        value: Expression = Constant(U32, (1 << size) - 1)
        if self.threads % 32 and self.threads > 32:
            last = self._apply("<", THREADS, self._apply("+", self._apply("-", TID, LANE), Constant(U32, 32)))
            short = Constant(U32, (1 << self.threads % 32) - 1)
            value = self._select(last, short, Constant(U32, 0xFFFFFFFF))
        body.append(Let(mask, value))
        region.mask = mask
        self.budget = random.between(5, 16) if random.chance(70) else random.between(16, 45)
        body += self._statements(region, 100)
        kernel.results = [v for v in region.variables if v.type is not PRED and v not in (*BUILT_IN, *parameters)]
        return kernel

    def _arrays(self) -> list[Array]:
        random = self.random
        arrays = []
        for index in range(random.between(1, 2)):
            t = random.choice((U8, U32, I32, U64, F32, F64, U32))
            length = random.choice((4, 8, 5, 16))
            arrays.append(Array(f"local{index}", t, length, "local", [random.pattern(t) for _ in range(length)]))
        t = random.choice((U32, I32, F32, U64))
        arrays.append(Array("own", t, random.choice((4, 8)), "own"))
        arrays.append(Array("column", random.choice((U32, F32, U8, U64)), random.choice((2, 4)), "column"))
        for t in (random.choice((U32, I32, U64)), random.choice((F32, F64, F16, U8))):
            arrays.append(Array(f"in_{t}", t, INPUT_WORDS * 64 // t.bits, "input"))
        t = random.choice(VALUES)
        length = random.choice((3, 8, 13))
        arrays.append(Array("table", t, length, "constant", [self._finite(t) for _ in range(length)]))
        t = random.choice((U32, F32, U64, U8, I32, F64))
        arrays.append(Array("shared", t, self.threads + random.below(4), "shared", [random.between(1, 99)]))
        for space, length in (("shared total", random.choice((1, 4, 33))), ("total", random.choice((1, 8, 64)))):
            for index in range(random.between(1, 2)):
                t = random.choice((U32, I32, U64))
                atomic = random.choice(("Add", "Add", "Min", "Max", "And", "Or", "Xor", "exchange"))
                t = U32 if atomic == "exchange" and t is I32 else t
                name = f"{space.replace(' ', '_')}{index}"
                arrays.append(Array(name, t, length, space, [random.between(1, 1 << 20)], atomic))
        return arrays

    def _finite(self, t: Scalar) -> int:
        """A pattern that can be written as a literal."""
        while True:
            bits = self.random.pattern(t)
            if t.kind != "float" or np.isfinite(np.array(bits, f"u{t.bits // 8}").view(t.dtype)):
                return bits

    def _function(self, index: int, like: Function | None = None) -> Function:
        """A function; one with the parameters and the result of another."""
        random = self.random
        own = [Variable(f"a{i}", random.choice(VALUES)) for i in range(random.between(1, 4))]
        mask = Variable("among", U32) if random.chance(40) else None
        function = Function(f"f{index}", own + ([mask] if mask else []), random.choice(VALUES), random.chance(40))
        depth = Variable("depth", U32) if self.seed >= RECURSIVE and random.chance(70) else None
        if like is not None:
            own = [Variable(p.name, p.type) for p in like.parameters if p.name != "depth"]
            depth = Variable("depth", U32) if len(own) < len(like.parameters) else None
            function, mask = Function(f"f{index}", list(own), like.result, False), None
        if depth is not None:
            function.parameters.append(depth)
            function.inline = False
        t = random.choice((U32, F32, U64, I32))
        if random.chance(50):
            values = [random.pattern(t) for _ in range(8)]
            function.arrays.append(Array(f"stack{index}", t, 8, "local", values))
        constants = [array for array in self.arrays if array.space == "constant"]
        region = _Region(list(own), [], False, mask, function=True, may_end=False, arrays=function.arrays + constants)
        self.budget = random.between(3, 10)
        body: list[Statement] = []
        result = self._named(function.result, self._expression(function.result, region), body)
        region.variables.append(result)
        region.targets.append(result)
        body += self._statements(region, 12)
        if random.chance(30) and not function.inline:
            end: list[Statement] = [Return(self._expression(function.result, region))]
            body.append(If(self._expression(PRED, region), end, []))
            body += [Assign(result, self._expression(function.result, region))]
        if depth is not None:
            body += self._recursion(function, depth, result, region)
        body.append(Return(result))
        function.body = body
        return function

    def _recursion(self, function: Function, depth: Variable, result: Variable, region: _Region) -> list[Statement]:
        """Call the function itself, in some of the threads, one level lower."""
        random = self.random
        made: list[Statement] = []
        deeper: Expression = self._apply("<", Constant(U32, 0), depth)
        if random.chance(60):
            deeper = Apply(_AND, [deeper, self._condition(region, False)])
        condition = self._named(PRED, deeper, made)
        inner = region.inner()
        if region.mask is not None:
            inner.mask = self._named(U32, Warp("ballot", U32, region.mask, [condition]), made)
        body: list[Statement] = []
        less = self._apply("-", depth, Constant(U32, 1))
        for _ in range(2 if random.chance(25) else 1):
            arguments = [less if p is depth else self._argument(p, inner) for p in function.parameters]
            inner.variables.append(self._named(function.result, Call(function, arguments), body))
        body.append(Assign(result, self._expression(function.result, inner, 2)))
        made.append(If(condition, body, []))
        return made

    def _variable(self, t: Scalar, uniform: bool = False) -> Variable:
        self.names += 1
        return Variable(f"v{self.names}", t, uniform)

    def _first_value(self, region: _Region) -> list[Statement]:
        random = self.random
        t = random.choice(VALUES)
        inputs = [array for array in self.arrays if array.space == "input" and array.type is t]
        value: Expression
        if inputs:
            place = self._apply("+", self._apply("*", GLOBAL, Constant(U32, random.choice((1, 1, 3, 7)))),
                                Constant(U32, random.below(64)))  # fmt: skip
            value = Load(inputs[0], self._modulo(place, inputs[0].length), type=t)
        else:
            value = self._expression(t, region)
        variable = self._variable(t)
        region.variables.append(variable)
        region.targets.append(variable)
        return [Let(variable, value)]

    # --- expressions ------------------------------------------------------------------------------

    def _apply(self, sign: str, *operands: Expression) -> Apply:
        """``+``, ``-``, ``*``, ``&`` of u32, ``<`` of u32 or ``==``, by its sign."""
        for operation in OPERATIONS[PRED if sign in ("<", "==") else U32]:
            if operation.operands == (U32, U32) and f" {sign} " in operation.text:
                return Apply(operation, list(operands))
        raise AssertionError(sign)

    def _select(self, condition: Expression, yes: Expression, no: Expression) -> Apply:
        for operation in OPERATIONS[yes.type]:
            if operation.operands == (PRED, yes.type, yes.type):
                return Apply(operation, [condition, yes, no])
        raise AssertionError(yes.type)

    def _modulo(self, e: Expression, length: int) -> Expression:
        """A u32 made smaller than a length."""
        if length & (length - 1) == 0 and self.random.chance(70):
            return self._apply("&", e, Constant(U32, length - 1))
        return Apply(_modulo_operation(length), [e])

    def _expression(self, t: Scalar, region: _Region, depth: int | None = None, uniform: bool = False) -> Expression:
        random = self.random
        if depth is None:
            depth = random.weighted(((3, 1), (5, 2), (3, 3), (1, 4)))
        if depth <= 0 or random.chance(12):
            return self._leaf(t, region, uniform)
        if not uniform and t is not PRED and random.chance(6):
            load = self._load(t, region)
            if load is not None:
                return load
        operations = [(o.weight, o) for o in OPERATIONS[t]]
        chosen: Operation = random.weighted(operations)
        operands = [self._expression(kind, region, depth - 1, uniform) for kind in chosen.operands]
        return Apply(chosen, operands)

    def _leaf(self, t: Scalar, region: _Region, uniform: bool) -> Expression:
        random = self.random
        known = [v for v in region.variables if v.type is t and (v.uniform or not uniform)]
        if known and random.chance(80):
            recent = known[-4:] if random.chance(50) else known
            return random.choice(recent)
        if t is PRED:
            return Apply(*self._comparison(region, uniform))
        if random.chance(30) or (uniform and random.chance(50)):
            return Constant(t, random.pattern(t))
        other = [v for v in region.variables if v.type is not t and (v.uniform or not uniform)]
        direct = [(v, o) for v in other for o in OPERATIONS[t] if o.operands == (v.type,)]
        if direct:
            variable, operation = random.choice(direct)
            return Apply(operation, [variable])
        if t is F16:
            return Apply(_HALF_OF_SINGLE, [self._leaf(F32, region, uniform)])
        return Constant(t, random.pattern(t))

    def _comparison(self, region: _Region, uniform: bool) -> tuple[Operation, list[Expression]]:
        random = self.random
        known: list[Expression] = [
            v for v in region.variables if v.type not in (PRED, F16) and (v.uniform or not uniform)
        ]
        variable = random.choice(known) if known else Constant(U32, random.pattern(U32))
        fitting = [o for o in OPERATIONS[PRED] if o.operands == (variable.type, variable.type)]
        return random.choice(fitting), [variable, self._expression(variable.type, region, 1, uniform)]

    def _load(self, t: Scalar, region: _Region) -> Expression | None:
        random = self.random
        spaces = ("local", "own", "column", "constant", "input")
        arrays = [a for a in region.arrays if a.space in spaces and a.type is t]
        if t is U8 and random.chance(40):
            wide = [a for a in region.arrays if a.space in ("local", "own") and a.type in (U32, I32, U64)]
            if wide:
                array = random.choice(wide)
                return Load(array, self._index(region, array.length * array.type.bits // 8), True, U8)
        if not arrays:
            return None
        array = random.choice(arrays)
        return Load(array, self._index(region, array.length), type=t)

    def _index(self, region: _Region, length: int) -> Expression:
        if self.random.chance(25):
            return Constant(U32, self.random.below(length))
        return self._modulo(self._expression(U32, region, 1), length)

    def _condition(self, region: _Region, uniform: bool) -> Expression:
        return self._expression(PRED, region, self.random.between(1, 2), uniform)

    # --- statements -------------------------------------------------------------------------------

    def _statements(self, region: _Region, count: int) -> list[Statement]:
        made: list[Statement] = []
        for _ in range(count):
            if self.budget <= 0:
                break
            made += self._statement(region)
        if not region.function and region.depth:
            # What nobody looks at would be compiled away.
            new = [s.variable for s in made if isinstance(s, Let) and s.variable in region.variables]
            made += [Mix(self.random.below(STATES), v) for v in new if self.random.chance(50)]
        return made

    def _statement(self, region: _Region) -> list[Statement]:
        self.budget -= 1
        nested = region.depth < 4
        loops = nested and region.trips < 30
        choices = [
            (5, self._let, True),
            (9, self._assign, True),
            (4, self._mix, not region.function),
            (4, self._store, True),
            (1, self._load_vector, True),
            (1, self._store_vector, True),
            (5, self._if, nested),
            (2, self._switch, nested),
            (4, self._loop, loops),
            (3, self._leave_loop, region.loop is not None),
            (1, self._end, region.may_end and region.trips < 4),
            (3, self._exchange, region.uniform and not region.function),
            (1, self._barrier, region.uniform and not region.function),
            (2, self._atomic, not region.function),
            (1, self._read_totals, region.uniform and not region.function),
            (5, self._warp, region.mask is not None),
            (1, self._sync_warp, region.mask is not None),
            (3, self._call, bool(self.functions)),
        ]
        return self.random.weighted([(weight, make) for weight, make, fits in choices if fits])(region)

    def _let(self, region: _Region) -> list[Statement]:
        random = self.random
        uniform = region.uniform and random.chance(25)
        t = PRED if random.chance(10) else random.choice(VALUES)
        variable = self._variable(t, uniform)
        value = self._expression(t, region, uniform=uniform)
        region.variables.append(variable)
        if not uniform:
            region.targets.append(variable)
        return [Let(variable, value)]

    def _assign(self, region: _Region) -> list[Statement]:
        if not region.targets:
            return self._let(region)
        variable = self.random.choice(region.targets)
        return [Assign(variable, self._expression(variable.type, region))]

    def _mix(self, region: _Region) -> list[Statement]:
        t = PRED if self.random.chance(10) else self.random.choice(VALUES)
        return [Mix(self.random.below(STATES), self._expression(t, region))]

    def _store(self, region: _Region) -> list[Statement]:
        random = self.random
        arrays = [a for a in region.arrays if a.space in ("local", "own", "column")]
        if not arrays:
            return self._assign(region)
        array = random.choice(arrays)
        if array.space != "column" and array.type in (U32, I32, U64) and random.chance(25):
            index = self._index(region, array.length * array.type.bits // 8)
            return [Store(array, index, self._expression(U8, region), True)]
        return [Store(array, self._index(region, array.length), self._expression(array.type, region))]

    def _vectors(self, region: _Region, spaces: tuple[str, ...]) -> tuple[Array, int] | None:
        arrays = [
            (a, n) for a in region.arrays for n in (2, 4)
            if a.space in spaces and a.length % n == 0 and a.type.bits * n <= 128 and a.type is not F16
        ]  # fmt: skip
        return self.random.choice(arrays) if arrays else None

    def _load_vector(self, region: _Region) -> list[Statement]:
        found = self._vectors(region, ("local", "own", "input"))
        if found is None:
            return self._let(region)
        array, size = found
        index = self._index(region, array.length // size)
        targets = [self._variable(array.type) for _ in range(size)]
        lets: list[Statement] = [Let(v, Constant(array.type, 0)) for v in targets]
        region.variables += targets
        return [*lets, LoadVector(array, index, targets)]

    def _store_vector(self, region: _Region) -> list[Statement]:
        found = self._vectors(region, ("local", "own"))
        if found is None:
            return self._let(region)
        array, size = found
        values = [self._expression(array.type, region, 1) for _ in range(size)]
        return [StoreVector(array, self._index(region, array.length // size), values)]

    # Control flow.

    def _refresh(self, region: _Region, made: list[Statement]) -> list[Statement]:
        """Find out who is left where threads may have ended in these statements."""
        if region.mask is not None and any(isinstance(s, Leave) for s in walk(made)):
            left = self._variable(U32)
            made.append(Let(left, Warp("ballot", U32, region.mask, [TRUE])))
            region.mask = left
        return made

    def _if(self, region: _Region) -> list[Statement]:
        random = self.random
        made: list[Statement] = []
        yes: list[Statement] = []
        no: list[Statement] = []
        if random.chance(25):
            condition = self._condition(region, True)
            then, other = region.inner(), region.inner()
        else:
            condition = self._named(PRED, self._condition(region, False), made)
            then, other = (region.inner(uniform=False, whole=False) for _ in range(2))
            if region.mask is not None:
                then.mask = self._named(U32, Warp("ballot", U32, region.mask, [condition]), made)
                other.mask = self._named(U32, Apply(_AND_NOT, [region.mask, then.mask]), no)
        yes += self._statements(then, random.between(1, 4))
        no = no + self._statements(other, random.between(1, 4)) if random.chance(50) else []
        made.append(If(condition, yes, no))
        return self._refresh(region, made)

    def _named(self, t: Scalar, value: Expression, made: list[Statement]) -> Variable:
        """A new variable with this value, declared at the end of ``made``."""
        variable = self._variable(t)
        made.append(Let(variable, value))
        return variable

    def _switch(self, region: _Region) -> list[Statement]:
        random = self.random
        count = random.between(2, 4)
        uniform = random.chance(25)
        made: list[Statement] = []
        value = self._modulo(self._expression(U32, region, 1, uniform), count + 1)
        selector = self._named(U32, value, made)
        cases: list[tuple[list[int], list[Statement], bool]] = []
        falls_into = False
        for number in range(count):
            falls = number < count - 1 and random.chance(25)
            labels = [] if number == count - 1 and random.chance(60) else [number]
            # No loop: a break would leave the switch instead.
            case = region.inner(loop=None) if uniform else region.inner(loop=None, uniform=False, mask=None)
            if falls or falls_into:
                # Control may come from the case before, so nobody keeps count.
                case.mask, case.uniform = None, False
            elif region.mask is not None and not uniform:
                chosen: Expression = self._apply("==", selector, Constant(U32, number))
                if not labels:
                    chosen = Apply(_NOT, [self._apply("<", selector, Constant(U32, number))])
                case.mask = self._named(U32, Warp("ballot", U32, region.mask, [chosen]), made)
            cases.append((labels, self._statements(case, random.between(1, 3)), falls))
            falls_into = falls
        made.append(Switch(selector, cases))
        return self._refresh(region, made)

    def _loop(self, region: _Region) -> list[Statement]:
        random = self.random
        kinds = ["uniform", "uncounted"] + (["counted", "counted"] if region.mask is not None else [])
        kind = random.choice(kinds)
        uniform = kind == "uniform"
        counter = self._variable(U32, uniform)
        limit = self._modulo(self._expression(U32, region, 1, uniform), random.between(2, 7))
        body = region.inner(whole=True, may_end=region.may_end and random.chance(30), trips=region.trips * 3)
        body.is_body = True
        made: list[Statement] = []
        head: list[Statement] = []
        if kind == "counted":
            assert region.mask is not None
            end = self._named(U32, limit, made)
            inside = self._named(U32, region.mask, made)
            goes_on = self._named(PRED, self._apply("<", counter, end), head)
            body.mask = self._named(U32, Warp("ballot", U32, inside, [goes_on]), head)
            head += [If(Apply(_NOT, [goes_on]), [Break()], []), Assign(inside, body.mask)]
            body.loop, body.uniform = _LoopState(False, inside), False
            form = "endless"
        else:
            body.loop = _LoopState(uniform, None)
            form = random.choice(("for", "for", "down", "do"))
            if not uniform:
                body.uniform, body.mask = False, None
            elif body.may_end and region.mask is not None:
                body.mask = self._named(U32, Warp("ballot", U32, region.mask, [TRUE]), head)
        body.variables.append(counter)
        made.append(Loop(counter, limit, head + self._statements(body, random.between(1, 5)), form))
        return self._refresh(region, made)

    def _leave_loop(self, region: _Region) -> list[Statement]:
        random = self.random
        loop = region.loop
        assert loop is not None
        if region.whole and not loop.continued and random.chance(30):
            out: Statement = Break() if random.chance(50) else Continue()
            return [If(self._condition(region, True), [out], [])]
        made: list[Statement] = []
        condition = self._named(PRED, self._condition(region, False), made)
        if region.is_body and region.mask is not None:
            going = self._named(U32, Warp("ballot", U32, region.mask, [condition]), made)
            breaks = loop.mask is not None and not loop.continued and random.chance(60)
            made.append(If(condition, [Break() if breaks else Continue()], []))
            region.mask = self._named(U32, Apply(_AND_NOT, [region.mask, going]), made)
            if breaks:
                assert loop.mask is not None
                made.append(Assign(loop.mask, region.mask))
            else:
                loop.continued, region.uniform, region.whole = True, False, False
            return made
        breaks = not loop.uniform and loop.mask is None and random.chance(50)
        made.append(If(condition, [Break() if breaks else Continue()], []))
        loop.continued |= not breaks
        around: _Region | None = region
        while around is not None:
            around.mask, around.uniform, around.whole = None, False, False
            around = None if around.is_body else around.parent
        return made

    def _end(self, region: _Region) -> list[Statement]:
        random = self.random
        self.sites += 1
        condition = self._condition(region, random.chance(10))
        rare = self._apply("==", self._modulo(self._expression(U32, region, 1), 5), Constant(U32, 3))
        both = Apply(_AND, [condition, rare])
        return self._refresh(region, [If(both, [Leave(self.sites * 0x1234567)], [])])

    def _call(self, region: _Region) -> list[Statement]:
        fitting = [f for f in self.functions if region.mask is not None or not _wants_mask(f)]
        if not fitting:
            return self._let(region)
        function = self.random.choice(fitting)
        call = Call(function, [self._argument(p, region) for p in function.parameters])
        if self.seed >= RECURSIVE:
            others = [f for f in self.functions if _signature(f) == _signature(function) and not _wants_mask(f)]
            if len(others) > 1 and self.random.chance(70):
                call.other = self.random.choice([f for f in others if f is not function])
                call.selector = self._condition(region, False)
        made: list[Statement] = []
        region.variables.append(self._named(function.result, call, made))
        return made

    def _argument(self, parameter: Variable, region: _Region) -> Expression:
        if parameter.name == "among" and region.mask is not None:
            return region.mask
        value = self._expression(parameter.type, region, 1)
        return self._modulo(value, self.random.between(2, 4)) if parameter.name == "depth" else value

    # Threads together.

    def _exchange(self, region: _Region) -> list[Statement]:
        random = self.random
        array = next(a for a in self.arrays if a.space == "shared")
        factor = random.choice([k for k in (1, 1, 1, 5, 7, 11, 13) if k == 1 or math.gcd(k, self.threads) == 1])
        place: Expression = self._apply(
            "+", self._apply("*", TID, Constant(U32, factor)), Constant(U32, random.below(50))
        )
        place = Apply(_modulo_operation(self.threads), [place])
        store: Statement = Store(array, place, self._expression(array.type, region))
        if random.chance(30):
            store = If(self._condition(region, False), [store], [])
        made: list[Statement] = [store, Barrier()]
        for _ in range(random.between(1, 2)):
            value = Load(array, self._index(region, array.length), type=array.type)
            region.variables.append(self._named(array.type, value, made))
        return [*made, Barrier()]

    def _barrier(self, region: _Region) -> list[Statement]:
        if self.random.chance(30):
            return [Barrier()]
        result = self._variable(I32, True)
        barrier = Barrier(self.random.choice(("count", "and", "or")), result, self._condition(region, False))
        region.variables.append(result)
        return [barrier]

    def _atomic(self, region: _Region) -> list[Statement]:
        array = self.random.choice([a for a in self.arrays if a.atomic])
        return [Atomic(array, self._index(region, array.length), self._expression(array.type, region, 2))]

    def _read_totals(self, region: _Region) -> list[Statement]:
        array = self.random.choice([a for a in self.arrays if a.space == "shared total"])
        made: list[Statement] = [Barrier()]
        value = Load(array, self._index(region, array.length), type=array.type)
        region.variables.append(self._named(array.type, value, made))
        return [*made, Barrier()]

    def _warp(self, region: _Region) -> list[Statement]:
        random = self.random
        assert region.mask is not None
        name = random.choice(
            ("shuffle", "shuffle_up", "shuffle_down", "shuffle_xor", "ballot", "any", "all", "match_any", "matched_all")
            + ("reduce_add", "reduce_min", "reduce_max", "reduce_and", "reduce_or", "reduce_xor", "shuffle")
        )
        width = 32
        if name.startswith("shuffle"):
            t = random.choice(SHUFFLED)
            n = self._expression(U32, region, 1)
            operands = [self._expression(t, region, 1), self._modulo(n, 32) if name != "shuffle" else n]
            width = random.choice((32, 32, 16, 8, 4, 2))
        elif name in ("ballot", "any", "all"):
            t, operands = U32 if name == "ballot" else PRED, [self._condition(region, False)]
        elif name.startswith("match"):
            t, operands = U32, [self._modulo(self._expression(U32, region, 1), random.choice((1, 3, 7)))]
        else:
            t = random.choice((U32, I32)) if name[-3:] in ("add", "min", "max") else U32
            operands = [self._expression(t, region, 2)]
        made: list[Statement] = []
        variable = self._named(t, Warp(name, t, region.mask, operands, width), made)
        region.variables.append(variable)
        return made

    def _sync_warp(self, region: _Region) -> list[Statement]:
        assert region.mask is not None
        return [SyncWarp(region.mask)]


def _wants_mask(function: Function) -> bool:
    return any(p.name == "among" for p in function.parameters)


def _signature(function: Function) -> tuple[object, ...]:
    return (function.result, *(p.type for p in function.parameters))


@cache
def _modulo_operation(length: int) -> Operation:
    return Operation(U32, (U32,), f"({{0}} % {length})", lambda x: x % np.uint32(length))


_AND_NOT = Operation(U32, (U32, U32), "({0} & ~{1})", lambda a, b: a & ~b)
_NOT = next(o for o in OPERATIONS[PRED] if o.text == "(!{0})")
_AND = next(o for o in OPERATIONS[PRED] if o.text == "({0} && {1})")
_HALF_OF_SINGLE = next(o for o in OPERATIONS[F16] if o.operands == (F32,))
