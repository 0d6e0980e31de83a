/* What the rooms above provide to the base: the ends of what hangs on a context. */
#ifndef CUPOLA_CPU_DRIVER_BASE_ABOVE_H
#define CUPOLA_CPU_DRIVER_BASE_ABOVE_H

#include "context.h"

/* What goes with a context, in this order. */
void streams_context_destroyed(CUcontext context); /* waits for all their work */
void events_context_destroyed(CUcontext context);
void modules_context_destroyed(CUcontext context);
void references_context_destroyed(CUcontext context);
void textures_context_destroyed(CUcontext context);
void graphics_context_destroyed(CUcontext context); /* with its arrays and memory */
void arrays_context_destroyed(CUcontext context);   /* before the memory: what it was for */
void memory_context_destroyed(CUcontext context);   /* frees everything that was allocated in it */

/* Wait for all streams of the context (stream/queue.c). */
CUresult context_synchronize(CUcontext context);

/* The module of a recorded fault (module/module.c): gives a reference back; any thread, without the GIL. */
void module_release(CUmodule module);
void images_sweep(void); /* free released images (module/image.c); takes the GIL, so hold no lock of the driver */

/* A device that a test has taken away (inject/inject.c): the status of what needs it, explained; and that without an
 * explanation. CUDA_SUCCESS: it is there. */
CUresult device_check_presence(int device);
CUresult injected_loss(int device);

/* Let other processes checkpoint this one (checkpoint/service.c): from now on; and no longer, in a forked child. */
void checkpoint_serve(void);
void checkpoint_forget(void);

#endif
