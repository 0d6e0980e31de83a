/* Copies, fills, and memory that is freed: accesses to ranges, by one operation that has no threads. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "common/common.h"
#include "findings.h"
#include "host.h"
#include "rows.h"

_Thread_local cpu_touch *cpu_touch_now;

void cpu_touch_begin(cpu_touch *touch, cpu_moment *moment, const char *what, const struct cpu_origin *origin) {
    *touch = (cpu_touch){.deed = {.what = what, .origin = origin}, .moment = moment, .findings = cpu_findings_new()};
    touch->deed.allocates = !strcmp(what, "allocation");
    cpu_deed_begin(&touch->deed, moment, 1, &touch->low);
    if (!moment) touch->low = 0;
}

void cpu_touch_end(cpu_touch *touch) {
    if (cpu_findings_count(touch->findings)) cpu_findings_tell_of(touch->findings, &touch->deed);
    cpu_findings_free(touch->findings);
    touch->findings = NULL;
}

static void found(const cpu_touch *touch, uint64_t address, enum cpu_touching how, cpu_record before, uint32_t site,
                  int which) {
    struct cpu_finding finding = {
        .what = how == CPU_TOUCH_FREE ? CPU_FOUND_FREED : CPU_FOUND_RACE,
        .site = UINT16_MAX,
        .other_site = site,
        .other_kind = (uint8_t)record_kind(before),
        .is_write = how != CPU_TOUCH_READ,
        .other_is_write = which == WRITTEN,
        .space = CPU_SPACE_GLOBAL,
        .address = address,
        .size = 4,
        .deed = record_block(before),
    };
    (void)cpu_deed_place(finding.deed, record_thread(before), finding.other_block, finding.other_thread);
    if (touch->findings) cpu_findings_put(touch->findings, &finding);
}

/* A record, of an unordered deed; the host's touches have no moment. */
static bool is_wrong(const cpu_touch *touch, cpu_record before, uint32_t bytes) {
    uint32_t range[2];
    if (!before || before == NOTHING || record_block(before) < touch->low) return false;
    if (record_block(before) == touch->deed.first || !(record_bytes(before) & bytes)) return false;
    if (!touch->moment) return !cpu_deed_is_over(record_block(before), range);
    return !cpu_deed_comes_before(touch->moment, record_block(before), range);
}

/* Words of one row, of the last or only one of which some bytes are meant. */
struct part {
    const cpu_shadow *shadow;
    uint64_t index, address;
    uint32_t count, bytes;
};

static void look(const cpu_touch *touch, const struct part *part, enum cpu_touching how) {
    for (int which = WRITTEN; which < (how == CPU_TOUCH_READ ? READ : RECORDS); which++) {
        const cpu_record all = load(&part->shadow->rows[which][part->index / CPU_SHADOW_ROW]);
        if (all == NOTHING || (all && record_block(all) < touch->low)) continue;
        for (uint32_t i = 0; i < part->count; i++) {
            const uint64_t index = part->index + i, row = index / CPU_SHADOW_ROW * CPU_SHADOW_ROW;
            const cpu_record before = all ? all + ((index - row) << 6) : load(&part->shadow->records[which][index]);
            if (likely(!is_wrong(touch, before, part->bytes))) continue;
            found(touch, part->address + 4 * i, how, before, load(&part->shadow->sites[which][all ? row : index]),
                  which);
        }
    }
}

static void set(const struct part *part, int which, cpu_record record) {
    if (part->count == CPU_SHADOW_ROW) {
        store(&part->shadow->sites[which][part->index], UINT16_MAX);
        store(&part->shadow->rows[which][part->index / CPU_SHADOW_ROW], record ? record : NOTHING);
        return;
    }
    for (uint32_t i = 0; i < part->count; i++) {
        store(&part->shadow->sites[which][part->index + i], UINT16_MAX);
        store(&part->shadow->records[which][part->index + i], record);
    }
}

/* Whether the first read since the last write says nothing that a later one does not say. */
static bool is_free(const cpu_touch *touch, const struct part *part) {
    const cpu_record all = load(&part->shadow->rows[READ][part->index / CPU_SHADOW_ROW]);
    if (all) return !is_wrong(touch, all, 15);
    for (uint32_t i = 0; i < part->count; i++)
        if (is_wrong(touch, load(&part->shadow->records[READ][part->index + i]), 15)) return false;
    return true;
}

static void note(const cpu_touch *touch, const struct part *part, enum cpu_touching how) {
    const cpu_record record = make_record(touch->deed.first, 1, 0, CPU_ACCESS_PLAIN, part->bytes);
    if (how == CPU_TOUCH_FREE) return;
    const int to = how != CPU_TOUCH_READ ? WRITTEN : is_free(touch, part) ? READ : READ_TOO;
    if (part->count < CPU_SHADOW_ROW) cpu_watch_unroll(part->shadow, part->index);
    set(part, to, record);
    if (how == CPU_TOUCH_READ || part->bytes != 15) return;
    set(part, READ, 0);
    set(part, READ_TOO, 0);
}

void cpu_touch_range(cpu_touch *touch, uint64_t address, uint64_t size, enum cpu_touching how) {
    const uint64_t start = address;
    for (const uint64_t end = address + size; address < end;) {
        const uint64_t index = (address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1)) / 4;
        struct part part = {cpu_shadow_of(address), index, address & ~UINT64_C(3), 1, 15};
        if (!part.shadow) return; /* the host's own */
        uint64_t next = (address & ~UINT64_C(3)) + 4;
        if (address & 3 || end - address < 4) {
            const uint64_t last = end < next ? end : next;
            part.bytes = ((1u << (last - address)) - 1) << (address & 3);
        } else {
            const uint64_t room = CPU_SHADOW_ROW - index % CPU_SHADOW_ROW, left = (end - address) / 4;
            part.count = (uint32_t)(room < left ? room : left);
            next = address + 4 * part.count;
        }
        if (how != CPU_TOUCH_ALLOCATE) look(touch, &part, how);
        note(touch, &part, how);
        address = next;
    }
    if (how == CPU_TOUCH_READ || how == CPU_TOUCH_WRITE) cpu_host_touched(touch->moment, start, size);
}

void cpu_touch_look(cpu_touch *touch, uint64_t address, enum cpu_touching how) {
    const uint64_t index = (address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1)) / 4;
    const struct part part = {cpu_shadow_of(address), index, address & ~UINT64_C(3), 1, 1u << (address & 3)};
    if (part.shadow) look(touch, &part, how);
}

void cpu_touch_learn_writer(cpu_moment *now, uint64_t address) {
    const cpu_shadow *shadow = cpu_shadow_of(address);
    const uint64_t index = (address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1)) / 4;
    if (!shadow) return;
    const cpu_record all = load(&shadow->rows[WRITTEN][index / CPU_SHADOW_ROW]);
    cpu_deed_learn(now, record_block(all ? all : load(&shadow->records[WRITTEN][index])));
}
