/* The times of operations, for the trace. */
#include "driver/trace/trace.h"
#include "engine/memory/memory.h"
#include "stream.h"
#include "above.h"

static const uint8_t kinds[] = {
    [OP_EMPTY] = TRACE_EVENT,       [OP_KERNEL] = TRACE_KERNEL, [OP_COPY] = TRACE_COPY,   [OP_FILL] = TRACE_FILL,
    [OP_HOST] = TRACE_HOST,         [OP_RECORD] = TRACE_EVENT,  [OP_WAIT] = TRACE_WAIT,   [OP_VALUES] = TRACE_VALUES,
    [OP_ALLOCATE] = TRACE_ALLOCATE, [OP_FREE] = TRACE_FREE,     [OP_GRAPH] = TRACE_GRAPH, [OP_CALL] = TRACE_LIBRARY,
};

/* Where an end of a copy lies: 'H' for memory that the driver does not know. */
static char place_of(const void *address) {
    cpu_allocation found;
    if (!cpu_memory_find((uint64_t)address, &found)) return 'H';
    return found.kind == CPU_MEMORY_PINNED ? 'P' : found.kind == CPU_MEMORY_MANAGED ? 'M' : 'D';
}

void memory_trace(bool freed, int device, uint64_t bytes, const void *stream) {
    const uint64_t now = clock_now();
    trace_add(&(struct trace_record){.kind = freed ? TRACE_FREE : TRACE_ALLOCATE,
                                     .begin = now,
                                     .end = now,
                                     .call = trace_call,
                                     .place = (uint64_t)stream,
                                     .name = "",
                                     .bytes = bytes,
                                     .memory = cpu_memory_used(device),
                                     .device = device});
}

void op_trace(const struct op *op, uint64_t begin, CUresult status) {
    struct trace_record record = {.kind = kinds[op->kind],
                                  .begin = begin,
                                  .end = clock_now(),
                                  .call = trace_call,
                                  .place = (uint64_t)trace_stream,
                                  .name = "",
                                  .device = op->context ? op->context->device->ordinal : 0,
                                  .status = (int32_t)status};
    switch (op->kind) {
        case OP_EMPTY: return;
        case OP_FREE:
            if (op->call) return; /* the call has noted it */
            record.bytes = op->memory.size;
            break;
        case OP_KERNEL:
            record.name = trace_name(kernel_op_name(op));
            for (int i = 0; i < 3; i++) {
                record.grid[i] = op->kernel.launch.grid[i];
                record.block[i] = op->kernel.launch.block[i];
            }
            record.shared = op->kernel.launch.dynamic_shared;
            break;
        case OP_COPY:
            record.bytes = op->copy.width * op->copy.height * op->copy.depth;
            record.from = place_of(op->copy.source);
            record.to = place_of(op->copy.target);
            break;
        case OP_FILL: record.bytes = op->fill.width * op->fill.element * op->fill.height; break;
        case OP_ALLOCATE: record.bytes = op->memory.size; break;
        default: break;
    }
    record.memory = cpu_memory_used(record.device);
    trace_add(&record);
}
