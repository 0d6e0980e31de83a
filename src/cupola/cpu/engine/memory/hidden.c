/* Pages that the host must not touch at present. An access of its faults, is told to whoever watches (engine/checks/host.c),
 * and is tried again when the page is accessible.
 *
 * Workers of streams touch such memory, too; while one of them runs, everything is accessible. */
#include "hidden.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { MOST = 1024, PAGE_BYTES = 4096 };

struct hidden {
    uint64_t low, high;
    bool reads_are_fine;
    uint32_t line, number;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hidden list[MOST];
static size_t count;
static unsigned paused;
_Atomic bool cpu_hidden_is_used;

static bool set_access(uint64_t low, uint64_t high, int access) {
    return !mprotect((void *)(uintptr_t)low, high - low, access); /* else it is seen less, or seen again */
}

static void hide(const struct hidden *pages) {
    (void)set_access(pages->low, pages->high, pages->reads_are_fine ? PROT_READ : PROT_NONE);
}

static bool show(const struct hidden *pages) { return set_access(pages->low, pages->high, PROT_READ | PROT_WRITE); }

void cpu_hidden_add(uint64_t low, uint64_t high, bool reads_are_fine, uint32_t line, uint32_t number) {
    pthread_mutex_lock(&lock);
    atomic_store(&cpu_hidden_is_used, true);
    if (count < MOST) {
        list[count] = (struct hidden){low, high, reads_are_fine, line, number};
        if (!paused) hide(&list[count]);
        count++;
    }
    pthread_mutex_unlock(&lock);
}

void cpu_hidden_pause(void) {
    pthread_mutex_lock(&lock);
    if (!paused++)
        for (size_t i = 0; i < count; i++) (void)show(&list[i]);
    pthread_mutex_unlock(&lock);
}

void cpu_hidden_resume(void) {
    pthread_mutex_lock(&lock);
    if (!--paused)
        for (size_t i = 0; i < count; i++) hide(&list[i]);
    pthread_mutex_unlock(&lock);
}

/* Take an entry out of the list. What others of the list have in the same pages is not seen any more, either. */
static void drop(size_t i) {
    (void)show(&list[i]);
    list[i] = list[--count];
}

void cpu_hidden_show(const uint32_t *known) {
    if (!atomic_load_explicit(&cpu_hidden_is_used, memory_order_relaxed)) return;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count;) {
        if (list[i].number <= known[list[i].line]) drop(i);
        else i++;
    }
    pthread_mutex_unlock(&lock);
}

void cpu_hidden_forget_range(uint64_t address, uint64_t size) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count;) {
        if (list[i].low < address + size && list[i].high > address) drop(i);
        else i++;
    }
    pthread_mutex_unlock(&lock);
}

bool cpu_hidden_open(uint64_t address, bool is_write, bool all) {
    if (!atomic_load_explicit(&cpu_hidden_is_used, memory_order_relaxed)) return false;
    const uint64_t page = address & ~(uint64_t)(PAGE_BYTES - 1);
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && !found; i++) {
        if (address < list[i].low || address >= list[i].high) continue;
        const int access = is_write || all ? PROT_READ | PROT_WRITE : PROT_READ;
        found = (!all && set_access(page, page + PAGE_BYTES, access)) || show(&list[i]);
    }
    pthread_mutex_unlock(&lock);
    return found;
}
