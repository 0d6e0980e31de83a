"""Runs recorded forms on the device that there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cupola import Device, LaunchConfig, ObjectCode, PinnedMemoryResource, launch
from tests.ptx.forms import CELL, Form
from tests.ptx.inputs import SETS, memory, rows
from tests.ptx.objects import objects
from tests.ptx.programs import FIRST, SECOND, SLOT, module

Outputs = list[list[int]]
"""Patterns by output register, then by row."""


def input_rows(form: Form) -> list[dict[str, int]]:
    """The inputs of a form, by row and register."""
    return rows({name: form.registers[name] for name in form.inputs}, form.threads)


def _groups(forms: Iterable[Form]) -> list[list[Form]]:
    """Forms that can be in one module."""
    groups: dict[tuple[Any, Any], list[Form]] = {}
    for form in forms:
        groups.setdefault((form.options.get("version"), form.options.get("target")), []).append(form)
    return list(groups.values())


class Runner:
    """Compiles forms as few modules, and runs them one at a time.

    A form that the driver refuses is found by halving the module. `refused` has what the driver said about it.
    """

    def __init__(self, forms: Iterable[Form]) -> None:
        self.device = Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.refused: dict[str, str] = {}
        self._modules: dict[str, ObjectCode] = {}
        for group in _groups(forms):
            self._load(group)

    def _load(self, group: list[Form]) -> None:
        code = ObjectCode.from_ptx(module(group).encode())
        try:
            code.get_kernel(group[0].name)
        except Exception as error:
            if len(group) == 1:
                self.refused[group[0].line] = str(error)
                return
            half = len(group) // 2
            self._load(group[:half])
            self._load(group[half:])
            return
        self._modules.update({form.line: code for form in group})

    def run(self, form: Form) -> Outputs:
        """What the form leaves in its output registers."""
        if form.line in self.refused:
            raise RuntimeError(f"the driver refuses {form.line!r}: {self.refused[form.line]}")
        kernel = self._modules[form.line].get_kernel(form.name)
        columns = len(form.inputs), len(form.outputs)
        cells = form.threads * CELL
        handles = cells + sum(columns) * form.threads * SLOT
        size = handles + 8 * len(form.objects)
        with (
            PinnedMemoryResource().allocate(size, stream=self.stream) as host,
            self.device.allocate(size, stream=self.stream) as buffer,
            objects(form.objects) as made,
        ):
            self.stream.sync()
            image = np.from_dlpack(host).view(np.uint8)
            image[:] = 0
            image[:cells] = np.frombuffer(memory(cells, "cells"), np.uint8)
            inputs = input_rows(form)
            given = b"".join(row[name].to_bytes(SLOT, "little") for name in form.inputs for row in inputs)
            image[cells : cells + len(given)] = np.frombuffer(given, np.uint8)
            image[handles:] = made.view(np.uint8)
            buffer.copy_from(host, stream=self.stream)
            base = int(buffer.handle)
            out = cells + columns[0] * form.threads * SLOT
            config = _config(form)
            arguments = [np.uint64(value) for value in (base + cells, base + out, base, FIRST, SECOND)]
            if form.objects:
                arguments.append(np.uint64(base + handles))
            launch(self.stream, config, kernel, *arguments)
            buffer.copy_to(host, stream=self.stream)
            self.stream.sync()
            found = image[out:handles].reshape(columns[1], form.threads, SLOT)
            return [
                [
                    int.from_bytes(cell[: -(-SETS[form.registers[name]].bits // 8)].tobytes(), "little")
                    for cell in column
                ]
                for name, column in zip(form.outputs, found, strict=True)
            ]


def _config(form: Form) -> LaunchConfig:
    cluster = form.size("cluster", 1)
    if cluster == 1:
        return LaunchConfig(grid=form.size("grid", 1), block=form.size("block", 128))
    return LaunchConfig(grid=form.size("grid", 1) // cluster, cluster=cluster, block=form.size("block", 128))
