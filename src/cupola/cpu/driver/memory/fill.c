/* Fills (CUDA Driver API, "Memory Management": cuMemset*). */
#include "engine/memory/shadow.h"
#include "memory.h"

/* ---- carrying out ------------------------------------------------------------------------------------- */

static void fill_row(char *target, uint32_t value, uint32_t element, size_t width) {
    uint8_t first = (uint8_t)value;
    bool is_bytes = element == 1 || (element == 2 ? value == first * 0x0101u : value == first * 0x01010101u);
    if (is_bytes) {
        memset(target, first, width * element);
    } else if (element == 2) {
        for (size_t i = 0; i < width; i++) ((uint16_t *)target)[i] = (uint16_t)value;
    } else {
        for (size_t i = 0; i < width; i++) ((uint32_t *)target)[i] = value;
    }
}

static size_t extent(const struct fill *fill) { return (fill->height - 1) * fill->pitch + fill->width * fill->element; }

static void write_rows(void *given) {
    const struct fill *fill = given;
    for (size_t y = 0; y < fill->height; y++)
        fill_row(fill->target + y * fill->pitch, fill->value, fill->element, fill->width);
}

CUresult fill_execute(const struct fill *fill) {
    if (fill->width == 0 || fill->height == 0) return CUDA_SUCCESS;
    uint64_t address = (uint64_t)fill->target;
    if (cpu_memory_owns(address) && memory_check(address, extent(fill), RANGE_RUNNING, "the target", NULL))
        return fail(CUDA_ERROR_ILLEGAL_ADDRESS,
                    "the target of a fill, %zu bytes at 0x%llx, was freed before the fill was carried out.",
                    extent(fill), (unsigned long long)address);
    for (size_t y = 0; asked(cpu_shadow_tracks) && y < fill->height; y++)
        cpu_shadow_set_written(address + y * fill->pitch, fill->width * fill->element);
    if (cpu_guard_access(write_rows, (void *)fill)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_ILLEGAL_ADDRESS, "the target of a fill, %zu bytes at 0x%llx, was freed during the fill.",
                extent(fill), (unsigned long long)address);
}

/* ---- checking ----------------------------------------------------------------------------------------- */

CUresult fill_check(struct fill *fill, bool planned, const struct accessor *accessor) {
    uint64_t address = (uint64_t)fill->target;
    size_t row, bytes;
    if (fill->element != 1 && fill->element != 2 && fill->element != 4)
        return fail(CUDA_ERROR_INVALID_VALUE, "the elements of a fill have %u bytes; they must have 1, 2 or 4.",
                    fill->element);
    if (fill->element < 4) fill->value &= (1u << 8 * fill->element) - 1;
    if (fill->width == 0 || fill->height == 0) {
        fill->width = fill->height = 0;
        return CUDA_SUCCESS;
    }
    if (address % fill->element)
        return fail(CUDA_ERROR_INVALID_VALUE, "the target, 0x%llx, is not a multiple of the element size, %u.",
                    (unsigned long long)address, fill->element);
    if (__builtin_mul_overflow(fill->width, (size_t)fill->element, &row) ||
        __builtin_mul_overflow(fill->pitch, fill->height - 1, &bytes) || __builtin_add_overflow(bytes, row, &bytes))
        return fail(CUDA_ERROR_INVALID_VALUE, "the fill is larger than the address space.");
    if (fill->height > 1 && (fill->pitch < row || fill->pitch % fill->element))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "the pitch is %zu bytes; it must hold a row of %zu bytes and be a multiple of the "
                    "element size, %u.",
                    fill->pitch, row, fill->element);
    return memory_check_access(address, bytes, planned ? RANGE_PLANNED : RANGE_DEVICE, "the target", NULL, accessor,
                               true);
}

/* ---- submitting --------------------------------------------------------------------------------------- */

static CUresult submit(CUstream stream, uint64_t target, uint32_t value, uint32_t element, size_t width, size_t height,
                       size_t pitch, bool synchronous) {
    struct fill fill = {(char *)target, value, element, width, height, pitch};
    bool planned = stream_is_capturing(stream);
    /* Of a fill that is captured, a GPU's driver finds it out when the graph is instantiated. */
    struct accessor accessor = {planned ? ANYBODY : stream->context->device->ordinal, "the stream's", true};
    RETURN_IF(fill_check(&fill, planned, &accessor));
    if (fill.width == 0) return capture_check(stream);
    struct op *op = op_new(OP_FILL, stream->context);
    if (op == NULL) return fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory to queue a fill.");
    op->fill = fill;
    if (synchronous) return stream_submit_and_wait(stream, op);
    const bool is_brief = height == 1 && width <= STREAM_BRIEF / element;
    return is_brief ? stream_submit_brief(stream, op) : stream_submit(stream, op);
}

static CUresult fill_now(const char *call, uint64_t target, uint32_t value, uint32_t element, size_t width,
                         size_t height, size_t pitch) {
    CUstream stream;
    RETURN_IF(enter_stream(NULL, &stream));
    if (width && height) RETURN_IF(capture_check_thread(call)); /* to fill nothing spoils no capture */
    return submit(stream, target, value, element, width, height, pitch, true);
}

static CUresult fill_on(CUstream handle, uint64_t target, uint32_t value, uint32_t element, size_t width, size_t height,
                        size_t pitch) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    return submit(stream, target, value, element, width, height, pitch, false);
}

/* ---- entry points ------------------------------------------------------------------------------------- */

CUresult cuMemsetD8(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
    return fill_now("cuMemsetD8", dstDevice, uc, 1, N, 1, 0);
}
CUresult cuMemsetD16(CUdeviceptr dstDevice, unsigned short us, size_t N) {
    return fill_now("cuMemsetD16", dstDevice, us, 2, N, 1, 0);
}
CUresult cuMemsetD32(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
    return fill_now("cuMemsetD32", dstDevice, ui, 4, N, 1, 0);
}
CUresult cuMemsetD2D8(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height) {
    return fill_now("cuMemsetD2D8", dstDevice, uc, 1, Width, Height, dstPitch);
}
CUresult cuMemsetD2D16(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height) {
    return fill_now("cuMemsetD2D16", dstDevice, us, 2, Width, Height, dstPitch);
}
CUresult cuMemsetD2D32(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height) {
    return fill_now("cuMemsetD2D32", dstDevice, ui, 4, Width, Height, dstPitch);
}
CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
    return fill_on(hStream, dstDevice, uc, 1, N, 1, 0);
}
CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
    return fill_on(hStream, dstDevice, us, 2, N, 1, 0);
}
CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
    return fill_on(hStream, dstDevice, ui, 4, N, 1, 0);
}
CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
                           CUstream hStream) {
    return fill_on(hStream, dstDevice, uc, 1, Width, Height, dstPitch);
}
CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                            CUstream hStream) {
    return fill_on(hStream, dstDevice, us, 2, Width, Height, dstPitch);
}
CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height,
                            CUstream hStream) {
    return fill_on(hStream, dstDevice, ui, 4, Width, Height, dstPitch);
}

PER_THREAD(cuMemsetD8, (CUdeviceptr p, unsigned char v, size_t n), (p, v, n))
PER_THREAD(cuMemsetD16, (CUdeviceptr p, unsigned short v, size_t n), (p, v, n))
PER_THREAD(cuMemsetD32, (CUdeviceptr p, unsigned int v, size_t n), (p, v, n))
PER_THREAD(cuMemsetD2D8, (CUdeviceptr p, size_t pitch, unsigned char v, size_t w, size_t h),
           (p, pitch, v, w, h))
PER_THREAD(cuMemsetD2D16, (CUdeviceptr p, size_t pitch, unsigned short v, size_t w, size_t h),
           (p, pitch, v, w, h))
PER_THREAD(cuMemsetD2D32, (CUdeviceptr p, size_t pitch, unsigned int v, size_t w, size_t h),
           (p, pitch, v, w, h))
PER_THREAD(cuMemsetD8Async, (CUdeviceptr p, unsigned char v, size_t n, CUstream s), (p, v, n, s))
PER_THREAD(cuMemsetD16Async, (CUdeviceptr p, unsigned short v, size_t n, CUstream s), (p, v, n, s))
PER_THREAD(cuMemsetD32Async, (CUdeviceptr p, unsigned int v, size_t n, CUstream s), (p, v, n, s))
PER_THREAD(cuMemsetD2D8Async, (CUdeviceptr p, size_t pitch, unsigned char v, size_t w, size_t h, CUstream s),
           (p, pitch, v, w, h, s))
PER_THREAD(cuMemsetD2D16Async,
           (CUdeviceptr p, size_t pitch, unsigned short v, size_t w, size_t h, CUstream s),
           (p, pitch, v, w, h, s))
PER_THREAD(cuMemsetD2D32Async, (CUdeviceptr p, size_t pitch, unsigned int v, size_t w, size_t h, CUstream s),
           (p, pitch, v, w, h, s))

const struct entry fill_entries[] = {
    ENTRY_STREAM_V2(cuMemsetD8),
    ENTRY_STREAM_V2(cuMemsetD16),
    ENTRY_STREAM_V2(cuMemsetD32),
    ENTRY_STREAM_V2(cuMemsetD2D8),
    ENTRY_STREAM_V2(cuMemsetD2D16),
    ENTRY_STREAM_V2(cuMemsetD2D32),
    ENTRY_STREAM(cuMemsetD8Async),
    ENTRY_STREAM(cuMemsetD16Async),
    ENTRY_STREAM(cuMemsetD32Async),
    ENTRY_STREAM(cuMemsetD2D8Async),
    ENTRY_STREAM(cuMemsetD2D16Async),
    ENTRY_STREAM(cuMemsetD2D32Async),
    {NULL, NULL, NULL},
};
