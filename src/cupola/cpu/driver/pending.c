/* Capture and graphs are not here yet: weak stand-ins, which their files replace. */
#include "internal.h"
#define W __attribute__((weak))
#define NO {NULL,NULL,NULL}
W const struct entry capture_entries[] = {NO};
W const struct entry graph_entries[] = {NO};
W const struct entry graph_node_entries[] = {NO};
W const struct entry graph_exec_entries[] = {NO};
W CUresult graph_execute(struct op *op){(void)op;return 0;}
W void graph_op_retain(struct op *op){(void)op;}
W void graph_op_release(struct op *op){(void)op;}
W CUresult capture_add(CUstream stream, struct op *op){(void)stream;op_free(op);return 900;}
W CUresult capture_record(CUstream stream, CUevent event, unsigned flags){(void)stream;(void)event;(void)flags;return 900;}
W CUresult capture_wait(CUstream stream, CUevent event, unsigned flags){(void)stream;(void)event;(void)flags;return 900;}
W bool capture_owns_event(CUevent event){(void)event;return 0;}
W CUresult capture_refuse(CUstream stream, const char *call){(void)stream;(void)call;return 900;}
W CUresult capture_check_thread(const char *call){(void)call;return 0;}
W CUresult capture_check_legacy(CUcontext context){(void)context;return 0;}
W void capture_stream_destroyed(CUstream stream){(void)stream;}
W void capture_event_forget(CUevent event){(void)event;}
W CUresult capture_allocate(CUstream stream, CUmemoryPool pool, size_t size, CUdeviceptr*a){(void)stream;(void)pool;(void)size;(void)a;return 900;}
W CUresult capture_free(CUstream stream, CUdeviceptr a){(void)stream;(void)a;return 900;}
