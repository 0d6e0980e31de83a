/* What programs compiled by nvcc tell the runtime about themselves (crt/host_runtime.h of the toolkit).
 *
 * nvcc puts the device code of a file into a fat binary, and writes host code that registers it before main() begins:
 * the fat binary, the host function that stands for each kernel, the host variable that stands for each variable of the
 * device. provider/libcudart.c, the library that such a program is linked with, keeps that without starting anything,
 * and hands it to the CPU device (host_code.c) once the program makes its first call. */
#ifndef CUPOLA_CPU_CUDART_HOST_CODE_H
#define CUPOLA_CPU_CUDART_HOST_CODE_H

#include <stdbool.h>
#include <stddef.h>

struct host_symbol {
    const void *host; /* the function's or the variable's address, which the program uses for it */
    const char *name; /* of the device */
    void **managed;   /* where the program keeps the address of a managed variable; NULL: none */
    bool is_function;
};

struct host_binary {
    const void *image; /* a fat binary, or the wrapper of one (driver/module/extent.c) */
    struct host_symbol *symbols;
    size_t count, room;
    struct host_binary *next; /* for who keeps it */
    struct host_code *code;   /* the CPU device's part; NULL as long as it has not adopted this */
};

/* What the emulated driver gives to libraries with NVIDIA's names (provider/python.c). */
struct cpu_programs {
    void *(*runtime)(const char *symbol);      /* a function of libcudart.so.13; NULL: there is none */
    void *(*runtime_12)(const char *symbol);   /* a function of libcudart.so.12 */
    void *(*driver)(const char *symbol);       /* a function of libcuda */
    void *(*nvml)(const char *symbol);         /* a function of NVML */
    bool (*adopt)(struct host_binary *binary); /* false: no memory */
    void (*disown)(struct host_binary *binary);
    void (*say)(const char *text); /* a warning on the logger, once for each text */
    /* A function of a math library, such as "cublas", which this opens what it calculates with for. NULL: there is none,
     * or what it needs is not installed, which the logger has been told. */
    void *(*math)(const char *library, const char *symbol);
    void (*explain_errors)(void); /* from now on, say why calls fail */
};

bool host_adopt(struct host_binary *binary);
void host_disown(struct host_binary *binary);

#endif
