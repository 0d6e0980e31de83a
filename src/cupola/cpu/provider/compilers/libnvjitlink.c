/* A libnvJitLink.so for programs that link device code themselves, such as numba: NVIDIA's linker, whose cubins keep
 * their PTX.
 *
 * Its functions are jumps to those of the real library, but for those that feed a link and fetch its cubin: these are the
 * driver's (driver/module/nvjitlink.c), as for the bindings. Each function has a second name for each version of the
 * headers, such as __nvJitLinkCreate_13_0, by which programs in C call it. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cupola/nvjitlink.h>

#include "provider/connect.h"
#include "provider/compilers/real.h"

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)
#define NAME "libnvJitLink.so." TEXT(NVJITLINK_MAJOR)

__attribute__((visibility("default"))) const char cupola_keeps_ptx = 1;

static const char *copies(void) { return getenv("CUPOLA_LIBNVJITLINK"); }

const struct real real = {
    .name = NAME,
    .copies = copies,
    .wheel = NVJITLINK_MAJOR < 13 ? "nvidia-nvjitlink-cu" TEXT(NVJITLINK_MAJOR) : "nvidia-nvjitlink",
};

/* nvJitLinkCreate for __nvJitLinkCreate_13_0. */
static void plain_name(const char *symbol, char *plain, size_t room) {
    while (*symbol == '_') symbol++;
    snprintf(plain, room, "%s", symbol);
    char *end = plain + strlen(plain);
    while (end > plain && (isdigit((unsigned char)end[-1]) || end[-1] == '_')) *--end = '\0';
}

/* Whether it is one of the driver's. */
static bool is_kept(const char *plain) {
    static const char *const kept[] = {"nvJitLinkCreate",
                                       "nvJitLinkDestroy",
                                       "nvJitLinkAddData",
                                       "nvJitLinkAddFile",
                                       "nvJitLinkGetLinkedCubinSize",
                                       "nvJitLinkGetLinkedCubin"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!strcmp(plain, kept[i])) return true;
    return false;
}

static nvJitLinkResult absent(void) { return NVJITLINK_ERROR_INTERNAL; }

/* The driver looks for the real library in the process, so that is loaded first. Without the driver, which has told why
 * it cannot be reached, links are NVIDIA's. */
static void *find_function(const char *symbol) {
    char plain[64];
    void *own = in_real(symbol), *function = NULL;
    if (!own && real_library()) fprintf(stderr, "cupola: the library " NAME " that is installed has no %s\n", symbol);
    if (!own) return (void *)(uintptr_t)absent;
    plain_name(symbol, plain, sizeof plain);
    const struct cpu_programs *programs = is_kept(plain) ? connect_driver() : NULL;
    if (programs) function = programs->driver(plain);
    return function ? function : own;
}

#if NVJITLINK_MAJOR == 12
#define SYMBOLS "provider/compilers/libnvjitlink12_symbols.h"
#else
#define SYMBOLS "provider/compilers/libnvjitlink13_symbols.h"
#endif
#include "provider/jumps.h"
