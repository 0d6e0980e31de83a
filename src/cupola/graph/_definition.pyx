"""GraphDefinition: graphs that are made node by node.

Imported when the first is made, or at the first use of a builder's `graph_definition`.
"""

from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport CUgraph, CUresult, check, cu, driver_module, initialise
from cupola.graph._condition cimport create_condition
from cupola.graph._graph cimport instantiate, print_dot
from cupola.graph._hierarchy cimport GraphHandle, graph_handle, new_hierarchy
from cupola.graph._node cimport NodeMaker, announce_definition, list_edges, list_nodes
from cupola.graph._parameters cimport empty_parameters, require_context

from cupola.graph import _node_kinds  # noqa: F401  the classes of nodes announce themselves


cdef class GraphDefinition(NodeMaker):
    """GraphDefinition()\n--\n\nA graph that is made node by node (``CUgraph``).

    Its methods add nodes that depend on nothing; those of a node add nodes that depend on it. Child graphs and the
    bodies of conditional nodes are definitions, too, and live as long as any part of the graph is held.

    Notes
    -----
    Threads take turns: a call that makes, changes or lists nodes waits until that of another thread on the same graph has
    ended. CUDA asks for that (CUDA Driver API, "Graph object thread safety").

    Examples
    --------
    >>> definition = GraphDefinition()
    >>> fill = definition.memset(buffer, 0, buffer.size)
    >>> work = fill.launch(config, kernel, buffer)
    >>> graph = definition.instantiate()
    >>> graph.launch(stream)
    """

    def __init__(self):
        cdef CUgraph pointer = NULL
        initialise()
        check(cu.cuGraphCreate(&pointer, 0), b"cuGraphCreate")
        self.home = graph_handle(new_hierarchy(pointer, True), pointer, None, NULL)

    def empty(self):
        """Add a node that does nothing.

        Returns
        -------
        EmptyNode
        """
        self.place()
        return self.make(empty_parameters())

    def create_condition(self, default_value=None):
        """Make a condition for a conditional node of this graph (``cuGraphConditionalHandleCreate``).

        Parameters
        ----------
        default_value : int, optional
            Its value at the start of every launch. Without it the value is undefined until a kernel sets it.

        Returns
        -------
        GraphCondition
        """
        return create_condition(self.home.open_pointer(), require_context(), default_value)

    def instantiate(self, options=None):
        """Make the graph executable (``cuGraphInstantiateWithParams``). Each call makes another, independent one.

        Parameters
        ----------
        options : GraphCompleteOptions, optional
            How.

        Returns
        -------
        Graph

        Raises
        ------
        RuntimeError
            When the graph cannot be made executable, for example because its edges form a cycle.
        """
        self.home.open_pointer()
        return instantiate(self.home, require_context(), options)

    def debug_dot_print(self, path, options=None):
        """Write a picture of the graph as a DOT file (``cuGraphDebugDotPrint``).

        Parameters
        ----------
        path : str
            The file.
        options : GraphDebugPrintOptions, optional
            What it shows.
        """
        print_dot(self.home.open_pointer(), path, options)

    def nodes(self):
        """The nodes of this graph, without those of child graphs and bodies.

        Returns
        -------
        set of GraphNode
        """
        return set(list_nodes(self.home))

    def edges(self):
        """The edges of this graph.

        Returns
        -------
        set of (GraphNode, GraphNode)
            The second depends on the first.
        """
        return set(list_edges(self.home))

    @property
    def handle(self):
        """cupola.bindings.driver.CUgraph: the native handle, null once invalid."""
        return driver_module.CUgraph(<uintptr_t>self.home.pointer if self.is_valid else 0)

    @property
    def is_valid(self):
        """bool: False once the node that this graph belongs to was destroyed, or has got another graph."""
        return self.home.is_valid()

    def __eq__(self, other):
        if not isinstance(other, GraphDefinition):
            return NotImplemented
        return self.home is (<GraphDefinition>other).home

    def __hash__(self):
        return hash(<uintptr_t>self.home.pointer)

    def __repr__(self):
        return f"<GraphDefinition handle={<uintptr_t>self.home.pointer if self.is_valid else 0:#x}>"

    def __str__(self):
        return f"<GraphDefinition of {len(self.nodes())} nodes>" if self.is_valid else "<GraphDefinition gone>"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def _repr_html_(self):
        from cupola.graph._drawing import html_of
        return html_of(self if self.is_valid else None, str(self))


announce_definition(GraphDefinition)
