/* What this process uses of the devices (usage.h). */
#define _GNU_SOURCE
#include "common/common.h"
#include "engine/memory/usage.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static struct cpu_usage private_usage;
struct cpu_usage *cpu_usage = &private_usage;
int8_t cpu_usage_shift[CPU_USAGE_DEVICES];

/* Where no such file can be made, others do not see this process, which does no harm to it. The file stays open: it is
 * found by that. */
void cpu_usage_publish(void) {
    if (cpu_usage != &private_usage) return;
    int file = memfd_create(CPU_USAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) return;
    struct cpu_usage *page = MAP_FAILED;
    if (!ftruncate(file, sizeof *page) && !fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK))
        page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) {
        close(file);
        return;
    }
    *page = private_usage;
    page->size = sizeof *page;
    page->pid = getpid();
    page->began = clock_now();
    __atomic_store_n(&page->magic, CPU_USAGE_MAGIC, __ATOMIC_RELEASE);
    __atomic_store_n(&cpu_usage, page, __ATOMIC_RELEASE);
}

void cpu_usage_forget(void) {
    if (cpu_usage == &private_usage) return;
    private_usage = *cpu_usage;
    cpu_usage = &private_usage;
}

/* ---- time ------------------------------------------------------------------------------------------------------ */

/* Count the time from `start` to `end` in the slices that it lies in. Two threads that begin a slice at once may lose
 * what the first one counted: a slice is a sixteenth of what is shown. */
static void count(cpu_usage_track *track, uint64_t start, uint64_t end) {
    __atomic_fetch_add(&track->total, end - start, __ATOMIC_RELAXED);
    uint64_t last = end / CPU_USAGE_SLICE, first = start / CPU_USAGE_SLICE;
    if (last - first >= CPU_USAGE_SLICES) first = last - CPU_USAGE_SLICES + 1;
    for (uint64_t number = first; number <= last; number++) {
        uint64_t from = number * CPU_USAGE_SLICE, to = from + CPU_USAGE_SLICE;
        uint64_t busy = (end < to ? end : to) - (start > from ? start : from);
        typeof(track->slices[0]) *slice = &track->slices[number % CPU_USAGE_SLICES];
        if (__atomic_load_n(&slice->number, __ATOMIC_ACQUIRE) != number) {
            __atomic_store_n(&slice->busy, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&slice->number, number, __ATOMIC_RELEASE);
        }
        __atomic_fetch_add(&slice->busy, busy, __ATOMIC_RELAXED);
    }
}

void cpu_usage_begin(cpu_usage_track *track) {
    if (__atomic_fetch_add(&track->running, 1, __ATOMIC_ACQ_REL) == 0)
        __atomic_store_n(&track->since, clock_now(), __ATOMIC_RELEASE);
}

/* `since` is read while this operation still counts, so that it is not set again before. */
void cpu_usage_end(cpu_usage_track *track) {
    uint64_t since = __atomic_load_n(&track->since, __ATOMIC_ACQUIRE);
    if (__atomic_fetch_sub(&track->running, 1, __ATOMIC_ACQ_REL) != 1) return;
    uint64_t now = clock_now();
    if (now > since) count(track, since, now);
}

unsigned cpu_usage_share(const cpu_usage_track *track, uint64_t now) {
    const uint64_t window = (uint64_t)CPU_USAGE_SLICE * CPU_USAGE_SLICES;
    uint64_t current = now / CPU_USAGE_SLICE, busy = 0;
    for (int i = 0; i < CPU_USAGE_SLICES; i++) {
        uint64_t number = __atomic_load_n(&track->slices[i].number, __ATOMIC_ACQUIRE);
        if (number <= current && current - number < CPU_USAGE_SLICES)
            busy += __atomic_load_n(&track->slices[i].busy, __ATOMIC_RELAXED);
    }
    if (__atomic_load_n(&track->running, __ATOMIC_ACQUIRE)) {
        uint64_t since = __atomic_load_n(&track->since, __ATOMIC_ACQUIRE);
        uint64_t begin = now > window ? now - window : 0;
        if (since < now) busy += now - (since > begin ? since : begin);
    }
    return (unsigned)(busy >= window ? 1000 : busy * 1000 / window);
}

/* ---- faults ---------------------------------------------------------------------------------------------------- */

void cpu_usage_fault(int device, int status) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    uint64_t number = cpu_usage->faults;
    cpu_usage->fault[number % CPU_USAGE_FAULTS] = (struct cpu_usage_fault){.device = device, .status = status};
    __atomic_store_n(&cpu_usage->faults, number + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}
