/* How a cubin carries its PTX: behind the ELF image, a record, the PTX, a record; so nvrtc.c and nvjitlink.c write it,
 * image.c and cupola.cpu.compiler read it.
 *
 *     ELF image | magic, 8 bytes | u64 length | PTX | u64 length | magic, 8 bytes */
#ifndef CUPOLA_CPU_DRIVER_IMAGE_H
#define CUPOLA_CPU_DRIVER_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PTX_MAGIC "cupolaPT"
enum { PTX_MAGIC_SIZE = 8, PTX_FRAME_SIZE = 32 }; /* both records */

/* Sizes of images in memory or a file of `limit` bytes, or in memory with an unknown end (extent.c). */
#define UNKNOWN_SIZE SIZE_MAX
size_t elf_size(const void *data, size_t limit);   /* of a 64-bit ELF image; 0 when it is not one, or damaged */
size_t cubin_size(const void *data, size_t limit); /* with the PTX behind it; 0 likewise */
bool is_fat(const void *image, size_t size);       /* a fat binary */

/* The records and the PTX between them, PTX_FRAME_SIZE + size bytes; `ptx` may lie where it ends up. */
void write_ptx_frame(char *target, const char *ptx, size_t size);

/* The PTX in an image of `size` bytes that need not end with a zero: text, a cubin with its PTX, a fat binary. It is to
 * be freed and has a zero behind it. False if there is no PTX. May take the GIL. */
bool copy_ptx(const void *image, size_t size, char **ptx, size_t *length);

/* The library that the process has loaded already under a name with this beginning, or NULL: that of the bindings, or
 * any if they have none. Those of the CPU device that pass calls on to it (provider/compilers) do not count. */
void *loaded_library(const char *prefix);
void library_of_bindings(const char *name, void *library); /* "nvrtc" or "nvJitLink" */

#endif
