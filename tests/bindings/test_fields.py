"""Every field of every record: what is written lands where C has the field, touches nothing else, and reads back."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from typing import Any

import pytest

from bindgen.emit_module import Layout
from bindgen.ir import Module
from bindgen.libraries import LIBRARIES
from bindgen.merge import fields
from bindgen.typesystem import Resolved, Types

ADDRESS = 0x1234
METHODS = ("getPtr", "dtype", "to_array", "from_array", "set_dsts_srcs")


def sample(kind: Resolved, types: Types, module: Any) -> Any:
    """A value of a field's type that is not zero; None for records, which have tests of their own fields."""
    match kind.kind:
        case "scalar":
            return 1.5 if kind.name.startswith("F") else 1
        case "enum":
            enum = types.enums[kind.name].enum
            return next((m.value for m in enum.members if m.value and -(2**31) <= m.value < 2**31), 1)
        case "handle":
            return 5 if types.names.raising else getattr(module, kind.name)(5)
        case "pointer" if types.names.raising and types.resolve(kind.target).name == "I8":
            return "text"
        case "callback" | "pointer":
            return ADDRESS
    return None


def cases(name: str) -> Iterator[tuple[type, str, int, int, Any]]:
    """Class, field, offset, size and a value for each field that is no record."""
    module = importlib.import_module(f"cupola.bindings.{name}")
    types = Types(Module.load(LIBRARIES[name].ir_path))
    layout = Layout(LIBRARIES[name], types)
    for cls in types.records.values():
        record = getattr(module, types.names.type(cls.name))
        for field, offset, item in fields(cls.record):
            if item.record or not layout.visible(cls.record, item):
                continue
            kind = types.resolve(item.type)
            value = sample(kind, types, module)
            if kind.kind == "array":
                element = types.resolve(kind.target)
                value = sample(element, types, module)
                if element.kind == "scalar" and element.size == 1:
                    value = bytes(range(1, kind.count + 1)) if kind.count < 256 else b"x" * kind.count
                    if types.names.raising and element.name == "I8" and not layout.is_binary(cls.record, item):
                        value = "x" * kind.count
                elif value is not None:
                    value = [value] * kind.count
            if value is not None:
                yield record, types.names.field(field), offset, item.size, value


WITHOUT_RECORDS = ("nvrtc", "nvjitlink", "nvvm", "nvfatbin", "cublas", "curand", "cusolver_dn", "cusparse")
WITH_RECORDS = [name for name in LIBRARIES if name not in WITHOUT_RECORDS]


@pytest.mark.parametrize("name", WITH_RECORDS)
def test_round_trips(name):
    done = 0
    for cls, field, offset, size, value in cases(name):
        record = cls()
        raw = memoryview(record).cast("B")
        before = bytes(raw)
        if field == "kernelParams":
            continue  # a pair of tuples: test_records.py
        setattr(record, field, value)
        after = bytes(raw)
        place = f"{cls.__name__}.{field}"
        assert after[:offset] == before[:offset] and after[offset + size :] == before[offset + size :], place
        assert after[offset : offset + size] != before[offset : offset + size] or cls.__name__ == "dim3", place
        if isinstance(value, int) and value == ADDRESS:
            assert int.from_bytes(after[offset : offset + size], "little") == ADDRESS, place
            record = cls()  # reading would follow the address
        else:
            read = getattr(record, field)
            assert read == value or (isinstance(value, float) and math.isclose(read, value)), place
        done += 1
    assert done > {"cublaslt": 9, "cudss": 7, "cufile": 40, "cufft": 20, "nccl": 50}.get(name, 300)


@pytest.mark.parametrize("name", ["driver", "runtime"])
def test_every_record_reads_and_prints(name):
    module = importlib.import_module(f"cupola.bindings.{name}")
    base = module.CUuuid_st.__base__
    classes = [c for n in dir(module) if isinstance(c := getattr(module, n), type) and issubclass(c, base)]
    assert len(classes) > {"driver": 200, "runtime": 90}[name]
    for cls in classes:
        record = cls()
        fresh = bytes(record)
        assert len(memoryview(record)) == module.sizeof(cls)
        for field in dir(cls):
            if not field.startswith("_") and field not in METHODS and hasattr(record, field):
                value = getattr(record, field)
                assert f"{field} :" in str(record)
                if value != []:
                    setattr(record, field, value)
        assert bytes(record) == fresh, f"{cls.__name__}: it did not survive reading and writing"
        assert not any(fresh) or cls.__name__ == "dim3"
