/* Clocks of streams, and the deeds that records of shadows name. One lock guards all of it: it is taken when operations are
 * queued and begin, and when two of them meet in memory. */
#include "moments.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/common.h"
#include "engine/memory/hidden.h"
#include "host.h"

enum { DEEDS = 1 << 12, TOLD = 1 << 12 };

struct cpu_line {
    uint32_t index;
    uint64_t stream;
    cpu_clock clock;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_taken[CPU_MOMENT_LINES];
static bool ran_out;                        /* a stream got no line, once */
static uint32_t numbers[CPU_MOMENT_LINES];  /* of the last operation of each line */
static cpu_clock learned[CPU_MOMENT_LINES]; /* while operations ran */
static cpu_clock host;

static cpu_deed *deeds;                   /* a ring of DEEDS */
static uint64_t begun;                    /* how many so far; deed n is at n % DEEDS */
static uint64_t newest[CPU_MOMENT_LINES]; /* of each line: its number from 1 on */
static uint32_t next_block = 1;

struct told {
    uint64_t address;
    uint32_t number;
};
static struct told *told;

_Thread_local cpu_moment *cpu_moment_now;
_Atomic int cpu_moment_streams;

/* ---- clocks ---------------------------------------------------------------------------------------------------------- */

static void join(cpu_clock *into, const cpu_clock *from) {
    for (int i = 0; i < CPU_MOMENT_LINES; i++)
        if (into->known[i] < from->known[i]) into->known[i] = from->known[i];
}

static void locked_join(cpu_clock *into, const cpu_clock *from) {
    pthread_mutex_lock(&lock);
    join(into, from);
    pthread_mutex_unlock(&lock);
}

bool cpu_moments_in_one_line(void) {
    pthread_mutex_lock(&lock);
    int lines = 0;
    for (int i = 1; i < CPU_MOMENT_LINES; i++) lines += is_taken[i];
    pthread_mutex_unlock(&lock);
    return lines <= 1 && atomic_load(&cpu_moment_streams) <= 1;
}

/* All that was queued so far. With the lock. */
static void join_everything(cpu_clock *into) {
    for (int i = 0; i < CPU_MOMENT_LINES; i++)
        if (into->known[i] < numbers[i]) into->known[i] = numbers[i];
}

void cpu_clock_everything(cpu_clock *clock) {
    pthread_mutex_lock(&lock);
    join_everything(clock);
    pthread_mutex_unlock(&lock);
}

struct cpu_line *cpu_line_new(uint64_t stream) {
    struct cpu_line *line = calloc(1, sizeof *line);
    if (!line) return NULL;
    pthread_mutex_lock(&lock);
    uint32_t index = 1;
    while (index < CPU_MOMENT_LINES && is_taken[index]) index++;
    if (index < CPU_MOMENT_LINES) {
        is_taken[index] = true;
        line->index = index;
        line->stream = stream;
        if (ran_out) join_everything(&line->clock); /* what its stream has waited for meanwhile is not known */
    } else {
        ran_out = true;
    }
    pthread_mutex_unlock(&lock);
    if (line->index) return line;
    free(line);
    return NULL;
}

void cpu_line_free(struct cpu_line *line) {
    if (!line) return;
    pthread_mutex_lock(&lock);
    is_taken[line->index] = false;
    pthread_mutex_unlock(&lock);
    free(line);
}

void cpu_line_next(struct cpu_line *line, cpu_moment *moment, const cpu_clock *before, cpu_clock *after) {
    pthread_mutex_lock(&lock);
    join(&line->clock, &host);
    if (before) join(&line->clock, before);
    moment->clock = line->clock;
    moment->line = line->index;
    moment->stream = line->stream;
    moment->number = line->clock.known[line->index] = ++numbers[line->index];
    if (after) join(after, &line->clock);
    pthread_mutex_unlock(&lock);
}

void cpu_line_learn(struct cpu_line *line, const cpu_clock *clock) { locked_join(&line->clock, clock); }
void cpu_line_tell(const struct cpu_line *line, cpu_clock *clock) { locked_join(clock, &line->clock); }
void cpu_line_copy(const struct cpu_line *line, cpu_clock *clock) {
    pthread_mutex_lock(&lock);
    *clock = line->clock;
    pthread_mutex_unlock(&lock);
}

/* What the host has done so far was done without knowing this. */
void cpu_host_learn(const cpu_clock *clock) {
    cpu_host_tell();
    locked_join(&host, clock);
    cpu_hidden_show(host.known);
}

void cpu_host_learn_line(const struct cpu_line *line) { cpu_host_learn(&line->clock); }

static void note(cpu_clock *clock, uint32_t line, uint32_t number) {
    if (clock->known[line] < number) clock->known[line] = number;
}

void cpu_host_learn_moment(const cpu_moment *moment) {
    cpu_clock clock = moment->clock;
    note(&clock, moment->line, moment->number);
    cpu_host_learn(&clock);
}

void cpu_moment_learn(cpu_moment *now, const cpu_clock *clock) {
    pthread_mutex_lock(&lock);
    join(&now->clock, clock);
    join(&learned[now->line], clock);
    pthread_mutex_unlock(&lock);
}

void cpu_moment_learn_host(cpu_moment *now) { cpu_moment_learn(now, &host); }

void cpu_moment_begin(cpu_moment *now) { locked_join(&now->clock, &learned[now->line]); }

void cpu_moments_reset(void) {
    pthread_mutex_lock(&lock);
    begun = 0;
    memset(newest, 0, sizeof newest);
    if (told) memset(told, 0, TOLD * sizeof *told);
    pthread_mutex_unlock(&lock);
    cpu_hidden_forget(0, UINT64_MAX);
}

/* ---- deeds: with the lock -------------------------------------------------------------------------------------------- */

static cpu_deed *deed_at(uint64_t number) { return &deeds[(number - 1) % DEEDS]; }
static bool is_kept(uint64_t number) { return number && number <= begun && number + DEEDS > begun; }

/* Their blocks have ascending numbers. */
static cpu_deed *find(uint32_t block) {
    uint64_t low = begun > DEEDS ? begun - DEEDS + 1 : 1, high = begun + 1;
    if (low == high || !deeds) return NULL;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (deed_at(middle)->first <= block) low = middle;
        else high = middle;
    }
    cpu_deed *deed = deed_at(low);
    return block - deed->first < deed->count ? deed : NULL;
}

static bool comes_before(const cpu_deed *deed, const cpu_moment *now) {
    if (!now || !deed->line) return true;
    if (deed->line != now->line) return deed->number <= now->clock.known[deed->line];
    if (deed->number != now->number || deed->node == now->node || deed->round != now->round || !now->order) return true;
    if (now->node >= now->order->count || deed->node >= now->order->count) return true;
    const uint64_t *row = now->order->bits + (size_t)now->node * now->order->words;
    return row[deed->node / 64] >> deed->node % 64 & 1;
}

void cpu_deed_begin(cpu_deed *deed, const cpu_moment *now, uint32_t count, uint32_t *low) {
    pthread_mutex_lock(&lock);
    if (next_block + count > INT32_MAX ||
        next_block + count < next_block) { /* what is old then looks like the future */
        next_block = 1;
        begun = 0;
        memset(newest, 0, sizeof newest);
    }
    deed->first = *low = next_block;
    deed->count = count;
    next_block += count;
    if (now && !deeds) deeds = calloc(DEEDS, sizeof *deeds);
    if (now && deeds) {
        for (int line = 1; line < CPU_MOMENT_LINES; line++)
            for (uint64_t i = newest[line]; is_kept(i); i = deed_at(i)->previous) {
                const cpu_deed *other = deed_at(i);
                if (other->number < now->clock.known[line]) break; /* and so are all before it */
                if (!comes_before(other, now) && other->first < *low) *low = other->first;
            }
        deed->line = now->line;
        deed->number = now->number;
        deed->node = now->node;
        deed->round = now->round;
        deed->stream = now->stream;
        deed->previous = newest[now->line];
        newest[now->line] = ++begun;
        *deed_at(begun) = *deed;
    }
    pthread_mutex_unlock(&lock);
}

bool cpu_deed_comes_before(const cpu_moment *now, uint32_t number, uint32_t range[2]) {
    pthread_mutex_lock(&lock);
    const cpu_deed *deed = find(number);
    const bool result = !deed || comes_before(deed, now);
    range[0] = deed ? deed->first : number;
    range[1] = deed ? deed->count : 1;
    pthread_mutex_unlock(&lock);
    return result;
}

bool cpu_deed_is_over(uint32_t number, uint32_t range[2]) {
    pthread_mutex_lock(&lock);
    const cpu_deed *deed = find(number);
    range[0] = deed ? deed->first : number;
    range[1] = deed ? deed->count : 1;
    const bool result = !deed || !deed->line || deed->allocates || deed->number <= host.known[deed->line];
    pthread_mutex_unlock(&lock);
    return result;
}

bool cpu_deed_find(uint32_t number, cpu_deed *result) {
    pthread_mutex_lock(&lock);
    const cpu_deed *deed = find(number);
    if (deed) *result = *deed;
    pthread_mutex_unlock(&lock);
    return deed;
}

bool cpu_deed_place(uint32_t number, uint32_t thread, uint32_t block_at[3], uint32_t thread_at[3]) {
    pthread_mutex_lock(&lock);
    const cpu_deed *deed = find(number);
    const bool known = deed && deed->variant;
    if (known) {
        const uint32_t size = deed->cluster[0] * deed->cluster[1] * deed->cluster[2];
        uint32_t rest = (number - deed->first) / size, rank = (number - deed->first) % size;
        for (int i = 0; i < 3; i++) {
            const uint32_t cluster = size > 1 ? deed->cluster[i] : 1, clusters = deed->grid[i] / cluster;
            block_at[i] = rest % clusters * cluster + rank % cluster;
            rest /= clusters;
            rank /= cluster;
            thread_at[i] = deed->variant->thread_ids[i][thread];
        }
    }
    pthread_mutex_unlock(&lock);
    return known;
}

static void learn(cpu_moment *now, uint32_t number) {
    const cpu_deed *deed = find(number);
    if (!deed || !deed->line || deed->line == now->line) return;
    note(&now->clock, deed->line, deed->number);
    note(&learned[now->line], deed->line, deed->number);
}

void cpu_deed_learn(cpu_moment *now, uint32_t number) {
    pthread_mutex_lock(&lock);
    learn(now, number);
    pthread_mutex_unlock(&lock);
}

void cpu_deeds_forget(const cpu_kernel *kernel) {
    pthread_mutex_lock(&lock);
    for (uint64_t i = begun > DEEDS ? begun - DEEDS + 1 : 1; i <= begun; i++)
        if (deed_at(i)->variant && deed_at(i)->variant->kernel == kernel) deed_at(i)->variant = NULL;
    pthread_mutex_unlock(&lock);
}

/* ---- one at a time --------------------------------------------------------------------------------------------------- */

enum { PATIENCE_NANOSECONDS = 20000000, SECOND_NANOSECONDS = 1000000000 };
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;

bool cpu_deed_enter(const cpu_moment *now) {
    struct timespec until;
    if (!now || !now->line) return false;
    if (!pthread_mutex_trylock(&running)) return true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_NANOSECONDS;
    if (until.tv_nsec >= SECOND_NANOSECONDS) {
        until.tv_nsec -= SECOND_NANOSECONDS;
        until.tv_sec++;
    }
    return !pthread_mutex_timedlock(&running, &until);
}

void cpu_deed_leave(bool entered) {
    if (entered) pthread_mutex_unlock(&running);
}

/* ---- what deeds tell each other -------------------------------------------------------------------------------------- */

/* Several may share a place: then the older one is forgotten. */
static struct told *told_at(uint64_t address) { return &told[(address >> 2) * UINT64_C(0x9E3779B97F4A7C15) >> 52]; }

void cpu_deed_told(uint64_t address, uint32_t number) {
    pthread_mutex_lock(&lock);
    if (told || (told = calloc(TOLD, sizeof *told))) *told_at(address) = (struct told){address, number};
    pthread_mutex_unlock(&lock);
}

void cpu_deed_listen(cpu_moment *now, uint64_t address) {
    pthread_mutex_lock(&lock);
    if (told && told_at(address)->address == address) learn(now, told_at(address)->number);
    pthread_mutex_unlock(&lock);
}
