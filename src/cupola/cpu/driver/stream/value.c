/* Waiting for and writing values in memory, in stream order (CUDA Driver API, "Stream Memory Operations"). */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/memory/memory.h"
#include "moment.h"
#include "stream.h"
#include "engine/memory/shadow.h"

enum { WAIT_CONDITION = 3, POLLS_BEFORE_YIELD = 1000, POLLS_BEFORE_SLEEP = 20000, SLEEP_NANOSECONDS = 20000 };
enum { BATCH_LIMIT = 255 };

/* Waits and writes have the same layout: what is said of `waitValue` here holds for both. */
static bool is_wait(const CUstreamBatchMemOpParams *p) {
    return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}
static bool is_write(const CUstreamBatchMemOpParams *p) {
    return p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}
static int bits(const CUstreamBatchMemOpParams *p) {
    return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 64 : 32;
}

/* ---- carrying out ---------------------------------------------------------------------------------------------- */

static bool holds(const CUstreamBatchMemOpParams *p) {
    bool wide = bits(p) == 64;
    uint64_t want = wide ? p->waitValue.value64 : p->waitValue.value, found;
    if (wide) found = atomic_load_explicit((_Atomic uint64_t *)p->waitValue.address, memory_order_acquire);
    else found = atomic_load_explicit((_Atomic uint32_t *)p->waitValue.address, memory_order_acquire);
    switch (p->waitValue.flags & WAIT_CONDITION) {
        case CU_STREAM_WAIT_VALUE_GEQ: return wide ? (int64_t)(found - want) >= 0 : (int32_t)(found - want) >= 0;
        case CU_STREAM_WAIT_VALUE_EQ: return found == want;
        case CU_STREAM_WAIT_VALUE_AND: return (found & want) != 0;
        default: return (wide ? ~(found | want) : (uint64_t)(uint32_t)~(found | want)) != 0;
    }
}

/* Memory may be written by the host, a kernel or another process: there is nothing to sleep on, so poll, ever slower.
 */
static void wait(struct op *op, const CUstreamBatchMemOpParams *p) {
    for (uint64_t polls = 0; !holds(p); polls++) {
        if (atomic_load_explicit(&op->context->error, memory_order_relaxed)) return;
        atomic_store_explicit(&op->values.polls, polls + 1, memory_order_relaxed);
        if (polls < POLLS_BEFORE_YIELD) cpu_relax();
        else if (polls < POLLS_BEFORE_SLEEP) sched_yield();
        else nanosleep(&(struct timespec){0, SLEEP_NANOSECONDS}, NULL);
    }
}

const CUstreamBatchMemOpParams *values_list(const struct op *op) {
    return op->values.list ? op->values.list : &op->values.one;
}

bool values_wait(const struct op *op) {
    for (unsigned i = 0; i < op->values.count; i++)
        if (is_wait(&values_list(op)[i])) return true;
    return false;
}

CUresult values_execute(struct op *op) {
    for (unsigned i = 0; i < op->values.count; i++) {
        const CUstreamBatchMemOpParams *p = &values_list(op)[i];
        cpu_allocation allocation;
        if (!is_wait(p) && !is_write(p)) continue; /* operations of a stream see each other's writes */
        if (!cpu_memory_find(p->waitValue.address, &allocation))
            return fail(CUDA_ERROR_ILLEGAL_ADDRESS, "the memory at %#llx, for cuStream%sValue%d, has been freed",
                        (unsigned long long)p->waitValue.address, is_wait(p) ? "Wait" : "Write", bits(p));
        if (asked(cpu_shadow_tracks) && is_write(p)) cpu_shadow_set_written(p->writeValue.address, bits(p) / 8);
        if (asked(cpu_moment_now != NULL) && is_write(p)) moment_value_written(p->writeValue.address);
        if (is_wait(p)) wait(op, p);
        else if (bits(p) == 64) atomic_store((_Atomic uint64_t *)p->writeValue.address, p->writeValue.value64);
        else atomic_store((_Atomic uint32_t *)p->writeValue.address, p->writeValue.value);
        if (asked(cpu_moment_now != NULL) && is_wait(p)) moment_value_seen(p->waitValue.address);
    }
    return CUDA_SUCCESS;
}

/* ---- checks ---------------------------------------------------------------------------------------------------- */

static CUresult check_address(const CUstreamBatchMemOpParams *p) {
    cpu_allocation allocation;
    if ((!is_wait(p) && !is_write(p)) || cpu_memory_find(p->waitValue.address, &allocation)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE,
                "%#llx is not in memory that the device can reach: use device, managed, pinned or registered memory",
                (unsigned long long)p->waitValue.address);
}

static CUresult check(const CUstreamBatchMemOpParams *p) {
    unsigned flags = p->waitValue.flags, known = 0;
    switch ((int)p->operation) {
        case CU_STREAM_MEM_OP_BARRIER:
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_SUCCESS;
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64: known = WAIT_CONDITION | CU_STREAM_WAIT_VALUE_FLUSH; break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64: break; /* NO_MEMORY_BARRIER is for functions of before CUDA 12 */
        default:
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "%d is not a memory operation (CUstreamBatchMemOpType) that this device has: it has waits, "
                        "writes, barriers and flushes",
                        (int)p->operation);
    }
    if (flags & ~known) return fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of a stream memory operation", flags);
    if (p->waitValue.address % (unsigned)(bits(p) / 8))
        return fail(CUDA_ERROR_INVALID_VALUE, "the address %#llx is not aligned to %d bytes",
                    (unsigned long long)p->waitValue.address, bits(p) / 8);
    return CUDA_SUCCESS;
}

CUresult values_check_addresses(const struct op *op) {
    for (unsigned i = 0; i < op->values.count; i++) RETURN_IF(check_address(&values_list(op)[i]));
    return CUDA_SUCCESS;
}

bool values_are_alike(const struct op *a, const struct op *b) {
    bool alike = a->context == b->context && a->values.count == b->values.count;
    for (unsigned i = 0; alike && i < a->values.count; i++) {
        const CUstreamBatchMemOpParams *p = &values_list(a)[i], *q = &values_list(b)[i];
        alike = p->operation == q->operation;
        if (alike && is_wait(p)) alike = !((p->waitValue.flags ^ q->waitValue.flags) & CU_STREAM_WAIT_VALUE_FLUSH);
    }
    return alike;
}

CUresult values_new(CUcontext context, unsigned count, const CUstreamBatchMemOpParams *list, struct op **op) {
    if (count > BATCH_LIMIT)
        return fail(CUDA_ERROR_INVALID_VALUE, "a batch has at most %d operations, not %u", BATCH_LIMIT, count);
    if (count && !list) return fail_null("paramArray");
    for (unsigned i = 0; i < count; i++) RETURN_IF(check(&list[i]));
    struct op *made = op_new(OP_VALUES, context);
    if (made && count > 1 && !(made->values.list = malloc(count * sizeof *list))) {
        op_free(made);
        made = NULL;
    }
    if (!made) return no_memory("the operation");
    made->values.count = count;
    if (count) memcpy(made->values.list ? made->values.list : &made->values.one, list, count * sizeof *list);
    *op = made;
    return CUDA_SUCCESS;
}

/* ---- entry points ---------------------------------------------------------------------------------------------- */

static CUresult submit(CUstream stream, unsigned count, const CUstreamBatchMemOpParams *list) {
    struct op *op;
    RETURN_IF(values_new(stream->context, count, list, &op));
    CUresult status = stream_is_capturing(stream) ? CUDA_SUCCESS : values_check_addresses(op); /* graphs: at launch */
    if (!status) return stream_submit(stream, op);
    op_free(op);
    return status;
}

static CUresult submit_one(CUstream handle, CUstreamBatchMemOpType operation, CUdeviceptr address, uint64_t value,
                           unsigned flags) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    CUstreamBatchMemOpParams p = {
        .waitValue = {.operation = operation, .address = address, .value64 = value, .flags = flags}};
    return submit(stream, 1, &p);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    return submit_one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
    return submit_one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    return submit_one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
    return submit_one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

CUresult cuStreamBatchMemOp(CUstream handle, unsigned count, CUstreamBatchMemOpParams *batch, unsigned flags) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "the flags of cuStreamBatchMemOp must be 0, not %u", flags);
    return submit(stream, count, batch);
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
