/* Clocks, temperatures, power and modes: constants of the model, as an H200 at rest told them. What a GPU of this kind does
 * not have (fans, a display, automatic boost) is not supported here either. */
#include "driver/base/base.h"
#include "nvml/nvml.h"

/* ---- clocks ---------------------------------------------------------------------------------------------------- */

static unsigned kernel_clock(int ordinal) { return (unsigned)devices[ordinal].model->clock / 1000; }
static unsigned memory_clock(int ordinal) { return (unsigned)devices[ordinal].model->memory_clock / 1000; }

/* Whether a kernel of any process ran during the last second. */
static bool is_busy(int ordinal) {
    struct nvml_census census;
    nvml_census(ordinal, &census);
    for (unsigned i = 0; i < census.count; i++)
        if (census.processes[i].kernels) return true;
    return false;
}

static nvmlReturn_t highest_clock(int ordinal, nvmlClockType_t type, unsigned *clock) {
    switch (type) {
        case NVML_CLOCK_GRAPHICS:
        case NVML_CLOCK_SM: *clock = kernel_clock(ordinal); return NVML_SUCCESS;
        case NVML_CLOCK_MEM: *clock = memory_clock(ordinal); return NVML_SUCCESS;
        case NVML_CLOCK_VIDEO: *clock = board_of(ordinal)->video_clocks[1]; return NVML_SUCCESS;
        default: return NVML_ERROR_INVALID_ARGUMENT;
    }
}

static nvmlReturn_t lowest_clock(int ordinal, nvmlClockType_t type, unsigned *clock) {
    switch (type) {
        case NVML_CLOCK_GRAPHICS:
        case NVML_CLOCK_SM: *clock = board_of(ordinal)->idle_clock; return NVML_SUCCESS;
        case NVML_CLOCK_MEM: *clock = memory_clock(ordinal); return NVML_SUCCESS;
        case NVML_CLOCK_VIDEO: *clock = board_of(ordinal)->video_clocks[0]; return NVML_SUCCESS;
        default: return NVML_ERROR_INVALID_ARGUMENT;
    }
}

static nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *clock) {
    NVML_DEVICE(device, ordinal, clock);
    return highest_clock(ordinal, type, clock);
}

static nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *clock) {
    NVML_DEVICE(device, ordinal, clock);
    return is_busy(ordinal) ? highest_clock(ordinal, type, clock) : lowest_clock(ordinal, type, clock);
}

/* Only the clocks of kernels can be set and boosted, but nothing does that here. */
static nvmlReturn_t settable_clock(int ordinal, nvmlClockType_t type, unsigned *clock, bool with_memory) {
    nvmlReturn_t status = highest_clock(ordinal, type, clock);
    if (status) return status;
    bool has = type == NVML_CLOCK_GRAPHICS || type == NVML_CLOCK_SM || (with_memory && type == NVML_CLOCK_MEM);
    return has ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t type, unsigned *clock) {
    NVML_DEVICE(device, ordinal, clock);
    return settable_clock(ordinal, type, clock, false);
}

static nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned *clock) {
    NVML_DEVICE(device, ordinal, clock);
    return settable_clock(ordinal, type, clock, true);
}

static nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned *clock) {
    return nvmlDeviceGetApplicationsClock(device, type, clock);
}

static nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned *clock) {
    switch (id) {
        case NVML_CLOCK_ID_CURRENT: return nvmlDeviceGetClockInfo(device, type, clock);
        case NVML_CLOCK_ID_APP_CLOCK_TARGET:
        case NVML_CLOCK_ID_APP_CLOCK_DEFAULT: return nvmlDeviceGetApplicationsClock(device, type, clock);
        case NVML_CLOCK_ID_CUSTOMER_BOOST_MAX: return nvmlDeviceGetMaxCustomerBoostClock(device, type, clock);
        default: return NVML_ERROR_INVALID_ARGUMENT;
    }
}

/* There is one performance state. An H200 calls the others unknown. */
static nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, nvmlClockType_t type, nvmlPstates_t state,
                                                     unsigned *lowest, unsigned *highest) {
    NVML_DEVICE(device, ordinal, lowest && highest ? lowest : NULL);
    if ((unsigned)state > NVML_PSTATE_15) return NVML_ERROR_INVALID_ARGUMENT;
    if (state != NVML_PSTATE_0) return NVML_ERROR_UNKNOWN;
    nvmlReturn_t status = lowest_clock(ordinal, type, lowest);
    return status ? status : highest_clock(ordinal, type, highest);
}

static nvmlReturn_t nvmlDeviceGetClockOffsets(nvmlDevice_t device, nvmlClockOffset_t *offset) {
    NVML_DEVICE(device, ordinal, offset);
    (void)ordinal;
    NVML_VERSIONED(offset, nvmlClockOffset_v1);
    if (offset->type != NVML_CLOCK_GRAPHICS && offset->type != NVML_CLOCK_MEM) return NVML_ERROR_INVALID_ARGUMENT;
    offset->clockOffsetMHz = offset->minClockOffsetMHz = offset->maxClockOffsetMHz = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned *count, unsigned *clocks) {
    NVML_DEVICE(device, ordinal, count);
    nvmlReturn_t status = nvml_room(count, 1, clocks);
    if (!status) clocks[0] = memory_clock(ordinal);
    return status;
}

static nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned memory, unsigned *count,
                                                         unsigned *clocks) {
    NVML_DEVICE(device, ordinal, count);
    if (memory != memory_clock(ordinal)) return NVML_ERROR_NOT_FOUND;
    enum { STEP = 15 }; /* MHz */
    unsigned lowest = board_of(ordinal)->idle_clock, highest = kernel_clock(ordinal);
    unsigned found = (highest - lowest) / STEP + 1;
    nvmlReturn_t status = nvml_room(count, found, clocks);
    for (unsigned i = 0; !status && i < found; i++) clocks[i] = highest - STEP * i;
    return status;
}

static nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons) {
    NVML_DEVICE(device, ordinal, reasons);
    *reasons = is_busy(ordinal) ? 0 : nvmlClocksEventReasonGpuIdle;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons) {
    NVML_DEVICE(device, ordinal, reasons);
    (void)ordinal;
    *reasons = 0x1ff;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state) {
    NVML_DEVICE(device, ordinal, state);
    (void)ordinal;
    *state = NVML_PSTATE_0;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t device, nvmlPstates_t *states, unsigned size) {
    NVML_DEVICE(device, ordinal, states);
    (void)ordinal;
    size_t room = size / sizeof *states;
    if (!room) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (size_t i = 0; i < room; i++) states[i] = i ? NVML_PSTATE_UNKNOWN : NVML_PSTATE_0;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t device, nvmlGpuDynamicPstatesInfo_t *info) {
    NVML_DEVICE(device, ordinal, info);
    (void)ordinal;
    *info = (nvmlGpuDynamicPstatesInfo_t){0}; /* no domain decides */
    return NVML_SUCCESS;
}

/* ---- temperatures ---------------------------------------------------------------------------------------------- */

static nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned *degrees) {
    NVML_DEVICE(device, ordinal, degrees);
    (void)ordinal;
    if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    *degrees = BOARD_TEMPERATURE;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature) {
    NVML_DEVICE(device, ordinal, temperature);
    (void)ordinal;
    NVML_VERSIONED(temperature, nvmlTemperature_v1);
    if (temperature->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    temperature->temperature = BOARD_TEMPERATURE;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t threshold,
                                                      unsigned *degrees) {
    static const unsigned thresholds[NVML_TEMPERATURE_THRESHOLD_COUNT] = {
        [NVML_TEMPERATURE_THRESHOLD_SHUTDOWN] = BOARD_SHUTDOWN,
        [NVML_TEMPERATURE_THRESHOLD_SLOWDOWN] = BOARD_SLOWDOWN,
        [NVML_TEMPERATURE_THRESHOLD_MEM_MAX] = BOARD_MEMORY_MAX,
        [NVML_TEMPERATURE_THRESHOLD_GPU_MAX] = BOARD_GPU_MAX,
    };
    NVML_DEVICE(device, ordinal, degrees);
    (void)ordinal;
    if ((unsigned)threshold >= NVML_TEMPERATURE_THRESHOLD_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    if (!thresholds[threshold]) return NVML_ERROR_NOT_SUPPORTED;
    *degrees = thresholds[threshold];
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_t *margin) {
    NVML_DEVICE(device, ordinal, margin);
    (void)ordinal;
    NVML_VERSIONED(margin, nvmlMarginTemperature_v1);
    margin->marginTemperature = BOARD_GPU_MAX - BOARD_TEMPERATURE;
    return NVML_SUCCESS;
}

/* As on an H200, each target is answered with the sensor of the GPU. */
static nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t device, unsigned target,
                                                 nvmlGpuThermalSettings_t *settings) {
    NVML_DEVICE(device, ordinal, settings);
    (void)ordinal, (void)target;
    *settings = (nvmlGpuThermalSettings_t){.count = 1};
    settings->sensor[0].controller = NVML_THERMAL_CONTROLLER_GPU_INTERNAL;
    settings->sensor[0].target = NVML_THERMAL_TARGET_GPU;
    settings->sensor[0].defaultMaxTemp = 127;
    settings->sensor[0].currentTemp = BOARD_TEMPERATURE;
    return NVML_SUCCESS;
}

/* ---- power ----------------------------------------------------------------------------------------------------- */

static nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned *least, unsigned *most) {
    NVML_DEVICE(device, ordinal, least && most ? least : NULL);
    *least = board_of(ordinal)->least_power, *most = board_of(ordinal)->power_limit;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy) {
    NVML_DEVICE(device, ordinal, energy);
    *energy = board_energy(ordinal);
    return NVML_SUCCESS;
}

/* ---- one number each ------------------------------------------------------------------------------------------- */

/* An entry point that answers with one number, which `value` computes for device `ordinal`. */
#define ANSWER(name, type, value)                                 \
    static nvmlReturn_t name(nvmlDevice_t device, type *answer) { \
        NVML_DEVICE(device, ordinal, answer);                     \
        (void)ordinal;                                            \
        *answer = (type)(value);                                  \
        return NVML_SUCCESS;                                      \
    }

ANSWER(nvmlDeviceGetPowerUsage, unsigned, board_of(ordinal)->idle_power)
ANSWER(nvmlDeviceGetPowerManagementLimit, unsigned, board_of(ordinal)->power_limit)
ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, board_of(ordinal)->power_limit)
ANSWER(nvmlDeviceGetEnforcedPowerLimit, unsigned, board_of(ordinal)->power_limit)
ANSWER(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
ANSWER(nvmlDeviceGetPowerState, nvmlPstates_t, NVML_PSTATE_0)
ANSWER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
ANSWER(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
ANSWER(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
ANSWER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, NVML_COMPUTEMODE_DEFAULT)
ANSWER(nvmlDeviceGetDefaultEccMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
ANSWER(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
ANSWER(nvmlDeviceGetNumFans, unsigned, 0)
ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, board_of(ordinal)->pci_generation)
ANSWER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, board_of(ordinal)->pci_generation)
ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, board_of(ordinal)->pci_generation)
ANSWER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, BOARD_PCI_WIDTH)
ANSWER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, BOARD_PCI_WIDTH)
ANSWER(nvmlDeviceGetPcieReplayCounter, unsigned, 0)
ANSWER(nvmlDeviceIsMigDeviceHandle, unsigned, 0)
ANSWER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0)

/* Nothing crosses PCI. */
static nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned *value) {
    NVML_DEVICE(device, ordinal, value);
    (void)ordinal;
    if ((unsigned)counter >= NVML_PCIE_UTIL_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    *value = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
    NVML_DEVICE(device, ordinal, current && pending ? current : NULL);
    (void)ordinal;
    *current = *pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    NVML_DEVICE(device, ordinal, current && pending ? current : NULL);
    if (devices[ordinal].model->major < 8) return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = NVML_DEVICE_MIG_DISABLE;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device, nvmlC2cModeInfo_v1_t *info) {
    NVML_DEVICE(device, ordinal, info);
    (void)ordinal;
    info->isC2cEnabled = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode) {
    NVML_DEVICE(device, ordinal, mode);
    (void)ordinal;
    NVML_VERSIONED(mode, nvmlDeviceAddressingMode_v1);
    mode->value = NVML_DEVICE_ADDRESSING_MODE_NONE;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t *status) {
    NVML_DEVICE(device, ordinal, status);
    (void)ordinal;
    NVML_VERSIONED(status, nvmlRepairStatus_v1);
    status->bChannelRepairPending = status->bTpcRepairPending = 0;
    return NVML_SUCCESS;
}

const struct nvml_entry nvml_state_entries[] = {
    NVML_ENTRY(nvmlDeviceGetMaxClockInfo),
    NVML_ENTRY(nvmlDeviceGetClockInfo),
    NVML_ENTRY(nvmlDeviceGetMaxCustomerBoostClock),
    NVML_ENTRY(nvmlDeviceGetApplicationsClock),
    NVML_ENTRY(nvmlDeviceGetDefaultApplicationsClock),
    NVML_ENTRY(nvmlDeviceGetClock),
    NVML_ENTRY(nvmlDeviceGetMinMaxClockOfPState),
    NVML_ENTRY(nvmlDeviceGetClockOffsets),
    NVML_ENTRY(nvmlDeviceGetSupportedMemoryClocks),
    NVML_ENTRY(nvmlDeviceGetSupportedGraphicsClocks),
    NVML_ENTRY(nvmlDeviceGetCurrentClocksEventReasons),
    NVML_ENTRY(nvmlDeviceGetSupportedClocksEventReasons),
    NVML_ENTRY(nvmlDeviceGetPerformanceState),
    NVML_ENTRY(nvmlDeviceGetSupportedPerformanceStates),
    NVML_ENTRY(nvmlDeviceGetDynamicPstatesInfo),
    NVML_ENTRY(nvmlDeviceGetTemperature),
    NVML_ENTRY(nvmlDeviceGetTemperatureV),
    NVML_ENTRY(nvmlDeviceGetTemperatureThreshold),
    NVML_ENTRY(nvmlDeviceGetMarginTemperature),
    NVML_ENTRY(nvmlDeviceGetThermalSettings),
    NVML_ENTRY(nvmlDeviceGetPowerManagementLimitConstraints),
    NVML_ENTRY(nvmlDeviceGetTotalEnergyConsumption),
    NVML_ENTRY(nvmlDeviceGetPowerUsage),
    NVML_ENTRY(nvmlDeviceGetPowerManagementLimit),
    NVML_ENTRY(nvmlDeviceGetPowerManagementDefaultLimit),
    NVML_ENTRY(nvmlDeviceGetEnforcedPowerLimit),
    NVML_ENTRY(nvmlDeviceGetPowerManagementMode),
    NVML_ENTRY(nvmlDeviceGetPowerState),
    NVML_ENTRY(nvmlDeviceGetPersistenceMode),
    NVML_ENTRY(nvmlDeviceGetDisplayMode),
    NVML_ENTRY(nvmlDeviceGetDisplayActive),
    NVML_ENTRY(nvmlDeviceGetComputeMode),
    NVML_ENTRY(nvmlDeviceGetDefaultEccMode),
    NVML_ENTRY(nvmlDeviceGetMultiGpuBoard),
    NVML_ENTRY(nvmlDeviceGetNumFans),
    NVML_ENTRY(nvmlDeviceGetMaxPcieLinkGeneration),
    NVML_ENTRY(nvmlDeviceGetGpuMaxPcieLinkGeneration),
    NVML_ENTRY(nvmlDeviceGetCurrPcieLinkGeneration),
    NVML_ENTRY(nvmlDeviceGetMaxPcieLinkWidth),
    NVML_ENTRY(nvmlDeviceGetCurrPcieLinkWidth),
    NVML_ENTRY(nvmlDeviceGetPcieReplayCounter),
    NVML_ENTRY(nvmlDeviceIsMigDeviceHandle),
    NVML_ENTRY(nvmlDeviceGetMaxMigDeviceCount),
    NVML_ENTRY(nvmlDeviceGetPcieThroughput),
    NVML_ENTRY(nvmlDeviceGetEccMode),
    NVML_ENTRY(nvmlDeviceGetMigMode),
    NVML_ENTRY(nvmlDeviceGetC2cModeInfoV),
    NVML_ENTRY(nvmlDeviceGetAddressingMode),
    NVML_ENTRY(nvmlDeviceGetRepairStatus),
    {NULL, NULL},
};
