/* Starting and ending NVML, its versions and the texts of its statuses ("Initialization and Cleanup", "System Queries").
 *
 * nvmlInit may be called again and again, each time matched by a nvmlShutdown. It starts no driver: only which devices
 * there are is settled. So a monitor may look at devices, fork, and look again in the child. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver/base/base.h"
#include "nvml/nvml.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned sessions;

static nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    (void)flags; /* whether there may be no device: there always is one */
    if (driver_choose_devices()) return NVML_ERROR_INVALID_ARGUMENT; /* the environment asks for what there is not */
    pthread_mutex_lock(&lock);
    sessions++;
    pthread_mutex_unlock(&lock);
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

static nvmlReturn_t nvmlShutdown(void) {
    pthread_mutex_lock(&lock);
    nvmlReturn_t status = sessions ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (sessions) sessions--;
    pthread_mutex_unlock(&lock);
    return status;
}

nvmlReturn_t nvml_enter(void) {
    return __atomic_load_n(&sessions, __ATOMIC_ACQUIRE) ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t nvml_text(char *target, unsigned size, const char *format, ...) {
    if (!target) return NVML_ERROR_INVALID_ARGUMENT;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if ((unsigned)length >= sizeof text) length = sizeof text - 1;
    if ((unsigned)length >= size) return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(target, text, (size_t)length + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t nvml_room(unsigned *count, unsigned found, const void *list) {
    unsigned room = *count;
    *count = found;
    if (room < found) return NVML_ERROR_INSUFFICIENT_SIZE;
    return found && !list ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

/* ---- texts ----------------------------------------------------------------------------------------------------- */

static const struct {
    nvmlReturn_t status;
    const char *text;
} texts[] = {
    {NVML_SUCCESS, "Success"},
    {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized"},
    {NVML_ERROR_NOT_FOUND, "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {NVML_ERROR_TIMEOUT, "Timeout"},
    {NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue"},
    {NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM"},
    {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    {NVML_ERROR_RESET_REQUIRED, "GPU requires restart"},
    {NVML_ERROR_OPERATING_SYSTEM, "The operating system has blocked the request."},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "RM has detected an NVML/RM version mismatch."},
    {NVML_ERROR_IN_USE, "In use by another client"},
    {NVML_ERROR_MEMORY, "Insufficient Memory"},
    {NVML_ERROR_NO_DATA, "No data"},
    {NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, "vGPU ECC not supported"},
    {NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient resources"},
    {NVML_ERROR_FREQ_NOT_SUPPORTED, "Requested frequency not supported"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Version mismatch in the argument"},
    {NVML_ERROR_DEPRECATED, "Deprecated"},
    {NVML_ERROR_NOT_READY, "System is not in ready state"},
    {NVML_ERROR_GPU_NOT_FOUND, "GPU not found"},
    {NVML_ERROR_INVALID_STATE, "Invalid state"},
};

static const char *nvmlErrorString(nvmlReturn_t status) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].status == status) return texts[i].text;
    return "Unknown Error";
}

/* ---- versions -------------------------------------------------------------------------------------------------- */

/* The first driver of each version of CUDA, newest first (CUDA Toolkit Release Notes, "CUDA Driver"). */
static const struct {
    int cuda;
    const char *driver;
} drivers[] = {
    {13010, "590.44.01"}, {13000, "580.65.06"}, {12090, "575.51.03"}, {12080, "570.26.00"},
    {12060, "560.28.03"}, {12050, "555.42.02"}, {12040, "550.54.14"}, {12030, "545.23.06"},
    {12020, "535.54.03"}, {12010, "530.30.02"}, {0, "525.60.13"},
};

/* The driver that the version of CUDA needs which the CPU device says it has. */
static const char *driver_version(int *cuda) {
    int version = 0;
    if (cuDriverGetVersion(&version)) version = CUDA_VERSION;
    if (cuda) *cuda = version;
    size_t i = 0;
    while (version < drivers[i].cuda) i++;
    return drivers[i].driver;
}

static nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
    nvmlReturn_t status = nvml_enter();
    return status ? status : nvml_text(version, length, "%s", driver_version(NULL));
}

/* Served without nvmlInit. */
static nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    int cuda;
    const char *driver = driver_version(&cuda);
    return nvml_text(version, length, "%d.%s", cuda / 1000, driver);
}

static nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    if (!version) return NVML_ERROR_INVALID_ARGUMENT;
    driver_version(version);
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }

static nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *info, unsigned length) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!info) return NVML_ERROR_INVALID_ARGUMENT;
    NVML_VERSIONED(info, nvmlSystemDriverBranchInfo_v1);
    unsigned room = length < sizeof info->branch ? length : (unsigned)sizeof info->branch;
    return nvml_text(info->branch, room, "r%.3s_00", driver_version(NULL));
}

/* The program of a process, as the kernel knows it. */
static nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!name || !length) return NVML_ERROR_INVALID_ARGUMENT;
    char path[64], program[4096];
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t size = readlink(path, program, sizeof program - 1);
    if (size < 0) return NVML_ERROR_NOT_FOUND;
    program[size] = 0;
    snprintf(name, length, "%s", program); /* NVML cuts it off, too */
    return NVML_SUCCESS;
}

const struct nvml_entry nvml_session_entries[] = {
    NVML_ENTRY(nvmlInit_v2),
    NVML_ENTRY(nvmlInitWithFlags),
    NVML_ENTRY(nvmlShutdown),
    NVML_ENTRY(nvmlErrorString),
    NVML_ENTRY(nvmlSystemGetDriverVersion),
    NVML_ENTRY(nvmlSystemGetNVMLVersion),
    NVML_ENTRY(nvmlSystemGetCudaDriverVersion),
    NVML_ENTRY(nvmlSystemGetCudaDriverVersion_v2),
    NVML_ENTRY(nvmlSystemGetDriverBranch),
    NVML_ENTRY(nvmlSystemGetProcessName),
    {NULL, NULL},
};
