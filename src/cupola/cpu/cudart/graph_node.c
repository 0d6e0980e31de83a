/* Nodes of graphs and their parameters (CUDA Runtime API, "Graph Management"). Kernels and copies have another form in
 * the driver; the parameters of all other nodes have the same layout in both. */
#include "cudart.h"

_Static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams), "same layout");
_Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS), "same layout");
_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS), "same layout");
_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "same layout");
_Static_assert(sizeof(struct cudaConditionalNodeParams) == sizeof(CUDA_CONDITIONAL_NODE_PARAMS), "same layout");

/* The context that a node is for. */
static CUcontext here(void) { return current_context(); }

/* ---- kernels --------------------------------------------------------------------------------------------------- */

static CUresult kernel_to_driver(const void *func, dim3 grid, dim3 block, unsigned dynamic_shared, void **params,
                                 void **extra, CUDA_KERNEL_NODE_PARAMS *made) {
    CUfunction function;
    RETURN_IF(function_of(func, &function));
    bool is_kernel = handle_is_live(func, HANDLE_KERNEL);
    *made = (CUDA_KERNEL_NODE_PARAMS){
        .func = is_kernel ? NULL : function,
        .gridDimX = grid.x,
        .gridDimY = grid.y,
        .gridDimZ = grid.z,
        .blockDimX = block.x,
        .blockDimY = block.y,
        .blockDimZ = block.z,
        .sharedMemBytes = dynamic_shared,
        .kernelParams = params,
        .extra = extra,
        .kern = is_kernel ? (CUkernel)(void *)func : NULL,
        .ctx = here(),
    };
    return CUDA_SUCCESS;
}

static CUresult kernel_params(const struct cudaKernelNodeParams *params, CUDA_KERNEL_NODE_PARAMS *made) {
    if (!params) return fail_null("pNodeParams");
    return kernel_to_driver(params->func, params->gridDim, params->blockDim, params->sharedMemBytes,
                            params->kernelParams, params->extra, made);
}

static CUresult add_kernel(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                           const struct cudaKernelNodeParams *params) {
    CUDA_KERNEL_NODE_PARAMS made;
    RETURN_IF(kernel_params(params, &made));
    return cuGraphAddKernelNode(node, graph, dependencies, count, &made);
}

static CUresult get_kernel(cudaGraphNode_t node, struct cudaKernelNodeParams *params) {
    CUDA_KERNEL_NODE_PARAMS found;
    if (!params) return fail_null("pNodeParams");
    RETURN_IF(cuGraphKernelNodeGetParams(node, &found));
    *params = (struct cudaKernelNodeParams){
        .func = found.kern ? (void *)found.kern : (void *)found.func,
        .gridDim = {found.gridDimX, found.gridDimY, found.gridDimZ},
        .blockDim = {found.blockDimX, found.blockDimY, found.blockDimZ},
        .sharedMemBytes = found.sharedMemBytes,
        .kernelParams = found.kernelParams,
        .extra = found.extra,
    };
    return CUDA_SUCCESS;
}

static CUresult set_kernel(cudaGraphNode_t node, const struct cudaKernelNodeParams *params) {
    CUDA_KERNEL_NODE_PARAMS made;
    RETURN_IF(kernel_params(params, &made));
    return cuGraphKernelNodeSetParams(node, &made);
}

static CUresult set_exec_kernel(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaKernelNodeParams *params) {
    CUDA_KERNEL_NODE_PARAMS made;
    RETURN_IF(kernel_params(params, &made));
    return cuGraphExecKernelNodeSetParams(exec, node, &made);
}

RUNTIME(cudaGraphAddKernelNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         const struct cudaKernelNodeParams *pNodeParams),
        add_kernel(pGraphNode, graph, pDependencies, numDependencies, pNodeParams))
RUNTIME(cudaGraphKernelNodeGetParams, (cudaGraphNode_t node, struct cudaKernelNodeParams *pNodeParams),
        get_kernel(node, pNodeParams))
RUNTIME(cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const struct cudaKernelNodeParams *pNodeParams),
        set_kernel(node, pNodeParams))
RUNTIME(cudaGraphExecKernelNodeSetParams,
        (cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const struct cudaKernelNodeParams *pNodeParams),
        set_exec_kernel(hGraphExec, node, pNodeParams))
RUNTIME(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t hDst, cudaGraphNode_t hSrc),
        cuGraphKernelNodeCopyAttributes(hDst, hSrc))
RUNTIME(cudaGraphKernelNodeGetAttribute,
        (cudaGraphNode_t hNode, cudaLaunchAttributeID attr, cudaLaunchAttributeValue *value_out),
        cuGraphKernelNodeGetAttribute(hNode, (CUlaunchAttributeID)attr, (CUlaunchAttributeValue *)value_out))
RUNTIME(cudaGraphKernelNodeSetAttribute,
        (cudaGraphNode_t hNode, cudaLaunchAttributeID attr, const cudaLaunchAttributeValue *value),
        cuGraphKernelNodeSetAttribute(hNode, (CUlaunchAttributeID)attr, (const CUlaunchAttributeValue *)value))

/* ---- copies ---------------------------------------------------------------------------------------------------- */

static CUresult add_copy(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                         const struct cudaMemcpy3DParms *params) {
    CUDA_MEMCPY3D form;
    RETURN_IF(form_of_copy(params, &form));
    return cuGraphAddMemcpyNode(node, graph, dependencies, count, &form, here());
}

static CUresult get_copy(cudaGraphNode_t node, struct cudaMemcpy3DParms *params) {
    CUDA_MEMCPY3D form;
    if (!params) return fail_null("pNodeParams");
    RETURN_IF(cuGraphMemcpyNodeGetParams(node, &form));
    copy_of_form(&form, params);
    return CUDA_SUCCESS;
}

static CUresult set_copy(cudaGraphNode_t node, const struct cudaMemcpy3DParms *params) {
    CUDA_MEMCPY3D form;
    RETURN_IF(form_of_copy(params, &form));
    return cuGraphMemcpyNodeSetParams(node, &form);
}

static CUresult set_exec_copy(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *params) {
    CUDA_MEMCPY3D form;
    RETURN_IF(form_of_copy(params, &form));
    return cuGraphExecMemcpyNodeSetParams(exec, node, &form, here());
}

static CUresult add_row(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                        void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind) {
    CUDA_MEMCPY3D form;
    RETURN_IF(form_of_row(target, source, bytes, kind, &form));
    return cuGraphAddMemcpyNode(node, graph, dependencies, count, &form, here());
}

static CUresult set_row(cudaGraphNode_t node, void *target, const void *source, size_t bytes,
                        enum cudaMemcpyKind kind) {
    CUDA_MEMCPY3D form;
    RETURN_IF(form_of_row(target, source, bytes, kind, &form));
    return cuGraphMemcpyNodeSetParams(node, &form);
}

static CUresult set_exec_row(cudaGraphExec_t exec, cudaGraphNode_t node, void *target, const void *source, size_t bytes,
                             enum cudaMemcpyKind kind) {
    CUDA_MEMCPY3D form;
    RETURN_IF(form_of_row(target, source, bytes, kind, &form));
    return cuGraphExecMemcpyNodeSetParams(exec, node, &form, here());
}

/* Do something with the address of a part of the variable that `symbol` stands for. */
#define WITH_VARIABLE(symbol, offset, count, call)                    \
    ({                                                                \
        void *variable;                                               \
        part_of_variable(symbol, offset, count, &variable) ?: (call); \
    })

RUNTIME(cudaGraphAddMemcpyNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         const struct cudaMemcpy3DParms *pCopyParams),
        add_copy(pGraphNode, graph, pDependencies, numDependencies, pCopyParams))
RUNTIME(cudaGraphMemcpyNodeGetParams, (cudaGraphNode_t node, struct cudaMemcpy3DParms *pNodeParams),
        get_copy(node, pNodeParams))
RUNTIME(cudaGraphMemcpyNodeSetParams, (cudaGraphNode_t node, const struct cudaMemcpy3DParms *pNodeParams),
        set_copy(node, pNodeParams))
RUNTIME(cudaGraphExecMemcpyNodeSetParams,
        (cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *pNodeParams),
        set_exec_copy(hGraphExec, node, pNodeParams))
RUNTIME(cudaGraphAddMemcpyNode1D,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
        add_row(pGraphNode, graph, pDependencies, numDependencies, dst, src, count, kind))
RUNTIME(cudaGraphMemcpyNodeSetParams1D,
        (cudaGraphNode_t node, void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
        set_row(node, dst, src, count, kind))
RUNTIME(cudaGraphExecMemcpyNodeSetParams1D,
        (cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void *dst, const void *src, size_t count,
         enum cudaMemcpyKind kind),
        set_exec_row(hGraphExec, node, dst, src, count, kind))
RUNTIME(cudaGraphAddMemcpyNodeToSymbol,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind),
        WITH_VARIABLE(symbol, offset, count,
                      add_row(pGraphNode, graph, pDependencies, numDependencies, variable, src, count, kind)))
RUNTIME(cudaGraphAddMemcpyNodeFromSymbol,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind),
        WITH_VARIABLE(symbol, offset, count,
                      add_row(pGraphNode, graph, pDependencies, numDependencies, dst, variable, count, kind)))
RUNTIME(cudaGraphMemcpyNodeSetParamsToSymbol,
        (cudaGraphNode_t node, const void *symbol, const void *src, size_t count, size_t offset,
         enum cudaMemcpyKind kind),
        WITH_VARIABLE(symbol, offset, count, set_row(node, variable, src, count, kind)))
RUNTIME(cudaGraphMemcpyNodeSetParamsFromSymbol,
        (cudaGraphNode_t node, void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind),
        WITH_VARIABLE(symbol, offset, count, set_row(node, dst, variable, count, kind)))
RUNTIME(cudaGraphExecMemcpyNodeSetParamsToSymbol,
        (cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const void *symbol, const void *src, size_t count,
         size_t offset, enum cudaMemcpyKind kind),
        WITH_VARIABLE(symbol, offset, count, set_exec_row(hGraphExec, node, variable, src, count, kind)))
RUNTIME(cudaGraphExecMemcpyNodeSetParamsFromSymbol,
        (cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void *dst, const void *symbol, size_t count, size_t offset,
         enum cudaMemcpyKind kind),
        WITH_VARIABLE(symbol, offset, count, set_exec_row(hGraphExec, node, dst, variable, count, kind)))

/* ---- fills, functions of the host, child graphs, events, memory ------------------------------------------------ */

RUNTIME(cudaGraphAddMemsetNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         const struct cudaMemsetParams *pMemsetParams),
        cuGraphAddMemsetNode(pGraphNode, graph, pDependencies, numDependencies,
                             (const CUDA_MEMSET_NODE_PARAMS *)pMemsetParams, here()))
RUNTIME(cudaGraphMemsetNodeGetParams, (cudaGraphNode_t node, struct cudaMemsetParams *pNodeParams),
        cuGraphMemsetNodeGetParams(node, (CUDA_MEMSET_NODE_PARAMS *)pNodeParams))
RUNTIME(cudaGraphMemsetNodeSetParams, (cudaGraphNode_t node, const struct cudaMemsetParams *pNodeParams),
        cuGraphMemsetNodeSetParams(node, (const CUDA_MEMSET_NODE_PARAMS *)pNodeParams))
RUNTIME(cudaGraphExecMemsetNodeSetParams,
        (cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const struct cudaMemsetParams *pNodeParams),
        cuGraphExecMemsetNodeSetParams(hGraphExec, node, (const CUDA_MEMSET_NODE_PARAMS *)pNodeParams, here()))
RUNTIME(cudaGraphAddHostNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         const struct cudaHostNodeParams *pNodeParams),
        cuGraphAddHostNode(pGraphNode, graph, pDependencies, numDependencies,
                           (const CUDA_HOST_NODE_PARAMS *)pNodeParams))
RUNTIME(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, struct cudaHostNodeParams *pNodeParams),
        cuGraphHostNodeGetParams(node, (CUDA_HOST_NODE_PARAMS *)pNodeParams))
RUNTIME(cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const struct cudaHostNodeParams *pNodeParams),
        cuGraphHostNodeSetParams(node, (const CUDA_HOST_NODE_PARAMS *)pNodeParams))
RUNTIME(cudaGraphExecHostNodeSetParams,
        (cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const struct cudaHostNodeParams *pNodeParams),
        cuGraphExecHostNodeSetParams(hGraphExec, node, (const CUDA_HOST_NODE_PARAMS *)pNodeParams))
RUNTIME(cudaGraphAddEmptyNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies),
        cuGraphAddEmptyNode(pGraphNode, graph, pDependencies, numDependencies))
RUNTIME(cudaGraphAddChildGraphNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         cudaGraph_t childGraph),
        cuGraphAddChildGraphNode(pGraphNode, graph, pDependencies, numDependencies, childGraph))
RUNTIME(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t *pGraph),
        cuGraphChildGraphNodeGetGraph(node, pGraph))
RUNTIME(cudaGraphExecChildGraphNodeSetParams,
        (cudaGraphExec_t hGraphExec, cudaGraphNode_t node, cudaGraph_t childGraph),
        cuGraphExecChildGraphNodeSetParams(hGraphExec, node, childGraph))
RUNTIME(cudaGraphAddEventRecordNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         cudaEvent_t event),
        cuGraphAddEventRecordNode(pGraphNode, graph, pDependencies, numDependencies, event))
RUNTIME(cudaGraphEventRecordNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event_out),
        cuGraphEventRecordNodeGetEvent(node, event_out))
RUNTIME(cudaGraphEventRecordNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        cuGraphEventRecordNodeSetEvent(node, event))
RUNTIME(cudaGraphExecEventRecordNodeSetEvent, (cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event),
        cuGraphExecEventRecordNodeSetEvent(hGraphExec, hNode, event))
RUNTIME(cudaGraphAddEventWaitNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         cudaEvent_t event),
        cuGraphAddEventWaitNode(pGraphNode, graph, pDependencies, numDependencies, event))
RUNTIME(cudaGraphEventWaitNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event_out),
        cuGraphEventWaitNodeGetEvent(node, event_out))
RUNTIME(cudaGraphEventWaitNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        cuGraphEventWaitNodeSetEvent(node, event))
RUNTIME(cudaGraphExecEventWaitNodeSetEvent, (cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event),
        cuGraphExecEventWaitNodeSetEvent(hGraphExec, hNode, event))
RUNTIME(cudaGraphAddMemAllocNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         struct cudaMemAllocNodeParams *nodeParams),
        cuGraphAddMemAllocNode(pGraphNode, graph, pDependencies, numDependencies,
                               (CUDA_MEM_ALLOC_NODE_PARAMS *)nodeParams))
RUNTIME(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, struct cudaMemAllocNodeParams *params_out),
        cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)params_out))
RUNTIME(cudaGraphAddMemFreeNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
         void *dptr),
        cuGraphAddMemFreeNode(pGraphNode, graph, pDependencies, numDependencies, (CUdeviceptr)dptr))
RUNTIME(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void *dptr_out),
        cuGraphMemFreeNodeGetParams(node, (CUdeviceptr *)dptr_out))

/* ---- nodes of any type ----------------------------------------------------------------------------------------- */

static CUresult params_to_driver(const struct cudaGraphNodeParams *params, CUgraphNodeParams *made) {
    if (!params) return fail_null("nodeParams");
    memcpy(made, params, sizeof *made);
    switch (params->type) {
        case cudaGraphNodeTypeKernel: {
            const struct cudaKernelNodeParamsV2 *k = &params->kernel;
            CUDA_KERNEL_NODE_PARAMS kernel;
            RETURN_IF(kernel_to_driver(k->func, k->gridDim, k->blockDim, k->sharedMemBytes, k->kernelParams, k->extra,
                                       &kernel));
            memset(&made->kernel, 0, sizeof made->asBytes);
            made->kernel = AS(CUDA_KERNEL_NODE_PARAMS_v3, kernel);
            return CUDA_SUCCESS;
        }
        case cudaGraphNodeTypeMemcpy: {
            CUDA_MEMCPY3D form;
            RETURN_IF(form_of_copy(&params->memcpy.copyParams, &form));
            memset(&made->memcpy, 0, sizeof made->asBytes);
            made->memcpy =
                (CUDA_MEMCPY_NODE_PARAMS){.flags = params->memcpy.flags, .copyCtx = here(), .copyParams = form};
            return CUDA_SUCCESS;
        }
        case cudaGraphNodeTypeMemset: made->memset.ctx = here(); return CUDA_SUCCESS;
        case cudaGraphNodeTypeConditional: made->conditional.ctx = here(); return CUDA_SUCCESS;
        default: return CUDA_SUCCESS;
    }
}

static void params_of_driver(const CUgraphNodeParams *found, struct cudaGraphNodeParams *params) {
    memcpy(params, found, sizeof *params);
    if (found->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        const CUDA_KERNEL_NODE_PARAMS_v3 *k = &found->kernel;
        memset(params->reserved1, 0, sizeof params->reserved1);
        params->kernel = (struct cudaKernelNodeParamsV2){
            .func = k->kern ? (void *)k->kern : (void *)k->func,
            .gridDim = {k->gridDimX, k->gridDimY, k->gridDimZ},
            .blockDim = {k->blockDimX, k->blockDimY, k->blockDimZ},
            .sharedMemBytes = k->sharedMemBytes,
            .kernelParams = k->kernelParams,
            .extra = k->extra,
            .functionType = k->kern ? cudaKernelFunctionTypeKernel : cudaKernelFunctionTypeFunction,
        };
    } else if (found->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        memset(params->reserved1, 0, sizeof params->reserved1);
        params->memcpy.flags = found->memcpy.flags;
        copy_of_form(&found->memcpy.copyParams, &params->memcpy.copyParams);
    } else if (found->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        params->memset.ctx = NULL;
    } else if (found->type == CU_GRAPH_NODE_TYPE_HOST) {
        params->host.ctx = NULL;
    } else if (found->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
        params->conditional.ctx = NULL;
    }
}

/* Two kinds of nodes tell what was made: the address of memory, the graphs of a condition. */
static CUresult add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                         const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *params) {
    CUgraphNodeParams made;
    RETURN_IF(params_to_driver(params, &made));
    RETURN_IF(cuGraphAddNode(node, graph, dependencies, (const CUgraphEdgeData *)edges, count, &made));
    if (params->type == cudaGraphNodeTypeMemAlloc) params->alloc.dptr = (void *)made.alloc.dptr;
    if (params->type == cudaGraphNodeTypeConditional) params->conditional.phGraph_out = made.conditional.phGraph_out;
    return CUDA_SUCCESS;
}

static CUresult set_params(cudaGraphNode_t node, const struct cudaGraphNodeParams *params) {
    CUgraphNodeParams made;
    RETURN_IF(params_to_driver(params, &made));
    return cuGraphNodeSetParams(node, &made);
}

static CUresult set_exec_params(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaGraphNodeParams *params) {
    CUgraphNodeParams made;
    RETURN_IF(params_to_driver(params, &made));
    return cuGraphExecNodeSetParams(exec, node, &made);
}

static CUresult get_params(cudaGraphNode_t node, struct cudaGraphNodeParams *params) {
    CUgraphNodeParams found = {0};
    if (!params) return fail_null("nodeParams");
    RETURN_IF(cuGraphNodeGetParams(node, &found));
    params_of_driver(&found, params);
    return CUDA_SUCCESS;
}

RUNTIME(cudaGraphAddNode,
        (cudaGraphNode_t *pGraphNode, cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
         const cudaGraphEdgeData *dependencyData, size_t numDependencies, struct cudaGraphNodeParams *nodeParams),
        add_node(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams))
RUNTIME(cudaGraphNodeSetParams, (cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams),
        set_params(node, nodeParams))
RUNTIME(cudaGraphNodeGetParams, (cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams),
        get_params(node, nodeParams))
RUNTIME(cudaGraphExecNodeSetParams,
        (cudaGraphExec_t graphExec, cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams),
        set_exec_params(graphExec, node, nodeParams))
RUNTIME(cudaGraphConditionalHandleCreate,
        (cudaGraphConditionalHandle *pHandle_out, cudaGraph_t graph, unsigned defaultLaunchValue, unsigned flags),
        cuGraphConditionalHandleCreate((CUgraphConditionalHandle *)pHandle_out, graph, here(), defaultLaunchValue,
                                       flags))
RUNTIME(cudaGraphConditionalHandleCreate_v2,
        (cudaGraphConditionalHandle *pHandle_out, cudaGraph_t graph, cudaExecutionContext_t ctx,
         unsigned defaultLaunchValue, unsigned flags),
        cuGraphConditionalHandleCreate((CUgraphConditionalHandle *)pHandle_out, graph, ctx ? (CUcontext)ctx : here(),
                                       defaultLaunchValue, flags))

const struct entry runtime_graph_node_entries[] = {
    RUNTIME_ENTRY(cudaGraphAddKernelNode),
    RUNTIME_ENTRY(cudaGraphKernelNodeGetParams),
    RUNTIME_ENTRY(cudaGraphKernelNodeSetParams),
    RUNTIME_ENTRY(cudaGraphExecKernelNodeSetParams),
    RUNTIME_ENTRY(cudaGraphKernelNodeCopyAttributes),
    RUNTIME_ENTRY(cudaGraphKernelNodeGetAttribute),
    RUNTIME_ENTRY(cudaGraphKernelNodeSetAttribute),
    RUNTIME_ENTRY(cudaGraphAddMemcpyNode),
    RUNTIME_ENTRY(cudaGraphMemcpyNodeGetParams),
    RUNTIME_ENTRY(cudaGraphMemcpyNodeSetParams),
    RUNTIME_ENTRY(cudaGraphExecMemcpyNodeSetParams),
    RUNTIME_ENTRY(cudaGraphAddMemcpyNode1D),
    RUNTIME_ENTRY(cudaGraphMemcpyNodeSetParams1D),
    RUNTIME_ENTRY(cudaGraphExecMemcpyNodeSetParams1D),
    RUNTIME_ENTRY(cudaGraphAddMemcpyNodeToSymbol),
    RUNTIME_ENTRY(cudaGraphAddMemcpyNodeFromSymbol),
    RUNTIME_ENTRY(cudaGraphMemcpyNodeSetParamsToSymbol),
    RUNTIME_ENTRY(cudaGraphMemcpyNodeSetParamsFromSymbol),
    RUNTIME_ENTRY(cudaGraphExecMemcpyNodeSetParamsToSymbol),
    RUNTIME_ENTRY(cudaGraphExecMemcpyNodeSetParamsFromSymbol),
    RUNTIME_ENTRY(cudaGraphAddMemsetNode),
    RUNTIME_ENTRY(cudaGraphMemsetNodeGetParams),
    RUNTIME_ENTRY(cudaGraphMemsetNodeSetParams),
    RUNTIME_ENTRY(cudaGraphExecMemsetNodeSetParams),
    RUNTIME_ENTRY(cudaGraphAddHostNode),
    RUNTIME_ENTRY(cudaGraphHostNodeGetParams),
    RUNTIME_ENTRY(cudaGraphHostNodeSetParams),
    RUNTIME_ENTRY(cudaGraphExecHostNodeSetParams),
    RUNTIME_ENTRY(cudaGraphAddEmptyNode),
    RUNTIME_ENTRY(cudaGraphAddChildGraphNode),
    RUNTIME_ENTRY(cudaGraphChildGraphNodeGetGraph),
    RUNTIME_ENTRY(cudaGraphExecChildGraphNodeSetParams),
    RUNTIME_ENTRY(cudaGraphAddEventRecordNode),
    RUNTIME_ENTRY(cudaGraphEventRecordNodeGetEvent),
    RUNTIME_ENTRY(cudaGraphEventRecordNodeSetEvent),
    RUNTIME_ENTRY(cudaGraphExecEventRecordNodeSetEvent),
    RUNTIME_ENTRY(cudaGraphAddEventWaitNode),
    RUNTIME_ENTRY(cudaGraphEventWaitNodeGetEvent),
    RUNTIME_ENTRY(cudaGraphEventWaitNodeSetEvent),
    RUNTIME_ENTRY(cudaGraphExecEventWaitNodeSetEvent),
    RUNTIME_ENTRY(cudaGraphAddMemAllocNode),
    RUNTIME_ENTRY(cudaGraphMemAllocNodeGetParams),
    RUNTIME_ENTRY(cudaGraphAddMemFreeNode),
    RUNTIME_ENTRY(cudaGraphMemFreeNodeGetParams),
    RUNTIME_ENTRY(cudaGraphAddNode),
    RUNTIME_ENTRY(cudaGraphNodeSetParams),
    RUNTIME_ENTRY(cudaGraphNodeGetParams),
    RUNTIME_ENTRY(cudaGraphExecNodeSetParams),
    RUNTIME_ENTRY(cudaGraphConditionalHandleCreate),
    RUNTIME_ENTRY(cudaGraphConditionalHandleCreate_v2),
    {NULL, NULL, NULL},
};
