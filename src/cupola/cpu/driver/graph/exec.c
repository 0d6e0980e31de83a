/* Executable graphs and their launch (CUDA Driver API, "Graph Management").
 *
 * An executable keeps a clone of the definition, whose nodes the Exec*SetParams functions change. For launches the clone is
 * flattened into a plan: a list of operations in topological order, with child graphs in line. Plans never change, so a
 * launch that is queued runs what it was queued with; a changed executable makes a new plan at its next launch. A launch is
 * one operation on its stream, which walks the plan, behind all launches of the executable before it, whatever streams they
 * are in. A plan holds the user objects and conditions of the graph it was made from, which an update may replace while the
 * launch is under way.
 *
 * Memory that a graph allocates and does not free exists from the call of cuGraphLaunch on, like that of
 * cuMemAllocAsync; memory that it frees as well exists between the two nodes. */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

#include "driver/base/checks.h"
#include "driver/stream/moment.h"

/* ---- plans -------------------------------------------------------------------------------------------- */

struct step {
    struct shared_op *op;       /* NULL: a conditional node */
    uint32_t number;            /* in the plan's order */
    struct device_node *device; /* of the executable, which outlives the plan; NULL: kernels cannot change the step */
    uint64_t version;
    bool disabled;    /* by the host; kernels may enable it */
    bool unreachable; /* a copy that the device is to make, and cannot */
    const struct condition *condition;
    CUgraphConditionalNodeType type;
    unsigned body_count;
    struct steps *bodies;
};

struct steps {
    struct step *items;
    size_t count, capacity;
};

struct plan {
    _Atomic uint32_t references;
    CUgraphExec exec; /* a launch that is queued keeps it */
    struct steps steps;
    struct steps allocations; /* of memory that outlives the launch; done when the launch is queued */
    struct steps records;     /* events that it records */
    struct steps values;      /* operations on memory, whose addresses a launch checks */
    struct held_objects held;
    struct condition_list *conditions;
    bool has_updatable;
    uint32_t system_calls; /* of its kernels: see context_note_kernels() */
    bool waits;            /* for other streams or the host, or its kernels launch: for an unknown time */
    bool launches;         /* see plan_launches() */
    unsigned depth;        /* of bodies around what is being flattened */
    uint32_t numbered;     /* steps so far */
    cpu_node_order *order; /* what edges order, while races are checked; NULL: not known */
    _Atomic bool quick;    /* has been run in a short time */
};

static struct step *steps_append(struct steps *steps) {
    if (steps->count == steps->capacity) {
        size_t capacity = steps->capacity ? steps->capacity * 2 : 16;
        struct step *items = realloc(steps->items, capacity * sizeof *items);
        if (items == NULL) return NULL;
        steps->items = items;
        steps->capacity = capacity;
    }
    struct step *step = &steps->items[steps->count++];
    *step = (struct step){0};
    return step;
}

static void steps_free(struct steps *steps) {
    for (size_t i = 0; i < steps->count; i++) {
        struct step *step = &steps->items[i];
        shared_op_release(step->op);
        for (unsigned b = 0; b < step->body_count; b++) steps_free(&step->bodies[b]);
        free(step->bodies);
    }
    free(steps->items);
}

void plan_release(struct plan *plan) {
    if (plan == NULL || atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) != 1) return;
    steps_free(&plan->steps);
    steps_free(&plan->allocations);
    steps_free(&plan->records);
    steps_free(&plan->values);
    held_objects_release(&plan->held);
    conditions_release(plan->conditions);
    free(plan->order);
    free(plan);
}

void plan_retain(struct plan *plan) { atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed); }

CUgraphExec plan_exec(const struct plan *plan) { return plan->exec; }

bool plan_launches(const struct plan *plan) { return plan->launches; }

static void note_launches(struct plan *plan, const struct op *op) {
    if (op->kind != OP_KERNEL) return;
    const cpu_kernel_info *info = op->kernel.function->image_kernel->info;
    if (info->launches & CPU_LAUNCHES_ASKS) plan->waits = true;
    if (info->launches & CPU_LAUNCHES_GRAPHS) plan->launches = true;
    plan->system_calls |= info->system_calls;
}

static bool append_op(const struct plan *plan, struct steps *steps, struct shared_op *op) {
    struct step *step = steps_append(steps);
    if (step == NULL) return false;
    step->op = op;
    step->number = plan->numbered;
    atomic_fetch_add_explicit(&op->references, 1, memory_order_relaxed);
    return true;
}

/* A node that kernels can change stays in the plan when it is disabled: they may enable it. */
static bool append_updatable(CUgraphNode node, struct plan *plan, struct steps *steps) {
    if (!append_op(plan, steps, node->op)) return false;
    struct step *step = &steps->items[steps->count - 1];
    step->device = node->device;
    step->version = node->version;
    step->disabled = node->disabled;
    plan->has_updatable = true;
    note_launches(plan, node->op->op);
    return true;
}

static bool is_freed_in(CUgraph graph, uint64_t address) {
    for (CUgraphNode node = graph->first; node; node = node->next)
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE && node->op->op->memory.address == address) return true;
    return false;
}

/* ---- what edges order ------------------------------------------------------------------------------- */

enum { MOST_ORDERED = 4096 };

static size_t count_nodes(CUgraph graph) {
    size_t count = graph->count;
    for (CUgraphNode node = graph->first; node; node = node->next)
        for (unsigned i = 0; i < node->body_count; i++) count += count_nodes(node->bodies[i]);
    return count;
}

/* Of more nodes than that nothing is said. */
static cpu_node_order *new_order(size_t count) {
    if (count > MOST_ORDERED) count = 0;
    const size_t words = (count + 63) / 64;
    cpu_node_order *order = calloc(1, sizeof *order + count * words * sizeof(uint64_t));
    if (order) *order = (cpu_node_order){.count = (uint32_t)count, .words = (uint32_t)words};
    return order;
}

/* While a graph is flattened: what comes before each of its nodes, and the steps that it became. */
struct ordering {
    uint64_t *before;
    struct made {
        uint32_t begin, end;
    } *made;
};

static bool ordering_begin(struct ordering *ordering, const struct plan *plan, size_t count) {
    if (!plan->order || !plan->order->count || !count) return true;
    ordering->before = calloc(count * plan->order->words, sizeof(uint64_t));
    ordering->made = calloc(count, sizeof *ordering->made);
    return ordering->before && ordering->made;
}

/* The nodes before have been made; their `degree` is their place. */
static const uint64_t *ordering_of(const struct ordering *ordering, const struct plan *plan, const uint64_t *outside,
                                   CUgraphNode node, size_t place) {
    const uint32_t words = plan->order->words;
    uint64_t *row = ordering->before + place * words;
    node->degree = place;
    if (outside) memcpy(row, outside, words * sizeof *row);
    for (size_t i = 0; i < node->dependencies.count; i++) {
        const size_t other = node->dependencies.items[i].node->degree;
        for (uint32_t k = 0; k < words; k++) row[k] |= ordering->before[other * words + k];
        for (uint32_t step = ordering->made[other].begin; step < ordering->made[other].end; step++)
            row[step / 64] |= UINT64_C(1) << step % 64;
    }
    return row;
}

static void ordering_end(struct ordering *ordering) {
    free(ordering->before);
    free(ordering->made);
}

static bool flatten(CUgraph graph, struct plan *plan, struct steps *steps, const uint64_t *before);

static bool is_pageable(const char *address) {
    cpu_allocation found;
    return !cpu_memory_find((uint64_t)address, &found) && !cpu_memory_owns((uint64_t)address);
}

/* Host memory that CUDA does not know is out of reach for a body, which the device runs by itself. */
bool copies_pageable(const struct op *op) {
    return op->kind == OP_COPY && (is_pageable(op->copy.source) || is_pageable(op->copy.target));
}

static bool append_conditional(CUgraphNode node, struct plan *plan, struct steps *steps, const uint64_t *before) {
    struct steps *bodies = calloc(node->body_count, sizeof *bodies);
    bool fine = bodies != NULL;
    plan->depth++;
    for (unsigned i = 0; fine && i < node->body_count; i++) fine = flatten(node->bodies[i], plan, &bodies[i], before);
    plan->depth--;
    struct step *step = fine ? steps_append(steps) : NULL;
    if (step == NULL) {
        for (unsigned i = 0; bodies && i < node->body_count; i++) steps_free(&bodies[i]);
        free(bodies);
        return false;
    }
    step->condition = (const struct condition *)node->condition;
    step->type = node->condition_type;
    step->body_count = node->body_count;
    step->bodies = bodies;
    return true;
}

static bool flatten_node(CUgraph graph, CUgraphNode node, struct plan *plan, struct steps *steps,
                         const uint64_t *before);

static bool flatten(CUgraph graph, struct plan *plan, struct steps *steps, const uint64_t *before) {
    CUgraphNode cycle, *nodes = graph_sorted(graph, &cycle);
    struct ordering ordering = {NULL, NULL};
    bool fine = nodes != NULL && ordering_begin(&ordering, plan, graph->count);
    for (size_t i = 0; fine && i < graph->count; i++) {
        const uint64_t *own = ordering.before ? ordering_of(&ordering, plan, before, nodes[i], i) : NULL;
        const uint32_t begin = plan->numbered;
        fine = flatten_node(graph, nodes[i], plan, steps, own);
        if (!own) continue;
        if (plan->numbered == begin && nodes[i]->op) { /* one step */
            memcpy(plan->order->bits + (size_t)begin * plan->order->words, own, plan->order->words * sizeof *own);
            plan->numbered++;
        }
        ordering.made[i].begin = begin;
        ordering.made[i].end = plan->numbered;
    }
    ordering_end(&ordering);
    free(nodes);
    return fine;
}

static bool flatten_node(CUgraph graph, CUgraphNode node, struct plan *plan, struct steps *steps,
                         const uint64_t *before) {
    bool fine = true;
    if (node->device) return append_updatable(node, plan, steps);
    if (node->disabled) return true;
    switch ((int)node->type) {
        case CU_GRAPH_NODE_TYPE_EMPTY: break;
        case CU_GRAPH_NODE_TYPE_GRAPH: fine = flatten(node->bodies[0], plan, steps, before); break;
        case CU_GRAPH_NODE_TYPE_CONDITIONAL: fine = append_conditional(node, plan, steps, before); break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            fine = append_op(plan, is_freed_in(graph, node->op->op->memory.address) ? steps : &plan->allocations,
                             node->op);
            break;
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            fine = append_op(plan, steps, node->op) && append_op(plan, &plan->records, node->op);
            break;
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            fine = append_op(plan, steps, node->op) && append_op(plan, &plan->values, node->op);
            plan->waits |= values_wait(node->op->op);
            break;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            fine = append_op(plan, steps, node->op);
            plan->waits = true;
            break;
        default:
            fine = append_op(plan, steps, node->op);
            note_launches(plan, node->op->op);
            plan->waits |= op_waits(node->op->op);
            if (fine && plan->depth) steps->items[steps->count - 1].unreachable = copies_pageable(node->op->op);
    }
    return fine;
}

static bool hold_objects(CUgraph graph, struct held_objects *held) {
    bool fine = held_objects_copy(held, &graph->held);
    for (CUgraphNode node = graph->first; fine && node; node = node->next)
        for (unsigned i = 0; fine && i < node->body_count; i++) fine = hold_objects(node->bodies[i], held);
    return fine;
}

/* The plan of the executable as it is now. With the lock. */
static struct plan *current_plan(CUgraphExec exec) {
    if (likely(exec->plan != NULL) && likely(!moments() || exec->plan->order)) return exec->plan;
    if (exec->plan) graph_exec_changed(exec); /* what orders its nodes was not asked then */
    struct plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return NULL;
    plan->references = 1;
    plan->exec = exec;
    plan->conditions = conditions_retain(exec->graph->conditions);
    plan->launches = exec_is_for_device(exec);
    if (moments()) plan->order = new_order(count_nodes(exec->graph));
    if (!flatten(exec->graph, plan, &plan->steps, NULL) || !hold_objects(exec->graph, &plan->held)) {
        plan_release(plan);
        return NULL;
    }
    return exec->plan = plan;
}

void graph_exec_changed(CUgraphExec exec) {
    plan_release(exec->plan);
    exec->plan = NULL;
}

/* ---- carrying out ------------------------------------------------------------------------------------- */

struct walk { /* the launch that is being carried out */
    CUstream stream;
    uint64_t sequence;
    CUcontext context;
    CUresult status;
    cpu_moment *moment; /* of the step; NULL: races are not checked */
};

/* Whether a wait would be for this very launch or a later one, which records the event: such a wait is
 * over. */
static bool waits_for_itself(const struct walk *walk, const struct op *op) {
    CUevent event = op->wait.event;
    if (op->kind != OP_WAIT || event == NULL) return false;
    pthread_mutex_lock(&event->lock);
    bool itself = event->stream == walk->stream && event->sequence >= walk->sequence;
    pthread_mutex_unlock(&event->lock);
    return itself;
}

static void run(struct walk *walk, const struct steps *steps);

/* Each run of a plan or of a body has a number of its own: it comes behind all that ran before. */
static _Atomic uint32_t next_round;

static void begin_round(cpu_moment *moment) {
    moment->round = atomic_fetch_add_explicit(&next_round, 1, memory_order_relaxed);
}

static void run_body(struct walk *walk, const struct steps *body) {
    if (walk->moment) begin_round(walk->moment);
    run(walk, body);
    if (walk->moment) begin_round(walk->moment);
}

static void run_conditional(struct walk *walk, const struct step *step) {
    uint32_t value = __atomic_load_n(&step->condition->value, __ATOMIC_RELAXED);
    switch ((int)step->type) {
        case CU_GRAPH_COND_TYPE_IF:
            if (value) run_body(walk, &step->bodies[0]);
            else if (step->body_count == 2) run_body(walk, &step->bodies[1]);
            break;
        case CU_GRAPH_COND_TYPE_WHILE:
            while (value && !walk->status && !atomic_load(&walk->context->error)) {
                run_body(walk, &step->bodies[0]);
                value = __atomic_load_n(&step->condition->value, __ATOMIC_RELAXED);
            }
            break;
        default:
            if (value < step->body_count) run_body(walk, &step->bodies[value]);
    }
}

static CUresult refuse_copy(const struct op *op) {
    if (atomic_load(&op->context->error)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    CUresult status = fail(CUDA_ERROR_ILLEGAL_ADDRESS,
                           "a copy in the body of a conditional node, which was changed in the executable graph, has "
                           "pageable host memory at one end: the device runs bodies by itself and reaches pinned "
                           "memory only");
    context_fault(op->context, status, NULL, NULL);
    return status;
}

/* After an error the other operations are still visited: each knows what it must do even then. */
static void run(struct walk *walk, const struct steps *steps) {
    for (size_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->items[i];
        if (unlikely(step->op == NULL)) {
            run_conditional(walk, step);
            continue;
        }
        if (unlikely(walk->moment != NULL)) walk->moment->node = step->number;
        if (unlikely(step->op->op->kind == OP_WAIT) && waits_for_itself(walk, step->op->op)) continue;
        CUresult status = unlikely(step->unreachable)      ? refuse_copy(step->op->op)
                          : unlikely(step->device != NULL) ? device_node_execute(step->device, step->op->op)
                                                           : op_execute(step->op->op);
        if (unlikely(status) && !walk->status) walk->status = status;
    }
}

/* What the host has changed of nodes that kernels can change, too, is put over what those have. */
static void refresh(const struct steps *steps) {
    for (size_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->items[i];
        if (step->device) device_node_refresh(step->device, step->op->op, !step->disabled, step->version);
        for (unsigned b = 0; b < step->body_count; b++) refresh(&step->bodies[b]);
    }
}

enum { QUICK_NANOSECONDS = 2000000 };

bool graph_is_quick(const struct op *op) {
    const struct plan *plan = op->graph.graph;
    return atomic_load_explicit(&plan->quick, memory_order_relaxed);
}

CUresult plan_run(struct plan *plan, const struct op *op, CUcontext context) {
    struct walk walk = {op ? op->graph.stream : NULL, op ? op->sequence : 0, context, CUDA_SUCCESS, NULL};
    conditions_reset(plan->conditions);
    if (!asked(cpu_moment_now != NULL)) {
        run(&walk, &plan->steps);
        return walk.status;
    }
    cpu_moment *const whole = cpu_moment_now;
    cpu_moment moment = *whole;
    moment.order = plan->order;
    begin_round(&moment);
    walk.moment = cpu_moment_now = &moment;
    run(&walk, &plan->steps);
    cpu_moment_now = whole;
    return walk.status;
}

/* What launches by kernels run from now on: what the last upload or launch by the host was of. */
static void set_uploaded(CUgraphExec exec, struct plan *plan) {
    plan_retain(plan);
    pthread_mutex_lock(&exec->device_lock);
    struct plan *before = exec->uploaded;
    exec->uploaded = plan;
    pthread_mutex_unlock(&exec->device_lock);
    plan_release(before);
}

/* What the launch has allocated for those behind it. Work in front of it may have used that memory before. */
static void renew(const struct steps *allocations) {
    for (size_t i = 0; i < allocations->count; i++) memory_renew(allocations->items[i].op->op);
}

CUresult graph_execute(struct op *op) {
    struct plan *plan = op->graph.graph;
    uint64_t to_learn = graph_is_quick(op) ? 0 : clock_now();
    CUresult status = CUDA_SUCCESS;
    if (unlikely(plan->has_updatable)) refresh(&plan->steps);
    if (unlikely(exec_is_for_device(plan->exec))) set_uploaded(plan->exec, plan);
    if (checks(CPU_CHECK_RACE | CPU_CHECK_INIT) && !op->graph.upload) renew(&plan->allocations);
    if (likely(!op->graph.upload))
        status = unlikely(plan->launches) ? graph_run_from_host(plan, op) : plan_run(plan, op, op->context);
    if (to_learn && !plan->waits && clock_now() - to_learn < QUICK_NANOSECONDS) plan->quick = true;
    return status;
}

void graph_exec_release(CUgraphExec exec) {
    if (!handle_release(exec)) return;
    plan_release(exec->plan);
    plan_release(exec->uploaded);
    pthread_mutex_destroy(&exec->device_lock);
    graph_release(exec->graph);
    free(exec->clones);
    pthread_mutex_destroy(&exec->lock);
    if (exec->last_stream) stream_release(exec->last_stream);
    handle_free(HANDLE_GRAPH_EXEC, exec);
}

void graph_op_retain(struct op *op) {
    struct plan *plan = op->graph.graph;
    atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
    handle_retain(plan->exec);
}

void graph_op_release(struct op *op) {
    struct plan *plan = op->graph.graph;
    if (plan == NULL) return;
    CUgraphExec exec = plan->exec;
    plan_release(plan);
    graph_exec_release(exec);
}

/* ---- instantiation ------------------------------------------------------------------------------------ */

CUresult graph_exec_check(CUgraphExec exec) {
    RETURN_IF(enter());
    if (likely(handle_is_live(exec, HANDLE_GRAPH_EXEC))) return CUDA_SUCCESS;
    return fail_handle("executable graph", exec, HANDLE_GRAPH_EXEC);
}

CUresult graph_exec_lock(CUgraphExec exec) {
    RETURN_IF(enter());
    if (!handle_acquire(exec, HANDLE_GRAPH_EXEC)) return fail_handle("executable graph", exec, HANDLE_GRAPH_EXEC);
    pthread_mutex_lock(&exec->lock);
    return CUDA_SUCCESS;
}

void graph_exec_unlock(CUgraphExec exec) {
    pthread_mutex_unlock(&exec->lock);
    graph_exec_release(exec);
}

static CUresult wrong(CUDA_GRAPH_INSTANTIATE_PARAMS *params, CUgraphInstantiateResult result, CUgraphNode node,
                      CUresult status, const char *text) {
    params->result_out = result;
    params->hErrNode_out = node;
    return fail(status, "%s", text);
}

/* A kernel node has got the cluster that its kernel must have. */
static CUresult check_finished(const struct op *op) {
    struct launch_attributes attributes = op->kernel.attributes;
    uint32_t cluster[3];
    uint8_t is_explicit;
    attributes.unfinished = false;
    return cluster_of_launch(op->kernel.function, &attributes, op->kernel.launch.grid, cluster, &is_explicit);
}

/* Access rights of fills that were captured, which are not looked at before. What is wrong otherwise shows in the end. */
static CUresult check_fill(const struct op *op) {
    struct fill fill = op->fill;
    struct accessor accessor = {ANYBODY, "the stream's", true};
    if (fill_check(&fill, true, &accessor)) return CUDA_SUCCESS;
    accessor.device = op->context->device->ordinal;
    return fill_check(&fill, true, &accessor);
}

static CUresult check_structure(CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    CUgraphNode cycle, *sorted = graph_sorted(graph, &cycle);
    if (sorted == NULL && cycle == NULL) return no_memory("the executable graph");
    free(sorted);
    if (cycle)
        return wrong(params, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, cycle, CUDA_ERROR_INVALID_VALUE,
                     "the edges of the graph form a cycle, so no order of its nodes respects them all");
    for (CUgraphNode node = graph->first; node; node = node->next) {
        const struct launch_attributes *attributes = node_attributes(node);
        if (attributes && attributes->unfinished) RETURN_IF(check_finished(node->op->op));
        if (node->op && node->op->op->kind == OP_FILL) RETURN_IF(check_fill(node->op->op));
        for (unsigned i = 0; i < node->body_count; i++) RETURN_IF(check_structure(node->bodies[i], params));
    }
    return CUDA_SUCCESS;
}

/* The device runs the bodies of conditional nodes by itself, so they take what it can do. Of copies that it cannot make
 * a GPU's driver says that they are of several contexts. */
static CUresult check_bodies(CUgraph graph, bool in_body, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    for (CUgraphNode node = graph->first; node; node = node->next) {
        bool conditional = node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
        switch ((int)node->type) {
            case CU_GRAPH_NODE_TYPE_KERNEL:
            case CU_GRAPH_NODE_TYPE_MEMSET:
            case CU_GRAPH_NODE_TYPE_EMPTY:
            case CU_GRAPH_NODE_TYPE_GRAPH:
            case CU_GRAPH_NODE_TYPE_CONDITIONAL: break;
            case CU_GRAPH_NODE_TYPE_MEMCPY:
                if (in_body && copies_pageable(node->op->op))
                    return wrong(params, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, node,
                                 CUDA_ERROR_INVALID_VALUE,
                                 "a copy in the body of a conditional node has pageable host memory at one end; it may "
                                 "have pinned memory");
                break;
            default:
                if (in_body)
                    return wrong(
                        params, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, node, CUDA_ERROR_INVALID_VALUE,
                        "the body of a conditional node may contain kernels, copies, fills, empty nodes, child "
                        "graphs of these, and conditional nodes");
        }
        for (unsigned i = 0; i < node->body_count; i++)
            RETURN_IF(check_bodies(node->bodies[i], in_body || conditional, params));
    }
    return CUDA_SUCCESS;
}

static bool copies_array(const struct op *op) {
    const CUDA_MEMCPY3D *form = op->kind == OP_COPY ? op->copy.form : NULL;
    return form && (form->srcMemoryType == CU_MEMORYTYPE_ARRAY || form->dstMemoryType == CU_MEMORYTYPE_ARRAY);
}

/* What a graph that kernels may launch consists of (CUDA C++ Programming Guide, "Device Graph Requirements"). */
static CUresult check_device_launch(CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    if (graph->first == NULL)
        return wrong(params, CUDA_GRAPH_INSTANTIATE_ERROR, NULL, CUDA_ERROR_INVALID_VALUE,
                     "a graph for launches from the device, and each of its child graphs, must have a node");
    for (CUgraphNode node = graph->first; node; node = node->next) {
        const char *problem = NULL;
        switch ((int)node->type) {
            case CU_GRAPH_NODE_TYPE_KERNEL:
                if (node->op->op->kernel.function->image_kernel->info->launches & CPU_LAUNCHES_KERNELS)
                    problem = "a kernel in a graph for launches from the device may not use dynamic parallelism";
                break;
            case CU_GRAPH_NODE_TYPE_MEMCPY:
                if (copies_pageable(node->op->op))
                    problem = "a copy in a graph for launches from the device has pageable host memory at one end; it "
                              "may have pinned memory";
                else if (copies_array(node->op->op))
                    problem = "a copy in a graph for launches from the device may not be from or to an array";
                break;
            case CU_GRAPH_NODE_TYPE_MEMSET:
            case CU_GRAPH_NODE_TYPE_GRAPH: break;
            default:
                problem =
                    "a graph for launches from the device may contain kernels, copies, fills and child graphs only";
        }
        if (problem)
            return wrong(params, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, node, CUDA_ERROR_INVALID_VALUE,
                         problem);
        for (unsigned i = 0; i < node->body_count; i++) RETURN_IF(check_device_launch(node->bodies[i], params));
    }
    return CUDA_SUCCESS;
}

static void collect(CUgraphExec exec, CUgraph graph) {
    for (CUgraphNode node = graph->first; node; node = node->next) {
        exec->clones[exec->clone_count++] = (struct clone_of){node->origin, node};
        for (unsigned i = 0; i < node->body_count; i++) collect(exec, node->bodies[i]);
    }
}

static int by_origin(const void *a, const void *b) {
    uint64_t x = ((const struct clone_of *)a)->origin, y = ((const struct clone_of *)b)->origin;
    return x < y ? -1 : x > y;
}

CUresult graph_exec_index(CUgraphExec exec) {
    struct clone_of *clones = malloc((count_nodes(exec->graph) + 1) * sizeof *clones);
    if (clones == NULL) return no_memory("the executable graph");
    free(exec->clones);
    exec->clones = clones;
    exec->clone_count = 0;
    collect(exec, exec->graph);
    qsort(clones, exec->clone_count, sizeof *clones, by_origin);
    return CUDA_SUCCESS;
}

CUresult graph_exec_find(CUgraphExec exec, CUgraphNode node, CUgraphNode *own) {
    RETURN_IF(graph_node_check(node));
    struct clone_of key = {node->id, NULL};
    struct clone_of *found = bsearch(&key, exec->clones, exec->clone_count, sizeof key, by_origin);
    if (found == NULL)
        return fail(CUDA_ERROR_INVALID_VALUE, "the node is not one of the graph that the executable was made from");
    *own = found->node;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
    static _Atomic unsigned next_id = 1;
    RETURN_IF(enter_to_work());
    if (phGraphExec == NULL) return fail_null("phGraphExec");
    if (instantiateParams == NULL) return fail_null("instantiateParams");
    CUDA_GRAPH_INSTANTIATE_PARAMS *params = instantiateParams;
    params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    params->hErrNode_out = NULL;
    RETURN_IF(graph_check(hGraph));
    cuuint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                       CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (params->flags & ~known)
        return fail(CUDA_ERROR_INVALID_VALUE, "flags has unknown bits: %#llx",
                    (unsigned long long)(params->flags & ~known));
    bool on_device = params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    if (on_device && params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
        return fail(CUDA_ERROR_INVALID_VALUE, "the flags DEVICE_LAUNCH and AUTO_FREE_ON_LAUNCH exclude each other");
    CUstream stream;
    if (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) RETURN_IF(enter_stream(params->hUploadStream, &stream));
    RETURN_IF(check_structure(hGraph, params));
    RETURN_IF(check_bodies(hGraph, false, params));
    if (!graph_conditions_are_used(hGraph->root))
        return wrong(params, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, NULL, CUDA_ERROR_INVALID_VALUE,
                     "a conditional handle was made for the graph, but no conditional node uses it");
    if (on_device) RETURN_IF(check_device_launch(hGraph, params));
    CUcontext context = NULL;
    CUgraphNode elsewhere = graph_find_other_context(hGraph, on_device, &context);
    if (elsewhere)
        return wrong(params, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, elsewhere, CUDA_ERROR_INVALID_VALUE,
                     on_device ? "all nodes of a graph for launches from the device must be in one context"
                               : "the kernels of a graph that launch graphs must be in one context");
    if (graph_has_updatable(hGraph, true))
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "a graph with device-updatable kernel nodes has one executable at a time: destroy the other first");
    CUgraphExec exec = handle_new(HANDLE_GRAPH_EXEC, sizeof *exec);
    if (exec == NULL) return no_memory("the executable graph");
    pthread_mutex_init(&exec->lock, NULL);
    pthread_mutex_init(&exec->device_lock, NULL);
    exec->id = atomic_fetch_add(&next_id, 1);
    exec->flags = params->flags;
    exec->graph = graph_clone(hGraph, NULL);
    if (exec->graph == NULL || graph_exec_index(exec)) {
        if (exec->graph) graph_release(exec->graph);
        free(exec->clones);
        handle_free(HANDLE_GRAPH_EXEC, exec);
        return no_memory("the executable graph");
    }
    graph_adopt_updatable(exec->graph, hGraph);
    graph_note_launches(exec, exec->graph);
    params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    *phGraphExec = exec;
    return params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD ? cuGraphUpload(exec, stream) : CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags) {
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
    return cuGraphInstantiateWithParams(phGraphExec, hGraph, &params);
}

/* The form before CUDA 12, with a log of errors. */
static CUresult instantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *wrong_node, char *log, size_t size) {
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    CUresult status = cuGraphInstantiateWithParams(exec, graph, &params);
    if (wrong_node) *wrong_node = params.hErrNode_out;
    if (log && size) {
        log[0] = 0;
        if (status) (void)explain(status, log, size);
    }
    return status;
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
    pass_gate();
    RETURN_IF(graph_exec_check(hGraphExec));
    if (!handle_kill(hGraphExec)) return graph_exec_check(hGraphExec);
    graph_exec_release(hGraphExec);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags) {
    RETURN_IF(graph_exec_check(hGraphExec));
    if (flags == NULL) return fail_null("flags");
    *flags = hGraphExec->flags;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecGetId(CUgraphExec hGraphExec, unsigned int *graphId) {
    RETURN_IF(graph_exec_check(hGraphExec));
    if (graphId == NULL) return fail_null("graphId");
    *graphId = hGraphExec->id;
    return CUDA_SUCCESS;
}

/* ---- launch ------------------------------------------------------------------------------------------- */

/* Queue an operation behind the launches so far, and note it as the last of them; without one, only have the stream wait.
 * With the lock. */
static CUresult submit_behind(CUgraphExec exec, CUstream stream, struct op *op) {
    CUstream last = exec->last_stream;
    if (moments() && last && last != stream) moment_waits_for(stream, last);
    if (last && last != stream && !stream_has_completed(last, exec->last_sequence)) {
        struct op *wait = op_new_wait(stream->context, handle_retain(last), exec->last_sequence);
        CUresult status = wait ? stream_submit(stream, wait) : no_memory("the executable graph");
        if (status) {
            if (op) op_free(op);
            return status;
        }
    }
    if (op == NULL) return CUDA_SUCCESS;
    RETURN_IF(stream_submit(stream, op));
    exec->last_sequence = atomic_load(&stream->submitted);
    if (last == stream) return CUDA_SUCCESS;
    exec->last_stream = handle_retain(stream);
    if (last) stream_release(last);
    return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    RETURN_IF(graph_exec_check(hGraphExec));
    if (unlikely(stream_is_capturing(stream))) return capture_refuse(stream, "cuGraphUpload");
    RETURN_IF(graph_exec_lock(hGraphExec));
    struct plan *plan = current_plan(hGraphExec);
    bool matters = plan && (plan->has_updatable || exec_is_for_device(hGraphExec));
    struct op *op = matters ? op_new(OP_GRAPH, stream->context) : NULL;
    bool fine = plan && (op || !matters);
    if (op) {
        op->graph.stream = stream;
        op->graph.upload = true;
        op->graph.graph = plan;
        graph_op_retain(op);
    }
    CUresult status = fine ? submit_behind(hGraphExec, stream, op) : no_memory("the executable graph");
    graph_exec_unlock(hGraphExec);
    return status;
}

/* Take the plan of a launch, with the references of its operation, and make the memory that outlives the
 * launch. With the lock. */
static CUresult take_plan(CUgraphExec exec, struct op *op) {
    bool again = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    CUresult status = CUDA_SUCCESS;
    struct plan *plan = current_plan(exec);
    if (plan == NULL) status = no_memory("the executable graph");
    for (size_t i = 0; !status && i < plan->values.count; i++)
        status = values_check_addresses(plan->values.items[i].op->op);
    for (size_t i = 0; !status && i < plan->allocations.count; i++)
        status = memory_begin(plan->allocations.items[i].op->op, again);
    if (status == CUDA_SUCCESS) {
        op->graph.graph = plan;
        graph_op_retain(op);
    }
    return status;
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    RETURN_IF(graph_exec_check(hGraphExec));
    if (unlikely(stream_is_capturing(stream))) return capture_refuse(stream, "cuGraphLaunch");
    struct op *op = op_new(OP_GRAPH, stream->context);
    if (op == NULL) return no_memory("the executable graph");
    op->graph.stream = stream;
    CUresult status = graph_exec_lock(hGraphExec);
    if (unlikely(status)) {
        op_free(op);
        return status;
    }
    status = take_plan(hGraphExec, op);
    struct plan *plan = NULL;
    if (unlikely(status)) {
        op_free(op);
    } else {
        struct plan *taken = op->graph.graph;
        if (unlikely(taken->system_calls)) context_note_kernels(stream->context, taken->system_calls, 0);
        if (unlikely(taken->records.count)) {
            plan = taken;
            atomic_fetch_add(&plan->references, 1);
        }
        status = submit_behind(hGraphExec, stream, op);
    }
    graph_exec_unlock(hGraphExec);
    if (likely(plan == NULL)) return status;
    for (size_t i = 0; !status && i < plan->records.count; i++) {
        CUevent event = plan->records.items[i].op->op->record.event;
        if (event->capture) capture_event_forget(event);
        event_mark(event, stream, atomic_load(&stream->submitted));
    }
    plan_release(plan);
    return status;
}

PER_THREAD(cuGraphUpload, (CUgraphExec exec, CUstream stream), (exec, stream))
PER_THREAD(cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream))
PER_THREAD(cuGraphInstantiateWithParams,
           (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params), (exec, graph, params))

const struct entry graph_exec_entries[] = {
    ENTRY(cuGraphInstantiate),
    ENTRY_AS(cuGraphInstantiateWithFlags, cuGraphInstantiate),
    ENTRY_AS(cuGraphInstantiate_v2, instantiate_v2),
    ENTRY_STREAM(cuGraphInstantiateWithParams),
    ENTRY(cuGraphExecDestroy),
    ENTRY(cuGraphExecGetFlags),
    ENTRY(cuGraphExecGetId),
    ENTRY_STREAM(cuGraphUpload),
    ENTRY_STREAM(cuGraphLaunch),
    {NULL, NULL, NULL},
};
