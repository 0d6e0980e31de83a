/* The library's name without a version, libcuda.so, which some programs ask for: it has nothing but libcuda.so.1. */
extern void cupola_libcuda_bind(void *(*find)(const char *symbol));
__attribute__((visibility("hidden"), used)) void *cupola_libcuda_needed = (void *)cupola_libcuda_bind;
