"""Names of other libraries: an error says what they are called here, and nothing else changes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cupola
from cupola import LaunchConfig, ProgramOptions, StreamOptions
from cupola._signposts import SIGNS
from cupola.core.base import _options


@pytest.fixture
def objects(device, stream):
    kernel = cupola.compile('extern "C" __global__ void nothing() {}').get_kernel("nothing")
    buffer, array = device.allocate(16, stream=stream), device.zeros(4, np.float32, stream=stream)
    return {
        "": cupola, "Device": device, "Stream": stream, "Event": stream.record(), "Buffer": buffer, "Array": array,
        "Kernel": kernel,
    }  # fmt: skip


def test_each_sign_is_read(objects):
    for whose, names in SIGNS.items():
        for name, text in names.items():
            assert not hasattr(objects[whose], name)
            with pytest.raises(AttributeError, match=f"no attribute '{name}': {re.escape(text)}$") as caught:
                getattr(objects[whose], name)
            assert caught.value.name == name and caught.value.obj is objects[whose]
    with pytest.raises(AttributeError, match="no attribute 'nothing_like_it'$"):
        cupola.nothing_like_it  # noqa: B018


def test_signs_name_what_there_is(objects):
    """What follows "it is" is an attribute of the object."""
    for whose, names in SIGNS.items():
        for text in names.values():
            if found := re.match(r"it is ([\w.]+)", text):
                thing = objects[whose]
                for part in found[1].split(".") if whose else ():
                    thing = getattr(thing, part)


OPTIONS = [
    (lambda: StreamOptions(prio=1), "priority"),
    (lambda: LaunchConfig(grid=1, block=1, shared=3), "shmem_size"),
    (lambda: LaunchConfig(grid=1, block=1, cooperative=True), "is_cooperative"),
    (lambda: LaunchConfig(grid=1, threads=1), "block"),
    (lambda: LaunchConfig(blocks=1, threads=1), "grid"),
    (lambda: ProgramOptions(includes=["x"]), "include_path"),
    (lambda: ProgramOptions(rdc=True), "relocatable_device_code"),
    (lambda: ProgramOptions(maxrregcount=3), "max_register_count"),
]


def test_options_are_suggested_by_meaning():
    for make, wanted in OPTIONS:
        with pytest.raises(TypeError, match=f"did you mean '{wanted}'[?]$"):
            make()
    assert _options.meant("threads", ["grid", "block"]) == ["block"] and _options.meant("threads", ["grid"]) == []
