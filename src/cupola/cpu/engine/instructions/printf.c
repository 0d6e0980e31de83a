/* printf from kernels: what a call of vprintf(format, arguments) prints (CUDA C++ Programming Guide, "Formatted
 * Output").
 *
 * The arguments lie one behind the other in memory of the thread, each aligned to its size, promoted as C does. Every
 * thread's text is written to the C library's stdout at once, in the order of the lanes; a GPU would keep it until the
 * next synchronization. It has so much room for that (CU_LIMIT_PRINTF_FIFO_SIZE), and what one launch prints beyond it is
 * lost, unless the host takes lines out meanwhile. Here all calls that find no room are lost. */
#include "access.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "engine/memory/memory.h"

struct output {
    char text[8192];
    size_t used;
};

/* Of one conversion so many characters are printed at most, so a larger width makes no difference. */
enum { PIECE_BYTES = 512 };

enum { PRINT_RECORD = 256 };

static const char flags[] = "-+ #0";

/* What stands between "%" and a conversion's length and type. */
struct form {
    char flags[sizeof flags]; /* each once, as a string */
    int width, precision;     /* 0 and -1: none */
};

struct arguments {
    cpu_context *context;
    const cpu_warp *warp;
    int lane;
    uint32_t site;
    uint64_t at;
};

/* The next argument, of 4 or 8 bytes; false on a fault. */
static bool next(struct arguments *arguments, uint8_t size, uint64_t *value) {
    arguments->at = (arguments->at + size - 1) & ~(uint64_t)(size - 1);
    cpu_site site = {.index = arguments->site, .size = size, .element = size, .space = CPU_SITE_GENERIC};
    const void *source = cpu_resolve(arguments->context, arguments->warp, arguments->lane, site, arguments->at);
    if (!source) return false;
    *value = 0;
    memcpy(value, source, size);
    arguments->at += size;
    return true;
}

/* A string of the device; NULL on a fault. Cut where the output's room ends. */
static const char *string_at(struct arguments *arguments, uint64_t address, size_t *length) {
    cpu_allocation found;
    if (!cpu_memory_find(address, &found)) {
        cpu_site site = {.index = arguments->site, .size = 1, .element = 1, .space = CPU_SPACE_GLOBAL};
        cpu_fault_raise_access(arguments->context, arguments->warp, arguments->lane, CPU_FAULT_OUT_OF_BOUNDS, site,
                               address, 1, NULL);
        return NULL;
    }
    const char *text = (const char *)(uintptr_t)address;
    *length = strnlen(text, found.base + found.size - address);
    return text;
}

static void put(struct output *output, const char *text, size_t length) {
    size_t room = sizeof output->text - output->used;
    if (length > room) length = room;
    memcpy(output->text + output->used, text, length);
    output->used += length;
}

/* One conversion of the form, whose length and type are `type`. */
#define FORMAT(type, value)                                                                                            \
    do {                                                                                                               \
        char full[16], piece[PIECE_BYTES];                                                                             \
        snprintf(full, sizeof full, "%%%s*.*%s", form->flags, type);                                                   \
        int written = snprintf(piece, sizeof piece, full, form->width, form->precision, value);                        \
        if (written > 0) put(output, piece, (size_t)written < sizeof piece ? (size_t)written : sizeof piece - 1);      \
    } while (0)

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static bool convert(struct output *output, struct arguments *arguments, const struct form *form, int longs, char type) {
    const char short_type[] = {type, 0}, long_type[] = {'l', 'l', type, 0};
    uint64_t value;
    double real;
    size_t length = 0;
    bool wide = longs > 0 || strchr("psfFeEgGaA", type);
    if (!next(arguments, wide ? 8 : 4, &value)) return false;
    switch (type) {
        case 'd':
        case 'i': FORMAT(long_type, wide ? (long long)value : (long long)(int32_t)value); return true;
        case 'u':
        case 'o':
        case 'x':
        case 'X': FORMAT(long_type, (unsigned long long)value); return true;
        case 'c': FORMAT(short_type, (int)value); return true;
        case 'p': FORMAT(short_type, (void *)(uintptr_t)value); return true;
        case 's': {
            const char *text = value ? string_at(arguments, value, &length) : "(null)";
            if (!text) return false;
            if (!value) length = strlen(text);
            if (!form->width && form->precision < 0) {
                put(output, text, length);
            } else { /* the string need not end in zero */
                char copy[PIECE_BYTES];
                if (length > sizeof copy - 1) length = sizeof copy - 1;
                memcpy(copy, text, length);
                copy[length] = 0;
                FORMAT(short_type, copy);
            }
            return true;
        }
        default:
            memcpy(&real, &value, sizeof real);
            FORMAT(short_type, real);
            return true;
    }
}

static void add_flag(struct form *form, char flag) {
    size_t used = strlen(form->flags);
    if (strchr(form->flags, flag)) return;
    form->flags[used] = flag;
    form->flags[used + 1] = 0;
}

/* The number at `*at`, or for a star the next argument, within what makes a difference; false on a fault. */
static bool number_at(struct arguments *arguments, const char **at, const char *end, int *number, int *count) {
    *number = 0;
    if (*at < end && **at == '*') {
        uint64_t value;
        if (!next(arguments, 4, &value)) return false;
        *number = (int32_t)value;
        ++*count;
        ++*at;
    }
    for (; *at < end && isdigit((unsigned char)**at); ++*at)
        if (*number < PIECE_BYTES) *number = 10 * *number + (**at - '0');
    if (*number > PIECE_BYTES) *number = PIECE_BYTES;
    if (*number < -PIECE_BYTES) *number = -PIECE_BYTES;
    return true;
}

/* Flags, a width and a precision, in this order and each once, as in C. A negative width is a flag and a width; a
 * negative precision counts as no precision. */
static bool form_at(struct arguments *arguments, const char **at, const char *end, struct form *form, int *count) {
    *form = (struct form){.precision = -1};
    for (; *at < end && **at && strchr(flags, **at); ++*at) add_flag(form, **at);
    if (!number_at(arguments, at, end, &form->width, count)) return false;
    if (form->width < 0) {
        add_flag(form, '-');
        form->width = -form->width;
    }
    if (*at == end || **at != '.') return true;
    ++*at;
    return number_at(arguments, at, end, &form->precision, count);
}

/* Print for one thread; the number of arguments, or -1 after a fault. */
static int print(struct output *output, struct arguments *arguments, uint64_t format) {
    size_t length;
    const char *at = string_at(arguments, format, &length);
    if (!at) return -1;
    const char *end = at + length;
    int count = 0;
    while (at < end) {
        const char *percent = memchr(at, '%', (size_t)(end - at));
        if (!percent) percent = end;
        put(output, at, (size_t)(percent - at));
        if (percent == end) break;
        struct form form;
        int longs = 0;
        at = percent + 1;
        if (!form_at(arguments, &at, end, &form, &count)) return -1;
        for (; at < end && strchr("hljztL", *at); at++) longs += *at != 'h';
        if (at == end) break;
        char type = *at++;
        if (type == '%') {
            put(output, "%", 1);
        } else if (strchr("diuoxXcpsfFeEgGaA", type)) {
            if (!convert(output, arguments, &form, longs, type)) return -1;
            count++;
        } else { /* not a conversion: as it stands */
            put(output, percent, (size_t)(at - percent));
        }
    }
    return count;
}

/* Whether there is room for one more call: an H200 keeps 256 bytes of each, whatever it prints. */
static bool take_room(cpu_launch *launch) {
    if (__atomic_add_fetch(&launch->printed, PRINT_RECORD, __ATOMIC_RELAXED) <= launch->print_room) return true;
    __atomic_fetch_add(&launch->prints_lost, 1, __ATOMIC_RELAXED);
    return false;
}

/* vprintf for the lanes of the mask. Nonzero on a fault. */
CPU_HELPER uint32_t cupola_vprintf(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint64_t *formats,
                                   const uint64_t *lists, uint32_t *results, uint32_t site) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    for (; mask; mask &= mask - 1) {
        int lane = __builtin_ctz(mask);
        struct output output = {.used = 0};
        struct arguments arguments = {context, warp, lane, site, lists[lane]};
        int count = print(&output, &arguments, formats[lane]);
        if (count < 0) return 1;
        results[lane] = (uint32_t)count;
        if (!take_room(context->job->launch)) continue;
        pthread_mutex_lock(&lock);
        fwrite(output.text, 1, output.used, stdout);
        fflush(stdout);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
