/* Graphs: making, running and changing them, and user objects (CUDA Runtime API, "Graph Management"). Nodes and their
 * parameters are in graph/node.c. */
#include "cudart.h"

RUNTIME(cudaGraphCreate, (cudaGraph_t *pGraph, unsigned flags), cuGraphCreate(pGraph, flags))
RUNTIME(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy(graph))
RUNTIME(cudaGraphClone, (cudaGraph_t *pGraphClone, cudaGraph_t originalGraph),
        cuGraphClone(pGraphClone, originalGraph))
RUNTIME(cudaGraphGetId, (cudaGraph_t hGraph, unsigned *graphID), cuGraphGetId(hGraph, graphID))
RUNTIME(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned flags),
        cuGraphDebugDotPrint(graph, path, flags))

/* ---- nodes and edges ------------------------------------------------------------------------------------------- */

RUNTIME(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes),
        cuGraphGetNodes(graph, nodes, numNodes))
RUNTIME(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *pRootNodes, size_t *pNumRootNodes),
        cuGraphGetRootNodes(graph, pRootNodes, pNumRootNodes))
RUNTIME(cudaGraphGetEdges,
        (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edgeData, size_t *numEdges),
        cuGraphGetEdges(graph, from, to, (CUgraphEdgeData *)edgeData, numEdges))
RUNTIME(cudaGraphNodeGetDependencies,
        (cudaGraphNode_t node, cudaGraphNode_t *pDependencies, cudaGraphEdgeData *edgeData, size_t *pNumDependencies),
        cuGraphNodeGetDependencies(node, pDependencies, (CUgraphEdgeData *)edgeData, pNumDependencies))
RUNTIME(cudaGraphNodeGetDependentNodes,
        (cudaGraphNode_t node, cudaGraphNode_t *pDependentNodes, cudaGraphEdgeData *edgeData,
         size_t *pNumDependentNodes),
        cuGraphNodeGetDependentNodes(node, pDependentNodes, (CUgraphEdgeData *)edgeData, pNumDependentNodes))
RUNTIME(cudaGraphAddDependencies,
        (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const cudaGraphEdgeData *edgeData,
         size_t numDependencies),
        cuGraphAddDependencies(graph, from, to, (const CUgraphEdgeData *)edgeData, numDependencies))
RUNTIME(cudaGraphRemoveDependencies,
        (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const cudaGraphEdgeData *edgeData,
         size_t numDependencies),
        cuGraphRemoveDependencies(graph, from, to, (const CUgraphEdgeData *)edgeData, numDependencies))
RUNTIME(cudaGraphDestroyNode, (cudaGraphNode_t node), cuGraphDestroyNode(node))
RUNTIME(cudaGraphNodeFindInClone, (cudaGraphNode_t *pNode, cudaGraphNode_t originalNode, cudaGraph_t clonedGraph),
        cuGraphNodeFindInClone(pNode, originalNode, clonedGraph))
RUNTIME(cudaGraphNodeGetType, (cudaGraphNode_t node, enum cudaGraphNodeType *pType),
        cuGraphNodeGetType(node, (CUgraphNodeType *)pType))
RUNTIME(cudaGraphNodeGetContainingGraph, (cudaGraphNode_t hNode, cudaGraph_t *phGraph),
        cuGraphNodeGetContainingGraph(hNode, phGraph))
RUNTIME(cudaGraphNodeGetLocalId, (cudaGraphNode_t hNode, unsigned *nodeId), cuGraphNodeGetLocalId(hNode, nodeId))
RUNTIME(cudaGraphNodeGetToolsId, (cudaGraphNode_t hNode, unsigned long long *toolsNodeId),
        cuGraphNodeGetToolsId(hNode, toolsNodeId))

/* ---- executables ----------------------------------------------------------------------------------------------- */

RUNTIME(cudaGraphInstantiate, (cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags),
        cuGraphInstantiate(pGraphExec, graph, flags))
RUNTIME(cudaGraphInstantiateWithFlags, (cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags),
        cuGraphInstantiate(pGraphExec, graph, flags))
RUNTIME_STREAM(cudaGraphInstantiateWithParams,
               (cudaGraphExec_t *pGraphExec, cudaGraph_t graph, cudaGraphInstantiateParams *instantiateParams),
               (pGraphExec, graph, instantiateParams),
               cuGraphInstantiateWithParams(pGraphExec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)instantiateParams))
RUNTIME(cudaGraphExecGetFlags, (cudaGraphExec_t graphExec, unsigned long long *flags),
        cuGraphExecGetFlags(graphExec, (cuuint64_t *)flags))
RUNTIME(cudaGraphExecGetId, (cudaGraphExec_t hGraphExec, unsigned *graphID), cuGraphExecGetId(hGraphExec, graphID))
RUNTIME(cudaGraphExecUpdate,
        (cudaGraphExec_t hGraphExec, cudaGraph_t hGraph, cudaGraphExecUpdateResultInfo *resultInfo),
        cuGraphExecUpdate(hGraphExec, hGraph, (CUgraphExecUpdateResultInfo *)resultInfo))
RUNTIME(cudaGraphNodeSetEnabled, (cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned isEnabled),
        cuGraphNodeSetEnabled(hGraphExec, hNode, isEnabled))
RUNTIME(cudaGraphNodeGetEnabled, (cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned *isEnabled),
        cuGraphNodeGetEnabled(hGraphExec, hNode, isEnabled))
RUNTIME_STREAM(cudaGraphUpload, (cudaGraphExec_t graphExec, cudaStream_t stream), (graphExec, stream),
               cuGraphUpload(graphExec, stream))
RUNTIME_STREAM(cudaGraphLaunch, (cudaGraphExec_t graphExec, cudaStream_t stream), (graphExec, stream),
               cuGraphLaunch(graphExec, stream))
RUNTIME(cudaGraphExecDestroy, (cudaGraphExec_t graphExec), cuGraphExecDestroy(graphExec))

/* ---- user objects ---------------------------------------------------------------------------------------------- */

RUNTIME(cudaUserObjectCreate,
        (cudaUserObject_t *object_out, void *ptr, cudaHostFn_t destroy, unsigned initialRefcount, unsigned flags),
        cuUserObjectCreate(object_out, ptr, destroy, initialRefcount, flags))
RUNTIME(cudaUserObjectRetain, (cudaUserObject_t object, unsigned count), cuUserObjectRetain(object, count))
RUNTIME(cudaUserObjectRelease, (cudaUserObject_t object, unsigned count), cuUserObjectRelease(object, count))
RUNTIME(cudaGraphRetainUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags),
        cuGraphRetainUserObject(graph, object, count, flags))
RUNTIME(cudaGraphReleaseUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned count),
        cuGraphReleaseUserObject(graph, object, count))

const struct entry runtime_graph_entries[] = {
    RUNTIME_ENTRY(cudaGraphCreate),
    RUNTIME_ENTRY(cudaGraphDestroy),
    RUNTIME_ENTRY(cudaGraphClone),
    RUNTIME_ENTRY(cudaGraphGetId),
    RUNTIME_ENTRY(cudaGraphDebugDotPrint),
    RUNTIME_ENTRY(cudaGraphGetNodes),
    RUNTIME_ENTRY(cudaGraphGetRootNodes),
    RUNTIME_ENTRY(cudaGraphGetEdges),
    RUNTIME_ENTRY(cudaGraphNodeGetDependencies),
    RUNTIME_ENTRY(cudaGraphNodeGetDependentNodes),
    RUNTIME_ENTRY(cudaGraphAddDependencies),
    RUNTIME_ENTRY(cudaGraphRemoveDependencies),
    RUNTIME_ENTRY(cudaGraphDestroyNode),
    RUNTIME_ENTRY(cudaGraphNodeFindInClone),
    RUNTIME_ENTRY(cudaGraphNodeGetType),
    RUNTIME_ENTRY(cudaGraphNodeGetContainingGraph),
    RUNTIME_ENTRY(cudaGraphNodeGetLocalId),
    RUNTIME_ENTRY(cudaGraphNodeGetToolsId),
    RUNTIME_ENTRY(cudaGraphInstantiate),
    RUNTIME_ENTRY(cudaGraphInstantiateWithFlags),
    RUNTIME_ENTRY_STREAM(cudaGraphInstantiateWithParams),
    RUNTIME_ENTRY(cudaGraphExecGetFlags),
    RUNTIME_ENTRY(cudaGraphExecGetId),
    RUNTIME_ENTRY(cudaGraphExecUpdate),
    RUNTIME_ENTRY(cudaGraphNodeSetEnabled),
    RUNTIME_ENTRY(cudaGraphNodeGetEnabled),
    RUNTIME_ENTRY_STREAM(cudaGraphUpload),
    RUNTIME_ENTRY_STREAM(cudaGraphLaunch),
    RUNTIME_ENTRY(cudaGraphExecDestroy),
    RUNTIME_ENTRY(cudaUserObjectCreate),
    RUNTIME_ENTRY(cudaUserObjectRetain),
    RUNTIME_ENTRY(cudaUserObjectRelease),
    RUNTIME_ENTRY(cudaGraphRetainUserObject),
    RUNTIME_ENTRY(cudaGraphReleaseUserObject),
    {NULL, NULL, NULL},
};
