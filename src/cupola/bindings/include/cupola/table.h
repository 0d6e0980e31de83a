/* What the function tables of all libraries share.
 *
 * A table is one struct of C function pointers for a library, head first, with one slot for each function under its
 * public name and newest meaning. `cupola.bindings.driver` owns the table of the CUDA driver and publishes it as the
 * PyCapsule "cupola.bindings.driver._table"; other compiled code gets it with cupola_import_driver() and calls
 *
 *     const cupola_driver_table *cu = cupola_import_driver();    // once, with the GIL; NULL with an exception set
 *     CUresult status = cu->cuMemAlloc(&pointer, size);          // with or without the GIL
 *     if (status != CUDA_SUCCESS && cu->head.raise_pending() < 0) return NULL;    // with the GIL
 *
 * Slots start as thunks: the first call chooses a provider and loads its library (it takes the GIL itself for that),
 * finds the symbol, stores it in the slot and forwards the call. Always read the slot from the table: a copy of it
 * would keep the thunk, which works but looks the symbol up again. A function that the loaded library lacks returns
 * its "not found" status and leaves a pending error that raise_pending() turns into a Python exception.
 */
#ifndef CUPOLA_TABLE_H
#define CUPOLA_TABLE_H

#include <stddef.h>

typedef struct cupola_table_head {
    /* What fills the table: the path of a library or "cupola CPU device"; NULL when nothing is chosen yet. */
    const char *(*provider)(void);
    /* With the GIL held: when this thread's last failing call failed because the function is missing from the loaded
     * library, or because no library could be loaded, sets that Python exception and returns -1; else returns 0. */
    int (*raise_pending)(void);
    /* Writes the provider's longer explanation of `status`, the one last returned to this thread, as a C string that
     * is cut to `size` bytes; returns its full length, 0 when there is none. */
    size_t (*explain)(int status, char *text, size_t size);
    /* Size of the whole table in bytes; a later version of cupola only appends. */
    size_t size;
} cupola_table_head;

#endif
