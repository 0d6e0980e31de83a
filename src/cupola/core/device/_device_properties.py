"""What a device can do: one line for each attribute of the driver, with its number in ``CUdevice_attribute``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cupola.core.device._device import Device


class Attribute:
    """An integer attribute, read by ``cuDeviceGetAttribute`` and then kept: the instance's dict shadows it."""

    def __init__(self, number: int, summary: str, *, fallback: int = 0, cached: bool = True) -> None:
        self.number = number
        self.fallback = fallback
        self.cached = cached
        self.__doc__ = f"int: {summary}."

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: DeviceProperties | None, owner: type) -> int:
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance._read(self.number, self.fallback)
        if self.cached:
            instance.__dict__[self.name] = value
        return value


class Flag:
    """Like Attribute, for yes-or-no attributes."""

    def __init__(self, number: int, summary: str, *, cached: bool = True) -> None:
        self.number = number
        self.cached = cached
        self.__doc__ = f"bool: {summary}."

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: DeviceProperties | None, owner: type) -> bool:
        if instance is None:
            return self  # type: ignore[return-value]
        value = bool(instance._read(self.number, 0))
        if self.cached:
            instance.__dict__[self.name] = value
        return value


class DeviceProperties:
    """Limits and abilities of a device (``cuDeviceGetAttribute``), from :attr:`.Device.properties`.

    Every name is the lower-case one of ``CU_DEVICE_ATTRIBUTE_…``. An attribute that the driver does not know reads
    as 0 or False. Values are read once, except the few that can change (clocks, compute mode, the watchdog).
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("DeviceProperties objects cannot be instantiated directly; use Device.properties")

    def _read(self, number: int, fallback: int) -> int:
        device: Device = self.__dict__["_device"]
        return device._attribute(number, fallback)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"device properties are read-only: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"device properties are read-only: {name}")

    def __repr__(self) -> str:
        return f"<DeviceProperties of {self.__dict__['_device']!r}>"

    # --- limits of a launch ---
    max_threads_per_block = Attribute(1, "most threads in a block")
    max_block_dim_x = Attribute(2, "largest x extent of a block")
    max_block_dim_y = Attribute(3, "largest y extent of a block")
    max_block_dim_z = Attribute(4, "largest z extent of a block")
    max_grid_dim_x = Attribute(5, "largest x extent of a grid")
    max_grid_dim_y = Attribute(6, "largest y extent of a grid")
    max_grid_dim_z = Attribute(7, "largest z extent of a grid")
    max_blocks_per_multiprocessor = Attribute(106, "most blocks resident on a multiprocessor")
    max_threads_per_multiprocessor = Attribute(39, "most threads resident on a multiprocessor")
    multiprocessor_count = Attribute(16, "number of multiprocessors")
    warp_size = Attribute(10, "threads in a warp")
    max_registers_per_block = Attribute(12, "32-bit registers that a block can use")
    max_registers_per_multiprocessor = Attribute(82, "32-bit registers of a multiprocessor")

    # --- sizes of memories ---
    max_shared_memory_per_block = Attribute(8, "shared memory of a block without opting in to more, in bytes")
    max_shared_memory_per_block_optin = Attribute(97, "shared memory of a block that opts in, in bytes")
    max_shared_memory_per_multiprocessor = Attribute(81, "shared memory of a multiprocessor, in bytes")
    reserved_shared_memory_per_block = Attribute(111, "shared memory that the driver reserves in each block, in bytes")
    total_constant_memory = Attribute(9, "memory for __constant__ variables, in bytes")
    l2_cache_size = Attribute(38, "size of the L2 cache, in bytes")
    max_persisting_l2_cache_size = Attribute(108, "most L2 cache that can be set aside for persisting lines, in bytes")
    max_access_policy_window_size = Attribute(109, "largest access policy window, in bytes")
    max_pitch = Attribute(11, "largest pitch of a copy, in bytes")
    global_memory_bus_width = Attribute(37, "width of the memory bus, in bits")
    texture_alignment = Attribute(14, "alignment of texture base addresses, in bytes")
    texture_pitch_alignment = Attribute(51, "alignment of the pitch of textures in pitched memory, in bytes")
    surface_alignment = Attribute(30, "alignment of surface base addresses, in bytes")

    # --- clocks ---
    clock_rate = Attribute(13, "typical clock, in kHz", cached=False)
    memory_clock_rate = Attribute(36, "peak memory clock, in kHz", cached=False)
    single_to_double_precision_perf_ratio = Attribute(
        87, "how many times faster float arithmetic is than double", cached=False
    )

    # --- identity ---
    compute_capability_major = Attribute(75, "major number of the compute capability")
    compute_capability_minor = Attribute(76, "minor number of the compute capability")
    pci_bus_id = Attribute(33, "bus number on PCI")
    pci_device_id = Attribute(34, "device number on PCI")
    pci_domain_id = Attribute(50, "domain number on PCI")
    gpu_pci_device_id = Attribute(139, "PCI device and vendor ids, 16 bits each; 0 if unknown")
    gpu_pci_subsystem_id = Attribute(140, "PCI subsystem and its vendor ids, 16 bits each; 0 if unknown")
    multi_gpu_board_group_id = Attribute(85, "number that all devices of one board share")
    numa_config = Attribute(130, "whether the memory is a NUMA node (CUdeviceNumaConfig)")
    numa_id = Attribute(131, "NUMA node of the device's memory")
    host_numa_id = Attribute(134, "NUMA node of the host next to the device, -1 without NUMA", fallback=-1)
    compute_mode = Attribute(20, "which processes may create contexts (CUcomputemode)", cached=False)
    async_engine_count = Attribute(40, "number of engines that copy beside kernels")
    mem_sync_domain_count = Attribute(126, "number of memory synchronization domains", fallback=1)

    # --- bit masks ---
    gpu_direct_rdma_flush_writes_options = Attribute(117, "ways to flush remote writes, as a mask")
    gpu_direct_rdma_writes_ordering = Attribute(118, "scope within which remote writes need no flush")
    mempool_supported_handle_types = Attribute(119, "ways to share a memory pool between processes, as a mask")
    mem_decompress_algorithm_mask = Attribute(136, "algorithms of the decompression engine, as a mask")
    mem_decompress_maximum_length = Attribute(137, "largest output of one decompression, in bytes")

    # --- textures ---
    maximum_texture1d_width = Attribute(21, "width of a 1D texture, in texels")
    maximum_texture1d_linear_width = Attribute(69, "width of a 1D texture in linear memory (not dependable), in texels")
    maximum_texture1d_mipmapped_width = Attribute(77, "width of a mipmapped 1D texture, in texels")
    maximum_texture2d_width = Attribute(22, "width of a 2D texture, in texels")
    maximum_texture2d_height = Attribute(23, "height of a 2D texture, in texels")
    maximum_texture2d_linear_width = Attribute(70, "width of a 2D texture in pitched memory, in texels")
    maximum_texture2d_linear_height = Attribute(71, "height of a 2D texture in pitched memory, in texels")
    maximum_texture2d_linear_pitch = Attribute(72, "pitch of a 2D texture in pitched memory, in bytes")
    maximum_texture2d_mipmapped_width = Attribute(73, "width of a mipmapped 2D texture, in texels")
    maximum_texture2d_mipmapped_height = Attribute(74, "height of a mipmapped 2D texture, in texels")
    maximum_texture2d_gather_width = Attribute(45, "width of a 2D texture for gathers, in texels")
    maximum_texture2d_gather_height = Attribute(46, "height of a 2D texture for gathers, in texels")
    maximum_texture3d_width = Attribute(24, "width of a 3D texture, in texels")
    maximum_texture3d_height = Attribute(25, "height of a 3D texture, in texels")
    maximum_texture3d_depth = Attribute(26, "depth of a 3D texture, in texels")
    maximum_texture3d_width_alternate = Attribute(47, "width of a 3D texture of the other shape, in texels")
    maximum_texture3d_height_alternate = Attribute(48, "height of a 3D texture of the other shape, in texels")
    maximum_texture3d_depth_alternate = Attribute(49, "depth of a 3D texture of the other shape, in texels")
    maximum_texturecubemap_width = Attribute(52, "edge of a cubemap texture, in texels")
    maximum_texture1d_layered_width = Attribute(42, "width of a layered 1D texture, in texels")
    maximum_texture1d_layered_layers = Attribute(43, "layers of a layered 1D texture")
    maximum_texture2d_layered_width = Attribute(27, "width of a layered 2D texture, in texels")
    maximum_texture2d_layered_height = Attribute(28, "height of a layered 2D texture, in texels")
    maximum_texture2d_layered_layers = Attribute(29, "layers of a layered 2D texture")
    maximum_texturecubemap_layered_width = Attribute(53, "edge of a layered cubemap texture, in texels")
    maximum_texturecubemap_layered_layers = Attribute(54, "layers of a layered cubemap texture")

    # --- surfaces ---
    maximum_surface1d_width = Attribute(55, "width of a 1D surface, in texels")
    maximum_surface2d_width = Attribute(56, "width of a 2D surface, in texels")
    maximum_surface2d_height = Attribute(57, "height of a 2D surface, in texels")
    maximum_surface3d_width = Attribute(58, "width of a 3D surface, in texels")
    maximum_surface3d_height = Attribute(59, "height of a 3D surface, in texels")
    maximum_surface3d_depth = Attribute(60, "depth of a 3D surface, in texels")
    maximum_surface1d_layered_width = Attribute(61, "width of a layered 1D surface, in texels")
    maximum_surface1d_layered_layers = Attribute(62, "layers of a layered 1D surface")
    maximum_surface2d_layered_width = Attribute(63, "width of a layered 2D surface, in texels")
    maximum_surface2d_layered_height = Attribute(64, "height of a layered 2D surface, in texels")
    maximum_surface2d_layered_layers = Attribute(65, "layers of a layered 2D surface")
    maximum_surfacecubemap_width = Attribute(66, "edge of a cubemap surface, in texels")
    maximum_surfacecubemap_layered_width = Attribute(67, "edge of a layered cubemap surface, in texels")
    maximum_surfacecubemap_layered_layers = Attribute(68, "layers of a layered cubemap surface")

    # --- abilities: execution ---
    gpu_overlap = Flag(15, "copies beside a kernel (see async_engine_count)")
    kernel_exec_timeout = Flag(17, "kernels that run too long are stopped", cached=False)
    concurrent_kernels = Flag(31, "several kernels run at the same time")
    compute_preemption_supported = Flag(90, "a running kernel can be preempted")
    cooperative_launch = Flag(95, "cooperative launches, for grid-wide barriers")
    cluster_launch = Flag(120, "launches with thread block clusters")
    stream_priorities_supported = Flag(78, "streams have priorities")
    unified_function_pointers = Flag(129, "function pointers are valid on host and device")
    mps_enabled = Flag(133, "contexts share the device through the Multi-Process Service")
    multi_gpu_board = Flag(84, "the board has several GPUs")
    integrated = Flag(18, "shares memory with the host")
    ecc_enabled = Flag(32, "memory is protected by ECC")
    tcc_driver = Flag(35, "runs under the TCC driver model (Windows)")

    # --- abilities: memory ---
    can_map_host_memory = Flag(19, "host memory can be mapped for the device")
    unified_addressing = Flag(41, "one address space with the host")
    managed_memory = Flag(83, "memory that migrates between host and device")
    concurrent_managed_access = Flag(89, "host and device use managed memory at the same time")
    pageable_memory_access = Flag(88, "the device reads and writes ordinary host memory")
    pageable_memory_access_uses_host_page_tables = Flag(
        100, "the device accesses ordinary host memory through the host's page tables"
    )
    direct_managed_mem_access_from_host = Flag(101, "the host uses managed memory on the device without migration")
    host_native_atomic_supported = Flag(86, "all atomics work across the link to the host")
    only_partial_host_native_atomic_supported = Flag(147, "some atomics work across the link to the host")
    can_use_host_pointer_for_registered_mem = Flag(91, "registered host memory has the same address on the device")
    host_register_supported = Flag(99, "host memory can be registered")
    read_only_host_register_supported = Flag(113, "host memory can be registered as read-only")
    global_l1_cache_supported = Flag(79, "global memory is cached in L1")
    local_l1_cache_supported = Flag(80, "local memory is cached in L1")
    memory_pools_supported = Flag(115, "stream-ordered allocation from pools")
    host_memory_pools_supported = Flag(144, "pools of host memory")
    host_numa_memory_pools_supported = Flag(142, "pools of host memory on a NUMA node")
    virtual_memory_management_supported = Flag(102, "reserving addresses and mapping memory to them")
    host_virtual_memory_management_supported = Flag(145, "reserving addresses and mapping host memory to them")
    host_numa_virtual_memory_management_supported = Flag(
        141, "reserving addresses and mapping host memory of a NUMA node to them"
    )
    host_numa_multinode_ipc_supported = Flag(143, "sharing host memory of a NUMA node between nodes")
    generic_compression_supported = Flag(107, "compressible memory")
    multicast_supported = Flag(132, "multicast and reduction in the switch")
    sparse_cuda_array_supported = Flag(112, "sparse arrays")
    deferred_mapping_cuda_array_supported = Flag(121, "arrays whose memory is mapped later")
    can_tex2d_gather = Flag(44, "gathers from 2D textures (not dependable)")
    tensor_map_access_supported = Flag(127, "bulk copies by tensor map")

    # --- abilities: sharing ---
    handle_type_posix_file_descriptor_supported = Flag(103, "memory exports as a file descriptor")
    handle_type_win32_handle_supported = Flag(104, "memory exports as a Win32 handle")
    handle_type_win32_kmt_handle_supported = Flag(105, "memory exports as a Win32 kernel-mode handle")
    handle_type_fabric_supported = Flag(128, "memory exports as a fabric handle")
    dma_buf_supported = Flag(124, "memory exports as a dma_buf")
    host_alloc_dma_buf_supported = Flag(146, "page-locked host memory exports as a dma_buf")
    ipc_event_supported = Flag(125, "events can be shared between processes")
    gpu_direct_rdma_supported = Flag(116, "other PCI devices reach its memory directly")
    gpu_direct_rdma_with_cuda_vmm_supported = Flag(110, "other PCI devices reach virtual memory (cuMemMap) directly")
    can_flush_remote_writes = Flag(98, "streams can flush remote writes")
    can_use_64_bit_stream_mem_ops = Flag(122, "streams write and wait for 64-bit values")
    can_use_stream_wait_value_nor = Flag(123, "streams wait for a NOR of a value")
    timeline_semaphore_interop_supported = Flag(114, "external timeline semaphores")
    d3d12_cig_supported = Flag(135, "compute in graphics with Direct3D 12")
    vulkan_cig_supported = Flag(138, "compute in graphics with Vulkan")


def properties_of(device: Device) -> DeviceProperties:
    """Make the properties of `device`."""
    properties = object.__new__(DeviceProperties)
    properties.__dict__["_device"] = device
    return properties
