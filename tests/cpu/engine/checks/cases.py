"""What tables of cases with several operations share: what each is to find, and the kernels they launch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cupola import Device, Kernel, ObjectCode, Program, ProgramOptions

Function = Callable[[Any], None]


class Cases(dict[str, tuple[str, Function]]):
    """Functions by their names, each with what is to be found when it runs."""

    def __call__(self, expected: str) -> Callable[[Function], Function]:
        """Add a function, as a decorator."""

        def register(function: Function) -> Function:
            assert function.__name__ not in self
            self[function.__name__] = (expected, function)
            return function

        return register


@functools.cache
def compiled(name: str, source: str, arch: str) -> ObjectCode:
    return Program(source, "c++", ProgramOptions(name=name, arch=f"sm_{arch}", lineinfo=True)).compile("cubin")


class World:
    """What cases work with: a device, and kernels of a source by their names.

    Who has cases launches the kernels, since findings name the line that did.
    """

    def __init__(self, dev: Device, name: str, source: str) -> None:
        self.dev = dev
        self.code = compiled(name, source, dev.arch)

    def kernel(self, name: str) -> Kernel:
        return self.code.get_kernel(name)
