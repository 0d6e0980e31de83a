"""What checks find, as objects: from the engine's records to lines of the program, with what to do.

`cupola.cpu.findings` gives them to programs, `formats` writes them to files.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import json
import os
import threading
from typing import Any, NamedTuple

from cupola.cpu import _driver
from cupola.cpu.compiler.emit.instruments.instrument import instructions_of
from cupola.cpu.compiler.modules import Variant
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.reports import in_notebooks, names
from cupola.cpu.reports.faults import Kind, nearest
from cupola.cpu.reports.names import readable
from cupola.cpu.reports.texts import text_of

Dim3 = tuple[int, int, int]

RACE, EARLY, UNSET, ABSENT, UNNAMED, PART, FREED, ENDED = range(8)
"""``enum cpu_finding_what``."""

_ATOMIC, _COPY = 2, 3
_SPACES = ("global", "shared", "local", "constant", "parameter")
_KINDS = dict.fromkeys((RACE, EARLY, FREED, ENDED), "race") | {UNSET: "init"}
_KINDS |= dict.fromkeys((ABSENT, UNNAMED, PART), "sync")
_OF_VARIANT = 1 << 15
_UNKNOWN = 0xFFFF
_LOG = "CUPOLA_FINDINGS"


@dataclasses.dataclass(frozen=True)
class Place:
    """Where something happened.

    Attributes
    ----------
    what
        What it was, such as ``"write of 4 bytes"``.
    file, line, function
        Of the CUDA source, from the innermost inlined function; None and 0 without line information.
    via
        The lines that inlined it, outwards.
    ptx
        The instruction.
    text
        The line of the CUDA source, where that is known.
    python
        Where that line stands in a Python program that has the source as a string, ``"file:line"``; else empty.
    block_index, thread_index
        Who did it; None where it is not known, or was the host.
    kernel
        The kernel, where it is another one than the finding's.
    launched
        The line of Python that launched that one, or that asked for the copy or fill, ``"file:line"``.
    stream
        The number of the stream (``cuStreamGetId``), where two are concerned; else None.
    """

    what: str
    file: str | None = None
    line: int = 0
    function: str | None = None
    via: tuple[str, ...] = ()
    ptx: str = ""
    text: str = ""
    python: str = ""
    block_index: Dim3 | None = None
    thread_index: Dim3 | None = None
    kernel: str = ""
    launched: str = ""
    stream: int | None = None

    def __str__(self) -> str:
        who = f" by thread {self.thread_index} of block {self.block_index}" if self.thread_index is not None else ""
        where = f" in kernel '{readable(self.kernel)}'" if self.kernel else ""
        where += f", stream {self.stream}" if self.stream is not None else ""
        lines = [f"{self.what}{who}{where}"]
        if self.file is not None:
            lines.append(f"  at {self.file}:{self.line}" + (f" in {self.function}" if self.function else ""))
            lines += [f"  {self.python}: {self.text}" if self.python else f"  {self.text}"] if self.text else []
            lines += [f"  inlined at {line}" for line in self.via]
        elif self.ptx:
            lines.append(f"  PTX: {self.ptx} (compile with lineinfo=True to see the line of the CUDA source)")
        if self.launched:
            lines.append(f"  launched at {self.launched}" if self.kernel else f"  at {self.launched}")
        return "\n  ".join(lines)


@dataclasses.dataclass
class Finding:
    """Something that a check found; `cupola.cpu.findings` lists them.

    Attributes
    ----------
    kind
        The check: ``"race"``, ``"init"``, ``"sync"``, ``"memory"`` or ``"leak"``.
    kernel
        The name of the kernel; empty where there is none.
    summary
        What is wrong, in one sentence.
    places
        Where: of a race, both accesses.
    details
        Sentences about the memory, and where it was allocated.
    launched
        The line of Python that launched the kernel, ``"file:line"``; empty where it is not known.
    advice
        What to do.
    count
        How often it was found.
    silenced
        The reason given to `cupola.cpu.silence`, or None.
    """

    kind: str
    kernel: str
    summary: str
    places: tuple[Place, ...] = ()
    details: tuple[str, ...] = ()
    launched: str = ""
    advice: str = ""
    count: int = 1
    silenced: str | None = None
    _number: int = dataclasses.field(default=0, init=False, repr=False, compare=False)

    def __str__(self) -> str:
        kernel = f" in kernel '{readable(self.kernel)}'" if self.kernel else ""
        lines = [f"{self.kind}{kernel}: {self.summary}", *(str(place) for place in self.places), *self.details]
        if self.launched:
            lines.append(f"launched at {self.launched}")
        if self.count > 1:
            lines.append(f"found {self.count:,} times")
        if self.advice:
            lines.append(self.advice)
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        return in_notebooks.html_of([self])

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON has it.

        Returns
        -------
        dict
            The attributes by their names; places are dictionaries, too.
        """
        values = dataclasses.asdict(self)
        del values["_number"]
        return values

    def _since(self, count: int) -> Finding:
        """The same finding as it was made since it had been made so often."""
        made = dataclasses.replace(self, count=self.count - count)
        made._number = self._number
        return made


def from_dict(values: dict[str, Any]) -> Finding:
    """A finding that `Finding.as_dict` has written."""
    places = []
    for place in values.pop("places"):
        tuples = {
            name: tuple(place[name]) if place[name] is not None else None for name in ("block_index", "thread_index")
        }
        places.append(Place(**{**place, **tuples, "via": tuple(place["via"])}))
    return Finding(**{**values, "places": tuple(places), "details": tuple(values["details"])})


class Silence(NamedTuple):
    """What is not to be told: see `cupola.cpu.silence`."""

    kind: str
    kernel: str
    line: str
    reason: str

    def covers(self, finding: Finding) -> bool:
        """Whether it is meant for a finding."""
        if not fnmatch.fnmatchcase(finding.kind, self.kind) or not names.matches(finding.kernel, self.kernel):
            return False
        if self.line == "*":
            return True
        lines = {f"{os.path.basename(place.file or '')}:{place.line}" for place in finding.places}
        lines |= {str(place.line) for place in finding.places} | {f"{p.file}:{p.line}" for p in finding.places}
        return self.line in lines


class _Other(NamedTuple):
    """Whose the other access is, when it is not the launch's own."""

    what: str | None
    name: str
    variant: Variant | None
    file: str | None
    line: int
    stream: int


class _Row(NamedTuple):
    what: int
    site: int
    other_site: int
    kind: int
    other_kind: int
    is_write: int
    other_is_write: int
    space: int
    address: int
    size: int
    lanes: int
    times: int
    block: Dim3
    thread: Dim3
    other_block: Dim3
    other_thread: Dim3
    allocation: tuple[int, int] | None
    other: tuple[Any, ...] | None


_lock = threading.Lock()
_found: dict[object, Finding] = {}
_numbers = itertools.count(1)
_silences: list[Silence] = []


# ---- keeping them ----------------------------------------------------------------------------------------------------


def keep(key: object, finding: Finding) -> None:
    """Add a finding to those of the process, or to the count of the same one."""
    with _lock:
        known = _found.get(key)
        if known is not None:
            known.count += finding.count
            return
        finding.silenced = next((s.reason for s in _silences if s.covers(finding)), None)
        _found[key] = finding
        finding._number = next(_numbers)
    log([finding])


def log(findings: list[Finding], *, taken: bool = False) -> None:
    """Write findings for whoever started the program: a line each, at once, since the program may crash.

    Parameters
    ----------
    findings
        They are written again when their counts have changed.
    taken
        The program has expected them.
    """
    path = os.environ.get(_LOG)
    if not path or not findings:
        return
    marks = {"process": os.getpid(), "taken": taken}
    lines = [json.dumps({**finding.as_dict(), "number": finding._number, **marks}) + "\n" for finding in findings]
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    except FileNotFoundError:
        return  # who asked for it is gone
    try:
        os.write(handle, "".join(lines).encode())
    finally:
        os.close(handle)


def kept() -> list[Finding]:
    """All findings, the silenced ones included."""
    with _lock:
        return list(_found.values())


def take(found: list[Finding]) -> None:
    """Take findings away: somebody has expected them, as often as they were made."""
    counts = {finding._number: finding.count for finding in found}
    with _lock:
        for key, finding in list(_found.items()):
            taken = counts.get(finding._number, 0)
            if taken < finding.count:
                finding.count -= taken
            else:
                del _found[key]
    remaining = {finding._number for finding in kept()}
    log([finding for finding in found if finding._number not in remaining], taken=True)


def silence(rule: Silence) -> None:
    """Apply a rule to what was found and will be."""
    with _lock:
        _silences.append(rule)
        for finding in _found.values():
            if finding.silenced is None and rule.covers(finding):
                finding.silenced = rule.reason


def unsilence(rule: Silence) -> None:
    """Take a rule back, for what will be found."""
    with _lock:
        _silences.remove(rule)


# ---- from the engine -------------------------------------------------------------------------------------------------


def add(
    variant: Variant | None, what: str | None, rows: list[tuple[Any, ...]], file: str | None, line: int, stream: int
) -> None:
    """Add what the engine found in a launch, or in another operation of a stream; called when that is over."""
    for fields in rows:
        row = _Row(*fields)
        other = _Other(*row.other) if row.other is not None else None
        mine = _instruction(variant, row.site)
        if row.what == PART and not _is_aligned(mine):
            continue
        theirs = _instruction(other.variant if other is not None else variant, row.other_site)
        kernel = variant.info.name if variant is not None else ""
        if other is None:
            finding = _finding(kernel, row, mine, theirs)
        else:
            here = Place(_PLACES[what] if what else "", launched=_at(file, line), stream=stream)
            if what == "host":
                kernel = other.name
                here = dataclasses.replace(here, what=here.what.format(_access(0, row.is_write, 0)), stream=None)
            finding = _between(kernel, row, mine, theirs, here, other)
        variants = (variant, other.variant if other is not None else variant)
        finding.places = tuple(_with_text(place, of, file) for place, of in zip(finding.places, variants, strict=False))
        finding.launched = _at(file, line) if what is None else ""
        if what == "host" and other is not None and other.what is None:
            finding.launched = _at(other.file, other.line)
        finding.count = row.times
        mine_is = variant.module.identity if variant is not None else (what, file, line)
        who = (mine_is, kernel, other and (other.what, other.name))
        keep((*who, row.what, _what_happened(finding, row)), finding)


def _what_happened(finding: Finding, row: _Row) -> tuple[object, ...]:
    """The same for findings that tell a programmer the same.

    A loop that the compiler has unrolled is several instructions of one line, and which of two accesses came first may
    be chance. Without line information the instructions must be the same.
    """
    lines = [(place.file, place.line, place.via, place.what.partition(", ")[0]) for place in finding.places]
    if all(place.file is not None for place in finding.places):
        return finding.advice, len(lines) == 1 and row.is_write, *sorted(lines, key=repr)
    return row.site, row.other_site, row.is_write, row.other_is_write


def _at(file: str | None, line: int) -> str:
    return f"{file}:{line}" if file else ""


def _instruction(variant: Variant | None, site: int) -> ast.Instruction | None:
    if variant is None:
        return None
    instructions = instructions_of(variant.facts())
    if site & _OF_VARIANT and site != _UNKNOWN:
        sites = variant.sites
        return sites[site & ~_OF_VARIANT].instruction if site & ~_OF_VARIANT < len(sites) else None
    return instructions[site] if site < len(instructions) else None


_PLACES = {
    "copy": "a copy",
    "fill": "a fill",
    "free": "memory is freed",
    "allocation": "memory is allocated",
    "value": "a value is written",
    "call of a math library": "a call of a math library",
    "something": "an operation",
    "host": "{} by the host",
}


def _between(
    kernel: str, row: _Row, mine: ast.Instruction | None, theirs: ast.Instruction | None, here: Place, other: _Other
) -> Finding:
    """Two operations of streams that nothing orders."""
    if not here.what:
        place = _place(_access(row.kind, row.is_write, row.size), mine, row.block, row.thread)
        here = dataclasses.replace(place, stream=here.stream)
    launched = _at(other.file, other.line)
    if other.what is None:
        place = _place(
            _access(row.other_kind, row.other_is_write, 0), theirs, row.other_block, row.other_thread, before=True
        )
        there = dataclasses.replace(place, kernel=other.name, launched=launched, stream=other.stream)
    else:
        there = Place(f"{_PLACES[other.what]}, earlier", launched=launched, stream=other.stream)
    if here.stream is None:
        there = dataclasses.replace(there, kernel="", launched="" if other.what is None else launched)
        details = [_memory(row)]
        summary = "the host accesses memory that a stream's operation uses, and has not waited for it"
        advice = "wait for the operation first: Stream.sync, Event.sync, or Device.sync"
        return Finding(_KINDS[row.what], kernel, summary, (here, there), tuple(details), advice=advice)
    details = [_memory(row)]
    freed = _driver.lines_of_memory(row.allocation[0])[1] if row.allocation is not None and row.what == FREED else None
    if freed:
        details.append(f"freed at {freed}")
    if row.what == FREED:
        summary = "memory is freed in the order of a stream, and nothing orders that behind its use in another"
        advice = "free it in the stream that used it last, or have this stream wait for an event of that one first"
    elif other.what == "allocation":
        summary = "memory is used that was allocated in the order of another stream, and nothing orders the two"
        advice = "have this stream wait for an event of that one first (Stream.wait), or allocate it in this stream"
    else:
        summary = "memory is accessed by two operations of streams, and nothing orders them"
        advice = "record an event behind the first and let the second's stream wait for it (Stream.wait), "
        advice += "use one stream, or an edge of the graph, or synchronize in between"
    return Finding(_KINDS[row.what], kernel, summary, (here, there), tuple(details), advice=advice)


def _with_text(place: Place, variant: Variant | None, launched: str | None) -> Place:
    """A place with the text of its line, and where that stands in the program that launched."""
    if place.file is None:
        return place
    found = text_of(place.file, place.line, variant.module.text if variant is not None else "", launched)
    return dataclasses.replace(place, text=found.text, python=found.python)


def _is_aligned(instruction: ast.Instruction | None) -> bool:
    return instruction is not None and (instruction.opcode == "bar" or "aligned" in instruction.modifiers)


def _finding(kernel: str, row: _Row, mine: ast.Instruction | None, other: ast.Instruction | None) -> Finding:
    kind = _KINDS[row.what]
    here = _place(_access(row.kind, row.is_write, row.size), mine, row.block, row.thread)
    there = _place(
        _access(row.other_kind, row.other_is_write, row.size), other, row.other_block, row.other_thread, before=True
    )
    if row.what in (RACE, EARLY):
        places, details = (here, there), (_memory(row),)
        if row.what == EARLY:
            done = "written" if row.is_write else "read"
            way = "to" if row.other_is_write else "from"
            summary = f"{_SPACES[row.space]} memory is {done} before a copy {way} it is complete"
            return Finding(kind, kernel, summary, places, details, advice=_ADVICE_COPY)
        summary = f"{_SPACES[row.space]} memory is accessed by two threads, and nothing orders the accesses"
        is_one = here.file is not None and (here.file, here.line) == (there.file, there.line)
        return Finding(kind, kernel, summary, places, details, advice=_advice(row, is_one))
    if row.what == ENDED:
        return _ended(kernel, row, here)
    if row.what == UNSET:
        summary = f"{_SPACES[row.space]} memory is read that nobody has written"
        advice = "write it first: cuMemsetD8 (Buffer.fill) for device memory, a store before the barrier for shared"
        advice += "; a copy of memory that nobody has written does not count"
        return Finding(kind, kernel, summary, (here,), (_memory(row),), advice=advice)
    if row.what == UNNAMED:
        who = dataclasses.replace(here, what=f"a warp operation with the mask {row.address:#010x}")
        summary = "a thread takes part in a warp operation whose mask does not name it"
        return Finding(kind, kernel, summary, (who,), advice="a thread's mask must have the bit of its own lane")
    if row.what == ABSENT:
        who = dataclasses.replace(here, what=f"a warp operation with the mask {row.address:#010x}")
        summary = f"the mask of a warp operation names {_lanes(row.lanes)}, which has exited or never comes"
        advice = "name only the threads that take part: __ballot_sync in front of the branch, or __activemask() there"
        return Finding(kind, kernel, summary, (who,), advice=advice)
    who = dataclasses.replace(here, what="a barrier")
    others = () if other is None else (dataclasses.replace(there, what="another barrier"),)
    summary = f"only some threads of a warp reach a barrier that is for all of them: {_lanes(row.lanes)} is elsewhere"
    advice = "move __syncthreads() out of the branch, so that all threads of the block reach it"
    return Finding(kind, kernel, summary, (who, *others), advice=advice)


_ADVICE_COPY = (
    "wait for the copy: cp.async.wait_group (__pipeline_wait_prior), cp.async.bulk.wait_group, or the mbarrier that "
    "counts its bytes"
)


_ADVICE_END = (
    'wait for the copy before the last thread ends (PTX ISA, "Async Proxy"): the mbarrier that counts its bytes, or '
    "for copies to global memory cp.async.bulk.commit_group and wait_group.read in the thread that has begun them"
)


def _ended(kernel: str, row: _Row, here: Place) -> Finding:
    """A block has ended during a copy that it, or another one of its cluster, has begun."""
    place = dataclasses.replace(here, what=f"{here.what} of {row.size:,} bytes")
    summary = f"a block ends while an asynchronous copy may still {'write to' if row.is_write else 'read from'} its "
    summary += "shared memory, which then becomes another block's"
    whose = f" of block {row.other_block}" if row.other_block != row.block else ""
    return Finding(_KINDS[row.what], kernel, summary, (place,), (_memory(row) + whose,), advice=_ADVICE_END)


def _advice(row: _Row, is_one_line: bool) -> str:
    """What would order two accesses. Nothing comes between those of one line but other lines of a loop."""
    atomics = {row.kind, row.other_kind} & {_ATOMIC}
    if is_one_line and not atomics:
        if row.block != row.other_block:
            return "use an atomic operation, such as atomicAdd(), or give each block an element of its own"
        is_near = _warp(row.thread, row) == _warp(row.other_thread, row)
        barrier = "__syncwarp()" if is_near else "__syncthreads()"
        return f"use an atomic operation, such as atomicAdd(); or if this is a loop, put {barrier} between its turns"
    if row.block != row.other_block:
        advice = "order the blocks: two launches, or a barrier of the grid (cooperative groups)"
        advice += "; or atomic operations with fences"
    elif _warp(row.thread, row) == _warp(row.other_thread, row):
        advice = "put __syncwarp() between the two accesses, or __syncthreads() if other warps access it, too"
    else:
        advice = "put a barrier, __syncthreads(), between the two accesses"
    return advice + ("; or access it by atomic operations only" if atomics else "")


def _warp(thread: Dim3, row: _Row) -> object:
    """What threads of one warp are likely to have in common, whose block's shape is not known here."""
    same_row = row.thread[1:] == row.other_thread[1:]
    return thread[0] // 32 if same_row else thread


def _access(kind: int, is_write: int, size: int) -> str:
    if kind == _COPY:
        return "asynchronous copy"
    what = "atomic operation" if kind == _ATOMIC else "write" if is_write else "read"
    if not size:
        return what
    return f"{what} of {size} byte{'s' if size > 1 else ''}"


def _place(what: str, instruction: ast.Instruction | None, block: Dim3, thread: Dim3, *, before: bool = False) -> Place:
    what = f"{what}, earlier" if before else what
    if instruction is None:
        return Place(what, block_index=block, thread_index=thread)
    location: ast.Location | None = instruction.location
    assert location is not None
    via: list[str] = []
    outer = location.inlined_at
    while outer is not None and outer.file is not None:
        via.append(f"{outer.file}:{outer.line}" + (f" in {readable(outer.function)}" if outer.function else ""))
        outer = outer.inlined_at
    return Place(
        what,
        location.file,
        location.line,
        location.function and readable(location.function),
        tuple(via),
        instruction.text.strip(),
        block_index=block,
        thread_index=thread,
    )


def _memory(row: _Row) -> str:
    if row.space in (1, 2):
        return f"at offset {row.address} in {_SPACES[row.space]} memory"
    allocation = (*row.allocation, 0) if row.allocation is not None else None
    text = f"at address {row.address:#x}: {nearest(row.address, row.size, allocation)}"
    origin = _driver.lines_of_memory(row.allocation[0])[0] if row.allocation is not None else None
    return f"{text}, allocated at {origin}" if origin else text


def _lanes(mask: int) -> str:
    first = (mask & -mask).bit_length() - 1
    count = mask.bit_count()
    return f"lane {first}" if count == 1 else f"lane {first} and {count - 1} more"


# ---- faults ----------------------------------------------------------------------------------------------------------


def add_fault(error: str, kernel: str, kind: int, text: str) -> None:
    """Add a kernel that has ended by a fault, which the driver has described."""
    check = "sync" if kind == Kind.BARRIER else "memory"
    first, *rest = (text or f"kernel '{kernel}': {error}").split("\n  ")
    finding = Finding(check, kernel, f"{error}: {first.partition(': ')[2]}", details=tuple(rest))
    keep((error, kernel, text), finding)


def add_unset_copy(address: int, unset: int, size: int, base: int, length: int) -> None:
    """Add a copy to the host of memory that nobody has written."""
    which = (
        f"{unset:,} of {size:,} bytes that are copied to the host were"
        if size > 1
        else "the byte that is copied to the host was"
    )
    summary = f"{which} never written"
    details = [f"the first at address {address:#x}: {nearest(address, 1, (base, length, 0))}"]
    origin = _driver.lines_of_memory(base)[0]
    if origin:
        details.append(f"allocated at {origin}")
    advice = "write the memory first, or copy only what was written"
    keep(("copy", base, address, size), Finding("init", "", summary, details=tuple(details), advice=advice))
