/* Records, in the order in which they end. They are in pieces that never move, so adding one is a store under a lock that
 * is held for that long. */
#include "driver/trace/trace.h"

#include <pthread.h>

#include "common/names.h"

enum { PIECE = 4096, PIECES = 4096 };

_Atomic bool trace_on;
_Thread_local uint64_t trace_call;
_Thread_local const void *trace_stream;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace_record *pieces[PIECES];
static size_t count, limit, lost;

static struct names names;

void trace_begin(size_t most) {
    const size_t room = (size_t)PIECE * PIECES;
    pthread_mutex_lock(&lock);
    count = lost = 0;
    limit = most < room ? most : room;
    pthread_mutex_unlock(&lock);
    atomic_store(&trace_on, true);
}

void trace_end(void) { atomic_store(&trace_on, false); }

void trace_add(const struct trace_record *record) {
    pthread_mutex_lock(&lock);
    struct trace_record **piece = &pieces[count / PIECE];
    if (count >= limit || (!*piece && !(*piece = malloc(PIECE * sizeof **piece)))) lost++;
    else (*piece)[count++ % PIECE] = *record;
    pthread_mutex_unlock(&lock);
}

bool trace_read(size_t index, struct trace_record *record) {
    pthread_mutex_lock(&lock);
    bool is_there = index < count;
    if (is_there) *record = pieces[index / PIECE][index % PIECE];
    pthread_mutex_unlock(&lock);
    return is_there;
}

size_t trace_lost(void) {
    pthread_mutex_lock(&lock);
    size_t result = lost;
    pthread_mutex_unlock(&lock);
    return result;
}

const char *trace_name(const char *name) {
    pthread_mutex_lock(&lock);
    const char *kept = names_keep(&names, name);
    pthread_mutex_unlock(&lock);
    return kept ? kept : "(no memory for the name)";
}
