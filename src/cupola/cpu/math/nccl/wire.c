/* Wires: rings in shared memory, and sockets. */
#define _GNU_SOURCE /* memfd_create, POLLRDHUP */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE = 100 /* milliseconds */, LINE = 64 };

static const size_t capacities[LANES] = {[LANE_DATA] = 256 << 10, [LANE_CONTROL] = 4 << 10};

/* One writes, the other reads. What each of them writes often lies in a cache line of its own. */
struct ring {
    _Atomic uint64_t written; /* bytes, ever */
    _Atomic uint32_t reader_sleeps;
    _Atomic uint32_t is_closed; /* nothing more will be written */
    char first_padding[LINE - 16];
    _Atomic uint64_t read;
    _Atomic uint32_t writer_sleeps;
    char second_padding[LINE - 12];
    char bytes[];
};

static size_t ring_size(enum lane lane) { return sizeof(struct ring) + capacities[lane]; }
static size_t memory_size(void) { return 2 * (ring_size(LANE_DATA) + ring_size(LANE_CONTROL)); }

struct wire wire_none(void) { return (struct wire){.sockets = {-1, -1}, .bells = {-1, -1}}; }

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

int wire_memory_new(void) {
    int file = memfd_create("cupola-nccl", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) return -1;
    if (!ftruncate(file, (off_t)memory_size()) && !fcntl(file, F_ADD_SEALS, SEALS)) return file;
    close(file);
    return -1;
}

bool wire_open_local(struct wire *wire, int memory, bool first) {
    /* A file that is too short, or becomes so, would end this process at the first access. */
    if (lseek(memory, 0, SEEK_END) != (off_t)memory_size() || (fcntl(memory, F_GET_SEALS) & SEALS) != SEALS)
        return false;
    void *shared = mmap(NULL, memory_size(), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (shared == MAP_FAILED) return false;
    char *at = wire->shared = shared;
    for (int lane = 0; lane < LANES; lane++) {
        struct ring *forth = (struct ring *)at, *back = (struct ring *)(at + ring_size((enum lane)lane));
        wire->out[lane] = first ? forth : back;
        wire->in[lane] = first ? back : forth;
        at += 2 * ring_size((enum lane)lane);
    }
    wire->is_local = true;
    return true;
}

static void close_file(int *file) {
    if (*file >= 0) close(*file);
    *file = -1;
}

void wire_shut(struct wire *wire, enum lane lane) {
    if (wire->is_local) {
        atomic_store(&wire->out[lane]->is_closed, 1);
        wire_ring(wire->bells[lane]);
    } else if (wire->sockets[lane] >= 0) {
        shutdown(wire->sockets[lane], SHUT_WR);
    }
}

bool wire_has_ended(const struct wire *wire, enum lane lane) {
    if (wire->is_local && (atomic_load(&wire->gone) || atomic_load(&wire->in[lane]->is_closed))) return true;
    struct pollfd one = {.fd = wire->sockets[wire->is_local ? 0 : lane], .events = POLLRDHUP};
    return one.fd < 0 || (poll(&one, 1, 0) > 0 && one.revents);
}

void wire_close(struct wire *wire) {
    for (int lane = 0; lane < LANES; lane++) {
        if (wire->shared || wire->sockets[lane] >= 0) wire_shut(wire, (enum lane)lane);
        close_file(&wire->sockets[lane]);
        close_file(&wire->bells[lane]);
    }
    if (wire->shared) munmap(wire->shared, memory_size());
    *wire = wire_none();
}

void wire_ring(int bell) {
    const uint64_t one = 1;
    if (bell >= 0 && write(bell, &one, sizeof one) < 0) return; /* it rings already */
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* How much of a ring is full. The other process may have written anything there. The order is the strongest: who has said
 * that it sleeps must not see counters from before that. */
static size_t ring_fill(const struct ring *ring, enum lane lane, bool *broken) {
    uint64_t fill = atomic_load(&ring->written) - atomic_load(&ring->read);
    *broken = fill > capacities[lane];
    return *broken ? 0 : (size_t)fill;
}

/* How much of a copy comes before the end of the ring, which goes on at its beginning. */
static size_t before_end(enum lane lane, size_t at, size_t size) {
    return capacities[lane] - at < size ? capacities[lane] - at : size;
}

static void ring_put(struct ring *ring, enum lane lane, uint64_t place, const char *from, size_t size) {
    size_t at = place % capacities[lane], first = before_end(lane, at, size);
    memcpy(ring->bytes + at, from, first);
    memcpy(ring->bytes, from + first, size - first);
}

static void ring_get(const struct ring *ring, enum lane lane, uint64_t place, char *to, size_t size) {
    size_t at = place % capacities[lane], first = before_end(lane, at, size);
    memcpy(to, ring->bytes + at, first);
    memcpy(to + first, ring->bytes, size - first);
}

static ssize_t local_write(struct wire *wire, enum lane lane, const void *bytes, size_t size) {
    struct ring *ring = wire->out[lane];
    bool broken;
    size_t room = capacities[lane] - ring_fill(ring, lane, &broken);
    if (broken || atomic_load(&wire->gone) || atomic_load(&wire->in[lane]->is_closed)) return -1;
    if (size > room) size = room;
    if (!size) return 0;
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    ring_put(ring, lane, written, bytes, size);
    atomic_store(&ring->written, written + size);
    if (atomic_exchange(&ring->reader_sleeps, 0)) wire_ring(wire->bells[lane]);
    return (ssize_t)size;
}

static ssize_t local_read(struct wire *wire, enum lane lane, void *bytes, size_t size) {
    struct ring *ring = wire->in[lane];
    bool broken, over = atomic_load(&wire->gone) || atomic_load(&ring->is_closed); /* before what is in the ring */
    size_t fill = ring_fill(ring, lane, &broken);
    if (broken || (over && !fill)) return -1;
    if (size > fill) size = fill;
    if (!size) return 0;
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    ring_get(ring, lane, read, bytes, size);
    atomic_store(&ring->read, read + size);
    if (atomic_exchange(&ring->writer_sleeps, 0)) wire_ring(wire->bells[lane]);
    return (ssize_t)size;
}

static ssize_t of_socket(struct wire *wire, ssize_t result) {
    if (result > 0) return result;
    if (result < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    atomic_store(&wire->gone, true);
    return -1;
}

ssize_t wire_write(struct wire *wire, enum lane lane, const void *bytes, size_t size) {
    if (!size) return 0;
    if (wire->is_local) return local_write(wire, lane, bytes, size);
    if (wire->sockets[lane] < 0) return -1;
    ssize_t sent = of_socket(wire, send(wire->sockets[lane], bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL));
    return !sent && wire_has_ended(wire, lane) ? -1 : sent; /* there is no room, and nobody who makes some */
}

ssize_t wire_read(struct wire *wire, enum lane lane, void *bytes, size_t size) {
    if (!size) return 0;
    if (wire->is_local) return local_read(wire, lane, bytes, size);
    if (wire->sockets[lane] < 0) return -1;
    return of_socket(wire, recv(wire->sockets[lane], bytes, size, MSG_DONTWAIT));
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Say that this side sleeps, and look once more: the other looks at the flag after it has moved its counter. */
static bool is_ready(struct wire *wire, enum lane lane, bool reads, bool writes) {
    bool broken = false, ready = atomic_load(&wire->gone) || atomic_load(&wire->in[lane]->is_closed);
    if (reads) {
        atomic_store(&wire->in[lane]->reader_sleeps, 1);
        ready |= ring_fill(wire->in[lane], lane, &broken) > 0 || broken;
    }
    if (writes) {
        atomic_store(&wire->out[lane]->writer_sleeps, 1);
        ready |= ring_fill(wire->out[lane], lane, &broken) < capacities[lane] || broken;
    }
    return ready;
}

void wire_sleep(struct wire *wires, int count, enum lane lane, const bool *reads, const bool *writes, int bell) {
    struct pollfd *files = malloc((size_t)(count + 1) * sizeof *files);
    int *of = malloc((size_t)(count + 1) * sizeof *of), used = 1;
    bool ready = !files || !of;
    for (int i = 0; !ready && i < count; i++) {
        struct wire *wire = &wires[i];
        if (!reads[i] && !writes[i]) continue;
        if (wire->is_local) ready = is_ready(wire, lane, reads[i], writes[i]);
        of[used] = i;
        files[used++] = (struct pollfd){
            .fd = wire->sockets[wire->is_local ? 0 : lane],
            .events =
                (short)(wire->is_local ? POLLRDHUP : (reads[i] ? POLLIN : 0) | (writes[i] ? POLLOUT | POLLRDHUP : 0)),
        };
    }
    if (!ready) {
        files[0] = (struct pollfd){.fd = bell, .events = POLLIN};
        poll(files, (nfds_t)used, PATIENCE);
        for (int i = 1; i < used; i++)
            if (wires[of[i]].is_local && files[i].revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL))
                atomic_store(&wires[of[i]].gone, true);
        uint64_t rings;
        if (files[0].revents && read(bell, &rings, sizeof rings) < 0) errno = 0; /* another thread has heard it */
    }
    free(files);
    free(of);
}
