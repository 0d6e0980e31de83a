/* Faults that a test asks for (cupola.cpu.faults): calls, kernels and copies that fail, streams that are slow, blocks in
 * another order, bits that flip, a device that is lost (inject.c); and how calls come to fail (calls.c). */
#ifndef CUPOLA_CPU_DRIVER_INJECT_H
#define CUPOLA_CPU_DRIVER_INJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/base/base.h"

enum injection_kind {
    INJECT_CALL,   /* an entry point returns `status` without doing anything */
    INJECT_KERNEL, /* a kernel fails with `status` when it would run */
    INJECT_COPY,   /* the same for copies and fills */
    INJECT_DELAY,  /* an operation begins late, by up to `amount` seconds */
    INJECT_ORDER, /* the blocks of a grid begin in an order that the seed gives, and the warps of a block take turns so */
    INJECT_FLIP,   /* a bit of device memory flips before an operation */
    INJECT_MEMORY, /* a device has no more than `amount` bytes */
    INJECT_LOST,   /* a device is not there any more */
    INJECT_TURNS,  /* streams carry out one operation at a time, in an order that the seed gives (stream/turns.c) */
    INJECTION_KINDS
};

/* Of all that it applies to and that its pattern names, it strikes from number `nth` on, `times` times, each with the
 * probability. */
struct injection_rule {
    enum injection_kind kind;
    const char *pattern; /* of fnmatch(), for the name of the entry point or kernel */
    CUresult status;
    int device; /* -1: any */
    uint64_t nth, times /* 0: always */, seed;
    double probability, amount;
};

enum { MOST_HAPPENINGS = 4096 }; /* that are stored of a rule */

/* What has happened: which of all that applied, and what that was. */
struct happening {
    uint64_t number;
    char what[120];
};

/* Any thread may call these. 0: there is no memory for it. */
unsigned injection_begin(const struct injection_rule *rule);
void injection_end(unsigned id);
/* How often the rule applied, and what it did: at most `room` of the first happenings are stored, all are counted. */
size_t injection_report(unsigned id, uint64_t *applied, struct happening *list, size_t room);

/* How many injections of each kind there are. */
extern _Atomic unsigned injections[INJECTION_KINDS];
static inline bool injects(enum injection_kind kind) {
    return unlikely(atomic_load_explicit(&injections[kind], memory_order_relaxed));
}
extern _Atomic unsigned injections_of_work; /* all that concern operations */
static inline bool injects_into_work(void) {
    return unlikely(atomic_load_explicit(&injections_of_work, memory_order_relaxed));
}

/* An entry point is called: the status with which it fails, explained. And whether a rule is meant for it. */
CUresult inject_call(const char *name);
bool injection_names(const char *name);

/* Before an operation of this kind (INJECT_KERNEL, INJECT_COPY) is carried out on the device, once: delays, flips, and
 * the status with which it fails, explained. */
CUresult inject_work(enum injection_kind kind, const char *name, int device);
uint64_t inject_order(int device, const char *name); /* not 0: an order for the blocks of a grid of this kernel */

/* While streams take turns: one of `count` numbers, from 0 on; and what was carried out. */
unsigned inject_choose(unsigned count);
void inject_turn(const char *what, uint64_t stream);

/* The function to hand out for an entry point: a jump to it that can be made to fail. `failed`, if not NULL, turns a
 * status into what the function returns. The function itself when it returns no status. (calls.c) */
void *injectable(const char *symbol, void *function, CUresult (*failed)(CUresult));
/* The name that rules know an entry point by; false when none can be meant for it. (calls.c) */
bool injectable_name(const char *symbol, char *name, size_t size);
void injectable_update(void); /* the rules have changed */

#endif
