"""Graphs that are being defined, with the graphs inside them.

Child graphs and the bodies of conditional nodes belong to nodes, so one graph is the root of a tree and the only one that
can be destroyed. Everything Python knows of the tree hangs on one `Hierarchy`: each view of a part keeps it alive, and
with it the root. It refers to the views only weakly, so a tree is released with its last view, and not only when the
garbage collector finds a cycle.
"""

import weakref

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uintptr_t

from cupola.core.device._context cimport is_gone, resets
from cupola.core.base._cuda cimport CUgraph, CUgraphNode, CUresult, check, cu, driver_usable, gone_error
from cupola.core.device._later cimport destroy, in_host_function, let_go_later
from cupola.graph._retained cimport Hold, hold
from cupola.graph._structure cimport Structure

cimport cython


cdef class Record:
    def __cinit__(self):
        self.kept = self.bodies = ()


cdef CUresult _destroy(void* graph) noexcept nogil:
    return cu.cuGraphDestroy(<CUgraph>graph)


@cython.no_gc_clear     # the destructor needs the lock
cdef class Hierarchy:
    def __dealloc__(self):
        if not self.owned or self.gone or self.root == NULL or not driver_usable():
            return
        if in_host_function():
            let_go_later(self.remains())
        elif self.structure.try_take():     # else another thread destroys an executable made of it at this moment
            destroy(_destroy, self.root, b"cuGraphDestroy", self.context, self.born)
            self.structure.give()
        else:
            self.structure.abandon(self.remains())

    cdef Hierarchy remains(self):
        cdef Hierarchy later = Hierarchy.__new__(Hierarchy)
        later.root, later.owned, later.structure = self.root, True, self.structure
        later.context, later.born = self.context, self.born
        return later

    cdef Record find(self, CUgraph graph, CUgraphNode node):
        cdef dict records = self.records.get(<uintptr_t>graph)
        return None if records is None else records.get(<uintptr_t>node)

    cdef Record note(self, CUgraph graph, CUgraphNode node, Record record):
        if self.context == NULL and record.context != NULL:
            self.born = resets          # first: who sees the context asks since when
            self.context = record.context
        cdef dict records = self.records.setdefault(<uintptr_t>graph, {})
        cdef Record before = records.get(<uintptr_t>node)
        records[<uintptr_t>node] = record
        if before is not None and before is not record and before.hold is not None:
            before.hold.let_go()
        return record

    cdef int drop(self, CUgraph graph, CUgraphNode node) except -1:
        cdef dict records = self.records.get(<uintptr_t>graph)
        cdef Record record = None if records is None else records.pop(<uintptr_t>node, None)
        if record is not None:
            for body in record.bodies:
                _drop_graph(self, body)
            if record.hold is not None:
                record.hold.let_go()
        return 0

    cdef int keep_beside(self, CUgraph graph, object value) except -1:
        self.others.setdefault(<uintptr_t>graph, []).append(hold(graph, value))
        return 0

    cdef int keep_copied(self, CUgraph graph, CUgraphNode node, Record record) except -1:
        # The copy goes with the node, and a clone of the copy alone needs it as well.
        cdef CUgraph copy = NULL
        if record.kept:
            check(cu.cuGraphChildGraphNodeGetGraph(node, &copy), b"cuGraphChildGraphNodeGetGraph")
            self.keep_beside(copy, record.kept)
            record.bodies = (<uintptr_t>copy,)
        return 0

    cdef tuple attachments(self):
        cdef list kept = []
        cdef dict records
        cdef Record record
        for records in self.records.values():
            for record in records.values():
                kept.extend(record.kept)
        for holds in self.others.values():
            for found in holds:
                kept.extend((<Hold>found).value)
        return tuple(kept)

    cdef list take_off(self):
        # Until put_back(), no other thread may do this: the calls of the driver release the GIL.
        cdef list holds = []
        cdef Hold found
        self.structure.take()
        self.bare += 1
        try:
            _list_holds(self, <uintptr_t>self.root, holds)
            for found in holds:
                found.detach()
        except BaseException:
            self.put_back(holds)
            raise
        return holds

    cdef int put_back(self, list holds) except -1:
        cdef Hold found
        self.bare -= 1
        try:
            if self.bare == 0:
                for found in holds:
                    found.attach()
        finally:
            self.structure.give()
        return 0


cdef int _list_holds(Hierarchy self, uintptr_t graph, list holds) except -1:
    """All in a graph and those inside it that exist still: a node may have been destroyed by its handle."""
    cdef dict records = self.records.get(graph)
    cdef Record record
    cdef set nodes = None
    holds.extend(self.others.get(graph, ()))
    for node, record in (records or {}).items():
        if record.hold is not None:
            holds.append(record.hold)
        if record.bodies:
            if nodes is None:
                nodes = _addresses_of_nodes(<CUgraph>graph)
            if node in nodes:
                for body in record.bodies:
                    _list_holds(self, body, holds)
    return 0


cdef set _addresses_of_nodes(CUgraph graph):
    cdef CUgraphNode* nodes
    cdef size_t count = 0, i
    check(cu.cuGraphGetNodes(graph, NULL, &count), b"cuGraphGetNodes")
    nodes = <CUgraphNode*>PyMem_Malloc((count + 1) * sizeof(CUgraphNode))
    if nodes == NULL:
        raise MemoryError()
    try:
        if count != 0:
            check(cu.cuGraphGetNodes(graph, nodes, &count), b"cuGraphGetNodes")
        return {<uintptr_t>nodes[i] for i in range(count)}
    finally:
        PyMem_Free(nodes)


cdef int _drop_graph(Hierarchy self, object address) except -1:
    """Forget a graph that the driver has destroyed with its node, and what it kept."""
    cdef dict records = self.records.pop(address, None)
    cdef Record record
    cdef Hold found
    for found in self.others.pop(address, ()):
        found.forget()
    if records is not None:
        for record in records.values():
            for body in record.bodies:
                _drop_graph(self, body)
            if record.hold is not None:
                record.hold.forget()
    return 0


cdef class GraphHandle:

    cdef bint is_valid(self):
        cdef GraphHandle handle = self
        while handle is not None:
            if handle.dead:
                return False
            handle = handle.parent
        return not self.hierarchy.gone and not self.is_gone()

    cdef bint is_gone(self):
        return is_gone(self.hierarchy.context, self.hierarchy.born)

    cdef CUgraph open_pointer(self) except NULL:
        if self.is_gone():
            raise gone_error("GraphDefinition")
        if not self.is_valid():
            raise RuntimeError("GraphDefinition is no longer valid")
        return self.pointer

    cdef int bury(self, CUgraphNode node) except -1:
        cdef GraphHandle handle
        self.hierarchy.drop(self.pointer, node)
        for address, handle in list(self.hierarchy.handles.items()):
            if handle.parent is self and handle.holder == node:
                handle.dead = True
                # Its address may be given to another graph.
                del self.hierarchy.handles[address]
            elif not handle.is_valid():     # further below
                del self.hierarchy.handles[address]
        return 0


cdef Hierarchy new_hierarchy(CUgraph root, bint owned):
    cdef Hierarchy hierarchy = Hierarchy.__new__(Hierarchy)
    hierarchy.root, hierarchy.owned, hierarchy.born = root, owned, resets
    hierarchy.handles, hierarchy.records, hierarchy.others = weakref.WeakValueDictionary(), {}, {}
    hierarchy.structure = Structure.__new__(Structure)
    return hierarchy


cdef GraphHandle graph_handle(Hierarchy hierarchy, CUgraph pointer, GraphHandle parent, CUgraphNode holder):
    cdef GraphHandle handle = hierarchy.handles.get(<uintptr_t>pointer)
    if handle is None:
        handle = GraphHandle.__new__(GraphHandle)
        handle.pointer, handle.hierarchy = pointer, hierarchy
        handle.parent, handle.holder = parent, holder
        handle.nodes = weakref.WeakValueDictionary()
        hierarchy.handles[<uintptr_t>pointer] = handle
    return handle
