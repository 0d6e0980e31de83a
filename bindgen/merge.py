"""Two CUDA majors in one IR: the newest headers, with what the last headers of the major before it have otherwise.

What both have is kept as the newest has it. What only one has is marked with that major (``only``). Functions may have
another symbol in the older library, or none with the same parameters; a field of a record may have another place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .ir import Constant, Declaration, Enum, Field, Function, Module, Record, Typedef


def merge(newest: Module, older: Module) -> Module:
    """Annotate `newest` with what `older` has, and append what only `older` has."""
    newest.older = older.version
    majors = tuple(int(m.version.partition(".")[0]) for m in (newest, older))
    _functions(newest, older, *majors)
    _types(newest, older, *majors)
    known = {c.name: c for c in older.constants}
    for constant in newest.constants:
        _compare(constant, known, majors[0])
    names = {c.name for c in newest.constants}
    for constant in older.constants:
        if constant.name not in names:
            constant.only = majors[1]
            newest.constants.append(constant)
    return newest


def leave_out(module: Module, kept: str, without: str) -> None:
    """Remove the deprecated functions whose names do not match `kept`, and those whose names match `without`."""
    module.functions = [
        f
        for f in module.functions
        if (not f.deprecated or re.fullmatch(kept, f.name)) and not re.fullmatch(without, f.name)
    ]


def _compare(item: Constant, known: dict[str, Constant], newest: int) -> None:
    other = known.get(item.name)
    if other is None:
        item.only = newest
    elif other.value != item.value:
        item.older = other.value


def signature(function: Function) -> list[str]:
    """The types of parameters and result; whether something is const does not matter to the caller."""
    types = [*(p.type for p in function.parameters), function.returns]
    return [re.sub(r"\b(const|enum|struct) |\s*\bconst\b", "", t).replace(" ", "") for t in types]


def base(symbol: str) -> str:
    return re.sub(r"_v\d$", "", symbol)


def _functions(newest: Module, older: Module, new_major: int, old_major: int) -> None:
    major, minor = (int(number) for number in older.version.split("."))
    last = major * 1000 + minor * 10
    by_name = {f.name: f for f in older.functions}
    served: dict[str, str] = {}  # symbol of the older library -> function that it serves
    for function in newest.functions:
        alike = [
            f.symbol
            for f in sorted(older.functions, key=lambda f: f.symbol, reverse=True)
            if base(f.symbol) == base(function.symbol) and signature(f) == signature(function)
        ]
        if alike and function.since <= last:
            served |= dict.fromkeys(alike, function.name)
            function.older = " ".join(alike) if alike != [function.symbol] and not function.since else ""
        elif function.name in by_name:
            function.older = by_name[function.name].symbol
            function.older_parameters = by_name[function.name].parameters
        else:
            function.only = new_major if function.since == 0 or function.since > last else 0
    names = {f.name for f in newest.functions}
    for function in older.functions:
        if function.name in names:
            continue
        if function.symbol in served:
            newest.renamed[function.name] = served[function.symbol]
        else:
            function.only = old_major
            newest.functions.append(function)


def declared(module: Module) -> Iterator[tuple[str, Declaration, Typedef | None]]:
    """Name, declaration, and the typedef that names it when it has no tag."""
    pending: Declaration | None = None
    for item in module.types:
        if isinstance(item, Typedef):
            yield item.name, pending or item, item if pending else None
            pending = None
        elif item.tag:
            yield f"{item.kind if isinstance(item, Record) else 'enum'} {item.tag}", item, None
        else:
            pending = item


def _types(newest: Module, older: Module, new_major: int, old_major: int) -> None:
    known = {name: item for name, item, _ in declared(older)}
    names = set()
    for name, item, typedef in declared(newest):
        names.add(name)
        other = known.get(name)
        if other is None:
            item.only = new_major
            if typedef:
                typedef.only = new_major
        elif isinstance(item, Enum) and isinstance(other, Enum):
            _members(item, other, new_major, old_major)
        elif isinstance(item, Record) and isinstance(other, Record):
            _record(item, other, new_major)
    members = {m.name: name for name, item, _ in declared(newest) if isinstance(item, Enum) for m in item.members}
    for name, item, typedef in declared(older):
        if name in names:
            continue
        if isinstance(item, Enum) and all(m.name in members for m in item.members):
            same = members[item.members[0].name]
            newest.types.append(Typedef(name.removeprefix("enum "), same, 4, only=old_major))  # another name now
        else:
            item.only = old_major
            newest.types.append(item)
            if typedef:
                typedef.only = old_major
                newest.types.append(typedef)


def _members(enum: Enum, other: Enum, new_major: int, old_major: int) -> None:
    values = {m.name: m.value for m in other.members}
    for member in enum.members:
        if member.name not in values:
            member.only = new_major
        elif values[member.name] != member.value:
            member.older = values[member.name]
    names = {m.name for m in enum.members}
    for member in other.members:
        if member.name not in names:
            member.only = old_major
            enum.members.append(member)


def fields(record: Record, start: int = 0) -> Iterator[tuple[str, int, Field]]:
    """Name, offset and declaration of the fields, those of anonymous inner records included."""
    for field in record.fields:
        if field.record and not field.name:
            yield from fields(field.record, start + field.offset)
        else:
            yield field.name, start + field.offset, field


def _record(record: Record, other: Record, new_major: int) -> None:
    places = {name: offset for name, offset, _ in fields(other)}
    moved = False
    for name, offset, field in fields(record):
        if name not in places:
            field.only = new_major
        elif places[name] != offset and not name.startswith("reserved"):
            moved = True
    if moved:
        record.older = other
