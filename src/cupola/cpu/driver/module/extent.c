/* Where an image ends. CUDA's loaders get a pointer and no size, so an image must tell its size itself: text by its
 * zero, ELF images and fat binaries by their headers. What these say is believed only as far as there is memory, or a
 * file, for it: a damaged image is an error, not a crash. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "image.h"
#include "module.h"

/* ---- what can be read ------------------------------------------------------------------------------------------ */

/* Whether AddressSanitizer permits reading this memory, all of which is mapped. Without the sanitizer: true. */
static bool is_allocated(const char *start, size_t size) {
#ifdef __SANITIZE_ADDRESS__
    return __asan_region_is_poisoned((void *)start, size) == NULL;
#else
    (void)start, (void)size;
    return true;
#endif
}

/* The system tells, without a signal, whether a byte of each page can be read, when it is asked to write it to a
 * pipe. The system itself, since sanitizers have a writev() of their own, which reads first. */
static bool is_mapped(const char *start, size_t size) {
    enum { PAGE = 4096, BATCH = 256 };
    if ((uintptr_t)start > UINTPTR_MAX - size) return false;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) return true; /* no files left: as good as not asking */
    bool fine = true;
    for (size_t at = 0; at < size && fine;) {
        struct iovec pages[BATCH];
        char drain[BATCH];
        int count = 0;
        for (; count < BATCH && at < size; count++) {
            pages[count] = (struct iovec){(void *)(start + at), 1};
            at += PAGE - ((uintptr_t)start + at) % PAGE;
        }
        long written = syscall(SYS_writev, ends[1], pages, count);
        fine = written == count && read(ends[0], drain, sizeof drain) == count;
    }
    close(ends[0]);
    close(ends[1]);
    return fine;
}

static bool is_readable(const char *start, size_t size) { return is_mapped(start, size) && is_allocated(start, size); }

/* Whether the image has `end` bytes; limit: the size of what it is in, or UNKNOWN_SIZE. */
static bool has(const void *data, size_t end, size_t limit) {
    return limit == UNKNOWN_SIZE ? is_readable(data, end) : end <= limit;
}

static bool add(size_t *sum, uint64_t more) { return !__builtin_add_overflow(*sum, more, sum); }

/* ---- ELF ------------------------------------------------------------------------------------------------------- */

static bool table_end(uint64_t offset, unsigned count, unsigned size, unsigned expected, size_t *end) {
    *end = 0;
    return !count || (size == expected && add(end, offset) && add(end, (uint64_t)count * size));
}

size_t elf_size(const void *data, size_t limit) {
    Elf64_Ehdr elf;
    size_t end = sizeof elf, sections, segments;
    if (!has(data, sizeof elf, limit)) return 0;
    memcpy(&elf, data, sizeof elf);
    if (memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_ident[EI_CLASS] != ELFCLASS64) return 0;
    if (!table_end(elf.e_shoff, elf.e_shnum, elf.e_shentsize, sizeof(Elf64_Shdr), &sections) ||
        !table_end(elf.e_phoff, elf.e_phnum, elf.e_phentsize, sizeof(Elf64_Phdr), &segments))
        return 0;
    if (end < sections) end = sections;
    if (end < segments) end = segments;
    if (!has(data, end, limit)) return 0;
    for (unsigned i = 0; i < elf.e_shnum; i++) {
        Elf64_Shdr section;
        size_t section_end = 0;
        memcpy(&section, (const char *)data + elf.e_shoff + (size_t)i * sizeof section, sizeof section);
        if (section.sh_type == SHT_NOBITS) continue;
        if (!add(&section_end, section.sh_offset) || !add(&section_end, section.sh_size)) return 0;
        if (end < section_end) end = section_end;
    }
    return has(data, end, limit) ? end : 0;
}

/* The PTX behind an ELF image stands between two records, so that it can be found from either end: the loader has only
 * a pointer to the start, other tools have a file. The first byte that does not fit stops the search. 0: cut off. */
size_t cubin_size(const void *data, size_t limit) {
    size_t size = elf_size(data, limit), whole = size;
    const char *behind = (const char *)data + size;
    if (!size || !has(data, size + PTX_FRAME_SIZE, limit)) return size;
    for (size_t i = 0; i < PTX_MAGIC_SIZE; i++)
        if (behind[i] != PTX_MAGIC[i]) return size;
    uint64_t length;
    memcpy(&length, behind + PTX_MAGIC_SIZE, sizeof length);
    return add(&whole, PTX_FRAME_SIZE) && add(&whole, length) && has(data, whole, limit) ? whole : 0;
}

/* ---- images ---------------------------------------------------------------------------------------------------- */

enum { FAT_MAGIC = 0xBA55ED50, FAT_WRAPPER_MAGIC = 0x466243B1 };

struct fat_header {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;
};
struct fat_wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *linked; /* in version 2: the fat binaries that `data` was linked of, and NULL */
};
enum { LINKED_VERSION = 2, MOST_LINKED = 1 << 20 };

bool is_fat(const void *image, size_t size) {
    uint32_t magic = FAT_MAGIC;
    return size >= sizeof(struct fat_header) && !memcmp(image, &magic, sizeof magic);
}

static CUresult cut_off(const char *what) {
    return fail(CUDA_ERROR_INVALID_IMAGE, "%s is damaged or truncated: its headers claim more bytes than there are",
                what);
}

static CUresult fat_extent(const void *data, size_t limit, size_t *size) {
    struct fat_header header;
    if (!has(data, sizeof header, limit)) return cut_off("the fat binary");
    memcpy(&header, data, sizeof header);
    *size = header.header_size;
    return add(size, header.size) && has(data, *size, limit) ? CUDA_SUCCESS : cut_off("the fat binary");
}

CUresult find_linked(const void *data, const void *const **binaries, size_t *count) {
    struct fat_wrapper wrapper;
    *count = 0;
    if (!has(data, sizeof wrapper, UNKNOWN_SIZE)) return CUDA_SUCCESS;
    memcpy(&wrapper, data, sizeof wrapper);
    if (wrapper.magic != FAT_WRAPPER_MAGIC || wrapper.version != LINKED_VERSION) return CUDA_SUCCESS;
    for (*binaries = wrapper.linked;; ++*count) {
        const void *const *binary = *binaries + *count;
        if (!binary || *count == MOST_LINKED || !is_readable((const char *)binary, sizeof *binary))
            return fail(CUDA_ERROR_INVALID_IMAGE, "the list of linked fat binaries at %p is damaged", *binaries);
        if (!*binary) return CUDA_SUCCESS;
        if (!is_readable(*binary, sizeof(struct fat_header)))
            return fail(CUDA_ERROR_INVALID_IMAGE, "a linked fat binary should be at %p, where no memory is", *binary);
    }
}

/* Up to the zero, or to where no memory is any more. Whole pages are asked about, so AddressSanitizer is not. */
static size_t text_size(const char *text, size_t limit) {
    enum { PAGE = 4096, MANY = 256 * PAGE };
    if (limit != UNKNOWN_SIZE) return strnlen(text, limit);
    size_t most = MANY;
    for (size_t size = 0;;) {
        size_t step = most - ((uintptr_t)text + size) % PAGE;
        if (is_mapped(text + size, step)) {
            size_t length = strnlen(text + size, step);
            size += length;
            if (length < step) return size;
        } else if (most == PAGE) return size;
        else most = PAGE; /* no more than so many are left to be asked about one by one */
    }
}

CUresult find_extent(const void *data, size_t limit, const char **start, size_t *size) {
    uint32_t magic = 0;
    *start = data;
    size_t begin = limit < sizeof magic ? limit : sizeof magic;
    bool is_whole = has(data, begin, limit);
    if (!limit || (is_whole && !((const char *)data)[0])) return fail(CUDA_ERROR_INVALID_IMAGE, "the image is empty");
    /* Text too short to be anything: the compiler says so. */
    begin = is_whole ? strnlen(data, begin) : 0;
    if (begin == sizeof magic) memcpy(&magic, data, sizeof magic);
    if (magic == FAT_WRAPPER_MAGIC && has(data, sizeof(struct fat_wrapper), limit)) {
        struct fat_wrapper wrapper;
        memcpy(&wrapper, data, sizeof wrapper);
        limit = UNKNOWN_SIZE;
        if (!is_readable(wrapper.data, sizeof(struct fat_header)))
            return fail(CUDA_ERROR_INVALID_IMAGE, "the wrapper of the fat binary points to %p, where no memory is",
                        wrapper.data);
        *start = data = wrapper.data;
        memcpy(&magic, data, sizeof magic);
    }
    if (magic == FAT_MAGIC) return fat_extent(data, limit, size);
    if (memcmp(&magic, ELFMAG, SELFMAG)) {
        *size = text_size(data, limit);
        return *size ? CUDA_SUCCESS : fail(CUDA_ERROR_INVALID_IMAGE, "the image is empty, or no memory is at %p", data);
    }
    *size = cubin_size(data, limit);
    return *size ? CUDA_SUCCESS : cut_off("the cubin");
}
