"""What every instruction does, besides computing: one row for each, which the parser, the passes and the emitter read.

A row is for an opcode; one with modifiers (``bar.arrive``) is for the instructions that have these, and stands in front
of the row for the rest. All columns must be there, so that nobody can forget one:

``lowered``
    Who writes its code: ``values`` the functions of emit/instructions, which map values to values; ``own`` a function
    that is registered for the row or its opcode (emit/control/lowerings.py); ``meeting`` emit/control/meetings.py, at
    the end of a block; ``control`` emit/control/control.py, which goes elsewhere or ends threads; ``refused`` nobody,
    for the reason at the end of the row.
``memory``
    What it does where its address operands point: ``reads``, ``writes``, ``both``; ``hint`` neither; ``none`` when it
    has no such operand.
``loads``
    ``pass`` when loads behind it may as well be done before it, ``stay`` when not.
``waits``
    Whether its threads may have to wait: ``warp`` for threads of the warp that it names, ``group`` for those of the
    warpgroup, ``block`` for those of the block, ``cluster`` for those of the cluster; ``counted``: they go on, but
    others may wait for them; ``no``.
``lanes``
    How its results depend on the lane, as `passes.uniformity` works out: ``plain`` when they are the same in all lanes
    whose sources are, ``differ`` when they are not even then, the name of a rule there; ``none`` without results.

Then come any of the flags:

``may-end``     what is behind it may never happen
``exits``       it ends the thread
``ordered``     in which order blocks do it can be seen
``polls``       a loop with it may be waiting for what others do
``watches``     as ``polls``, or it tells what others have done, and that is something else than an mbarrier's phase
``warp``        what it gives depends on which threads make up a warp
``whole-warp``  all threads of the warp must be there
``parts``       operands may be parts of registers, or have a minus in front
``stack``       it works on the thread's stack
``carry``       it takes the condition code
``joins``       a load or store whose bounds check may be joined with others'
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cupola.cpu.compiler.records import dataclass

# opcode                       lowered  memory loads waits   lanes    flags
_ROWS = """
# Arithmetic, logic, conversions
add                            values   none   pass  no      sum
addc                           values   none   pass  no      plain    carry
sub                            values   none   pass  no      sum
subc                           values   none   pass  no      plain    carry
mul                            values   none   pass  no      product
mul24                          values   none   pass  no      plain
mad                            values   none   pass  no      product
madc                           values   none   pass  no      plain    carry
mad24                          values   none   pass  no      plain
fma                            values   none   pass  no      plain
sad                            values   none   pass  no      plain
div                            values   none   pass  no      plain
rem                            values   none   pass  no      plain
abs                            values   none   pass  no      plain
neg                            values   none   pass  no      negate
min                            values   none   pass  no      plain
max                            values   none   pass  no      plain
rcp                            values   none   pass  no      plain
sqrt                           values   none   pass  no      plain
rsqrt                          values   none   pass  no      plain
sin                            values   none   pass  no      plain
cos                            values   none   pass  no      plain
lg2                            values   none   pass  no      plain
ex2                            values   none   pass  no      plain
tanh                           values   none   pass  no      plain
testp                          values   none   pass  no      plain
copysign                       values   none   pass  no      plain
popc                           values   none   pass  no      plain
clz                            values   none   pass  no      plain
bfind                          values   none   pass  no      plain
fns                            values   none   pass  no      differ
brev                           values   none   pass  no      plain
bfe                            values   none   pass  no      plain
bfi                            values   none   pass  no      plain
szext                          values   none   pass  no      plain
bmsk                           values   none   pass  no      plain
dp4a                           values   none   pass  no      plain
dp2a                           values   none   pass  no      plain
clmad                          values   none   pass  no      plain
set                            values   none   pass  no      plain
setp                           values   none   pass  no      plain
selp                           values   none   pass  no      choice
slct                           values   none   pass  no      plain
and                            values   none   pass  no      mask
or                             values   none   pass  no      plain
xor                            values   none   pass  no      plain
not                            values   none   pass  no      plain
cnot                           values   none   pass  no      plain
lop3                           values   none   pass  no      plain
shf                            values   none   pass  no      plain
shl                            values   none   pass  no      shift
shr                            values   none   pass  no      right
mov                            values   none   pass  no      copy
prmt                           values   none   pass  no      plain
cvt                            values   none   pass  no      convert

# Video
vadd                           values   none   pass  no      plain    parts
vsub                           values   none   pass  no      plain    parts
vabsdiff                       values   none   pass  no      plain    parts
vmin                           values   none   pass  no      plain    parts
vmax                           values   none   pass  no      plain    parts
vshl                           values   none   pass  no      plain    parts
vshr                           values   none   pass  no      plain    parts
vmad                           values   none   pass  no      plain    parts
vset                           values   none   pass  no      plain    parts
vadd2                          values   none   pass  no      plain    parts
vsub2                          values   none   pass  no      plain    parts
vavrg2                         values   none   pass  no      plain    parts
vabsdiff2                      values   none   pass  no      plain    parts
vmin2                          values   none   pass  no      plain    parts
vmax2                          values   none   pass  no      plain    parts
vset2                          values   none   pass  no      plain    parts
vadd4                          values   none   pass  no      plain    parts
vsub4                          values   none   pass  no      plain    parts
vavrg4                         values   none   pass  no      plain    parts
vabsdiff4                      values   none   pass  no      plain    parts
vmin4                          values   none   pass  no      plain    parts
vmax4                          values   none   pass  no      plain    parts
vset4                          values   none   pass  no      plain    parts

# Addresses
cvta                           own      none   pass  no      copy
isspacep                       own      none   pass  no      plain
mapa                           own      none   pass  no      plain
getctarank                     own      none   pass  no      plain
istypep                        own      none   stay  no      plain

# Memory. What other threads may be watching happens where it is written.
ld.volatile                    own      reads  stay  no      load     polls watches joins
ld.relaxed                     own      reads  stay  no      load     polls watches joins
ld.acquire                     own      reads  stay  no      load     polls watches joins
ld.mmio                        own      reads  stay  no      load     polls watches joins
ld.sc                          own      reads  stay  no      load     joins
ld.release                     own      reads  stay  no      load     joins
ld.cv                          own      reads  stay  no      load     joins
ld                             own      reads  pass  no      load     joins
ldu                            own      reads  pass  no      load     joins
st.async                       own      writes stay  no      none     joins
st.bulk                        own      writes stay  no      none
st                             own      writes stay  no      none     joins
atom                           own      both   stay  no      differ   polls watches ordered
red.async                      own      both   stay  no      none     ordered
red                            own      both   stay  no      none     ordered
prefetch                       own      hint   stay  no      none
prefetchu                      own      hint   stay  no      none
applypriority                  own      hint   stay  no      none
discard                        own      hint   stay  no      none
createpolicy.range             own      hint   stay  no      plain
createpolicy                   own      none   stay  no      plain
multimem.ld_reduce             own      reads  stay  no      differ   polls watches
multimem                       own      both   stay  no      none     ordered
stacksave                      own      none   stay  no      differ   stack
stackrestore                   own      none   stay  no      none     stack
alloca                         own      none   stay  no      differ   stack may-end

# Asynchronous copies, which are done when they are issued
cp.commit_group                own      none   stay  no      none
cp.wait_group                  own      none   stay  no      none
cp.wait_all                    own      none   stay  no      none
cp                             own      both   stay  no      none
tensormap.cp_fenceproxy        own      both   stay  warp    none     whole-warp
tensormap                      own      both   stay  no      none
clusterlaunchcontrol.try_cancel refused writes stay  no      none     : it needs compute capability 10.0
clusterlaunchcontrol           refused  none   stay  no      plain    : it needs compute capability 10.0

# Textures and surfaces
tex                            own      reads  stay  no      differ
tld4                           own      reads  stay  no      differ
txq                            own      hint   stay  no      plain
suld                           own      reads  stay  no      differ
sust                           own      writes stay  no      none
sured                          own      both   stay  no      none
suq                            own      hint   stay  no      plain

# Control flow; the names with a dot in front are what passes make of calls (passes/join_functions.py)
bra                            control  none   stay  no      none
brx                            control  none   stay  no      none
ret                            control  none   stay  no      none     exits
exit                           control  none   stay  no      none     exits
.call                          control  none   stay  no      none
.return                        control  none   stay  no      none
.enter                         own      none   stay  no      none     may-end
.leave                         own      none   stay  no      differ
.frame                         own      none   stay  no      differ
.here                          own      none   pass  no      none
call                           own      none   stay  no      differ   may-end ordered watches
trap                           own      none   stay  no      none     may-end ordered
brkpt                          own      none   stay  no      none     may-end ordered
nanosleep                      own      none   stay  no      none     polls
pmevent                        own      none   stay  no      none
griddepcontrol                 own      none   stay  no      none
setmaxnreg                     own      none   stay  no      none

# Threads that meet
bar.warp                       meeting  none   stay  warp    none
bar.arrive                     own      none   stay  counted none
bar.red                        meeting  none   stay  block   block
bar                            meeting  none   stay  block   none
barrier.cluster.arrive         own      none   stay  counted none
barrier.cluster                meeting  none   stay  cluster none
barrier.arrive                 own      none   stay  counted none
barrier.red                    meeting  none   stay  block   block
barrier                        meeting  none   stay  block   none
membar                         own      none   stay  no      none
fence                          own      hint   stay  no      none
mbarrier.init                  own      both   stay  counted none     polls
mbarrier.inval                 own      both   stay  counted none     polls
mbarrier.arrive                own      both   stay  counted differ   polls
mbarrier.arrive_drop           own      both   stay  counted differ   polls
mbarrier.test_wait             own      both   stay  counted plain    polls
mbarrier.try_wait              own      both   stay  counted plain    polls
mbarrier.pending_count         own      none   stay  counted plain    polls
mbarrier                       own      both   stay  counted none     polls

# Among the threads of a warp
activemask                     values   none   pass  no      plain    warp
shfl.sync                      values   none   stay  warp    shuffle
shfl                           values   none   pass  no      shuffle  warp
vote.sync                      values   none   stay  warp    vote
vote                           values   none   pass  no      vote     warp
match                          values   none   stay  warp    plain
redux                          values   none   stay  warp    vote
elect                          values   none   stay  warp    elect
wmma.load                      own      reads  stay  warp    differ   whole-warp
wmma.store                     own      writes stay  warp    none     whole-warp
wmma                           own      none   stay  warp    differ   whole-warp
mma                            values   none   stay  warp    differ   whole-warp
ldmatrix                       own      reads  stay  warp    differ   whole-warp
stmatrix                       own      writes stay  warp    none     whole-warp
movmatrix                      values   none   stay  warp    differ   whole-warp
wgmma.mma_async                own      none   stay  warp    differ   whole-warp
wgmma.wait_group               meeting  none   stay  group   none
wgmma                          own      none   stay  warp    none     whole-warp
tcgen05.ld                     refused  reads  stay  warp    differ   : it needs compute capability 10.0a, whose tensor memory the CPU device does not have
tcgen05                        refused  both   stay  warp    none     : it needs compute capability 10.0a, whose tensor memory the CPU device does not have
"""  # noqa: E501

COLUMNS = {
    "lowered": ("values", "own", "meeting", "control", "refused"),
    "memory": ("none", "hint", "reads", "writes", "both"),
    "loads": ("pass", "stay"),
    "waits": ("no", "counted", "warp", "group", "block", "cluster"),
    "lanes": (
        *("none", "plain", "differ", "sum", "product", "shift", "right", "mask", "negate", "choice", "copy"),
        *("convert", "load", "shuffle", "vote", "elect", "block"),
    ),
}
"""The words that a column may have."""

FLAGS = frozenset(
    ["may-end", "exits", "ordered", "polls", "watches", "warp", "whole-warp", "parts", "stack", "carry", "joins"]
)


@dataclass(frozen=True, slots=True)
class Description:
    """A row of the table; its attributes are the columns and the flags.

    ``modifiers`` are those that make the row an instruction's own; ``reason`` says why a refused one is.
    """

    opcode: str
    modifiers: tuple[str, ...]
    lowered: str
    memory: str
    loads: str
    waits: str
    lanes: str
    may_end: bool
    exits: bool
    ordered: bool
    polls: bool
    watches: bool
    warp: bool
    whole_warp: bool
    parts: bool
    stack: bool
    carry: bool
    joins: bool
    reason: str

    @property
    def name(self) -> str:
        """The opcode and the modifiers that make the row its own."""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def reads_memory(self) -> bool:
        return self.memory in ("reads", "both")

    @property
    def writes_memory(self) -> bool:
        return self.memory in ("writes", "both")

    @property
    def suspends(self) -> bool:
        """Whether a thread may have to wait at the instruction, which then ends its block."""
        return self.waits in ("warp", "group", "block", "cluster")


def read(rows: str, opcodes: Iterable[str]) -> dict[str, tuple[Description, ...]]:
    """The rows of each opcode, the one without modifiers last.

    Raises
    ------
    ValueError
        For a row that does not state every column, and for an opcode without a row.
    """
    found: dict[str, list[Description]] = {}
    for line in rows.splitlines():
        if line and line[0] != "#":
            description = _description(line)
            before = found.setdefault(description.opcode, [])
            if before and not before[-1].modifiers:
                raise ValueError(f"{line!r} is never reached: the row for the rest stands in front of it")
            before.append(description)
    for opcode in opcodes:
        if opcode not in found or found[opcode][-1].modifiers:
            raise ValueError(f"no row of grammar/descriptions.py says what the instruction {opcode!r} does")
    return {opcode: tuple(rows) for opcode, rows in found.items()}


def _description(line: str) -> Description:
    facts, _, reason = line.partition(" : ")
    name, *words = facts.split()
    stated, flags = words[: len(COLUMNS)], words[len(COLUMNS) :]
    if len(stated) < len(COLUMNS):
        raise ValueError(f"{line!r} does not state all of {', '.join(COLUMNS)}")
    for (column, known), word in zip(COLUMNS.items(), stated, strict=True):
        if word not in known:
            raise ValueError(f"{line!r}: {column} is one of {', '.join(known)}, not {word!r}")
    if unknown := set(flags) - FLAGS:
        raise ValueError(f"{line!r}: there is no flag {', '.join(sorted(unknown))}")
    if (stated[0] == "refused") != bool(reason):
        raise ValueError(f"{line!r}: a refused instruction has a reason, and no other has")
    head, *modifiers = name.removeprefix(".").split(".")
    opcode = f".{head}" if name[0] == "." else head
    facts_of: dict[str, Any] = dict(zip(COLUMNS, stated, strict=True))
    facts_of |= {flag.replace("-", "_"): flag in flags for flag in FLAGS}
    return Description(opcode=opcode, modifiers=tuple(modifiers), reason=reason.strip(), **facts_of)


def rows(opcodes: Iterable[str]) -> dict[str, tuple[Description, ...]]:
    """The table, which has every one of the opcodes."""
    return read(_ROWS, opcodes)
