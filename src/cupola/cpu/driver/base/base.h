/* The base of the emulated driver: statuses, devices, contexts, handles, and how entry points begin and end.
 *
 * Rooms of the driver, upward: base, stream, memory, module, texture, graphics, tensor, graph, ipc, checkpoint. A room
 * includes its own headers and those of rooms below; what it needs of a room above is declared in its above.h, and defined
 * there. Each room has a file per family of the CUDA Driver API. An entry point has the name and C ABI that CUDA gives it,
 * begins with one of the enter_*() checks, and reports failure with fail(), which keeps a sentence for the user beside the
 * status. A file ends with the table of its entry points. Symbols of this module are hidden, so that the names cannot clash
 * with a libcuda that the process has loaded as well. */
#ifndef CUPOLA_CPU_DRIVER_BASE_H
#define CUPOLA_CPU_DRIVER_BASE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cupola/driver.h>

#include "above.h"
#include "context.h"
#include "device.h"
#include "entry.h"
#include "handle.h"
#include "settings.h"
#include "status.h"

#endif
