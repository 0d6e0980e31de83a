/* What the rooms above provide to streams: how operations are carried out, and captures. */
#ifndef CUPOLA_CPU_DRIVER_STREAM_ABOVE_H
#define CUPOLA_CPU_DRIVER_STREAM_ABOVE_H

#include "event.h"
#include "op.h"

/* ---- operations of each kind ------------------------------------------------------------------------------------- */

/* Launches (module/launch.c). */
CUresult kernel_execute(struct op *op);
struct op *kernel_op_copy(const struct op *op); /* NULL: out of memory */
void kernel_op_release(struct op *op);          /* before op_free */
const char *kernel_op_name(const struct op *op);

/* Copies, fills and memory (memory/). */
CUresult copy_execute(const struct copy *copy);
CUresult fill_execute(const struct fill *fill);
CUresult memory_execute(struct op *op); /* OP_ALLOCATE, OP_FREE */
void memory_op_retain(struct op *op);   /* after op_copy */
void memory_op_release(struct op *op);  /* before op_free */
void pools_synchronized(void);          /* the host has waited: pools give back what exceeds their thresholds */

/* Graphs (graph/exec.c). */
CUresult graph_execute(struct op *op);
bool graph_is_quick(const struct op *op); /* is the launch expected to end soon? */
void graph_op_retain(struct op *op);
void graph_op_release(struct op *op);

/* ---- captures (graph/capture.c) ---------------------------------------------------------------------------------- */

/* A capturing stream hands its operations over; the op is the callee's. */
CUresult capture_add(CUstream stream, struct op *op);
CUresult capture_add_updatable(CUstream stream, struct op *op, CUgraphDeviceNode *node); /* a launch */
CUresult capture_record(CUstream stream, CUevent event, unsigned flags);
CUresult capture_wait(CUstream stream, CUevent event, unsigned flags);
bool capture_owns_event(CUevent event);                     /* last recorded in a capture, which may have ended */
CUresult capture_refuse_event(CUevent event);               /* of such a one, whose state somebody asks for */
CUresult capture_refuse(CUstream stream, const char *call); /* a call that spoils a capture: the status to return */
CUresult capture_check(CUstream stream);          /* whether the capture that it takes part in, if any, can go on */
CUresult capture_check_thread(const char *call);  /* CUDA_SUCCESS, or why a potentially unsafe call is refused */
CUresult capture_check_legacy(CUcontext context); /* the same for work in the legacy stream */
void capture_stream_destroyed(CUstream stream);
void capture_event_forget(CUevent event);

/* ---- events of several processes (ipc/event.c) ------------------------------------------------------------------- */

/* The state that an event of several processes has in common to them (ipc/event.c). Its records count from 1 on. */
CUresult shared_event_new(struct shared_event **made);
void shared_event_free(struct shared_event *event);
uint64_t shared_event_mark(struct shared_event *event); /* a record is put in a stream; returns its number */
void shared_event_complete(struct shared_event *event, uint64_t record);
uint64_t shared_event_last(const struct shared_event *event);
CUresult shared_event_query(const struct shared_event *event);
CUresult shared_event_wait(const struct shared_event *event, uint64_t record, CUcontext context);

#endif
