/* cuInit, versions, what a forked child may do, and the checks that every entry point begins with (CUDA Driver API,
 * "Initialization", "Version Management"). */
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "engine/memory/usage.h"
#include "engine/memory/memory.h"

__thread struct thread_state thread_state;
_Atomic int driver_phase = DRIVER_NEW;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool names_twice; /* CUDA_VISIBLE_DEVICES does, a device */

static void set_devices(const struct model *model, int present, bool is_asked_for) {
    int places[MAX_DEVICES];
    for (int i = 0; i < present; i++) devices[i].model = model;
    int count = visible_devices(present, is_asked_for, places);
    device_count = count < 0 ? 0 : count;
    names_twice = count < 0;
    for (int i = 0; i < device_count; i++) {
        devices[i].ordinal = i;
        devices[i].place = places[i];
        cpu_usage_shift[i] = (int8_t)(places[i] - i);
    }
    devices_present = present;
}

bool driver_configure(const struct model *model, int count) {
    pthread_mutex_lock(&lock);
    bool possible = driver_phase == DRIVER_NEW;
    if (possible) set_devices(model, count, true);
    pthread_mutex_unlock(&lock);
    return possible;
}

/* What cupola.cpu.use() would have said. With the lock. */
static CUresult configure_from_environment(void) {
    const struct model *model;
    int count;
    RETURN_IF(settings_read_devices(&model, &count));
    const char *asked_for = getenv("CUPOLA_DEVICE");
    set_devices(model, count, asked_for && !strcmp(asked_for, "cpu"));
    return CUDA_SUCCESS;
}

CUresult driver_choose_devices(void) {
    pthread_mutex_lock(&lock);
    CUresult status = devices_present ? CUDA_SUCCESS : configure_from_environment();
    pthread_mutex_unlock(&lock);
    return status;
}

/* The threads that run the streams exist only in the process that started them. As on a GPU, a child forked after
 * cuInit cannot use the driver; one forked before can. */
static void forked_child(void) {
    if (driver_phase == DRIVER_READY || driver_phase == DRIVER_LOCKED) driver_phase = DRIVER_FORKED;
    checkpoint_forget();
    thread_state.depth = 0;
    cpu_usage_forget();
    pthread_mutex_init(&lock, NULL);
}

CUresult enter_otherwise(void) {
    if (driver_phase == DRIVER_LOCKED) return CUDA_SUCCESS;
    if (driver_phase == DRIVER_FORKED)
        return fail(
            CUDA_ERROR_NOT_INITIALIZED,
            "this process was forked from one that was using CUDA already, and CUDA does not survive a fork: "
            "start worker processes with the 'spawn' or 'forkserver' method, or fork before the first CUDA call");
    return fail(CUDA_ERROR_NOT_INITIALIZED, "call cuInit(0) before any other function of the driver");
}

CUresult enter_in_callback(void) {
    return fail(CUDA_ERROR_NOT_PERMITTED, "a host function in a stream may not call the driver");
}

CUresult cuInit(unsigned flags) {
    if (driver_phase == DRIVER_FORKED) return enter_otherwise();
    pass_gate();
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "the flags of cuInit must be 0, not %u", flags);
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (driver_phase == DRIVER_NEW) {
        status = settings_read();
        if (!devices_present && !status) status = configure_from_environment();
        if (names_twice && !status)
            status = fail(CUDA_ERROR_INVALID_DEVICE, "CUDA_VISIBLE_DEVICES is '%s', which names a device twice",
                          getenv("CUDA_VISIBLE_DEVICES"));
        if (!device_count && !status)
            status = fail(CUDA_ERROR_NO_DEVICE,
                          "CUDA_VISIBLE_DEVICES is '%s', which names none of the %d devices of the CPU device "
                          "(CUPOLA_CPU_DEVICES): unset it, or begin with a number below %d",
                          getenv("CUDA_VISIBLE_DEVICES"), devices_present, devices_present);
        for (int i = 0; i < device_count && !status; i++) {
            pthread_mutex_init(&devices[i].lock, NULL);
            /* Pools and graphs allocate on devices that have no context yet. */
            cpu_memory_set_capacity(i, devices[i].model->memory);
            status = context_new_primary(&devices[i]);
        }
        if (!status) {
            cpu_usage_publish();
            pthread_atfork(NULL, NULL, forked_child);
            driver_phase = DRIVER_READY;
            checkpoint_serve();
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* The version of the headers, or an older one for programs that are to see what an older driver says. */
CUresult cuDriverGetVersion(int *version) {
    if (!version) return fail_null("driverVersion");
    return settings_read_version(version);
}

CUresult enter_context(CUcontext *context) {
    pass_gate();
    return enter_context_to_ask(context);
}

CUresult enter_context_to_ask(CUcontext *context) {
    RETURN_IF(enter());
    CUcontext current = current_context();
    if (unlikely(!current))
        return fail(CUDA_ERROR_INVALID_CONTEXT,
                    "no context is current on this thread: call Device(...).set_current() or cuCtxSetCurrent first");
    RETURN_IF(context_check(current));
    *context = current->owner;
    return CUDA_SUCCESS;
}

const struct entry init_entries[] = {
    ENTRY(cuInit),
    ENTRY(cuDriverGetVersion),
    {NULL, NULL, NULL},
};
