"""Attributes of kernel nodes: CUlaunchAttributeID -> the bytes of its value."""

from cupola.core.base._cuda cimport CUgraphNode, CUgraphNodeParams
from cupola.core.launch._launch_config cimport LaunchConfig

# The attributes of a launch that nodes have; NotImplementedError for others.
cdef int UPDATABLE        # the number of the one that a node cannot lose again

cdef dict config_attributes(LaunchConfig config)
# The attributes of a node that differ from those of a new node.
cdef dict read_attributes(CUgraphNode node)

# Set the attributes that a node should have and does not have yet.
cdef int write_attributes(CUgraphNode node, dict wanted, dict has) except -1
# Give a node the values of a plain one.
cdef int reset_attributes(CUgraphNode node, dict plain) except -1

# Make a node with these parameters and attributes in a separate graph, so that errors are raised before anything has
# changed. Returns the values that a node has by default.
cdef dict rehearse(CUgraphNodeParams* parameters, dict attributes, object numbers)

cdef size_t device_node(CUgraphNode node) except? 0         # the handle for kernels; 0: they cannot change the node
