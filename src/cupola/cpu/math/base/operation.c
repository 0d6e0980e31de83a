/* Calls of the math libraries as operations of streams. */
#include "math.h"
#include "engine/checks/moments.h"
#include "engine/memory/shadow.h"

#include <stdio.h>

CUresult math_stream(cudaStream_t handle, CUstream *stream) {
    RETURN_IF(enter_runtime());
    return enter_stream((CUstream)handle, stream);
}

CUresult math_submit(CUstream stream, struct call *call, bool wait) {
    if (wait && stream_is_capturing(stream)) {
        call_release(call);
        return capture_refuse(stream, "a result in host memory");
    }
    struct op *op = op_new_call(stream->context, call);
    if (!op) return no_memory("a stream's work");
    return wait ? stream_submit_and_wait(stream, op) : stream_submit(stream, op);
}

void (*_Atomic math_report)(const char *text);

void math_explain(int status, const char *format, va_list arguments) {
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    fail((CUresult)status, "%s", text);
    void (*tell)(const char *) = math_report;
    if (tell) tell(text);
}

int math_status(CUresult status, int without_memory, int not_initialized, int failed) {
    if (likely(!status)) return 0;
    int own = status == CUDA_ERROR_OUT_OF_MEMORY     ? without_memory
              : status == CUDA_ERROR_NOT_INITIALIZED ? not_initialized
                                                     : failed;
    thread_state.failed = (CUresult)own;
    return own;
}

CUresult math_touch(const char *function, const char *what, const void *address, size_t bytes) {
    /* Memory that the host has registered counts; what only the host knows would be no address of a GPU. */
    if (likely(memory_check((uint64_t)address, bytes, RANGE_RUNNING, what, NULL) == CUDA_SUCCESS)) {
        uint64_t low = (uint64_t)address, high = low + bytes;
        if (low < call_range.low) call_range.low = low;
        if (high > call_range.high) call_range.high = high;
        if (asked(cpu_shadow_tracks)) cpu_shadow_set_written(low, bytes); /* perhaps; it is not known what it does */
        if (unlikely(cpu_touch_now != NULL)) cpu_touch_range(cpu_touch_now, low, bytes, CPU_TOUCH_READ); /* at least */
        return CUDA_SUCCESS;
    }
    char role[96];
    snprintf(role, sizeof role, "%s of %s", what, function);
    memory_check((uint64_t)address, bytes, RANGE_RUNNING, role, NULL); /* the same again, for the explanation */
    thread_state.failed = CUDA_ERROR_ILLEGAL_ADDRESS;
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}
