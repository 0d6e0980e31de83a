"""Options for instantiating a graph, and for its DOT file.

Imported when one is first used: dataclasses are slow to import.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from cupola.core.base._options import naming_options

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from cupola.core.device._stream import Stream


@naming_options
@dataclass
class GraphCompleteOptions:
    """How a graph is instantiated.

    Parameters
    ----------
    auto_free_on_launch : bool
        Free, before each launch, what the launch before allocated and did not free.
    upload_stream : Stream, optional
        Upload the graph in this stream right away.
    device_launch : bool
        Kernels may launch the graph, by the number in its `handle`, when it has been uploaded or launched by the host.
    use_node_priority : bool
        Nodes run with the priority they were captured with, instead of that of the launch stream.
    """

    auto_free_on_launch: bool = False
    upload_stream: Stream | None = None
    device_launch: bool = False
    use_node_priority: bool = False


@naming_options
@dataclass
class GraphDebugPrintOptions:
    """What the DOT file of a graph shows, each off by default.

    Parameters
    ----------
    verbose : bool
        Everything.
    runtime_types : bool
        Types of the runtime API instead of the driver's.
    kernel_node_params, memcpy_node_params, memset_node_params, host_node_params, event_node_params : bool
        Parameters of nodes of that kind.
    ext_semas_signal_node_params, ext_semas_wait_node_params, batch_mem_op_node_params : bool
        Likewise for semaphores of other APIs and for batches of memory operations.
    mem_alloc_node_params, mem_free_node_params, conditional_node_params : bool
        Likewise for allocations, releases and conditional nodes.
    kernel_node_attributes : bool
        Attributes of kernel nodes.
    handles : bool
        Addresses of nodes, functions and so on.
    extra_topo_info : bool
        Edge data.
    """

    verbose: bool = False
    runtime_types: bool = False
    kernel_node_params: bool = False
    memcpy_node_params: bool = False
    memset_node_params: bool = False
    host_node_params: bool = False
    event_node_params: bool = False
    ext_semas_signal_node_params: bool = False
    ext_semas_wait_node_params: bool = False
    kernel_node_attributes: bool = False
    handles: bool = False
    mem_alloc_node_params: bool = False
    mem_free_node_params: bool = False
    batch_mem_op_node_params: bool = False
    extra_topo_info: bool = False
    conditional_node_params: bool = False

    def _flags(self) -> int:
        """The CUgraphDebugDot_flags: one bit for each field, in order."""
        return sum(1 << bit for bit, field in enumerate(fields(self)) if getattr(self, field.name))
