"""Attributes of kernel nodes: CUlaunchAttributeID -> the bytes of its value."""

from cupola.core.base._cuda cimport CUgraphNode, CUgraphNodeParams
from cupola.core.launch._launch_config cimport LaunchConfig

# Those of a launch that a node has; NotImplementedError for what nodes do not have.
cdef int UPDATABLE        # the number of the one that a node cannot lose again

cdef dict config_attributes(LaunchConfig config)
# Those of a node, in which they differ from what a new node has.
cdef dict read_attributes(CUgraphNode node)

# Set those that a node is to have and does not have yet.
cdef int write_attributes(CUgraphNode node, dict wanted, dict has) except -1
# Give a node the values of a plain one.
cdef int reset_attributes(CUgraphNode node, dict plain) except -1

# Make a node with those parameters and attributes in a graph of its own, so that what is wrong with them is raised before
# anything has changed. What a node has without attributes of those numbers.
cdef dict rehearse(CUgraphNodeParams* parameters, dict attributes, object numbers)

cdef size_t device_node(CUgraphNode node) except? 0         # the handle for kernels; 0: they cannot change the node
