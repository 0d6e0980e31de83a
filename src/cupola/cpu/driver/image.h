/* How a cubin carries its PTX: behind the ELF image, a record, the PTX, a record; so nvrtc.c writes it, image.c and
 * cupola.cpu.compiler read it.
 *
 *     ELF image | magic, 8 bytes | u64 length | PTX | u64 length | magic, 8 bytes */
#ifndef CUPOLA_CPU_DRIVER_IMAGE_H
#define CUPOLA_CPU_DRIVER_IMAGE_H

#include <stddef.h>

#define PTX_MAGIC "cupolaPT"
enum { PTX_MAGIC_SIZE = 8, PTX_FRAME_SIZE = 32 }; /* both records */

size_t elf_size(const void *data); /* of a 64-bit ELF image; 0 when it is not one */

#endif
