/* What the room above provides to graphs: launches of graphs by kernels (device_side/graph.c). */
#ifndef CUPOLA_CPU_DRIVER_GRAPH_ABOVE_H
#define CUPOLA_CPU_DRIVER_GRAPH_ABOVE_H

#include "driver/base/base.h"

/* Carry out a launch by the host of a graph that kernels may launch, or whose kernels launch graphs. */
struct op;
struct plan;
CUresult graph_run_from_host(struct plan *plan, const struct op *op);

#endif
