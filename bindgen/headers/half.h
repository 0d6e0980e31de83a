/* The type of halves, which cuda_fp16.h has for C++ only. */
typedef struct __half __half;
