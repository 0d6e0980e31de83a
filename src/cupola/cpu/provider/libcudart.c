/* A libcudart.so for programs that are linked with NVIDIA's (nvcc -cudart shared): its functions are jumps to the CPU
 * device's, and what nvcc's host code calls before main() is here.
 *
 * Registering a fat binary only notes it. The first call that needs the device starts that, and hands over what has
 * been noted (cudart/host_code.h). The symbols have the versions that NVIDIA's library gives them (libcudart13.map). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connect.h"
#include "cupola/runtime.h"

#define EXPORTED __attribute__((visibility("default")))

/* ---- fat binaries ---------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct host_binary *binaries; /* complete, newest first */
static const struct cpu_programs *driver;
static bool is_ending; /* main() has returned, or exit() was called */

static void no_memory(void) {
    fputs("cupola: no memory to register the kernels of this program\n", stderr);
    abort(); /* main() has no chance to handle it */
}

static void *room(void *old, size_t bytes) {
    void *made = realloc(old, bytes);
    if (!made) no_memory();
    return made;
}

static void hand_over(struct host_binary *binary) { /* with the lock */
    if (!binary->code && !driver->adopt(binary)) no_memory();
}

EXPORTED void **__cudaRegisterFatBinary(void *image) {
    struct host_binary *binary = room(NULL, sizeof *binary);
    *binary = (struct host_binary){.image = image};
    return (void **)binary;
}

EXPORTED void __cudaRegisterFatBinaryEnd(void **handle) {
    struct host_binary *binary = (struct host_binary *)handle;
    pthread_mutex_lock(&lock);
    binary->next = binaries;
    binaries = binary;
    if (driver) hand_over(binary);
    pthread_mutex_unlock(&lock);
}

EXPORTED void __cudaUnregisterFatBinary(void **handle) {
    struct host_binary *binary = (struct host_binary *)handle;
    if (!binary) return;
    pthread_mutex_lock(&lock);
    struct host_binary **link = &binaries;
    while (*link && *link != binary) link = &(*link)->next;
    if (*link) *link = binary->next;
    pthread_mutex_unlock(&lock);
    /* At the end of the program this is called, too, but then nobody waits for kernels that still run. */
    if (binary->code && !is_ending) driver->disown(binary);
    else if (binary->code) return;
    free(binary->symbols);
    free(binary);
}

static void add_symbol(void **handle, struct host_symbol symbol) {
    struct host_binary *binary = (struct host_binary *)handle;
    if (binary->count == binary->room) {
        binary->room = binary->room ? 2 * binary->room : 16;
        binary->symbols = room(binary->symbols, binary->room * sizeof symbol);
    }
    binary->symbols[binary->count++] = symbol;
}

EXPORTED void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int thread_limit,
                                     void *thread, void *block, void *block_dim, void *grid_dim, int *warp_size) {
    (void)device, (void)thread_limit, (void)thread, (void)block, (void)block_dim, (void)grid_dim, (void)warp_size;
    add_symbol(handle, (struct host_symbol){.host = host, .name = name, .is_function = true});
}

EXPORTED void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_external, size_t size,
                                int is_constant, int is_global) {
    (void)device, (void)is_external, (void)size, (void)is_constant, (void)is_global;
    add_symbol(handle, (struct host_symbol){.host = host, .name = name});
}

EXPORTED void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int is_external,
                                       size_t size, int is_constant, int is_global) {
    (void)device, (void)is_external, (void)size, (void)is_constant, (void)is_global;
    add_symbol(handle, (struct host_symbol){.host = host, .name = name, .managed = host});
}

/* ---- kernel<<<grid, block, shared, stream>>>(arguments) -------------------------------------------------------- */

/* The host code pushes what is between the brackets, and the kernel's stub pops it. Arguments are evaluated between the
 * two and may launch kernels themselves, but not without end. */
enum { DEEPEST = 64 };
static __thread struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} pushed[DEEPEST];
static __thread unsigned depth;

EXPORTED unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    if (depth == DEEPEST) return cudaErrorLaunchOutOfResources; /* the program does not launch then */
    pushed[depth].grid = grid;
    pushed[depth].block = block;
    pushed[depth].shared = shared;
    pushed[depth].stream = stream;
    depth++;
    return cudaSuccess;
}

EXPORTED cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    if (!depth) return cudaErrorMissingConfiguration;
    depth--;
    *grid = pushed[depth].grid;
    *block = pushed[depth].block;
    *shared = pushed[depth].shared;
    *(void **)stream = pushed[depth].stream;
    return cudaSuccess;
}

/* ---- everything else ------------------------------------------------------------------------------------------- */

static cudaError_t absent(void) { return cudaErrorNotSupported; }
static cudaError_t unreachable(void) { return cudaErrorInitializationError; }
static const char *unreachable_text(void) { return "the CPU device cannot be used"; }

static void note_end(void) { is_ending = true; }

static bool start(void) {
    const struct cpu_programs *programs = connect_driver();
    pthread_mutex_lock(&lock);
    if (programs && !driver) {
        driver = programs;
        driver->explain_errors(); /* the program gets no exception that tells */
        atexit(note_end);         /* what is registered later is called earlier */
        for (struct host_binary *binary = binaries; binary; binary = binary->next) hand_over(binary);
    }
    pthread_mutex_unlock(&lock);
    return programs;
}

static void *find_function(const char *symbol) {
    if (!start())
        return (void *)(strncmp(symbol, "cudaGetError", 12) ? (uintptr_t)unreachable : (uintptr_t)unreachable_text);
    void *function = CUDART_MAJOR == 12 ? driver->runtime_12(symbol) : driver->runtime(symbol);
    if (function) return function;
    char text[256];
    snprintf(text, sizeof text, "the CPU device does not emulate %s: it returns cudaErrorNotSupported", symbol);
    driver->say(text);
    return (void *)(uintptr_t)absent;
}

#if CUDART_MAJOR == 12
#define SYMBOLS "libcudart12_symbols.h"
#else
#define SYMBOLS "libcudart13_symbols.h"
#endif
#include "jumps.h"
