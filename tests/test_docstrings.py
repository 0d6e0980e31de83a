"""Every public name says what it is: numpydoc docstrings whose parameters and results are the real ones."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from cupola._signposts import Sign
from docs.stub_signatures import _process_signature, find_stub, parameters_of

ROOT = Path(__file__).resolve().parents[1]

MODULES = (
    "cupola",
    "cupola.graph",
    "cupola.utils",
    "cupola.texture",
    "cupola.typing",
    "cupola.pathfinder",
    "cupola.cpu",
    "cupola.testing",
)

# Classes without a public name of their own, whose objects a public attribute or method gives.
REACHED = (
    "cupola.core.memory._accessed_by.AccessedBySetProxy",
    "cupola.core.device._device.ComputeCapability",
    "cupola.core.device._device_properties.DeviceProperties",
    "cupola.core.memory._graph_memory.GraphMemoryAttributes",
    "cupola.core.program._kernel.ParamInfo",
    "cupola.core.program._kernel_attributes.KernelAttributes",
    "cupola.core.launch._occupancy.KernelOccupancy",
    "cupola.core.launch._occupancy.MaxPotentialBlockSizeOccupancyResult",
    "cupola.core.memory._peer_access.PeerAccessibleBySetProxy",
    "cupola.core.memory._pool.PoolAttributes",
    "cupola.core.launch._prepared.PreparedLaunch",
    "cupola.graph._adjacency.AdjacencySet",
    "cupola.core.exchange._viewable_arguments.ViewableArgument",
)

# Older spellings, which still work and warn.
OLDER = {"older", "enable_timing", "busy_waited_sync"}

# Protocols of other libraries that are worth a docstring.
PROTOCOLS = ("__dlpack__", "__dlpack_device__", "__cuda_stream__")


def section(text: str, title: str) -> str | None:
    """Return the body of a numpydoc section, or None when there is no such section."""
    found = re.search(rf"^{title}\n-{{{len(title)}}}\n(.*?)(?=^[A-Z][A-Za-z ]*\n-{{3,}}\n|\Z)", text, re.M | re.S)
    return found and found[1]


def documented(text: str, title: str) -> list[str]:
    """Names that a section of parameters or attributes explains; each has an explanation below it."""
    body = section(text, title) or ""
    entries = re.findall(r"^(\S.*)\n((?:[ \t].*\n|\n)*)", body + "\n", re.M)
    for head, explanation in entries:
        assert explanation.strip(), f"{head!r} is not explained"
    return [name.strip().lstrip("*") for head, _ in entries for name in head.split(" : ")[0].split(",")]


def parameters(subject: Any) -> tuple[list[str], bool]:
    """Names of the parameters of a function, and whether it takes more keywords than it names."""
    found = list(inspect.signature(subject).parameters.values())
    if found and found[0].name in {"self", "cls"}:
        found = found[1:]
    return [p.name for p in found if p.kind is not p.VAR_KEYWORD], any(p.kind is p.VAR_KEYWORD for p in found)


def returns_something(subject: Any) -> bool:
    stub = find_stub(subject)
    if stub is not None:
        returned = getattr(stub.returns, "value", stub.returns)
    else:
        returned = getattr(inspect.unwrap(subject), "__annotations__", {}).get("return")
    return returned not in (None, "None")


def is_ours(subject: Any) -> bool:
    return str(getattr(subject, "__module__", "")).startswith("cupola")


def members(cls: type) -> Iterator[tuple[str, Any, type]]:
    """Public members of a class and of its bases in the package: (name, member, the class that has it)."""
    seen: set[str] = set()
    for owner in cls.__mro__:
        if not is_ours(owner):
            continue
        for name, member in vars(owner).items():
            if name not in seen and (not name.startswith("_") or name in PROTOCOLS) and type(member) is not Sign:
                seen.add(name)
                yield name, member, owner


def public() -> Iterator[tuple[str, Any]]:
    for module in MODULES:
        home = importlib.import_module(module)
        for name in home.__all__:
            yield f"{module}.{name}", getattr(home, name)
    for path in REACHED:
        module, name = path.rsplit(".", 1)
        yield path, getattr(importlib.import_module(module), name)


SUBJECTS = dict(public())
CLASSES = {path: subject for path, subject in SUBJECTS.items() if inspect.isclass(subject) and is_ours(subject)}
FUNCTIONS = {path: subject for path, subject in SUBJECTS.items() if inspect.isroutine(inspect.unwrap(subject))}
METHODS = {
    f"{path}.{name}": getattr(cls, name)
    for path, cls in CLASSES.items()
    if not issubclass(cls, Enum)
    for name, member, owner in members(cls)
    if callable(member) or isinstance(member, staticmethod | classmethod)
}
CALLABLES = {**FUNCTIONS, **METHODS}


def check_summary(text: str | None) -> str:
    assert text, "there is no docstring"
    text = inspect.cleandoc(text)
    summary = text.splitlines()[0]
    assert summary.endswith((".", ":")), f"the first line is no sentence of its own: {summary!r}"
    return text


@pytest.mark.parametrize("path", CALLABLES)
def test_function(path):
    subject = CALLABLES[path]
    text = check_summary(subject.__doc__)
    names, more = parameters(subject)
    written = documented(text, "Parameters")
    assert [name for name in names if name not in written and name not in OLDER] == [], "not documented"
    assert more or [name for name in written if name not in names] == [], "documented, but there is no such parameter"
    assert len(written) == len(set(written)), "documented twice"
    returned = section(text, "Returns")
    if path.rsplit(".", 1)[1] not in PROTOCOLS:
        assert (returned is not None) == returns_something(subject), "what is returned?"


def test_signatures_of_pages_come_from_stubs():
    from cupola import Kernel

    assert _process_signature(None, "method", "", Kernel.prepare, None, "", None)
    assert find_stub(Kernel.attributes) is not None
    assert _process_signature(None, "property", "", Kernel.attributes, None, None, None) is None


@pytest.mark.parametrize("path", [path for path, subject in CALLABLES.items() if find_stub(subject)])
def test_stub_has_the_parameters_that_there_are(path):
    names, more = parameters(CALLABLES[path])
    stub = parameters_of(find_stub(CALLABLES[path]))
    declared = [a.arg for a in (*stub.posonlyargs, *stub.args, stub.vararg, *stub.kwonlyargs) if a]
    if more:
        assert set(names) - OLDER <= set(declared)
    else:
        assert declared == [name for name in names if name not in OLDER or name in declared]


@pytest.mark.parametrize("path", CLASSES)
def test_class(path):
    cls = CLASSES[path]
    assert "__doc__" in vars(cls), "there is no docstring"
    text = check_summary(cls.__doc__)
    if path in REACHED or issubclass(cls, Enum) or getattr(cls, "_is_protocol", False):
        return  # nobody makes these
    try:
        names, _ = parameters(cls)
    except ValueError:  # a compiled class that is not made by calling it
        names = []
    written = documented(text, "Parameters")
    attributes = documented(text, "Attributes")
    assert set(names) - {*written, *attributes, *OLDER, "args"} == set(), "not documented"
    assert set(written) - set(names) == set(), "documented, but there is no such parameter"


TYPED = re.compile(r"[A-Za-z_][\w.]*( or [\w.]+|, or None| of [^:]+)*: \S")


@pytest.mark.parametrize(
    "cls",
    [
        pytest.param(cls, id=path)
        for path, cls in CLASSES.items()
        if {"close", "handle"} & {name for name, _, _ in members(cls)}
    ],
)
def test_objects_say_what_threads_may_share(cls):
    texts = [vars(owner).get("__doc__") or "" for owner in cls.__mro__ if is_ours(owner)]
    assert any("hread" in text for text in texts), "say in the section Notes what threads may do with one object"


@pytest.mark.parametrize("path", [path for path, cls in CLASSES.items() if not issubclass(cls, Enum)])
def test_attributes_say_their_type(path):
    cls = CLASSES[path]
    text = inspect.cleandoc(cls.__doc__ or "")
    explained = {*documented(text, "Attributes"), *documented(text, "Parameters")}
    wrong = {}
    for name, member, _ in members(cls):
        if name in explained or name in OLDER or name.startswith("__") or f"{path}.{name}" in METHODS:
            continue
        said = str(getattr(member, "__doc__", None))
        if not TYPED.match(said) or not said.splitlines()[0].endswith("."):
            wrong[name] = said
    assert not wrong, "expected 'type: what it is.', or an entry in the docstring of the class"


@pytest.mark.parametrize("module", [name for name in MODULES if name != "cupola.typing"])  # of which all is shown
def test_every_name_is_on_a_page(module):
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.rst"))
    shown = set(re.findall(r"^\.\. (?:auto\w+|py:data):: (?:cupola\.(?:\w+\.)*)?(\w+)$", pages, re.M))
    home = importlib.import_module(module)
    names = {name for name in home.__all__ if not inspect.ismodule(getattr(home, name))}
    assert names - shown == set()
