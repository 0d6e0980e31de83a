/* What bytes travel on between two ranks: rings in memory that both have mapped, on one host, or TCP between hosts (wire.c).
 *
 * A wire has two lanes, one for what streams carry out and one for what the host's calls agree on, so that neither waits for
 * the other. Nothing here blocks but wire_sleep(). A local wire has a socket, too, over which nothing is sent any more: the
 * kernel tells by it that the other process is gone. All memory is that of descriptors without a name, so nothing stays
 * behind, however a process ends. */
#ifndef CUPOLA_CPU_MATH_NCCL_WIRE_H
#define CUPOLA_CPU_MATH_NCCL_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum lane { LANE_DATA, LANE_CONTROL, LANES };

struct wire {
    bool is_local;
    _Atomic bool gone;  /* the other process has ended, or has closed the wire */
    int sockets[LANES]; /* a local wire has the first only; -1: none */
    int bells[LANES];   /* of the other rank, which sleeps until somebody writes to them; local wires only */
    void *shared;
    struct ring *in[LANES], *out[LANES];
};

struct wire wire_none(void);
int wire_memory_new(void); /* a descriptor for the memory of a local wire, or -1 */
bool wire_open_local(struct wire *wire, int memory, bool first); /* `first`: of the two ranks. Keeps no descriptor */
void wire_close(struct wire *wire);
void wire_shut(struct wire *wire, enum lane lane); /* the other rank finds what was written, and then the end */
bool wire_has_ended(const struct wire *wire, enum lane lane); /* the other rank has shut it, or is gone */

/* How many bytes went through now: 0 when none can. -1: and none will. */
ssize_t wire_write(struct wire *wire, enum lane lane, const void *bytes, size_t size);
ssize_t wire_read(struct wire *wire, enum lane lane, void *bytes, size_t size);

/* Sleep until one of the wires may go on, `bell` rings, or a tenth of a second is over. `reads` and `writes` say for which
 * of the `count` wires. */
void wire_sleep(struct wire *wires, int count, enum lane lane, const bool *reads, const bool *writes, int bell);
void wire_ring(int bell);

#endif
