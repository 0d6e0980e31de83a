"""The package has every public name of cuda.core 1.2, with its parameters, defaults, properties and errors.

What there has to be is data: api.toml. cupola may have more: other names, further parameters behind those of the
reference, and texts of errors that say more.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import os
import pickle
import re
import tomllib
import weakref
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cupola
from cupola.bindings import driver
from docs.stub_signatures import find_stub, parameters_of
from tests.cpu.driver.calls import ok

API = tomllib.loads(Path(__file__).with_name("api.toml").read_text())

# *x += 1, without NVRTC.
PTX = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry increment(.param .u64 x)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.u32 %r1, [%rd2];
    add.u32 %r2, %r1, 1;
    st.global.u32 [%rd2], %r2;
    ret;
}
"""

REQUIRED = inspect.Parameter.empty


def find(path: str) -> Any:
    """The class or function of a dotted path."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return getattr(find(module), name)


def listed(table: str) -> list[tuple[str, str]]:
    """(path, name) for each name in the lists of a table."""
    return [(path, name) for path, names in API[table].items() for name in names.split()]


def written(parameters: str) -> inspect.Signature:
    """Make a signature of parameters as api.toml has them."""
    names: dict[str, Any] = {}
    exec(f"def function({parameters}): pass", names)
    return inspect.signature(names["function"])


def ours(subject: Any) -> list[inspect.Signature]:
    """Signatures of a function or class: that of the compiled function, and what the stub says of it."""
    found = []
    stub = find_stub(subject)
    if stub is not None:
        found.append(written(ast.unparse(_without_types(parameters_of(stub)))))
    try:
        found.append(inspect.signature(subject))
    except ValueError:
        assert found, f"{subject!r} has neither a signature nor a stub"
    return found


def _without_types(arguments: ast.arguments) -> ast.arguments:
    arguments = copy.deepcopy(arguments)
    for node in ast.walk(arguments):
        if isinstance(node, ast.arg):
            node.annotation = None
    return arguments


def differences(wanted: inspect.Signature, found: inspect.Signature) -> list[str]:
    """What a caller who knows `wanted` would stumble on."""
    listed = [p for p in found.parameters.values() if p.name not in {"self", "cls"}]
    known = {p.name: p for p in listed}
    wrong = []
    by_position = [p.name for p in listed if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    expected = [p.name for p in wanted.parameters.values() if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    if by_position[: len(expected)] != expected:
        wrong.append(f"not {expected} by position")
    for parameter in wanted.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            if not any(p.kind is p.VAR_POSITIONAL for p in listed):
                wrong.append(f"takes no *{parameter.name}")
            continue
        mine = known.get(parameter.name)
        if mine is None:
            wrong.append(f"no parameter {parameter.name}")
        elif parameter.kind is not mine.kind and parameter.kind is not parameter.POSITIONAL_ONLY:
            wrong.append(f"{parameter.name} is {mine.kind.description}, not {parameter.kind.description}")
        elif mine.default != parameter.default:
            wrong.append(f"not {parameter.name}={parameter.default!r}")
    wrong += [
        f"{p.name} is required"
        for p in listed
        if p.name not in wanted.parameters and p.default is REQUIRED and p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}
    ]
    return wrong


def check_signature(subject: Any, parameters: str) -> None:
    wanted = written(parameters)
    # A stub has one of several overloads, and a compiled function None for what it requires by a better error.
    wrong = set.intersection(*(set(differences(wanted, found)) for found in ours(subject)))
    assert wrong == set(), f"expected ({parameters})"


def test_a_difference_is_found():
    wanted = written("a, b=1, *, c, d=2")
    assert differences(wanted, written("a, b=1, *, c, d=2")) == []
    assert differences(wanted, written("a, b=1, older=None, *, c, d=2, e=3, **more")) == []
    for parameters in (
        "a, *, b=1, c, d=2",
        "a, b=2, *, c, d=2",
        "b=1, *, a, c, d=2",
        "a, b=1, c=None, d=2",
        "a, b=1, *, c",
        "a, b=1, *, c, d=2, e",
        "x, b=1, *, c, d=2",
        "a, b=1, **keywords",
    ):
        assert differences(wanted, written(parameters)) != [], parameters


# --- names, without a device


@pytest.mark.parametrize(("module", "name"), listed("modules"))
def test_names_exist(module, name):
    home = importlib.import_module(module)
    assert getattr(home, name) is not None
    assert name in dir(home)


@pytest.mark.parametrize(("path", "members"), API["enums"].items())
def test_enums(path, members):
    enum = find(path)
    assert {member.name: member.value for member in enum} == members
    for name, value in members.items():
        assert enum[name] == value == str(enum(value))
    with pytest.raises(ValueError, match="nonsense"):
        enum("nonsense")


@pytest.mark.parametrize(("path", "parameters"), API["functions"].items())
def test_functions(path, parameters):
    check_signature(find(path), parameters)


@pytest.mark.parametrize(("path", "parameters"), API["options"].items())
def test_options(path, parameters, device):
    cls = find(path)
    assert is_dataclass(cls)
    wanted = written(parameters).parameters
    assert [field.name for field in fields(cls)] == list(wanted)
    check_signature(cls, parameters)
    required = dict.fromkeys(name for name, parameter in wanted.items() if parameter.default is parameter.empty)
    one, other = cls(**required), cls(**required)
    for name, parameter in wanted.items():
        if name != "arch" and name not in required:  # ProgramOptions asks the device
            assert getattr(one, name) == parameter.default, name
    assert one == other
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
    if path == "cupola.utils.CopyOptions":
        assert hash(one) == hash(other)
    else:
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)
    with pytest.raises(TypeError, match="no_such_option"):
        cls(no_such_option=1)


MADE = {path: entry for path, entry in API["classes"].items() if "init" in entry}


@pytest.mark.parametrize("path", MADE)
def test_constructors(path):
    cls, parameters = find(path), MADE[path]["init"]
    if parameters:
        check_signature(cls, parameters)
    else:
        assert isinstance(cls(), cls)


@pytest.mark.parametrize("path", [path for path, entry in API["classes"].items() if "factory" in entry])
def test_factories_are_named(path):
    entry, cls = API["classes"][path], find(path)
    refusal = find(f"builtins.{entry.get('refusal', 'RuntimeError')}")
    with pytest.raises(refusal, match=f"^{cls.__name__} .*{re.escape(entry['factory'])}"):
        cls()


CALLS = [
    (path, kind, call)
    for path, entry in API["classes"].items()
    for kind in ("methods", "static", "of_class")
    for call in entry.get(kind, [])
]


@pytest.mark.parametrize(("path", "kind", "call"), CALLS)
def test_methods(path, kind, call):
    cls = find(path)
    name, _, parameters = call.removesuffix(")").partition("(")
    method = getattr(cls, name)
    assert callable(method)
    bound = getattr(method, "__self__", None) is cls
    assert bound is (kind == "of_class") or not hasattr(method, "__self__"), "is it a class method?"
    if isinstance(inspect.getattr_static(cls, name), staticmethod):
        assert kind == "static"
    if name.startswith("__") and name.strip("_") in {"getitem", "setitem", "delitem", "len"}:
        return  # slots, whose parameters Python knows
    check_signature(method, parameters)


# --- objects


def offer(pair: object) -> object:
    """An object with the protocol of streams."""
    return type("Offer", (), {"__cuda_stream__": lambda self: pair})()


def called() -> None:
    """A callback."""


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the Python in api.toml may use."""
    from cupola import graph, texture, typing, utils

    device = cupola.Device(0)
    device.set_current()
    names: dict[str, Any] = {"np": np, "os": os, "PTX": PTX, "device": device, "offer": offer, "called": called}
    for module in (cupola, graph, texture, utils, typing):
        names.update({name: getattr(module, name) for name in module.__all__})
    stream = device.create_stream()
    arch = {"arch": f"sm_{device.arch}"}
    code = cupola.ObjectCode.from_ptx(PTX.encode(), name="increment")
    kernel = code.get_kernel("increment")
    config = cupola.LaunchConfig(grid=1, block=1)
    buffer = device.allocate(64, stream=stream)
    pinned = cupola.LegacyPinnedMemoryResource()
    definition = graph.GraphDefinition()
    condition = definition.create_condition(0)
    allocating = graph.GraphDefinition()
    node = allocating.allocate(64)
    destroyed = graph.GraphDefinition().empty()
    destroyed.destroy()
    running = graph.GraphDefinition()
    event = stream.record()
    executed = {
        "launch": running.launch(config, kernel, buffer),
        "memset": running.memset(buffer, 0, 64),
        "memcpy": running.memcpy(buffer, buffer.handle + 32, 32),
        "embed": running.embed(graph.GraphDefinition()),
        "record": running.record(event),
        "wait": running.wait(event),
        "callback": running.callback(called),
    }
    # From outside any pool: drivers refuse some advice on the memory of pools.
    address = int(ok(driver.cuMemAllocManaged(4096, 1)))
    options = cupola.ProgramOptions(**arch)

    def key(**changed: Any) -> bytes:
        given = {"code": "", "code_type": "c++", "options": options, "target_type": "cubin", **changed}
        return utils.make_program_cache_key(**given)

    names.update(
        ARCH=arch,
        KEY=key,
        stream=stream,
        event=event,
        code=code,
        kernel=kernel,
        config=config,
        buffer=buffer,
        other=device.allocate(32, stream=stream),
        odd=device.allocate(63, stream=stream),
        pinned=pinned,
        managed=cupola.ManagedBuffer.from_handle(address, 4096),
        builder=device.create_graph_builder().begin_building("relaxed"),
        ended=device.create_graph_builder().begin_building().end_building(),
        definition=definition,
        condition=condition,
        if_node=definition.if_then(condition),
        if_else_node=definition.if_else(definition.create_condition(0)),
        while_node=definition.while_loop(definition.create_condition(0)),
        switch_node=definition.switch(definition.create_condition(0), 2),
        allocating=allocating,
        freed=node.deallocate(node.dptr),
        destroyed=destroyed,
        executed=executed,
        executable=running.instantiate(),
        resource=texture.ResourceDescriptor.from_opaque_array(
            device.create_opaque_array(texture.OpaqueArrayOptions((8, 4), "float32", 1, is_surface_load_store=True))
        ),
        layout=utils.StridedMemoryView.from_buffer(buffer, (4, 4), itemsize=4)._layout,
        folder=str(tmp_path_factory.mktemp("cache")),
        __file__=__file__,
    )
    yield names
    names["builder"].close()  # an open recording would spoil the tests behind these
    stream.sync()
    ok(driver.cuMemFree(address))


OBJECTS = {path: entry for path, entry in API["classes"].items() if "object" in entry}


def having(fact: str) -> list[str]:
    return [path for path, entry in OBJECTS.items() if fact in entry]


def unless_too_old(get):
    """What it gives; the test is skipped where it says that the driver is too old for it."""
    try:
        return get()
    except RuntimeError as error:
        if "need a driver of CUDA" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture
def value(names, device, path):
    """An object of the class."""
    value = unless_too_old(lambda: eval(OBJECTS[path]["object"], names))
    assert isinstance(value, find(path))
    return value


@pytest.mark.parametrize("path", OBJECTS)
def test_properties(path, value):
    for name in OBJECTS[path].get("read", "").split():
        with pytest.raises(AttributeError):
            setattr(value, name, None)
        unless_too_old(lambda name=name: getattr(value, name))
    for name in OBJECTS[path].get("write", "").split():
        setattr(value, name, getattr(value, name))
    assert set(OBJECTS[path].get("read", "").split()) <= set(dir(value))


@pytest.mark.parametrize("path", having("equality"))
def test_equality(path, value):
    assert value == value
    assert value != "something else"
    kind = OBJECTS[path]["equality"]
    cls = type(value)
    if kind == "unhashable":
        with pytest.raises(TypeError):
            hash(value)
        return
    assert hash(value) == hash(value)
    by_identity = cls.__eq__ is object.__eq__
    assert by_identity is (kind == "identity") or path == "cupola.Host"  # a singleton of each value


@pytest.mark.parametrize("path", having("weakref"))
def test_weak_references(path, value):
    if OBJECTS[path]["weakref"]:
        assert weakref.ref(value)() is value
    else:
        with pytest.raises(TypeError, match="weak"):
            weakref.ref(value)


@pytest.mark.parametrize("path", having("pickle"))
def test_pickles(path, value):
    how = OBJECTS[path]["pickle"]
    if how == "yes":
        assert type(pickle.loads(pickle.dumps(value))) is type(value)
        return
    error = find(f"builtins.{how}")
    with pytest.raises(error):
        pickle.dumps(value)
    with pytest.raises(error):
        copy.copy(value)


@pytest.mark.parametrize("path", having("repr"))
def test_reprs(path, value):
    assert re.fullmatch(OBJECTS[path]["repr"], repr(value)), repr(value)


@pytest.mark.parametrize("path", [path for path in OBJECTS if not path.endswith("Options")])
def test_context_managers(path):
    closes = any(method.startswith("close(") for method in OBJECTS[path].get("methods", []))  # cuda.core has fewer
    assert hasattr(find(path), "__enter__") is (OBJECTS[path].get("context_manager", False) or closes)


@pytest.mark.parametrize("path", having("weakref"))
def test_no_new_attributes(path, value):
    if OBJECTS[path].get("instance_dict"):
        value.something_new = 1
        del value.something_new
    else:
        with pytest.raises(AttributeError):
            value.something_new = 1


@pytest.mark.parametrize("path", having("refused"))
def test_closed_objects(path, value, names):
    entry = OBJECTS[path]
    value.close()
    value.close()
    assert value.is_closed
    for name in entry["kept"].split():
        getattr(value, name)
    assert repr(value)
    assert value == value
    assert isinstance(hash(value), int)
    for expression in entry["refused"]:
        with pytest.raises(RuntimeError, match=f"{type(value).__name__} has been closed"):
            eval(expression, {**names, "o": value})


@pytest.mark.parametrize(
    ("table", "expression"),
    [
        ("device_properties", "device.properties"),
        ("kernel_attributes", "kernel.attributes"),
        ("pool_attributes", "DeviceMemoryResource(0).attributes"),
    ],
)
def test_attributes(names, device, table, expression):
    subject = eval(expression, names)
    for kind, type_ in (("integers", int), ("booleans", bool)):
        for name in API[table][kind].split():
            assert type(getattr(subject, name)) is type_, name
            assert name in dir(subject)
            with pytest.raises(AttributeError):
                setattr(subject, name, 1)


@pytest.mark.parametrize(("expression", "error"), API["mistakes"].items())
def test_mistakes(names, device, expression, error):
    error, _, text = error.partition(": ")
    classes = eval(error, {**names, "CUDAError": cupola.CUDAError, "NVRTCError": cupola.NVRTCError})
    with pytest.raises(classes) as caught:
        eval(expression, names)
    assert re.search(text, str(caught.value)), str(caught.value)
    if not isinstance(classes, tuple):
        assert type(caught.value) is classes
