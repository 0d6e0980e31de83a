/* The order of operations, while races are checked: who calls these asks moments() first (moment.c). */
#ifndef CUPOLA_CPU_DRIVER_MOMENT_H
#define CUPOLA_CPU_DRIVER_MOMENT_H

#include "driver/base/checks.h"
#include "engine/checks/moments.h"
#include "stream.h"

static inline bool moments(void) { return checks(CPU_CHECK_RACE); }

void moment_prepare(struct op *op); /* before it is queued, without locks; may take the GIL */
void moment_submitted(CUstream stream, struct op *op);
/* An operation that accesses pinned or managed memory is let run for a moment before the host goes on: what the host
 * does while it runs is not seen. Without locks that it needs; gives up the GIL. */
bool moment_is_for_host(const struct op *op);
void moment_let_run(CUstream stream);
void moment_recorded(CUevent event, CUstream stream);
void moment_waits_for(CUstream stream, CUstream other); /* all that has been queued there */
void moment_waits_for_event(CUstream stream, CUevent event);
void moment_host_waited(CUstream stream);
void moment_host_waited_for_context(CUcontext context); /* and for its streams, one by one */
void moment_stream_ends(CUstream stream);               /* checked or not */
void moment_host_waited_for_event(CUevent event);

/* For the thread that carries an operation out, when cpu_moment_now is not NULL: copies, fills and frees. */
void moment_touch(const struct op *op);
void moment_value_written(uint64_t address);
void moment_value_seen(uint64_t address);

/* Memory is allocated or freed in a stream by the call itself. Without locks; may take the GIL. */
void moment_touch_at_once(CUstream stream, uint64_t address, uint64_t size, bool frees);

#endif
