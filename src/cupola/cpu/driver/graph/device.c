/* Kernel nodes that kernels can change (CUDA Driver API, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE; CUDA C++
 * Programming Guide, "Device Graph Update").
 *
 * What kernels may change, the grid, the parameters and whether the node runs at all, lies in memory of the CPU device,
 * and the handle that kernels are given is its address. The functions of the device runtime are PTX that is linked to
 * modules which call them (device_runtime.ptx); that a handle is wrong shows as an access that is out of bounds.
 *
 * The handle belongs to the node of the definition and to its one executable at a time. What the host has set is
 * written there when the executable is made, and again by the first launch or upload behind a change. */
#include "graph.h"

#include <stdlib.h>

enum { PARAMETER_ROOM = 32768 }; /* more than a kernel can have */

struct CUgraphDeviceUpdatableNode_st { /* device_runtime.ptx knows these offsets */
    uint32_t enabled;
    uint32_t grid[3];
    uint32_t cluster[3]; /* which divides the grid */
    uint32_t param_bytes;
    uint64_t most_blocks;
    char params[PARAMETER_ROOM] __attribute__((aligned(64)));
};

struct device_node {
    _Atomic uint32_t references;
    _Atomic bool instantiated;
    uint64_t version; /* of the node whose parameters were written last; with the executable's lock `running` */
    CUgraphDeviceNode state;
};

/* ---- life --------------------------------------------------------------------------------------------- */

static struct device_node *device_node_new(void) {
    uint64_t address;
    struct device_node *node = calloc(1, sizeof *node);
    if (node == NULL) return NULL;
    if (cpu_memory_allocate(CPU_MEMORY_HOST, CPU_MEMORY_MODULE, sizeof *node->state, node, &address)) {
        free(node);
        return NULL;
    }
    node->references = 1;
    node->state = (CUgraphDeviceNode)address;
    return node;
}

void device_node_release(struct device_node *node) {
    if (node == NULL || atomic_fetch_sub(&node->references, 1) != 1) return;
    (void)cpu_memory_free((uint64_t)node->state);
    free(node);
}

CUgraphDeviceNode device_node_handle(const struct device_node *node) { return node ? node->state : NULL; }

CUresult graph_node_make_updatable(CUgraphNode node) {
    if (node->device) return CUDA_SUCCESS;
    node->device = device_node_new();
    if (node->device == NULL) return no_memory("a device-updatable node");
    device_node_reset(node->device, node->op->op, true, 0);
    return CUDA_SUCCESS;
}

bool graph_has_updatable(CUgraph graph, bool instantiated) {
    for (CUgraphNode node = graph->first; node; node = node->next) {
        if (node->device && (!instantiated || atomic_load(&node->device->instantiated))) return true;
        for (unsigned i = 0; i < node->body_count; i++)
            if (graph_has_updatable(node->bodies[i], instantiated)) return true;
    }
    return false;
}

void graph_adopt_updatable(CUgraph clone, CUgraph graph) {
    for (CUgraphNode own = clone->first, node = graph->first; own; own = own->next, node = node->next) {
        if (node->device) {
            device_node_release(own->device);
            own->device = node->device;
            own->runs_device = true;
            atomic_fetch_add(&node->device->references, 1);
            atomic_store(&node->device->instantiated, true);
            device_node_reset(own->device, own->op->op, true, own->version);
        }
        for (unsigned i = 0; i < own->body_count; i++) graph_adopt_updatable(own->bodies[i], node->bodies[i]);
    }
}

void graph_node_leave_device(CUgraphNode node) {
    if (node->runs_device) atomic_store(&node->device->instantiated, false);
    device_node_release(node->device);
}

/* ---- launches ----------------------------------------------------------------------------------------- */

void device_node_reset(struct device_node *node, const struct op *op, bool enabled, uint64_t version) {
    CUgraphDeviceNode state = node->state;
    const cpu_launch *launch = &op->kernel.launch;
    uint64_t resident = op->kernel.attributes.cooperative ? launch_resident_blocks(op) : UINT64_MAX;
    state->enabled = enabled;
    memcpy(state->grid, launch->grid, sizeof state->grid);
    memcpy(state->cluster, launch->cluster, sizeof state->cluster);
    state->most_blocks = resident;
    state->param_bytes = launch->param_bytes < PARAMETER_ROOM ? (uint32_t)launch->param_bytes : PARAMETER_ROOM;
    memcpy(state->params, launch->params, state->param_bytes);
    node->version = version;
}

void device_node_refresh(struct device_node *node, const struct op *op, bool enabled, uint64_t version) {
    if (node->version != version) device_node_reset(node, op, enabled, version);
}

CUresult device_node_execute(const struct device_node *node, const struct op *op) {
    const struct CUgraphDeviceUpdatableNode_st *state = node->state;
    if (!state->enabled) return CUDA_SUCCESS;
    struct op *changed = op_copy(op);
    if (changed == NULL) return no_memory("a device-updatable node");
    memcpy(changed->kernel.launch.grid, state->grid, sizeof state->grid);
    memcpy((void *)changed->kernel.launch.params, state->params,
           state->param_bytes < op->kernel.launch.param_bytes ? state->param_bytes : op->kernel.launch.param_bytes);
    CUresult status = op_execute(changed);
    op_free(changed);
    return status;
}
