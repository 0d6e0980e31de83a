/* When operations of streams happen: which of them come before which others, by what the program says and not by when they
 * were carried out. (moments.c)
 *
 * The operations of a stream are a *line*; each has a number there. A clock says for each line up to which operation
 * something comes behind it. Streams, events and the host have clocks, and an operation has its stream's as it was when it
 * was queued: its *moment*. Nodes of a graph share the number of its launch, and the edges say what orders them.
 *
 * Launches whose races are checked, and copies, fills and the like, are *deeds* while that is so. Records in shadows name
 * them by the numbers of their blocks. */
#ifndef CUPOLA_CPU_MOMENTS_H
#define CUPOLA_CPU_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/running.h"

enum { CPU_MOMENT_LINES = 128 }; /* the first one stands for none */
typedef struct cpu_clock {
    uint32_t known[CPU_MOMENT_LINES];
} cpu_clock;

/* Which nodes of a graph come before which others, by their numbers: a row of bits for each node. */
typedef struct cpu_node_order {
    uint32_t count, words;
    uint64_t bits[];
} cpu_node_order;

typedef struct cpu_moment {
    cpu_clock clock;
    uint32_t line, number;       /* 0: not known, and taken for ordered */
    uint32_t node, round;        /* of a graph's launch; the bodies of its conditional nodes have rounds */
    const cpu_node_order *order; /* NULL: its nodes run in order */
    uint64_t stream;
} cpu_moment;

/* Of the operation that this thread carries out; NULL: that is not known, or races are not checked. */
extern _Thread_local cpu_moment *cpu_moment_now;

extern _Atomic int cpu_moment_streams; /* how many streams the program has made */
/* Whether it works with one stream only: it has made no others, and no default stream has been given work so far. */
bool cpu_moments_in_one_line(void);

/* ---- clocks ---------------------------------------------------------------------------------------------------------- */

/* The line of a stream; NULL: there are too many. What it was used for before comes before what follows. */
struct cpu_line;
struct cpu_line *cpu_line_new(uint64_t stream);
void cpu_line_free(struct cpu_line *line);
/* The next operation of a line, behind what the host and `before` know (NULL: nothing); `after` learns of it. */
void cpu_line_next(struct cpu_line *line, cpu_moment *moment, const cpu_clock *before, cpu_clock *after);
void cpu_line_learn(struct cpu_line *line, const cpu_clock *clock);
void cpu_line_copy(const struct cpu_line *line, cpu_clock *clock);
/* Everything that any stream was given so far: for streams without a line. */
void cpu_clock_everything(cpu_clock *clock);
void cpu_line_tell(const struct cpu_line *line, cpu_clock *clock); /* which learns of all in the line */
void cpu_host_learn(const cpu_clock *clock);                       /* of all its threads */
void cpu_host_learn_line(const struct cpu_line *line);
void cpu_host_learn_moment(const cpu_moment *moment);
/* What the operation that is carried out now, and what follows in its line, learns while it runs. */
void cpu_moment_learn(cpu_moment *now, const cpu_clock *clock);
void cpu_moment_learn_host(cpu_moment *now);
void cpu_moment_begin(cpu_moment *now); /* with what its line has learned meanwhile */
void cpu_moments_reset(void);           /* races are checked from now on: all that was before is ordered */

/* ---- deeds ----------------------------------------------------------------------------------------------------------- */

typedef struct cpu_deed {
    uint32_t first, count; /* the numbers of its blocks */
    uint32_t line, number, node, round;
    uint64_t previous; /* of the same line */
    uint64_t stream;
    const char *what; /* it does, such as "copy"; NULL: a kernel */
    bool allocates;   /* which the host need not wait for */
    char name[96];    /* of the kernel */
    const struct cpu_origin *origin;
    const cpu_variant *variant; /* NULL: not a kernel, or that was unloaded */
    uint32_t grid[3], cluster[3];
} cpu_deed;

/* Give a deed its numbers; `low` is the first number that belongs to a deed which is not ordered before it. */
void cpu_deed_begin(cpu_deed *deed, const cpu_moment *now, uint32_t count, uint32_t *low);
/* Whether the deed that has the number comes before, or nobody knows; its numbers are `range`. */
bool cpu_deed_comes_before(const cpu_moment *now, uint32_t number, uint32_t range[2]);
/* The same of the host. */
bool cpu_deed_is_over(uint32_t number, uint32_t range[2]);
bool cpu_deed_find(uint32_t number, cpu_deed *deed);
/* Where a number of a kernel's is; false: it is none of one that is known. */
bool cpu_deed_place(uint32_t number, uint32_t thread, uint32_t block_at[3], uint32_t thread_at[3]);
void cpu_deed_learn(cpu_moment *now, uint32_t number); /* that a deed comes before */
void cpu_deeds_forget(const cpu_kernel *kernel);       /* its code goes */

/* Deeds that may run at the same time do so one after the other, where that does not take long: each of two that look
 * before they leave their records would see nothing. One that waits for another goes on after a while. */
bool cpu_deed_enter(const cpu_moment *now);
void cpu_deed_leave(bool entered);

/* What was told at an address by deeds that are over. */
void cpu_deed_told(uint64_t address, uint32_t number);
void cpu_deed_listen(cpu_moment *now, uint64_t address);

/* ---- accesses to ranges of memory (ranges.c) ------------------------------------------------------------------------- */

struct cpu_findings;
typedef struct cpu_touch {
    cpu_deed deed;
    cpu_moment *moment;
    uint32_t low;
    struct cpu_findings *findings;
} cpu_touch;
enum cpu_touching {
    CPU_TOUCH_READ,
    CPU_TOUCH_WRITE,
    CPU_TOUCH_FREE,    /* looks only */
    CPU_TOUCH_ALLOCATE /* nobody else can have been there */
};
/* The operation that this thread carries out touches memory; `what` it is called stays. Findings are told at the end, for
 * which the GIL is taken. */
void cpu_touch_begin(cpu_touch *touch, cpu_moment *moment, const char *what, const struct cpu_origin *origin);
void cpu_touch_range(cpu_touch *touch, uint64_t address, uint64_t size, enum cpu_touching how);
void cpu_touch_end(cpu_touch *touch);
void cpu_touch_look(cpu_touch *touch, uint64_t address, enum cpu_touching how); /* at a byte, and leave no record */
void cpu_touch_learn_writer(cpu_moment *now, uint64_t address);                 /* who wrote there last comes before */
extern _Thread_local cpu_touch *cpu_touch_now; /* of a function of a math library; NULL: none */

#endif
