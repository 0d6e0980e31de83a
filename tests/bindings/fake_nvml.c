/* A libnvidia-ml.so.1 with one device, for what the generated code does with arrays, texts and records. */
#include <string.h>

#include "cupola/nvml.h"

static int processes = 3; /* one more at each query of their number */
static nvmlMarginTemperature_t margin;

nvmlReturn_t nvmlInit_v2(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t status) {
    return status == NVML_ERROR_NOT_FOUND       ? "Not Found"
           : status == NVML_ERROR_NOT_SUPPORTED ? "Not Supported"
                                                : "Other";
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    *device = (nvmlDevice_t)0x1234567890;
    return index ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    *device = (nvmlDevice_t)1;
    return strcmp(uuid, "GPU-1") ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    if (length < 96) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(name, device ? "Fake \xc3\xbc" : "none");
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    (void)device;
    if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = 1000, memory->used = 1;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *infos) {
    (void)device;
    unsigned int room = *count;
    *count = (unsigned)processes;
    if (room < *count) return processes += 2, NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++) infos[i] = (nvmlProcessInfo_t){.pid = 10 + i, .usedGpuMemory = i};
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                      nvmlProcessInfo_t *infos) {
    (void)device, (void)infos;
    *count = 0;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                        nvmlProcessInfo_t *infos) {
    (void)device, (void)infos;
    *count = *count + 1; /* never enough */
    return NVML_ERROR_INSUFFICIENT_SIZE;
}
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *clocks) {
    (void)device;
    unsigned int room = *count;
    *count = 2;
    if (room < 2) return NVML_ERROR_INSUFFICIENT_SIZE;
    clocks[0] = 2619, clocks[1] = 1593;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *list) {
    (void)device;
    unsigned int room = list->numProcArrayEntries;
    if (list->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    list->numProcArrayEntries = list->mode;
    if (room < list->mode) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < list->mode; i++) list->procArray[i].pid = 100 + i;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_t *info) {
    (void)device;
    margin = *info;
    info->marginTemperature = -7;
    return info->version == nvmlMarginTemperature_v1 ? NVML_SUCCESS : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}
nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t device, nvmlFanSpeedInfo_t *info) {
    (void)device;
    info->speed = info->fan * 100;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceSetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t type, int *temp) {
    (void)device, (void)type;
    return *temp == -5 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlDeviceSetClockOffsets(nvmlDevice_t device, nvmlClockOffset_t *info) {
    (void)device;
    if (info->version != nvmlClockOffset_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return info->clockOffsetMHz == 15 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    (void)device;
    for (int i = 0; i < count; i++) {
        values[i].value.ullVal = values[i].fieldId * 2;
        values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    }
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceSetHostname_v1(nvmlDevice_t device, nvmlHostname_v1_t *name) {
    (void)device;
    return strcmp(name->value, "gpu0") ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHostname_v1(nvmlDevice_t device, nvmlHostname_v1_t *name) {
    (void)device;
    strcpy(name->value, "host");
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceReadWritePRM_v1(nvmlDevice_t device, nvmlPRMTLV_v1_t *buffer) {
    (void)device;
    buffer->status = buffer->dataSize;
    memset(buffer->outData, 'x', 2);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlVgpuInstanceGetMetadata(nvmlVgpuInstance_t instance, nvmlVgpuMetadata_t *data, unsigned int *size) {
    unsigned int room = *size;
    *size = sizeof *data + 1000;
    if (room < *size) return NVML_ERROR_INSUFFICIENT_SIZE;
    memset(data, 0, *size);
    data->version = instance;
    data->opaqueDataSize = 1004;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPgpuMetadataString(nvmlDevice_t device, char *text, unsigned int *size) {
    (void)device;
    unsigned int room = *size;
    *size = 6;
    if (room < 6) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(text, "hello");
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlEventSetGetContextData_v1(nvmlEventSet_t set, nvmlEventSetGetContextData_v1_t *params) {
    (void)set;
    unsigned int room = params->dataSize;
    params->dataSize = params->index;
    if (!params->data || room < params->index) return params->index ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
    memset(params->data, 'd', params->index);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_t *request) {
    request->numEvent = 1;
    request->data[0].gpuId = request->dataSize;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t device, nvmlPstates_t *states, unsigned int size) {
    (void)device;
    for (unsigned i = 0; i < size / sizeof *states; i++) states[i] = i ? NVML_PSTATE_UNKNOWN : NVML_PSTATE_0;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    (void)device;
    *major = 9, *minor = 0;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length) {
    (void)device, (void)serial, (void)length;
    return NVML_ERROR_NOT_SUPPORTED;
}
