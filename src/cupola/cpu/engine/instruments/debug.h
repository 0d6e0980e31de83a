/* Kernels that a debugger stops: what Python is given of it (cupola.cpu.debugger). All with the GIL. */
#ifndef CUPOLA_CPU_DEBUG_H
#define CUPOLA_CPU_DEBUG_H

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

/* Who is asked where a thread stops; NULL: nobody, and nothing stops any more. */
void cpu_debug_ask(PyObject *callback);

/* Whether the next thread that comes to a line stops there. */
void cpu_debug_interrupt(bool on);

enum cpu_debug_space {
    CPU_DEBUG_GLOBAL,
    CPU_DEBUG_SHARED,
    CPU_DEBUG_LOCAL, /* of a thread of the block, by its linear index */
    CPU_DEBUG_FRAME, /* the registers of a warp of the block, by its place */
    CPU_DEBUG_PARAM,
};
/* Bytes of the launch that is stopped, or None where there are none. NULL with an exception when nothing is stopped. */
PyObject *cpu_debug_read(int space, uint32_t who, uint64_t address, size_t size);

/* The address of a variable of the module by its place, and a tuple for each warp of the block that is stopped. */
PyObject *cpu_debug_variable(uint32_t place);
PyObject *cpu_debug_warps(void);
PyObject *cpu_debug_barriers(void);
PyObject *cpu_debug_calls(uint32_t thread); /* numbers of the calls that a thread is in, innermost first */
PyObject *cpu_debug_fault(void);            /* kind, site, thread and text of the fault of the launch */

#endif
