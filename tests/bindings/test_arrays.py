"""Records as NumPy arrays, in both directions, and what else is said of every class and function."""

from __future__ import annotations

import gc
import importlib
import inspect
import sys
from typing import Any

import numpy as np
import pytest

from bindgen.ir import Module
from bindgen.libraries import LIBRARIES
from bindgen.plan import plans
from bindgen.typesystem import Types
from cupola.bindings import cufile, driver, nvml, runtime
from tests import processes

WITH_RECORDS = ("driver", "runtime", "nvml", "cufile")


def record_classes(module: Any) -> list[type]:
    found = [getattr(module, name) for name in module.__all__ if not name.endswith("_dtype")]
    return [cls for cls in found if isinstance(cls, type) and hasattr(cls, "from_array")]


@pytest.mark.parametrize("name", WITH_RECORDS)
def test_every_record_as_an_array(name):
    module = importlib.import_module(f"cupola.bindings.{name}")
    classes = record_classes(module)
    assert len(classes) > {"cufile": 5}.get(name, 80)
    for cls in classes:
        size = len(memoryview(cls()))
        assert isinstance(cls.dtype, np.dtype) and cls.dtype.itemsize == size, cls
        raw = np.arange(3 * size, dtype=np.uint8)
        array = raw.view(cls.dtype) if size else raw
        records = cls.from_array(array)
        assert [bytes(record) for record in records] == [bytes(raw[i * size : (i + 1) * size]) for i in range(3)], cls
        assert bytes(cls.to_array(records).view(np.uint8)) == bytes(raw), cls
        assert cls.to_array([]).shape == (0,) and cls.from_array(np.zeros(0, cls.dtype)) == []


@pytest.mark.parametrize("name", WITH_RECORDS)
def test_fields_of_arrays_are_those_of_records(name):
    """A number written into the array is what the record's field reads."""
    module, compared = importlib.import_module(f"cupola.bindings.{name}"), 0
    for cls in record_classes(module):
        array = np.zeros(2, cls.dtype)
        record = cls.from_array(array)[1]
        for field in cls.dtype.names or ():
            kind = cls.dtype[field]
            if kind.kind not in "iu" or not isinstance(getattr(record, field), int):
                continue
            array[field][1] = 1
            assert int(getattr(record, field)) == 1, f"{cls.__name__}.{field}"
            array[field][1] = 0
            compared += 1
    assert compared > {"cufile": 5}.get(name, 150)


def test_records_share_the_memory_of_the_array():
    array = np.zeros(2, driver.CUgraphEdgeData.dtype)
    first, second = driver.CUgraphEdgeData.from_array(array)
    second.to_port = 9
    assert array["to_port"].tolist() == [0, 9]
    array["type"] = [3, 4]
    del array
    gc.collect()
    assert (first.type, second.type, second.to_port) == (3, 4, 9)


def test_records_of_a_readonly_array_are_readonly():
    array = np.zeros(1, driver.CUgraphEdgeData.dtype)
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        driver.CUgraphEdgeData.from_array(array)[0].type = 1


def test_to_array_copies():
    edge = driver.CUgraphEdgeData(from_port=3)
    array = driver.CUgraphEdgeData.to_array([edge, edge])
    edge.from_port = 4
    assert array["from_port"].tolist() == [3, 3]


def test_nested_records_and_handles():
    attributes = np.zeros(2, driver.CUmemcpyAttributes.dtype)
    attributes["srcLocHint"]["id"] = [1, 2]
    assert [a.srcLocHint.id for a in driver.CUmemcpyAttributes.from_array(attributes)] == [1, 2]
    copies = np.zeros(1, driver.CUDA_MEMCPY2D.dtype)
    copies["srcDevice"] = 1 << 40
    assert int(driver.CUDA_MEMCPY2D.from_array(copies)[0].srcDevice) == 1 << 40
    assert runtime.cudaDeviceProp.dtype["name"] == "S256"


@pytest.mark.parametrize(
    ("cls", "array"),
    [
        (driver.CUgraphEdgeData, np.zeros(8, np.uint8)),
        (driver.CUgraphEdgeData, np.zeros(2, driver.CUmemLocation.dtype)),
        (driver.CUgraphEdgeData, np.zeros(4, driver.CUgraphEdgeData.dtype)[::2]),
        (cufile.IOVec, np.zeros(3)),
        (nvml.ProcessInfo, np.zeros(3)),
    ],
)
def test_arrays_of_something_else(cls, array):
    with pytest.raises(ValueError, match="type|contiguous"):
        cls.from_array(array)
    with pytest.raises((TypeError, AttributeError)):
        cls.from_array([1])
    with pytest.raises(TypeError, match=f"expected {cls.__name__}"):
        cls.to_array([cls(), driver.CUuuid()])


def test_arrays_are_arguments(stub):
    edges = "driver.CUgraphEdgeData.to_array([driver.CUgraphEdgeData()] * 2)"
    call = "driver.cuStreamUpdateCaptureDependencies(0, [1, 2], {}, 2, 0)"
    assert stub(call.format(edges)) == "(<CUresult.CUDA_SUCCESS: 0>,)"
    assert "List is too small: 1 < 2" in stub(call.format(f"{edges}[:1]"))
    assert "expected an array of type CUgraphEdgeData.dtype" in stub(
        call.format("__import__('numpy').zeros(2, driver.CUuuid.dtype)")
    )
    assert "expected a list or tuple, got bytearray" in stub(call.format("bytearray(16)"))


def test_arrays_for_pointer_fields():
    attributes = np.zeros(2, driver.CUlaunchAttribute.dtype)
    attributes["id"] = 2
    attributes["value"]["cooperative"] = [1, 0]
    config = driver.CUlaunchConfig(attrs=attributes, numAttrs=2)
    assert [(int(a.id), a.value.cooperative) for a in config.attrs] == [(2, 1), (2, 0)]


def test_without_numpy():
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "from cupola.bindings import driver\n"
        "driver.CUgraphEdgeData(from_port=1), driver.CUlaunchConfig(attrs=[driver.CUlaunchAttribute()])\n"
        "try: driver.CUgraphEdgeData.dtype\n"
        "except ImportError as error: print(error)\n"
    )
    done = processes.run([sys.executable, "-c", program])
    assert done.stdout.strip() == "this needs NumPy: pip install numpy", done.stderr


# ---- every function and every class ----


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_function_takes_keywords(name):
    """A keyword that no function has is named, those that it has are told apart; nothing is called."""
    library, module = LIBRARIES[name], importlib.import_module(f"cupola.bindings.{name}")
    for plan in plans(library, Types(Module.load(library.ir_path))):
        function = getattr(module, plan.python_name)
        names = list(inspect.signature(function).parameters)
        with pytest.raises(TypeError, match=rf"{plan.python_name}\(\) got an unexpected keyword argument 'no_such'"):
            function(**{known: None for known in names}, no_such=1)
        if names:
            with pytest.raises(TypeError, match=f"two values for argument '{names[0]}'"):
                function(None, **{known: None for known in names[: len(names)]})


@pytest.mark.parametrize("name", WITH_RECORDS)
def test_every_record_takes_its_fields_by_keyword(name):
    """Each field by itself, with the value that a new record has; and a repr that names every field."""
    done = 0
    for cls in record_classes(importlib.import_module(f"cupola.bindings.{name}")):
        for field in cls.dtype.names or ():
            fresh = cls()
            try:
                value = getattr(fresh, field)
            except AttributeError:
                continue  # a field of the other CUDA major
            if value is None or isinstance(value, np.ndarray) or field in ("kernelParams", "extra"):
                continue
            if isinstance(value, list) and not value:
                continue
            assert bytes(cls(**{field: value})) == bytes(fresh), f"{cls.__name__}.{field}"
            assert f"{field} :" in repr(fresh)
            done += 1
    assert done > {"cufile": 10}.get(name, 300)
