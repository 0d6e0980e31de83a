/* Calls of the device runtime that the driver carries out: launches from kernels and what belongs to them. */
#include "access.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/above.h"
#include "engine/checks/checks.h"
#include "engine/device_calls.h"

struct piece {
    void *to;
    const void *from;
    size_t size;
};

static void move(void *given) {
    const struct piece *piece = given;
    memcpy(piece->to, piece->from, piece->size);
}

/* Piece by piece, as a thread would. The guard of the machine code is paused, and another thread may free the memory. */
static bool transfer(cpu_question *question, uint64_t address, char *own, size_t size, bool is_write) {
    const uint8_t step = size % 8 == 0 && address % 8 == 0 ? 8 : size % 4 == 0 ? 4 : (uint8_t)size;
    cpu_site site = {.index = question->site,
                     .size = step,
                     .element = step,
                     .space = CPU_SITE_GENERIC,
                     .flags = is_write ? CPU_SITE_WRITE : 0};
    for (size_t done = 0; done < size; done += step) {
        void *place = cpu_resolve(question->context, question->warp, question->lane, site, address + done);
        question->failed = !place;
        if (!place) return false;
        struct piece piece = {is_write ? place : own + done, is_write ? own + done : place, step};
        question->failed = !cpu_guard_access(move, &piece);
        if (!question->failed) continue;
        cpu_fault_raise_access(question->context, question->warp, question->lane, CPU_FAULT_OUT_OF_BOUNDS, site,
                               address + done, step, NULL);
        return false;
    }
    return true;
}

bool cpu_question_read(cpu_question *question, uint64_t address, void *target, size_t size) {
    return transfer(question, address, target, size, false);
}

bool cpu_question_write(cpu_question *question, uint64_t address, const void *source, size_t size) {
    if (!transfer(question, address, (char *)source, size, true)) return false;
    const cpu_site site = {
        .index = question->site, .size = 1, .element = 1, .space = CPU_SITE_GENERIC, .flags = CPU_SITE_WRITE};
    if (asked(question->context->block->watch != NULL))
        cpu_watch_write(question->context, question->warp, question->lane, site, address, size, CPU_ACCESS_PLAIN);
    return true;
}

uint64_t cpu_question_fail(cpu_question *question, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cpu_fault_raise(question->context, question->warp, question->lane, CPU_FAULT_LAUNCH, question->site, "%s", text);
    question->failed = true;
    return 0;
}

static uint64_t linear(const uint32_t at[3], const uint32_t size[3]) {
    return ((uint64_t)at[2] * size[1] + at[1]) * size[0] + at[0];
}

/* The lanes of the mask call a function: `words` has the words of each lane, those of the first argument first. Nonzero on
 * a fault. */
CPU_HELPER uint32_t cupola_ask(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t function,
                               const uint64_t *words, uint64_t *results, uint32_t site) {
    cpu_launch *launch = context->job->launch;
    const uint32_t count = cpu_driver_words(function);
    void *guard = cpu_guard_pause(); /* the driver may come to compile a kernel */
    bool failed = false;
    for (; mask && !failed; mask &= mask - 1) {
        int lane = __builtin_ctz(mask);
        cpu_question question = {.launch = launch,
                                 .block = linear(context->ctaid, launch->grid),
                                 .thread = warp->first + (uint32_t)lane,
                                 .context = context,
                                 .warp = warp,
                                 .lane = lane,
                                 .site = site};
        for (uint32_t i = 0; i < count; i++) question.words[i] = words[i * context->width + (uint32_t)lane];
        results[lane] = cpu_driver_answer(function, &question);
        failed = question.failed;
    }
    cpu_guard_resume(guard);
    return failed;
}
