/* Field values ("Field Value Queries"): facts that NVML also serves by number, as an H200 has them. */
#include <time.h>

#include "driver/base/base.h"
#include "common/common.h"
#include "engine/memory/usage.h"
#include "nvml/nvml.h"

static nvmlReturn_t put_unsigned(nvmlFieldValue_t *field, unsigned value) {
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field->value.uiVal = value;
    return NVML_SUCCESS;
}

static nvmlReturn_t put_long(nvmlFieldValue_t *field, uint64_t value) {
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    field->value.ullVal = value;
    return NVML_SUCCESS;
}

static nvmlReturn_t put_signed(nvmlFieldValue_t *field, int value) {
    field->valueType = NVML_VALUE_TYPE_SIGNED_INT;
    field->value.siVal = value;
    return NVML_SUCCESS;
}

static nvmlReturn_t read_field(int ordinal, nvmlFieldValue_t *field) {
    const struct board *board = board_of(ordinal);
    switch (field->fieldId) {
        case NVML_FI_DEV_ECC_CURRENT:
        case NVML_FI_DEV_ECC_PENDING: return put_long(field, NVML_FEATURE_ENABLED);
        case NVML_FI_DEV_ECC_SBE_VOL_TOTAL:
        case NVML_FI_DEV_ECC_DBE_VOL_TOTAL:
        case NVML_FI_DEV_ECC_SBE_AGG_TOTAL:
        case NVML_FI_DEV_ECC_DBE_AGG_TOTAL:
        case NVML_FI_DEV_REMAPPED_COR:
        case NVML_FI_DEV_REMAPPED_UNC:
        case NVML_FI_DEV_REMAPPED_PENDING:
        case NVML_FI_DEV_REMAPPED_FAILURE: return put_long(field, 0); /* no error ever happens */
        case NVML_FI_DEV_MEMORY_TEMP: return put_unsigned(field, BOARD_TEMPERATURE);
        case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
        case NVML_FI_DEV_ENERGY: return put_long(field, board_energy(ordinal));
        case NVML_FI_DEV_PCIE_REPLAY_COUNTER:
        case NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER: return put_unsigned(field, 0);
        case NVML_FI_DEV_POWER_AVERAGE:
        case NVML_FI_DEV_POWER_INSTANT: return put_unsigned(field, board->idle_power);
        case NVML_FI_DEV_POWER_MIN_LIMIT: return put_unsigned(field, board->least_power);
        case NVML_FI_DEV_POWER_MAX_LIMIT:
        case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
        case NVML_FI_DEV_POWER_CURRENT_LIMIT:
        case NVML_FI_DEV_POWER_REQUESTED_LIMIT: return put_unsigned(field, board->power_limit);
        case NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT: return put_signed(field, BOARD_GPU_MAX - BOARD_SHUTDOWN);
        case NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT: return put_signed(field, BOARD_GPU_MAX - BOARD_SLOWDOWN);
        case NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT:
        case NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT: return put_signed(field, 0);
        case 0: return NVML_ERROR_INVALID_ARGUMENT;
        default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

/* The call succeeds whatever the fields are; each has a status of its own. */
static nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields) {
    NVML_DEVICE(device, ordinal, fields);
    if (count <= 0) return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        uint64_t begin = clock_now();
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        fields[i].nvmlReturn = read_field(ordinal, &fields[i]);
        fields[i].timestamp = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        fields[i].latencyUsec = (long long)(clock_now() - begin) / 1000;
    }
    return NVML_SUCCESS;
}

const struct nvml_entry nvml_field_entries[] = {
    NVML_ENTRY(nvmlDeviceGetFieldValues),
    {NULL, NULL},
};
