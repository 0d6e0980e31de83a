/* Kernels and variables of programs compiled by nvcc: from addresses of the host to those of the device.
 *
 * A fat binary becomes a library when something of it is first used, so a program starts quickly however many kernels
 * it has. Of two files with the same template each has registered the kernel under the same address; the first one
 * counts, until it is unloaded. */
#include "host_code.h"

#include <stdlib.h>

#include "cudart.h"
#include "driver/module/module.h"

struct host_code {
    struct host_binary *binary;
    _Atomic(CUlibrary) library; /* NULL: not used yet */
    struct host_entry *entries; /* as many as the binary has symbols */
};

struct host_entry {
    const void *host;
    const struct host_symbol *symbol;
    struct host_code *code;
    _Atomic(CUkernel) kernel; /* NULL: not used yet */
    struct host_entry *next;  /* with the same hash */
};

/* The entries by the address of the host. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct host_entry **buckets;
static size_t bucket_count, entry_total; /* a power of two, or 0 */

static size_t bucket_of(const void *host) { return ((uintptr_t)host * 0x9E3779B97F4A7C15u >> 32) & (bucket_count - 1); }

static void insert(struct host_entry *entry) { /* with the lock */
    struct host_entry **link = &buckets[bucket_of(entry->host)];
    while (*link) link = &(*link)->next; /* the first one counts */
    entry->next = NULL;
    *link = entry;
}

static bool grow(size_t wanted) { /* with the lock */
    struct host_entry **old = buckets, *next;
    size_t old_count = bucket_count, count = old_count ? old_count : 256;
    while (count < wanted) count *= 2;
    if (count == old_count) return true;
    struct host_entry **made = calloc(count, sizeof *made);
    if (!made) return false;
    buckets = made;
    bucket_count = count;
    for (size_t i = 0; i < old_count; i++)
        for (struct host_entry *entry = old[i]; entry; entry = next) {
            next = entry->next;
            insert(entry);
        }
    free(old);
    return true;
}

bool host_adopt(struct host_binary *binary) {
    struct host_code *code = calloc(1, sizeof *code);
    struct host_entry *entries = calloc(binary->count + 1, sizeof *entries);
    pthread_rwlock_wrlock(&lock);
    bool fine = code && entries && grow(entry_total + binary->count);
    if (fine) {
        *code = (struct host_code){.binary = binary, .entries = entries};
        for (size_t i = 0; i < binary->count; i++) {
            entries[i].host = binary->symbols[i].host;
            entries[i].symbol = &binary->symbols[i];
            entries[i].code = code;
            insert(&entries[i]);
        }
        entry_total += binary->count;
        binary->code = code;
    }
    pthread_rwlock_unlock(&lock);
    if (!fine) {
        free(code);
        free(entries);
    }
    return fine;
}

void host_disown(struct host_binary *binary) {
    struct host_code *code = binary->code;
    if (!code) return;
    pthread_rwlock_wrlock(&lock);
    for (size_t i = 0; i < binary->count; i++) {
        struct host_entry **link = &buckets[bucket_of(code->entries[i].host)];
        while (*link != &code->entries[i]) link = &(*link)->next;
        *link = code->entries[i].next;
    }
    entry_total -= binary->count;
    pthread_rwlock_unlock(&lock);
    CUlibrary library = atomic_load(&code->library);
    if (library) (void)cuLibraryUnload(library); /* it fails when the process ends, which takes it along */
    binary->code = NULL;
    free(code->entries);
    free(code);
}

static struct host_entry *find(const void *host, bool is_function) {
    struct host_entry *entry = NULL;
    pthread_rwlock_rdlock(&lock);
    if (bucket_count)
        for (entry = buckets[bucket_of(host)]; entry; entry = entry->next)
            if (entry->host == host && entry->symbol->is_function == is_function) break;
    pthread_rwlock_unlock(&lock);
    return entry;
}

/* Of two threads that come with a library, the first wins: the compiler is Python, so no lock may be held here. */
static CUresult load(struct host_code *code, CUlibrary *library) {
    CUlibrary made, none = NULL;
    if (likely(*library = atomic_load_explicit(&code->library, memory_order_acquire))) return CUDA_SUCCESS;
    RETURN_IF(cuLibraryLoadData(&made, code->binary->image, NULL, NULL, 0, NULL, NULL, 0));
    *library = made;
    if (atomic_compare_exchange_strong(&code->library, &none, made)) return CUDA_SUCCESS;
    *library = none;
    return cuLibraryUnload(made);
}

/* ---- kernels --------------------------------------------------------------------------------------------------- */

CUresult host_kernel(const void *func, CUkernel *kernel) {
    CUlibrary library;
    struct host_entry *entry = find(func, true);
    *kernel = entry ? atomic_load_explicit(&entry->kernel, memory_order_acquire) : NULL;
    if (!entry || *kernel) return CUDA_SUCCESS;
    RETURN_IF(load(entry->code, &library));
    RETURN_IF(cuLibraryGetKernel(kernel, library, entry->symbol->name));
    atomic_store_explicit(&entry->kernel, *kernel, memory_order_release);
    return CUDA_SUCCESS;
}

/* The stub of a kernel asks once for its handle, does not look at the status, and launches whatever it got: after a
 * failure that is the host function, with which the launch fails for the same reason. */
static cudaError_t get_kernel(cudaKernel_t *handle, const void *func) {
    CUkernel kernel = NULL;
    *handle = (cudaKernel_t)func;
    CUresult status = enter_runtime() ?: host_kernel(func, &kernel);
    if (!status && kernel) *handle = kernel;
    return (cudaError_t)status;
}

/* ---- variables ------------------------------------------------------------------------------------------------- */

/* A program names a managed variable by the address at which it is. */
static struct host_entry *find_managed(const void *address) {
    struct host_entry *found = NULL;
    pthread_rwlock_rdlock(&lock);
    for (size_t i = 0; i < bucket_count && !found; i++)
        for (struct host_entry *entry = buckets[i]; entry && !found; entry = entry->next)
            if (entry->symbol->managed && *entry->symbol->managed == address) found = entry;
    pthread_rwlock_unlock(&lock);
    return found;
}

CUresult host_variable(const void *symbol, CUdeviceptr *address, size_t *size) {
    CUlibrary library;
    struct host_entry *entry = find(symbol, false);
    if (!entry && symbol) entry = find_managed(symbol);
    if (!entry)
        return fail_runtime(cudaErrorInvalidSymbol,
                            "%p is not a symbol: only programs compiled by nvcc have them. Find a variable of a "
                            "library with cudaLibraryGetGlobal and use its address",
                            symbol);
    RETURN_IF(load(entry->code, &library));
    return cuLibraryGetGlobal(address, size, library, entry->symbol->name);
}

/* Managed variables are pointers in the host's code, which has them filled before it uses the first one. */
static char init_module(void **handle) {
    struct host_binary *binary = (struct host_binary *)handle;
    struct host_code *code = binary->code;
    CUlibrary library;
    CUdeviceptr address;
    if (!code) return 0;
    CUresult status = enter_runtime() ?: load(code, &library);
    for (size_t i = 0; i < binary->count && !status; i++) {
        if (!binary->symbols[i].managed) continue;
        status = cuLibraryGetGlobal(&address, NULL, library, binary->symbols[i].name);
        if (!status) *binary->symbols[i].managed = (void *)address;
    }
    return leave(status) == cudaSuccess;
}

void *host_lookup(const char *symbol) {
    static const struct entry entries[] = {
        ENTRY_AS(__cudaGetKernel, get_kernel),
        ENTRY_AS(__cudaInitModule, init_module),
        {NULL, NULL, NULL},
    };
    static const struct entry *const tables[] = {entries, NULL};
    if (!strncmp(symbol, "__cudaLaunchKernel", 18)) return runtime_lookup(symbol + 2);
    return runtime_lookup(symbol) ?: entry_lookup(tables, symbol);
}
