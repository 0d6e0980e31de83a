"""Why a launch was refused: its shape compared with the limits of device and kernel (CUDA Driver API, launch).

Imported when a launch was refused or is cooperative.
"""

from __future__ import annotations

from cupola.core.device._device import Device

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from cupola.core.launch._launch_config import LaunchConfig
    from cupola.core.program._kernel import Kernel

# CUDA_ERROR_INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES, INVALID_CLUSTER_SIZE, COOPERATIVE_LAUNCH_TOO_LARGE,
# INVALID_CONFIGURATION (as the runtime calls it)
_REFUSALS = {1, 9, 701, 720, 912}

_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8  # CUfunction_attribute


def may_explain(status: int) -> bool:
    """Whether the driver returns `status` for a launch that exceeds a limit."""
    return status in _REFUSALS


def raise_shared_memory(config: LaunchConfig, kernel: Kernel, device_id: int) -> bool:
    """Let the kernel use as much dynamic shared memory as `config` asks for, beyond the 48 KiB it starts with.

    Returns
    -------
    bool
        Whether that limit was the reason and the device has enough shared memory.
    """
    attributes = kernel.attributes[device_id]
    wanted = config.shmem_size
    if wanted <= attributes.max_dynamic_shared_size_bytes:
        return False
    if wanted + attributes.shared_size_bytes > Device(device_id).properties.max_shared_memory_per_block_optin:
        return False
    kernel._set_attribute(_MAX_DYNAMIC_SHARED_SIZE_BYTES, wanted, device_id)
    return True


def exceeded(config: LaunchConfig, kernel: Kernel, device_id: int) -> str | None:
    """Name the first limit that the launch exceeds, None when it seems to be within all of them."""
    device = Device(device_id)
    properties = device.properties
    attributes = kernel.attributes[device_id]
    cluster = config.cluster or (1, 1, 1)
    for axis, extent, most in zip("xyz", config.block, _extents(device, "block"), strict=True):
        if extent > most:
            return f"block.{axis} is {extent}; {device.name} takes at most {most}"
    for axis, extent, blocks, most in zip("xyz", config.grid, cluster, _extents(device, "grid"), strict=True):
        if extent * blocks > most:
            return f"grid.{axis} is {extent * blocks} blocks; {device.name} takes at most {most}"
    x, y, z = config.block
    threads = x * y * z
    if threads > properties.max_threads_per_block:
        return f"the block has {threads} threads; {device.name} takes at most {properties.max_threads_per_block}"
    if threads > attributes.max_threads_per_block:
        return (
            f"the block has {threads} threads; kernel {kernel._name()} takes at most "
            f"{attributes.max_threads_per_block}, because each of its threads uses {attributes.num_regs} registers "
            "or because of its __launch_bounds__"
        )
    shared = config.shmem_size + attributes.shared_size_bytes
    if shared > properties.max_shared_memory_per_block_optin:
        return (
            f"the block uses {shared} bytes of shared memory ({attributes.shared_size_bytes} of the kernel's own and "
            f"shmem_size {config.shmem_size}); {device.name} has {properties.max_shared_memory_per_block_optin}"
        )
    if cluster != (1, 1, 1):
        blocks = cluster[0] * cluster[1] * cluster[2]
        if blocks > 8 and not attributes.non_portable_cluster_size_allowed:
            return f"the cluster has {blocks} blocks; the kernel permits at most 8"
    if config.device_updatable_kernel_node:
        return "device_updatable_kernel_node is for kernel nodes of graphs: capture the launch, or make it a node"
    return None


def may_be_too_new(config: LaunchConfig) -> str | None:
    """Name the attributes of `config` that an older driver may not know, None when there are none."""
    from cupola.core.launch._launch_attributes import ATTRIBUTES

    newer = [name for name in config._attributes() if ATTRIBUTES[name][0] > 14]
    return f"the driver may be too old for {', '.join(newer)}" if newer else None


def check_cooperative(config: LaunchConfig, kernel: Kernel, device_id: int) -> None:
    """Refuse a cooperative grid that cannot be resident all at once.

    Raises
    ------
    ValueError
        Names the limit.
    """
    x, y, z = config.block
    per_multiprocessor = kernel.occupancy.max_active_blocks_per_multiprocessor(x * y * z, config.shmem_size)
    multiprocessors = Device(device_id).properties.multiprocessor_count
    x, y, z = config.grid
    if x * y * z > per_multiprocessor * multiprocessors:
        raise ValueError(
            f"a cooperative launch must run all its blocks at the same time: the grid has {x * y * z} blocks, the "
            f"most is {per_multiprocessor * multiprocessors} ({per_multiprocessor} on each of {multiprocessors} "
            "multiprocessors)"
        )


def _extents(device: Device, what: str) -> tuple[int, int, int]:
    x, y, z = (getattr(device.properties, f"max_{what}_dim_{axis}") for axis in "xyz")
    return x, y, z
