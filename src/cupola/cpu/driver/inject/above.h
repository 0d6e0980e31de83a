/* What the rooms above provide to injected faults. */
#ifndef CUPOLA_CPU_DRIVER_INJECT_ABOVE_H
#define CUPOLA_CPU_DRIVER_INJECT_ABOVE_H

#include <stdbool.h>

/* Streams take turns no longer; and: here the program calls, so that streams may get some (stream/turns.c). */
void turns_end(void);
void turns_at_call(bool polls);

#endif
