/* What happens to the process that is checkpointed. All of it is done by the one thread of service.c. */
#include <stdlib.h>
#include <time.h>

#include "checkpoint.h"
#include "engine/fault/fault.h"
#include "engine/memory/absence.h"
#include "engine/memory/usage.h"

static CUprocessState state = CU_PROCESS_STATE_RUNNING;

static CUresult require(CUprocessState wanted, const char *what) {
    static const char *const names[] = {"running", "locked", "checkpointed", "in a failed state"};
    if (state == wanted) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_ILLEGAL_STATE, "only a process that is %s can be %s; this one is %s", names[wanted], what,
                names[state]);
}

/* ---- lock ------------------------------------------------------------------------------------------------------- */

struct rest {
    bool busy;
    CUresult error;
};

static void look_at(void *object, void *data) {
    CUcontext context = object;
    struct rest *rest = data;
    if (!context->active) return;
    size_t count;
    CUstream *streams = context_streams(context, &count);
    if (count && !streams) rest->busy = true; /* no memory for the list: look again */
    for (size_t i = 0; streams && i < count; i++) {
        if (stream_is_busy(streams[i])) rest->busy = true;
        stream_release(streams[i]);
    }
    free(streams);
    if (context->error) rest->error = (CUresult)context->error;
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL); }

/* The gate is closed first, so only calls that are past the gate can still queue work. A second look, a little later,
 * finds what they have queued meanwhile. */
static CUresult lock(uint32_t timeout, bool (*given_up)(void *data), void *data) {
    RETURN_IF(require(CU_PROCESS_STATE_RUNNING, "locked"));
    uint64_t end = clock_now() + (uint64_t)timeout * 1000000;
    CUresult status = CUDA_SUCCESS;
    gate_close();
    for (int quiet = 0; quiet < 2;) {
        struct rest rest = {0};
        handle_each(HANDLE_CONTEXT, look_at, &rest);
        quiet = rest.busy ? 0 : quiet + 1;
        if (rest.error)
            status = fail(rest.error, "a kernel or copy of the process has failed: it cannot be checkpointed");
        else if (rest.busy && timeout && clock_now() >= end)
            status =
                fail(CUDA_ERROR_NOT_READY, "the process still had work on a device after %u ms, and goes on", timeout);
        else if (given_up(data)) status = CUDA_ERROR_NOT_READY; /* no explanation: the other side has gone */
        if (status) {
            gate_open();
            return status;
        }
        nap();
    }
    state = CU_PROCESS_STATE_LOCKED;
    return CUDA_SUCCESS;
}

static CUresult unlock(void) {
    RETURN_IF(require(CU_PROCESS_STATE_LOCKED, "unlocked"));
    state = CU_PROCESS_STATE_RUNNING;
    gate_open();
    return CUDA_SUCCESS;
}

/* ---- checkpoint, restore ---------------------------------------------------------------------------------------- */

static void note_managed(const cpu_allocation *allocation, void *data) {
    if (allocation->kind == CPU_MEMORY_MANAGED) *(bool *)data = true;
}

static void note_imported(void *pool, void *data) {
    if (((CUmemoryPool)pool)->is_imported) *(bool *)data = true;
}

static bool has_imports(void) {
    bool found = ipc_memory_has_imports() || virtual_memory_has_imports();
    handle_each(HANDLE_POOL, note_imported, &found);
    return found;
}

/* Of a process with memory of other ones, an H200 makes a checkpoint, but cannot restore it: the process is lost. So it is
 * refused here. Memory that others have opened comes back to them, too, and events of others do not matter. */
static CUresult checkpoint(void) {
    RETURN_IF(require(CU_PROCESS_STATE_LOCKED, "checkpointed"));
    bool managed = false;
    cpu_memory_each(note_managed, &managed);
    if (managed)
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "the process has managed memory (cuMemAllocManaged), with which no process can be checkpointed");
    if (has_imports())
        return fail(CUDA_ERROR_NOT_SUPPORTED, "the process has opened or imported memory of another one, with which no "
                                              "process can be restored: close it first");
    cpu_guard_start();
    cpu_memory_leave();
    state = CU_PROCESS_STATE_CHECKPOINTED;
    return CUDA_SUCCESS;
}

static int place_of(const CUuuid *uuid) {
    for (int i = 0; i < devices_present; i++) {
        CUuuid known;
        device_uuid(i, &known);
        if (!memcmp(&known, uuid, sizeof known)) return i;
    }
    return -1;
}

/* Where each device is to be: the pairs must name every device once as an old one, and once as a new one. */
static CUresult read_pairs(const struct checkpoint_request *request, int *places) {
    bool taken[MAX_DEVICES] = {0}, given[MAX_DEVICES] = {0};
    for (int i = 0; i < device_count; i++) places[i] = cpu_usage_place(i);
    for (uint32_t n = 0; n < request->pair_count; n++) {
        int old = place_of(&request->pairs[n].oldUuid), new = place_of(&request->pairs[n].newUuid);
        if (old < 0 || new < 0)
            return fail(CUDA_ERROR_INVALID_VALUE, "the %s UUID of pair %u is not that of a device of the process",
                        old < 0 ? "old" : "new", n);
        if (taken[old] || given[new])
            return fail(CUDA_ERROR_INVALID_VALUE, "the %s UUID of pair %u is in an earlier pair, too",
                        taken[old] ? "old" : "new", n);
        taken[old] = given[new] = true;
        for (int i = 0; i < device_count; i++)
            if (cpu_usage_place(i) == old) places[i] = new;
    }
    for (int i = 0; i < devices_present && request->pair_count; i++)
        if (!taken[i])
            return fail(CUDA_ERROR_INVALID_VALUE, "%u of the %d devices are in the pairs; all have to be",
                        request->pair_count, devices_present);
    return CUDA_SUCCESS;
}

static CUresult restore(const struct checkpoint_request *request) {
    int places[MAX_DEVICES];
    RETURN_IF(require(CU_PROCESS_STATE_CHECKPOINTED, "restored"));
    RETURN_IF(read_pairs(request, places));
    if (cpu_memory_return(places, device_count)) {
        state = CU_PROCESS_STATE_FAILED;
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "the system did not give the process its device memory back");
    }
    state = CU_PROCESS_STATE_LOCKED;
    return CUDA_SUCCESS;
}

CUresult checkpoint_carry_out(const struct checkpoint_request *request, int32_t *value, bool (*given_up)(void *data),
                              void *data) {
    switch (request->call) {
        case GET_STATE: *value = (int32_t)state; return CUDA_SUCCESS;
        case LOCK: return lock(request->timeout, given_up, data);
        case CHECKPOINT: return checkpoint();
        case RESTORE: return restore(request);
        case UNLOCK: return unlock();
        default: return fail(CUDA_ERROR_NOT_SUPPORTED, "request %u is not known", request->call);
    }
}
