/* What the host does with pinned and managed memory that operations have accessed, before it has waited for them.
 *
 * When an operation is over, the shadows know what it has accessed. Pages of which it (with others that the host has not
 * waited for either) has written all that is allocated there are hidden from the host (engine/memory/hidden.c), pages that
 * were read or written all over are hidden from its writes. No sound program can notice that, not even by a system call,
 * for which a hidden page is a bad address. An access of the host faults, is noted with the line of Python, and goes on.
 * What is noted is looked at in the shadows before the host learns of anything more.
 *
 * A kernel with stores that are meant for the host while it runs (volatile, or of system scope) may tell the host all
 * that it likes: nothing of its is hidden. */
#include "host.h"

#include <stdatomic.h>
#include <string.h>

#include "above.h"
#include "checks.h"
#include "common/common.h"
#include "engine/memory/hidden.h"
#include "engine/memory/memory.h"
#include "rows.h"

enum { PAGE_BYTES = 4096, MOST_NOTES = 64, FEW_NOTES = 8, TELLS_HOST = 2 /* of Pointers.flat() */ };

static bool is_of_host(uint64_t address, cpu_allocation *found) {
    return cpu_memory_owns(address) && cpu_memory_find(address, found) &&
           (found->kind == CPU_MEMORY_PINNED || found->kind == CPU_MEMORY_MANAGED);
}

bool cpu_host_is_at(uint64_t address) {
    cpu_allocation found;
    return is_of_host(address, &found);
}

/* The next parameter from an offset on that is such an address. */
static bool next_parameter(const cpu_launch *launch, uint32_t *offset, cpu_allocation *found) {
    uint64_t address;
    for (; *offset + sizeof address <= launch->param_bytes; *offset += sizeof address) {
        memcpy(&address, (const char *)launch->params + *offset, sizeof address);
        if (is_of_host(address, found)) return true;
    }
    return false;
}

bool cpu_host_is_given(const cpu_launch *launch) {
    uint32_t offset = 0;
    cpu_allocation found;
    return next_parameter(launch, &offset, &found);
}

/* ---- which pages ------------------------------------------------------------------------------------------------------- */

/* Whether the host does not know of the deed of a record. The last one that was asked about is kept. */
struct asked {
    uint32_t range[2];
    bool is_open;
};

static bool is_open(struct asked *asked, cpu_record record) {
    if (!record || record == NOTHING) return false;
    if (record_block(record) - asked->range[0] >= asked->range[1])
        asked->is_open = !cpu_deed_is_over(record_block(record), asked->range);
    return asked->is_open;
}

/* Whether all words of a page, from an address on, were written (or accessed) by somebody whom the host has not waited for. */
static void look_at_page(struct asked *asked, uint64_t address, uint64_t end, bool *written, bool *accessed) {
    const cpu_shadow *shadow = cpu_shadow_of(address);
    *written = *accessed = shadow;
    for (; shadow && *accessed && address < end; address += 4) {
        const uint64_t index = (address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1)) / 4;
        const uint64_t left = end - address;
        const uint32_t bytes = left < 4 ? (1u << left) - 1 : 15;
        uint32_t covered[RECORDS] = {0};
        for (int which = 0; which < RECORDS; which++) {
            const cpu_record all = load(&shadow->rows[which][index / CPU_SHADOW_ROW]);
            const cpu_record record = all ? all : load(&shadow->records[which][index]);
            if (is_open(asked, record)) covered[which] = record_bytes(record);
        }
        *written &= !(bytes & ~covered[WRITTEN]);
        *accessed &= !(bytes & ~(covered[WRITTEN] | covered[READ] | covered[READ_TOO]));
    }
}

static void hide_run(uint64_t low, uint64_t high, int how, const cpu_moment *moment) {
    if (how) cpu_hidden_add(low, high, how == 1, moment->line, moment->number);
}

/* Pages that the allocation shares with others stay as they are. */
static void hide(const cpu_moment *moment, const cpu_allocation *allocation, uint64_t address, uint64_t size) {
    if (!atomic_load_explicit(&cpu_shadow_remembers, memory_order_relaxed)) return; /* the check is off by now */
    const uint64_t end = allocation->base + allocation->size;
    uint64_t low = address & ~(uint64_t)(PAGE_BYTES - 1), high = address + size;
    if (low < allocation->base) low += PAGE_BYTES;
    if (high > end) high = end;
    struct asked asked = {.range = {0, 0}};
    uint64_t begun = low;
    int before = 0; /* 1: hidden from writes, 2: from reads as well */
    for (uint64_t page = low; page < high; page += PAGE_BYTES) {
        const bool is_last = end - page < PAGE_BYTES;
        bool written = false, accessed = false;
        if (!is_last || cpu_memory_has_pages(allocation->base))
            look_at_page(&asked, page, is_last ? end : page + PAGE_BYTES, &written, &accessed);
        const int how = written ? 2 : accessed;
        if (how != before) {
            hide_run(begun, page, before, moment);
            begun = page;
        }
        before = how;
    }
    hide_run(begun, (high + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1), before, moment);
}

void cpu_host_launched(const cpu_launch *launch) {
    const cpu_variant *variant = launch->variant;
    cpu_allocation found;
    if (!launch->moment || !launch->moment->line || !variant->pointer_count || variant->pointers[0] & TELLS_HOST)
        return;
    for (uint32_t offset = 0; next_parameter(launch, &offset, &found); offset += sizeof(uint64_t))
        hide(launch->moment, &found, found.base, found.size);
}

void cpu_host_touched(const cpu_moment *moment, uint64_t address, uint64_t size) {
    cpu_allocation found;
    if (moment && moment->line && is_of_host(address, &found)) hide(moment, &found, address, size);
}

/* ---- what the host does ------------------------------------------------------------------------------------------------ */

static struct note {
    uint64_t address;
    bool is_write;
    const struct cpu_origin *origin;
    _Atomic bool is_made;
} notes[MOST_NOTES];
static _Atomic unsigned noted;

bool cpu_host_faulted(uint64_t address, bool is_write, bool is_own) {
    if (is_own) return cpu_hidden_open(address, is_write, true);
    if (!cpu_hidden_open(address, is_write, atomic_load(&noted) >= FEW_NOTES)) return false;
    const unsigned place = atomic_fetch_add(&noted, 1);
    if (place >= MOST_NOTES) return true;
    notes[place].address = address;
    notes[place].is_write = is_write;
    notes[place].origin = cpu_host_origin();
    atomic_store(&notes[place].is_made, true);
    return true;
}

void cpu_host_tell(void) {
    if (likely(!atomic_load_explicit(&noted, memory_order_relaxed))) return;
    for (unsigned i = 0; i < MOST_NOTES; i++) {
        if (!atomic_exchange(&notes[i].is_made, false)) continue;
        cpu_touch touch;
        cpu_touch_begin(&touch, NULL, "host", notes[i].origin);
        cpu_touch_look(&touch, notes[i].address, notes[i].is_write ? CPU_TOUCH_WRITE : CPU_TOUCH_READ);
        cpu_touch_end(&touch);
    }
    atomic_store(&noted, 0);
}

void cpu_host_begin(void) {
    cpu_host_tell();
    cpu_hidden_pause();
}

void cpu_host_end(void) { cpu_hidden_resume(); }
