/* The library's name without a version, libcuda.so, which some programs ask for: it has nothing but libcuda.so.1. */
extern int cuInit(unsigned flags);
__attribute__((visibility("hidden"), used)) void *cupola_libcuda_needed = (void *)cuInit;
