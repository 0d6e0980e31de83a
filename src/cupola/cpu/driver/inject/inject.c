/* Injected faults: the rules, and when they strike. A rule counts what it applies to under one lock and draws its random
 * numbers there, so one thread of a program meets the same faults each time it runs with the same seed. */
#include "inject.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "above.h"
#include "engine/engine.h"
#include "engine/memory/memory.h"
#include "engine/memory/usage.h"

struct injection {
    struct injection *next;
    struct injection_rule rule; /* with a pattern of its own */
    unsigned id;
    uint64_t random, applied, happened;
    struct happening *list;
    size_t stored, room;
};

_Atomic unsigned injections[INJECTION_KINDS], injections_of_work;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct injection *first;
static unsigned last_id;

/* ---- life ------------------------------------------------------------------------------------------------------ */

static bool is_of_work(enum injection_kind kind) {
    return kind == INJECT_KERNEL || kind == INJECT_COPY || kind == INJECT_DELAY || kind == INJECT_FLIP;
}

static void count(enum injection_kind kind, int by) {
    atomic_fetch_add(&injections[kind], (unsigned)by);
    if (is_of_work(kind)) atomic_fetch_add(&injections_of_work, (unsigned)by);
}

/* The capacity of each device: the least that a rule leaves it, or the model's. */
static void limit_memory(void) {
    for (int i = 0; i < device_count; i++) {
        double least = (double)devices[i].model->memory;
        for (struct injection *it = first; it; it = it->next)
            if (it->rule.kind == INJECT_MEMORY && (it->rule.device < 0 || it->rule.device == i) &&
                it->rule.amount < least)
                least = it->rule.amount;
        cpu_memory_set_capacity(i, (uint64_t)least);
    }
}

unsigned injection_begin(const struct injection_rule *rule) {
    struct injection *it = calloc(1, sizeof *it);
    char *pattern = strdup(rule->pattern);
    if (!it || !pattern) {
        free(it);
        free(pattern);
        return 0;
    }
    it->rule = *rule;
    it->rule.pattern = pattern;
    it->random = rule->seed;
    pthread_mutex_lock(&lock);
    const unsigned id = it->id = ++last_id;
    it->next = first;
    first = it;
    count(rule->kind, 1);
    if (rule->kind == INJECT_MEMORY) limit_memory();
    pthread_mutex_unlock(&lock);
    if (rule->kind == INJECT_CALL || rule->kind == INJECT_TURNS) injectable_update();
    if (rule->kind == INJECT_LOST) contexts_lose_device(rule->device, rule->status);
    return id;
}

void injection_end(unsigned id) {
    pthread_mutex_lock(&lock);
    struct injection **link = &first;
    while (*link && (*link)->id != id) link = &(*link)->next;
    struct injection *it = *link;
    if (it) {
        *link = it->next;
        count(it->rule.kind, -1);
        if (it->rule.kind == INJECT_MEMORY) limit_memory();
    }
    pthread_mutex_unlock(&lock);
    if (!it) return;
    if (it->rule.kind == INJECT_CALL || it->rule.kind == INJECT_TURNS) injectable_update();
    if (it->rule.kind == INJECT_TURNS) turns_end();
    free((void *)it->rule.pattern);
    free(it->list);
    free(it);
}

size_t injection_report(unsigned id, uint64_t *applied, struct happening *list, size_t room) {
    size_t happened = 0;
    *applied = 0;
    pthread_mutex_lock(&lock);
    for (struct injection *it = first; it; it = it->next)
        if (it->id == id) {
            *applied = it->applied;
            happened = it->happened;
            if (room) memcpy(list, it->list, (room < it->stored ? room : it->stored) * sizeof *list);
        }
    pthread_mutex_unlock(&lock);
    return happened;
}

/* ---- when a rule strikes; with the lock -------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
static uint64_t draw(struct injection *it) {
    uint64_t z = it->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* At least 0 and less than 1. */
static double draw_share(struct injection *it) { return (double)(draw(it) >> 11) * 0x1p-53; }

/* The identifier in a mangled name, the last one of nested ones: saxpy of _Z5saxpyPf and _ZN4blas5saxpyEPf (Itanium C++
 * ABI, "Mangling"). NULL: it is not mangled, or the identifier is too long to be meant. */
static const char *identifier(const char *name, char *buffer, size_t size) {
    if (strncmp(name, "_Z", 2)) return NULL;
    const char *at = name + 2, *found = NULL;
    unsigned long length = 0;
    if (*at == 'N') at++;
    while (*at >= '1' && *at <= '9') {
        char *behind;
        length = strtoul(at, &behind, 10);
        if (strnlen(behind, length) < length) return NULL;
        found = behind;
        at = behind + length;
    }
    if (!found || length >= size) return NULL;
    memcpy(buffer, found, length);
    buffer[length] = 0;
    return buffer;
}

static bool applies(const struct injection *it, enum injection_kind kind, const char *name, int device) {
    char buffer[256];
    if (it->rule.kind != kind || (it->rule.device >= 0 && it->rule.device != device)) return false;
    if (!fnmatch(it->rule.pattern, name, 0)) return true;
    const char *plain = kind == INJECT_KERNEL ? identifier(name, buffer, sizeof buffer) : NULL;
    return plain && !fnmatch(it->rule.pattern, plain, 0);
}

static bool strikes(struct injection *it) {
    const struct injection_rule *rule = &it->rule;
    it->applied++;
    if (it->applied < rule->nth || (rule->times && it->happened >= rule->times)) return false;
    return rule->probability >= 1 || draw_share(it) < rule->probability;
}

static void note(struct injection *it, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct injection *it, const char *format, ...) {
    it->happened++;
    if (it->stored == it->room) {
        size_t room = it->room ? 2 * it->room : 16;
        struct happening *list = room <= MOST_HAPPENINGS ? realloc(it->list, room * sizeof *list) : NULL;
        if (!list) return; /* it is counted */
        it->list = list;
        it->room = room;
    }
    struct happening *happening = &it->list[it->stored++];
    va_list arguments;
    va_start(arguments, format);
    happening->number = it->applied;
    vsnprintf(happening->what, sizeof happening->what, format, arguments);
    va_end(arguments);
}

/* The status with which the first rule of this kind that strikes makes `name` fail. All of them count. */
static CUresult strike(enum injection_kind kind, const char *name, int device, uint64_t *number) {
    CUresult status = CUDA_SUCCESS;
    for (struct injection *it = first; it; it = it->next) {
        if (!applies(it, kind, name, device) || !strikes(it) || status) continue;
        note(it, "%s", name);
        status = it->rule.status;
        *number = it->applied;
    }
    return status;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

bool injection_names(const char *name) {
    bool named = false;
    pthread_mutex_lock(&lock);
    for (struct injection *it = first; it && !named; it = it->next) named = applies(it, INJECT_CALL, name, -1);
    pthread_mutex_unlock(&lock);
    return named;
}

CUresult inject_call(const char *name) {
    uint64_t number;
    pthread_mutex_lock(&lock);
    CUresult status = strike(INJECT_CALL, name, -1, &number);
    pthread_mutex_unlock(&lock);
    if (!status) return CUDA_SUCCESS;
    return fail(status, "%s was made to fail by cupola.cpu.faults, as call number %llu of those that were meant", name,
                (unsigned long long)number);
}

CUresult injected_loss(int device) {
    CUresult status = CUDA_SUCCESS;
    if (!injects(INJECT_LOST)) return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (struct injection *it = first; it && !status; it = it->next)
        if (it->rule.kind == INJECT_LOST && it->rule.device == device) status = it->rule.status;
    pthread_mutex_unlock(&lock);
    return status;
}

CUresult device_check_presence(int device) {
    CUresult status = injected_loss(device);
    return status ? fail(status, "device %d is lost: cupola.cpu.faults has taken it away", device) : CUDA_SUCCESS;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* One byte of all that is allocated on a device: each allocation takes the place of the choice before it with a
 * probability that is its share of what has been seen. */
struct choice {
    struct injection *injection;
    int device;
    uint64_t seen, address, offset, size; /* bytes; the byte, its place in its allocation, and the size of that */
};

static void choose(const cpu_allocation *allocation, void *data) {
    struct choice *choice = data;
    if (allocation->kind != CPU_MEMORY_DEVICE || allocation->device != choice->device || !allocation->size) return;
    choice->seen += allocation->size;
    uint64_t drawn = draw(choice->injection) % choice->seen;
    if (drawn >= allocation->size) return;
    choice->address = allocation->base + drawn;
    choice->offset = drawn;
    choice->size = allocation->size;
}

struct flip {
    uint64_t address;
    unsigned bit;
};

static void flip_bit(void *argument) {
    const struct flip *flip = argument;
    __atomic_fetch_xor((uint8_t *)(uintptr_t)flip->address, (uint8_t)(1u << flip->bit), __ATOMIC_RELAXED);
}

/* Where the memory is freed meanwhile, or may not be written, nothing happens. */
static void flip(struct injection *it, const char *name, int device) {
    struct choice choice = {.injection = it, .device = device};
    cpu_memory_each(choose, &choice);
    if (!choice.seen) return;
    struct flip flip = {choice.address, (unsigned)(draw(it) & 7)};
    if (cpu_guard_access(flip_bit, &flip))
        note(it, "bit %u of byte %llu of %llu at %#llx, before %s", flip.bit, (unsigned long long)choice.offset,
             (unsigned long long)choice.size, (unsigned long long)(choice.address - choice.offset), name);
}

static void sleep_for(double seconds) {
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) && errno == EINTR);
}

CUresult inject_work(enum injection_kind kind, const char *name, int device) {
    double seconds = 0;
    uint64_t number;
    pthread_mutex_lock(&lock);
    CUresult status = strike(kind, name, device, &number);
    for (struct injection *it = first; it; it = it->next) {
        if (applies(it, INJECT_DELAY, name, device) && strikes(it)) {
            double chosen = draw_share(it) * it->rule.amount;
            note(it, "%.6f s before %s", chosen, name);
            seconds += chosen;
        }
        if (!status && applies(it, INJECT_FLIP, name, device) && strikes(it)) flip(it, name, device);
    }
    pthread_mutex_unlock(&lock);
    if (seconds > 0) sleep_for(seconds);
    if (!status) return CUDA_SUCCESS;
    cpu_usage_fault(cpu_usage_place(device), (int)status);
    return fail(status, "%s was made to fail by cupola.cpu.faults, as operation number %llu of those that were meant",
                name, (unsigned long long)number);
}

/* ---- turns of streams -------------------------------------------------------------------------------------------- */

unsigned inject_choose(unsigned count) {
    unsigned chosen = 0;
    pthread_mutex_lock(&lock);
    for (struct injection *it = first; it; it = it->next)
        if (it->rule.kind == INJECT_TURNS) {
            chosen = (unsigned)(draw(it) % count);
            break;
        }
    pthread_mutex_unlock(&lock);
    return chosen;
}

void inject_turn(const char *what, uint64_t stream) {
    pthread_mutex_lock(&lock);
    for (struct injection *it = first; it; it = it->next)
        if (it->rule.kind == INJECT_TURNS) {
            it->applied++;
            note(it, "%s in stream %llu", what, (unsigned long long)stream);
            break;
        }
    pthread_mutex_unlock(&lock);
}

uint64_t inject_order(int device, const char *name) {
    uint64_t order = 0;
    pthread_mutex_lock(&lock);
    for (struct injection *it = first; it; it = it->next)
        if (applies(it, INJECT_ORDER, name, device) && strikes(it)) {
            order = draw(it) | 1;
            note(it, "%s", name);
        }
    pthread_mutex_unlock(&lock);
    return order;
}
