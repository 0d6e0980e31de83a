/* The devices and the GPUs that they stand for (model.c, device.c). */
#ifndef CUPOLA_CPU_DRIVER_DEVICE_H
#define CUPOLA_CPU_DRIVER_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <cupola/driver.h>

/* The limits of a GPU that programs can see, as CUdevice_attribute and the occupancy rules need them. */
struct model {
    const char *key, *name;
    int major, minor;
    int multiprocessors, threads_per_multiprocessor, blocks_per_multiprocessor;
    int registers_per_multiprocessor, registers_per_block;
    int shared_per_multiprocessor, shared_per_block, shared_per_block_optin, shared_reserved; /* bytes */
    size_t memory;                                                                            /* bytes */
    int l2_cache, l2_persisting, access_window;                                               /* bytes */
    int clock, memory_clock, memory_bus;                                                      /* kHz, kHz, bits */
    int double_ratio; /* single to double precision throughput */
    int copy_engines;
    bool multicast; /* whether there are multicast objects, which need NVLink switches */
};
extern const struct model models[];
extern const size_t model_count;
const struct model *model_find(const char *key);

/* Set up `count` devices of the model, 1 to MAX_DEVICES. False: too late, cuInit has been called. */
bool driver_configure(const struct model *model, int count);
/* Decide which devices there are without starting the driver, for NVML. */
CUresult driver_choose_devices(void);

enum { MAX_DEVICES = 16 };

struct device {
    int ordinal;
    int place; /* among all modeled devices, some of which CUDA_VISIBLE_DEVICES may hide */
    const struct model *model;
    CUcontext primary;                             /* made at start, active while `primary_users` > 0 */
    unsigned primary_users, primary_flags, greens; /* green contexts, which are among the users */
    pthread_mutex_t lock;
};
extern struct device devices[MAX_DEVICES];
extern int device_count;                                       /* that this process sees */
extern int devices_present;                                    /* all; 0: not known yet */
CUresult device_get(CUdevice ordinal, struct device **device); /* CUDA_ERROR_INVALID_DEVICE when there is none */
CUresult cuDriverGetVersion(int *version);                     /* of CUDA, which the device says it has */
int device_attribute(const struct device *device, CUdevice_attribute attribute);

/* The modeled device in a place: which number it has in this process may change (engine/memory/usage.h). On two H200s the
 * UUID of a number is then that of the new GPU, and the PCI bus id still that of the old one. */
void device_uuid(int place, CUuuid *uuid);
enum { UUID_TEXT = 41 };
void device_uuid_text(int place, char text[UUID_TEXT]); /* as NVML writes it */
int device_at(int place);                               /* the number of the device there; -1: it is not visible */
int device_bus(int place);                              /* of PCI */
/* The place with a PCI bus id; NO_DEVICE, or NO_PCI_BUS_ID when the text is not one. */
enum { NO_DEVICE = -1, NO_PCI_BUS_ID = -2 };
int device_by_pci_bus_id(const char *text);

/* The places of the devices that CUDA_VISIBLE_DEVICES names, in its order, and how many they are (visible.c). Unset: all. -1: it names one twice.
 * Unless the CPU device `is_asked_for`, it stands in for GPUs that the variable hides: if it names none, it is about those. */
int visible_devices(int present, bool is_asked_for, int *places);

#endif
