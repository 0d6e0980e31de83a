/* What kernels ask about: errors, the device, limits, functions. */
#include <pthread.h>
#include <string.h>

#include "above.h"
#include "engine/memory/memory.h"
#include "grid.h"

/* ---- errors ------------------------------------------------------------------------------------------------------ */

ANSWER(GetLastError) { return grid_last_error(question, true); }
ANSWER(PeekAtLastError) { return grid_last_error(question, false); }

/* Texts lie in memory that kernels can read, each from the first time that it is asked for on. */
enum { MOST_TEXTS = 512 };

static uint64_t in_memory(const char *text) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        const char *text;
        uint64_t address;
    } known[MOST_TEXTS];
    static size_t count;
    uint64_t address = 0, room;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && !address; i++)
        if (known[i].text == text) address = known[i].address;
    if (!address && count < MOST_TEXTS &&
        cpu_memory_obtain(CPU_MEMORY_HOST, CPU_MEMORY_MODULE, strlen(text) + 1, NULL, &address, &room) ==
            CPU_MEMORY_OK) {
        memcpy((void *)address, text, strlen(text) + 1);
        known[count].text = text;
        known[count++].address = address;
    }
    pthread_mutex_unlock(&lock);
    return address;
}

ANSWER(GetErrorName) {
    const char *name, *text;
    runtime_error_texts((int)question->words[0], &name, &text);
    return in_memory(name);
}

ANSWER(GetErrorString) {
    const char *name, *text;
    runtime_error_texts((int)question->words[0], &name, &text);
    return in_memory(text);
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

static CUcontext context_of(const cpu_question *question) { return grid_of(question)->op->context; }

/* Store what was asked for, at the address that is the first argument. */
static uint64_t give(cpu_question *question, const void *value, size_t size) {
    cpu_question_write(question, question->words[0], value, size);
    return cudaSuccess;
}

static uint64_t give_int(cpu_question *question, int value) { return give(question, &value, sizeof value); }

/* Whatever device is named, it is the kernel's own that an H200 tells of. */
ANSWER(DeviceGetAttribute) {
    int attribute = (int)question->words[1];
    if ((int)question->words[2] < 0) return grid_error(question, cudaErrorInvalidDevice);
    if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return grid_error(question, cudaErrorInvalidValue);
    return give_int(question, device_attribute(context_of(question)->device, (CUdevice_attribute)attribute));
}

ANSWER(DeviceGetLimit) {
    unsigned limit = (unsigned)question->words[1];
    if (limit >= CU_LIMIT_MAX) return grid_error(question, cudaErrorInvalidValue);
    if (!context_has_limit(context_of(question), (CUlimit)limit) || limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH)
        return grid_error(question, cudaErrorUnsupportedLimit);
    size_t value = context_of(question)->limits[limit];
    return give(question, &value, sizeof value);
}

ANSWER(DeviceGetCacheConfig) { return give_int(question, (int)context_of(question)->cache_config); }
ANSWER(DeviceGetSharedMemConfig) { return give_int(question, (int)context_of(question)->shared_config); }
ANSWER(GetDevice) { return give_int(question, context_of(question)->device->ordinal); }
ANSWER(GetDeviceCount) { return give_int(question, device_count); }
ANSWER(RuntimeGetVersion) { return give_int(question, 6000); } /* the same for all releases so far */

/* ---- functions --------------------------------------------------------------------------------------------------- */

ANSWER(FuncGetAttributes) {
    /* The device runtime knows the members that the structure had at first. */
    enum { GIVEN = offsetof(struct cudaFuncAttributes, cacheModeCA) };
    struct cudaFuncAttributes attributes;
    CUfunction function = kernel_at(question, question->words[1]);
    if (!function) return grid_error(question, cudaErrorInvalidValue);
    CUresult status = runtime_function_attributes(&attributes, function, function_get_attribute);
    return status ? grid_error(question, (cudaError_t)status) : give(question, &attributes, GIVEN);
}

ANSWER(OccupancyMaxActiveBlocksPerMultiprocessor) {
    const uint64_t *words = question->words;
    CUfunction function = kernel_at(question, words[1]);
    if (!function || (int)words[2] < 1) return grid_error(question, cudaErrorInvalidValue);
    return give_int(question, occupancy_blocks(function, (int)words[2], words[3]));
}

ANSWER(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags) {
    if ((unsigned)question->words[4] & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return grid_error(question, cudaErrorInvalidValue);
    return answer_OccupancyMaxActiveBlocksPerMultiprocessor(question);
}
