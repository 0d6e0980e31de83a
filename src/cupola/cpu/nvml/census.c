/* Who uses the devices: the pages that processes publish about themselves (engine/memory/usage.h).
 *
 * Such a page is a file without a name. It exists as long as its process, or a process that has mapped it. It is found
 * among the open files in /proc, which shows the processes of the same user. A copy of the file in a forked child has
 * the number of the parent, and is passed over. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/common.h"
#include "engine/memory/usage.h"
#include "nvml/nvml.h"

static const struct cpu_usage *map_file(const char *path, int64_t pid) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NULL;
    struct stat status;
    const struct cpu_usage *usage = MAP_FAILED;
    /* A file that its process could still cut off would end this one when it reads behind the end. */
    const int seals = fcntl(file, F_GET_SEALS);
    if (seals >= 0 && seals & F_SEAL_SHRINK && !fstat(file, &status) && (size_t)status.st_size >= sizeof *usage)
        usage = mmap(NULL, sizeof *usage, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (usage == MAP_FAILED) return NULL;
    if (usage->magic == CPU_USAGE_MAGIC && usage->size == sizeof *usage && usage->pid == pid) return usage;
    munmap((void *)usage, sizeof *usage);
    return NULL;
}

/* The page of a process, mapped; NULL when it has none. */
static const struct cpu_usage *map_process(int64_t pid) {
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/%lld/fd", (long long)pid);
    DIR *files = opendir(path);
    if (!files) return NULL; /* it has ended, or belongs to somebody else */
    const struct cpu_usage *usage = NULL;
    for (struct dirent *entry; !usage && (entry = readdir(files));) {
        ssize_t length = readlinkat(dirfd(files), entry->d_name, target, sizeof target - 1);
        if (length < 0) continue;
        target[length] = 0;
        if (strncmp(target, "/memfd:" CPU_USAGE_NAME, sizeof "/memfd:" CPU_USAGE_NAME - 1)) continue;
        char file[sizeof path + sizeof entry->d_name];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        usage = map_file(file, pid);
    }
    closedir(files);
    return usage;
}

/* Call `visit` for each process that publishes a page; it says whether it keeps the mapping. */
static void each_process(bool (*visit)(const struct cpu_usage *usage, void *data), void *data) {
    DIR *processes = opendir("/proc");
    if (!processes) return;
    for (struct dirent *entry; (entry = readdir(processes));) {
        char *end;
        long long pid = strtoll(entry->d_name, &end, 10);
        if (*end || pid <= 0) continue;
        const struct cpu_usage *usage = map_process(pid);
        if (usage && !visit(usage, data)) munmap((void *)usage, sizeof *usage);
    }
    closedir(processes);
}

static bool has_ended(const struct cpu_usage *usage) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld", (long long)usage->pid);
    return access(path, F_OK) != 0;
}

/* Pages that stay mapped. */
struct pages {
    const struct cpu_usage **items;
    size_t count, room;
};

static bool keep_page(const struct cpu_usage *usage, void *data) {
    struct pages *pages = data;
    if (pages->count == pages->room) {
        size_t room = pages->room ? 2 * pages->room : 8;
        const struct cpu_usage **larger = realloc(pages->items, room * sizeof *larger);
        if (!larger) return false; /* it is found again next time */
        pages->items = larger, pages->room = room;
    }
    pages->items[pages->count++] = usage;
    return true;
}

/* ---- use ------------------------------------------------------------------------------------------------------- */

static void count_process(const struct cpu_usage *usage, int ordinal, uint64_t now, struct nvml_census *census) {
    const struct cpu_usage_device *device = &usage->devices[ordinal];
    if (census->count == NVML_MOST_PROCESSES || !usage_load(&device->contexts)) return;
    census->processes[census->count++] = (struct nvml_process){
        .pid = usage->pid,
        .memory = usage_load(&device->memory),
        .kernels = cpu_usage_share(&device->kernels, now),
        .transfers = cpu_usage_share(&device->transfers, now),
    };
}

static int by_pid(const void *a, const void *b) {
    int64_t left = ((const struct nvml_process *)a)->pid, right = ((const struct nvml_process *)b)->pid;
    return (left > right) - (left < right);
}

enum { KEEP = 5 * 1000 * 1000 /* ns */ };

/* A monitor asks several questions in a row, about several devices. So the pages that were found are used for a few
 * milliseconds. Their contents are current, and a process that ends is left out at once; a new process may be seen a few
 * milliseconds late, unless it is this one. The caller has the lock. */
static const struct pages *current_pages(uint64_t now) {
    static struct pages known;
    static uint64_t looked;
    static const struct cpu_usage *own;
    bool again = !own || own != cpu_usage || now - looked >= KEEP;
    for (size_t i = 0; i < known.count;) {
        if (!again && !has_ended(known.items[i])) {
            i++;
            continue;
        }
        munmap((void *)known.items[i], sizeof *known.items[i]);
        known.items[i] = known.items[--known.count];
    }
    if (again) {
        own = cpu_usage;
        each_process(keep_page, &known);
        looked = now;
    }
    return &known;
}

void nvml_census(int ordinal, struct nvml_census *census) {
    uint64_t now = clock_now();
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    census->count = 0;
    pthread_mutex_lock(&lock);
    const struct pages *pages = current_pages(now);
    for (size_t i = 0; i < pages->count; i++) count_process(pages->items[i], ordinal, now, census);
    pthread_mutex_unlock(&lock);
    qsort(census->processes, census->count, sizeof *census->processes, by_pid);
}

/* ---- faults ---------------------------------------------------------------------------------------------------- */

/* A watch keeps the pages that it has found, so that the last fault of a process is still read after its end. */
struct nvml_watch {
    pthread_mutex_t lock; /* several threads may wait for events of one set */
    struct watched {
        const struct cpu_usage *usage;
        uint64_t seen; /* faults that were reported */
    } *watched;
    size_t count, room;
    uint64_t looked; /* ns, when /proc was last read */
    bool begun;      /* the first look is over: what new processes did, they did since */
};

enum { LOOK_EVERY = 50 * 1000 * 1000 /* ns */ };

static bool watch_process(const struct cpu_usage *usage, void *data) {
    struct nvml_watch *watch = data;
    for (size_t i = 0; i < watch->count; i++)
        if (watch->watched[i].usage->pid == usage->pid && watch->watched[i].usage->began == usage->began) return false;
    if (watch->count == watch->room) {
        size_t room = watch->room ? 2 * watch->room : 8;
        struct watched *larger = realloc(watch->watched, room * sizeof *larger);
        if (!larger) return false; /* it is looked at again next time */
        watch->watched = larger, watch->room = room;
    }
    watch->watched[watch->count++] =
        (struct watched){.usage = usage, .seen = watch->begun ? 0 : usage_load(&usage->faults)};
    return true;
}

static void look(struct nvml_watch *watch) {
    uint64_t now = clock_now();
    if (watch->begun && now - watch->looked < LOOK_EVERY) return;
    for (size_t i = 0; i < watch->count;) {
        struct watched *item = &watch->watched[i];
        if (item->seen != usage_load(&item->usage->faults) || !has_ended(item->usage)) {
            i++;
            continue;
        }
        munmap((void *)item->usage, sizeof *item->usage);
        *item = watch->watched[--watch->count];
    }
    each_process(watch_process, watch);
    watch->looked = now;
    watch->begun = true;
}

struct nvml_watch *nvml_watch_new(void) {
    struct nvml_watch *watch = calloc(1, sizeof *watch);
    if (!watch) return NULL;
    pthread_mutex_init(&watch->lock, NULL);
    look(watch);
    return watch;
}

int nvml_watch_next(struct nvml_watch *watch, struct nvml_fault *fault) {
    int found = 0;
    pthread_mutex_lock(&watch->lock);
    look(watch);
    for (size_t i = 0; i < watch->count && !found; i++) {
        struct watched *item = &watch->watched[i];
        uint64_t faults = usage_load(&item->usage->faults);
        if (item->seen == faults) continue;
        if (faults - item->seen > CPU_USAGE_FAULTS) item->seen = faults - CPU_USAGE_FAULTS; /* overwritten */
        const struct cpu_usage_fault *next = &item->usage->fault[item->seen++ % CPU_USAGE_FAULTS];
        *fault = (struct nvml_fault){.device = next->device, .status = next->status};
        found = 1;
    }
    pthread_mutex_unlock(&watch->lock);
    return found;
}

void nvml_watch_free(struct nvml_watch *watch) {
    for (size_t i = 0; i < watch->count; i++) munmap((void *)watch->watched[i].usage, sizeof(struct cpu_usage));
    free(watch->watched);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}
