"""The attributes of a compiled kernel: one line for each, with its number in ``CUfunction_attribute``.

Imported when it is first used.
"""

from __future__ import annotations

from cupola.core.device._device import Device

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.core.program._kernel import Kernel


class Attribute:
    """An integer attribute. Values fixed by the compiler are kept; values that can be set are read each time."""

    def __init__(self, number: int, summary: str, *, cached: bool = True) -> None:
        self.number = number
        self.cached = cached
        self.__doc__ = f"int: {summary}."

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: KernelAttributes | None, owner: type) -> int:
        if instance is None:
            return self  # type: ignore[return-value]
        return instance._read(self.number, self.cached)

    def __set__(self, instance: KernelAttributes, value: object) -> None:
        raise AttributeError(f"kernel attributes are read-only: {self.name}")


class Flag(Attribute):
    """Like Attribute, for yes-or-no attributes."""

    def __get__(self, instance: KernelAttributes | None, owner: type) -> bool:
        if instance is None:
            return self  # type: ignore[return-value]
        return bool(instance._read(self.number, self.cached))


class KernelAttributes:
    """Attributes of a kernel on a device (``cuKernelGetAttribute``), from :attr:`.Kernel.attributes`.

    They are those on the thread's current device; ``attributes[device]`` gives those on another.
    """

    __slots__ = ("_device", "_kernel", "_known")
    _device: Device | None
    _kernel: Kernel
    _known: dict[tuple[int, int], int]

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("KernelAttributes objects cannot be instantiated directly; use Kernel.attributes")

    def __repr__(self) -> str:
        return f"<KernelAttributes of {self._kernel!r}>"

    def __getitem__(self, device: Device | int | None) -> KernelAttributes:
        return _view(self._kernel, Device(device), self._known)

    def _read(self, number: int, cached: bool) -> int:
        device_id = (self._device or Device()).device_id
        if not cached:
            return self._kernel._attribute(number, device_id)
        value = self._known.get((device_id, number))
        if value is None:
            value = self._known[device_id, number] = self._kernel._attribute(number, device_id)
        return value

    max_threads_per_block = Attribute(0, "most threads in a block, given the registers that the kernel uses")
    shared_size_bytes = Attribute(1, "static shared memory of a block, in bytes")
    const_size_bytes = Attribute(2, "constant memory of the user's variables, in bytes")
    local_size_bytes = Attribute(3, "local memory of a thread, in bytes")
    num_regs = Attribute(4, "registers of a thread")
    ptx_version = Attribute(5, "PTX virtual architecture, ten times major plus minor")
    binary_version = Attribute(6, "architecture of the machine code, ten times major plus minor")
    cache_mode_ca = Flag(7, "compiled with -Xptxas --dlcm=ca")
    max_dynamic_shared_size_bytes = Attribute(8, "most dynamic shared memory of a launch, in bytes", cached=False)
    preferred_shared_memory_carveout = Attribute(
        9, "share of L1 for shared memory in percent, -1: default", cached=False
    )
    cluster_size_must_be_set = Flag(10, "can be launched with a cluster size only")
    required_cluster_width = Attribute(11, "x extent that clusters must have, 0: any", cached=False)
    required_cluster_height = Attribute(12, "y extent that clusters must have, 0: any", cached=False)
    required_cluster_depth = Attribute(13, "z extent that clusters must have, 0: any", cached=False)
    non_portable_cluster_size_allowed = Flag(14, "clusters larger than every device takes", cached=False)
    cluster_scheduling_policy_preference = Attribute(
        15, "how clusters are spread (CUclusterSchedulingPolicy)", cached=False
    )


def _view(kernel: Kernel, device: Device | None, known: dict[Any, int]) -> KernelAttributes:
    view = object.__new__(KernelAttributes)
    view._kernel = kernel
    view._device = device
    view._known = known
    return view


def attributes_of(kernel: Kernel) -> KernelAttributes:
    """Make the attributes of `kernel` on the current device."""
    return _view(kernel, None, {})
