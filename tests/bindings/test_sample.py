"""The program for the type checkers is a program: all that the stubs declare is there."""

from __future__ import annotations

import re

from bindgen.emit_sample import sample
from bindgen.libraries import LIBRARIES
from cupola import bindings


def test_what_the_stubs_declare_is_there():
    text = sample()
    modules = {name: __import__(f"cupola.bindings.{name}", fromlist=["_"]) for name in LIBRARIES}
    members = re.findall(r"^assert_type\((\w+)\.(\w+)\.(\w+), \1\.\2\)$", text, re.M)
    assert len(members) > 3500
    for module, enum, member in members:
        assert isinstance(getattr(getattr(modules[module], enum), member), getattr(modules[module], enum))
    functions = re.findall(r"^functions\.append\((\w+)\.(\w+)\)$", text, re.M)
    assert len(functions) > 1400 and all(callable(getattr(modules[module], name)) for module, name in functions)
    fields = re.findall(r"^values\.append\((\w+)\.(\w+)\(\)\.(\w+)\)$", text, re.M)
    assert len(fields) > 1500 and all(hasattr(getattr(modules[module], cls), field) for module, cls, field in fields)
    assert bindings.Inspection.__name__ in text
