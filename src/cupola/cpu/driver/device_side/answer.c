/* Which function carries out which call of the device runtime. */
#include "engine/above.h"
#include "grid.h"

static const struct {
    uint64_t (*answer)(cpu_question *question);
    uint32_t words;
} answers[CPU_DEVICE_FUNCTIONS] = {
    [CPU_DEVICE_GRAPH_LAUNCH] = {answer_GraphLaunch, 2},
    [CPU_DEVICE_GET_PARAMETER_BUFFER] = {answer_GetParameterBuffer, 2},
    [CPU_DEVICE_GET_PARAMETER_BUFFER_V2] = {answer_GetParameterBufferV2, 8},
    [CPU_DEVICE_LAUNCH_DEVICE] = {answer_LaunchDevice, 10},
    [CPU_DEVICE_LAUNCH_DEVICE_V2] = {answer_LaunchDeviceV2, 2},
    [CPU_DEVICE_GET_LAST_ERROR] = {answer_GetLastError, 0},
    [CPU_DEVICE_PEEK_AT_LAST_ERROR] = {answer_PeekAtLastError, 0},
    [CPU_DEVICE_GET_ERROR_STRING] = {answer_GetErrorString, 1},
    [CPU_DEVICE_GET_ERROR_NAME] = {answer_GetErrorName, 1},
    [CPU_DEVICE_STREAM_CREATE_WITH_FLAGS] = {answer_StreamCreateWithFlags, 2},
    [CPU_DEVICE_STREAM_DESTROY] = {answer_StreamDestroy, 1},
    [CPU_DEVICE_STREAM_WAIT_EVENT] = {answer_StreamWaitEvent, 3},
    [CPU_DEVICE_EVENT_CREATE_WITH_FLAGS] = {answer_EventCreateWithFlags, 2},
    [CPU_DEVICE_EVENT_RECORD] = {answer_EventRecord, 2},
    [CPU_DEVICE_EVENT_RECORD_WITH_FLAGS] = {answer_EventRecordWithFlags, 3},
    [CPU_DEVICE_EVENT_DESTROY] = {answer_EventDestroy, 1},
    [CPU_DEVICE_MALLOC] = {answer_Malloc, 2},
    [CPU_DEVICE_FREE] = {answer_Free, 1},
    [CPU_DEVICE_MEMCPY_ASYNC] = {answer_MemcpyAsync, 5},
    [CPU_DEVICE_MEMCPY2D_ASYNC] = {answer_Memcpy2DAsync, 8},
    [CPU_DEVICE_MEMCPY3D_ASYNC] = {answer_Memcpy3DAsync, 2},
    [CPU_DEVICE_MEMSET_ASYNC] = {answer_MemsetAsync, 4},
    [CPU_DEVICE_MEMSET2D_ASYNC] = {answer_Memset2DAsync, 6},
    [CPU_DEVICE_MEMSET3D_ASYNC] = {answer_Memset3DAsync, 9},
    [CPU_DEVICE_DEVICE_GET_ATTRIBUTE] = {answer_DeviceGetAttribute, 3},
    [CPU_DEVICE_DEVICE_GET_LIMIT] = {answer_DeviceGetLimit, 2},
    [CPU_DEVICE_DEVICE_GET_CACHE_CONFIG] = {answer_DeviceGetCacheConfig, 1},
    [CPU_DEVICE_DEVICE_GET_SHARED_MEM_CONFIG] = {answer_DeviceGetSharedMemConfig, 1},
    [CPU_DEVICE_GET_DEVICE] = {answer_GetDevice, 1},
    [CPU_DEVICE_GET_DEVICE_COUNT] = {answer_GetDeviceCount, 1},
    [CPU_DEVICE_RUNTIME_GET_VERSION] = {answer_RuntimeGetVersion, 1},
    [CPU_DEVICE_FUNC_GET_ATTRIBUTES] = {answer_FuncGetAttributes, 2},
    [CPU_DEVICE_OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_MULTIPROCESSOR] = {answer_OccupancyMaxActiveBlocksPerMultiprocessor, 4},
    [CPU_DEVICE_OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_MULTIPROCESSOR_WITH_FLAGS] =
        {answer_OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 5},
};

uint32_t cpu_driver_words(uint32_t function) { return answers[function].words; }

uint64_t cpu_driver_answer(uint32_t function, cpu_question *question) { return answers[function].answer(question); }
