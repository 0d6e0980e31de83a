/* Which devices there are, and who they are ("Device Queries"). A handle is the address of a record of ours. */
#include <stdio.h>
#include <string.h>

#include "driver/base/base.h"
#include "nvml/nvml.h"

static char handles[MAX_DEVICES]; /* the n-th byte stands for device n */

nvmlDevice_t nvml_handle(int ordinal) { return (nvmlDevice_t)&handles[ordinal]; }

nvmlReturn_t nvml_device(nvmlDevice_t handle, int *ordinal) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    uintptr_t place = (uintptr_t)handle - (uintptr_t)handles;
    if (place >= (uintptr_t)devices_present) return NVML_ERROR_INVALID_ARGUMENT;
    *ordinal = (int)place;
    return nvml_presence(*ordinal);
}

nvmlReturn_t nvml_presence(int place) {
    int number = device_at(place);
    return number >= 0 && injected_loss(number) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

static const struct model *model_of(int ordinal) { return devices[ordinal].model; }

static unsigned bus_of(int ordinal) { return (unsigned)device_bus(ordinal); }

/* ---- finding --------------------------------------------------------------------------------------------------- */

static nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    *count = (unsigned)devices_present;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!device || index >= (unsigned)devices_present) return NVML_ERROR_INVALID_ARGUMENT;
    *device = nvml_handle((int)index);
    return nvml_presence((int)index);
}

static nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!uuid || !device) return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < devices_present; i++) {
        char text[UUID_TEXT];
        device_uuid_text(i, text);
        if (strcmp(text, uuid)) continue;
        *device = nvml_handle(i);
        return nvml_presence(i);
    }
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *text, nvmlDevice_t *device) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!text || !device) return NVML_ERROR_INVALID_ARGUMENT;
    int found = device_by_pci_bus_id(text);
    if (found == NO_PCI_BUS_ID) return NVML_ERROR_INVALID_ARGUMENT;
    if (found == NO_DEVICE) return NVML_ERROR_NOT_FOUND;
    *device = nvml_handle(found);
    return nvml_presence(found);
}

static nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
    NVML_DEVICE(device, ordinal, index);
    *index = (unsigned)ordinal;
    return NVML_SUCCESS;
}

/* ---- identity -------------------------------------------------------------------------------------------------- */

/* As on a GPU, a buffer without room for the text is an invalid argument here. */
static nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    NVML_DEVICE(device, ordinal, name);
    return length ? nvml_text(name, length, "%s", model_of(ordinal)->name) : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    NVML_DEVICE(device, ordinal, uuid);
    char text[UUID_TEXT];
    device_uuid_text(ordinal, text);
    return nvml_text(uuid, length, "%s", text);
}

static nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned length) {
    NVML_DEVICE(device, ordinal, serial);
    return nvml_text(serial, length, "%013d", ordinal);
}

static nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char *number, unsigned length) {
    NVML_DEVICE(device, ordinal, number);
    return nvml_text(number, length, "cupola-%s", model_of(ordinal)->key);
}

static nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned length) {
    NVML_DEVICE(device, ordinal, version);
    return nvml_text(version, length, "96.00.A5.00.1A");
}

static nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *brand) {
    NVML_DEVICE(device, ordinal, brand);
    *brand = NVML_BRAND_NVIDIA;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *architecture) {
    NVML_DEVICE(device, ordinal, architecture);
    *architecture = board_of(ordinal)->architecture;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    NVML_DEVICE(device, ordinal, major && minor ? major : NULL);
    *major = model_of(ordinal)->major, *minor = model_of(ordinal)->minor;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *number) {
    NVML_DEVICE(device, ordinal, number);
    *number = (unsigned)ordinal;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned *number) {
    NVML_DEVICE(device, ordinal, number);
    *number = (unsigned)ordinal;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned *number) {
    NVML_DEVICE(device, ordinal, number);
    *number = bus_of(ordinal) << 8;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned *cores) {
    NVML_DEVICE(device, ordinal, cores);
    *cores = (unsigned)model_of(ordinal)->multiprocessors * board_of(ordinal)->cores;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned *bits) {
    NVML_DEVICE(device, ordinal, bits);
    *bits = (unsigned)model_of(ordinal)->memory_bus;
    return NVML_SUCCESS;
}

/* ---- PCI ------------------------------------------------------------------------------------------------------- */

static nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    NVML_DEVICE(device, ordinal, pci);
    unsigned bus = bus_of(ordinal);
    *pci = (nvmlPciInfo_t){.bus = bus, .pciDeviceId = board_of(ordinal)->pci_device_id};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", bus);
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", bus);
    return NVML_SUCCESS;
}

/* Programs of older NVMLs have no room for the newer bus id. */
static nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    nvmlPciInfo_t newer;
    NVML_DEVICE(device, ordinal, pci);
    (void)ordinal;
    nvmlReturn_t status = nvmlDeviceGetPciInfo_v3(device, &newer);
    if (!status) memcpy(pci, &newer, offsetof(nvmlPciInfo_t, busId));
    return status;
}

static nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci) {
    NVML_DEVICE(device, ordinal, pci);
    NVML_VERSIONED(pci, nvmlPciInfoExt_v1);
    unsigned bus = bus_of(ordinal);
    *pci = (nvmlPciInfoExt_t){
        .version = pci->version,
        .bus = bus,
        .pciDeviceId = board_of(ordinal)->pci_device_id,
        .baseClass = 3, /* a display controller, */
        .subClass = 2,  /* of the 3D kind */
    };
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", bus);
    return NVML_SUCCESS;
}

const struct nvml_entry nvml_device_entries[] = {
    NVML_ENTRY(nvmlDeviceGetCount_v2),
    NVML_ENTRY(nvmlDeviceGetHandleByIndex_v2),
    NVML_ENTRY(nvmlDeviceGetHandleByUUID),
    NVML_ENTRY(nvmlDeviceGetHandleByPciBusId_v2),
    NVML_ENTRY(nvmlDeviceGetIndex),
    NVML_ENTRY(nvmlDeviceGetName),
    NVML_ENTRY(nvmlDeviceGetUUID),
    NVML_ENTRY(nvmlDeviceGetSerial),
    NVML_ENTRY(nvmlDeviceGetBoardPartNumber),
    NVML_ENTRY(nvmlDeviceGetVbiosVersion),
    NVML_ENTRY(nvmlDeviceGetBrand),
    NVML_ENTRY(nvmlDeviceGetArchitecture),
    NVML_ENTRY(nvmlDeviceGetCudaComputeCapability),
    NVML_ENTRY(nvmlDeviceGetMinorNumber),
    NVML_ENTRY(nvmlDeviceGetModuleId),
    NVML_ENTRY(nvmlDeviceGetBoardId),
    NVML_ENTRY(nvmlDeviceGetNumGpuCores),
    NVML_ENTRY(nvmlDeviceGetMemoryBusWidth),
    NVML_OLDER_ENTRY(nvmlDeviceGetPciInfo_v2),
    NVML_ENTRY(nvmlDeviceGetPciInfo_v3),
    NVML_ENTRY(nvmlDeviceGetPciInfoExt),
    {NULL, NULL},
};
