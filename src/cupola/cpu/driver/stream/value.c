/* Waiting for and writing values in memory, in stream order (CUDA Driver API, "Stream Memory Operations"). */
#include <sched.h>
#include <time.h>

#include "engine/memory/memory.h"
#include "stream.h"

enum { WAIT_CONDITION = 3, POLLS_BEFORE_YIELD = 1000, POLLS_BEFORE_SLEEP = 20000, SLEEP_NANOSECONDS = 20000 };

static bool holds(const struct op *op) {
    uint64_t want = op->value.value, found;
    bool wide = op->value.size == 8;
    if (wide) found = atomic_load_explicit((_Atomic uint64_t *)op->value.address, memory_order_acquire);
    else found = atomic_load_explicit((_Atomic uint32_t *)op->value.address, memory_order_acquire);
    switch (op->value.flags & WAIT_CONDITION) {
        case CU_STREAM_WAIT_VALUE_GEQ: return wide ? (int64_t)(found - want) >= 0 : (int32_t)(found - want) >= 0;
        case CU_STREAM_WAIT_VALUE_EQ: return found == want;
        case CU_STREAM_WAIT_VALUE_AND: return (found & want) != 0;
        default: return (wide ? ~(found | want) : (uint64_t)(uint32_t)~(found | want)) != 0;
    }
}

/* Memory may be written by the host, a kernel or another process: there is nothing to sleep on, so poll, ever slower.
 */
static void wait(const struct op *op) {
    for (unsigned polls = 0; !holds(op); polls++) {
        if (atomic_load_explicit(&op->context->error, memory_order_relaxed)) return;
        if (polls < POLLS_BEFORE_YIELD) cpu_relax();
        else if (polls < POLLS_BEFORE_SLEEP) sched_yield();
        else nanosleep(&(struct timespec){0, SLEEP_NANOSECONDS}, NULL);
    }
}

CUresult value_execute(struct op *op) {
    cpu_allocation allocation;
    if (!cpu_memory_find(op->value.address, &allocation))
        return fail(CUDA_ERROR_ILLEGAL_ADDRESS, "the memory at %#llx, for cuStream%sValue%d, has been freed",
                    (unsigned long long)op->value.address, op->kind == OP_WAIT_VALUE ? "Wait" : "Write",
                    op->value.size * 8);
    if (op->kind == OP_WAIT_VALUE) wait(op);
    else if (op->value.size == 8) atomic_store((_Atomic uint64_t *)op->value.address, op->value.value);
    else atomic_store((_Atomic uint32_t *)op->value.address, (uint32_t)op->value.value);
    return CUDA_SUCCESS;
}

static CUresult check(enum op_kind kind, CUdeviceptr address, size_t size, unsigned flags) {
    cpu_allocation allocation;
    if (kind == OP_WAIT_VALUE ? flags & ~(unsigned)(WAIT_CONDITION | CU_STREAM_WAIT_VALUE_FLUSH)
                              : flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
        return fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of a stream memory operation", flags);
    if (address % size)
        return fail(CUDA_ERROR_INVALID_VALUE, "the address %#llx is not aligned to %zu bytes",
                    (unsigned long long)address, size);
    if (!cpu_memory_find(address, &allocation))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "%#llx is not in memory that the device can reach: use device, managed, "
                    "pinned or registered memory",
                    (unsigned long long)address);
    return CUDA_SUCCESS;
}

static CUresult submit(CUstream stream, enum op_kind kind, CUdeviceptr address, uint64_t value, uint8_t size,
                       unsigned flags) {
    struct op *op = op_new(kind, stream->context);
    if (!op) return no_memory("the operation");
    op->value.address = address;
    op->value.value = value;
    op->value.size = size;
    op->value.flags = flags;
    return stream_submit(stream, op);
}

static CUresult enter_and_submit(CUstream handle, enum op_kind kind, CUdeviceptr address, uint64_t value, uint8_t size,
                                 unsigned flags) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    RETURN_IF(check(kind, address, size, flags));
    return submit(stream, kind, address, value, size, flags);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    return enter_and_submit(stream, OP_WAIT_VALUE, address, value, 4, flags);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
    return enter_and_submit(stream, OP_WAIT_VALUE, address, value, 8, flags);
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    return enter_and_submit(stream, OP_WRITE_VALUE, address, value, 4, flags);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
    return enter_and_submit(stream, OP_WRITE_VALUE, address, value, 8, flags);
}

enum { BATCH_LIMIT = 256 };

/* The whole batch is checked before anything of it is queued. */
CUresult cuStreamBatchMemOp(CUstream handle, unsigned count, CUstreamBatchMemOpParams *batch, unsigned flags) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "the flags of cuStreamBatchMemOp must be 0, not %u", flags);
    if (count > BATCH_LIMIT) return fail(CUDA_ERROR_INVALID_VALUE, "a batch has at most 256 operations, not %u", count);
    if (count && !batch) return fail_null("paramArray");
    for (int pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < count; i++) {
            const CUstreamBatchMemOpParams *p = &batch[i];
            enum op_kind kind = OP_EMPTY;
            uint8_t size = 0;
            switch (p->operation) {
                case CU_STREAM_MEM_OP_WAIT_VALUE_32: kind = OP_WAIT_VALUE, size = 4; break;
                case CU_STREAM_MEM_OP_WAIT_VALUE_64: kind = OP_WAIT_VALUE, size = 8; break;
                case CU_STREAM_MEM_OP_WRITE_VALUE_32: kind = OP_WRITE_VALUE, size = 4; break;
                case CU_STREAM_MEM_OP_WRITE_VALUE_64: kind = OP_WRITE_VALUE, size = 8; break;
                case CU_STREAM_MEM_OP_BARRIER:
                case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: break; /* operations of a stream see each other's writes */
                default:
                    return fail(CUDA_ERROR_NOT_SUPPORTED,
                                "operation %u of the batch has the type %d, which the CPU device "
                                "does not support",
                                i, (int)p->operation);
            }
            if (kind == OP_EMPTY) continue;
            /* waitValue and writeValue have the same layout */
            uint64_t value = size == 8 ? p->waitValue.value64 : p->waitValue.value;
            if (pass) RETURN_IF(submit(stream, kind, p->waitValue.address, value, size, p->waitValue.flags));
            else RETURN_IF(check(kind, p->waitValue.address, size, p->waitValue.flags));
        }
    return CUDA_SUCCESS;
}

PER_THREAD(cuStreamWaitValue32, (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamWaitValue64, (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamWriteValue32, (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamWriteValue64, (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f), (s, a, v, f))
PER_THREAD(cuStreamBatchMemOp, (CUstream s, unsigned n, CUstreamBatchMemOpParams *p, unsigned f), (s, n, p, f))

const struct entry value_entries[] = {
    ENTRY_STREAM(cuStreamWaitValue32),
    ENTRY_STREAM_AS(cuStreamWaitValue32_v2, cuStreamWaitValue32),
    ENTRY_STREAM(cuStreamWaitValue64),
    ENTRY_STREAM_AS(cuStreamWaitValue64_v2, cuStreamWaitValue64),
    ENTRY_STREAM(cuStreamWriteValue32),
    ENTRY_STREAM_AS(cuStreamWriteValue32_v2, cuStreamWriteValue32),
    ENTRY_STREAM(cuStreamWriteValue64),
    ENTRY_STREAM_AS(cuStreamWriteValue64_v2, cuStreamWriteValue64),
    ENTRY_STREAM(cuStreamBatchMemOp),
    ENTRY_STREAM_AS(cuStreamBatchMemOp_v2, cuStreamBatchMemOp),
    {NULL, NULL, NULL},
};
