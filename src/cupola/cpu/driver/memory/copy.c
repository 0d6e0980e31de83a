/* Copies (CUDA Driver API, "Memory Management"; "API synchronization behavior" for what returns when).
 *
 * All forms of copy become one box of bytes. Each side is checked against the table of allocations when
 * the call is made, and once more when it is carried out, since the memory may have been freed in between.
 *
 * An asynchronous copy between pinned memory and the device only queues, unless it is short and nothing comes
 * before it. From pageable memory, the bytes are taken before the call returns, as CUDA does: small copies into
 * a staging buffer, larger ones by waiting. A copy to pageable memory has been done when the call returns.
 * Synchronous calls always wait, also where CUDA only may. */
#include <stdlib.h>

#include "driver/base/checks.h"
#include "engine/memory/shadow.h"
#include "memory.h"

enum { LARGEST_STAGED = 64 << 10 };

/* ---- carrying out ------------------------------------------------------------------------------------- */

static size_t extent(size_t width, size_t height, size_t depth, size_t pitch, size_t slice) {
    return (depth - 1) * slice + (height - 1) * pitch + width;
}

static CUresult check_still_there(const void *p, size_t size, const char *role) {
    if (!cpu_memory_owns((uint64_t)p)) return CUDA_SUCCESS;
    const CUresult status = memory_check((uint64_t)p, size, RANGE_RUNNING, role, NULL);
    cpu_allocation found;
    const bool is_lost = injects(INJECT_LOST) && cpu_memory_find((uint64_t)p, &found) && found.device >= 0 &&
                         injected_loss(found.device);
    if (!status || is_lost) return status;
    return fail(CUDA_ERROR_ILLEGAL_ADDRESS, "%s of a copy, %zu bytes at %p, was freed before the copy was carried out.",
                role, size, p);
}

static void move_rows(void *given) {
    const struct copy *copy = given;
    size_t w = copy->width, h = copy->height, d = copy->depth;
    if (h > 1 && copy->source_pitch == w && copy->target_pitch == w &&
        (d == 1 || (copy->source_slice == w * h && copy->target_slice == w * h))) {
        memmove(copy->target, copy->source, w * h * d);
        return;
    }
    for (size_t z = 0; z < d; z++)
        for (size_t y = 0; y < h; y++)
            memmove(copy->target + z * copy->target_slice + y * copy->target_pitch,
                    copy->source + z * copy->source_slice + y * copy->source_pitch, w);
}

/* What nobody has written stays so where the device copies it, and is a finding where the host gets it. */
static void check_rows(const struct copy *copy) {
    cpu_allocation allocation;
    const bool to_host = !cpu_memory_find((uint64_t)copy->target, &allocation) ||
                         allocation.kind == CPU_MEMORY_PINNED || allocation.kind == CPU_MEMORY_MANAGED;
    uint64_t first = UINT64_MAX, unset = 0, count;
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++) {
            const uint64_t from = (uint64_t)(copy->source + z * copy->source_slice + y * copy->source_pitch);
            if (!to_host) {
                cpu_shadow_copy((uint64_t)(copy->target + z * copy->target_slice + y * copy->target_pitch), from,
                                copy->width);
                continue;
            }
            const uint64_t here = cpu_shadow_first_unset(from, copy->width, &count);
            if (here != UINT64_MAX && first == UINT64_MAX) first = from + here;
            unset += count;
        }
    if (unset) check_unset_copy(first, unset, copy->width * copy->height * copy->depth);
}

CUresult copy_execute(const struct copy *copy) {
    size_t w = copy->width, h = copy->height, d = copy->depth;
    if (w == 0 || h == 0 || d == 0) return CUDA_SUCCESS;
    RETURN_IF(check_still_there(copy->source, extent(w, h, d, copy->source_pitch, copy->source_slice), "the source"));
    RETURN_IF(check_still_there(copy->target, extent(w, h, d, copy->target_pitch, copy->target_slice), "the target"));
    if (asked(cpu_shadow_tracks)) check_rows(copy);
    if (cpu_guard_access(move_rows, (void *)copy)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_ILLEGAL_ADDRESS, "memory of a copy of %zu bytes from %p to %p was freed during the copy.",
                w * h * d, copy->source, copy->target);
}

/* ---- from forms to boxes ------------------------------------------------------------------------------ */

struct side { /* one side of a CUDA_MEMCPY3D */
    const char *role;
    CUmemorytype type;
    uint64_t host, device;
    CUarray array;
    size_t x, y, z, lod, pitch, height;
};

/* The address where a side's box begins and its distances, checked. */
static CUresult resolve(const struct side *side, const CUDA_MEMCPY3D *form, bool planned,
                        const struct accessor *accessor, bool is_write, uint64_t *start, size_t *pitch, size_t *slice,
                        bool *pageable) {
    bool is_host = side->type == CU_MEMORYTYPE_HOST;
    if (!is_host && side->type != CU_MEMORYTYPE_ARRAY && side->type != CU_MEMORYTYPE_DEVICE &&
        side->type != CU_MEMORYTYPE_UNIFIED)
        return fail(CUDA_ERROR_INVALID_VALUE, "the memory type of %s is %d, which does not exist.", side->role,
                    (int)side->type);
    if (side->lod) return fail(CUDA_ERROR_INVALID_VALUE, "the LOD of %s must be 0.", side->role);
    if (side->type == CU_MEMORYTYPE_ARRAY)
        return array_place_check(&(struct array_place){side->array, side->role, side->x, side->y, side->z}, form, start,
                                 pitch, slice);
    size_t row, skipped, bytes;
    *pitch = side->pitch ? side->pitch : side->x + form->WidthInBytes;
    if (__builtin_add_overflow(side->x, form->WidthInBytes, &row) ||
        ((form->Height > 1 || form->Depth > 1) && row > *pitch))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "rows of %zu bytes from byte %zu on do not fit in the pitch of %s, %zu bytes.", form->WidthInBytes,
                    side->x, side->role, *pitch);
    size_t rows = side->height ? side->height : side->y + form->Height;
    if (form->Depth > 1 && side->y + form->Height > rows)
        return fail(CUDA_ERROR_INVALID_VALUE, "%zu rows from row %zu on do not fit in the height of %s, %zu rows.",
                    form->Height, side->y, side->role, rows);
    if (__builtin_mul_overflow(*pitch, rows, slice) || __builtin_mul_overflow(*slice, side->z + form->Depth, &bytes) ||
        __builtin_mul_overflow(*pitch, side->y, &skipped))
        return fail(CUDA_ERROR_INVALID_VALUE, "the box of %s is larger than the address space.", side->role);
    uint64_t base = is_host ? side->host : side->device;
    if (base == 0) return fail(CUDA_ERROR_INVALID_VALUE, "%s is a null pointer.", side->role);
    *start = base + side->z * *slice + skipped + side->x;
    enum range_rule rule = side->type == CU_MEMORYTYPE_DEVICE ? (planned ? RANGE_PLANNED : RANGE_DEVICE)
                                                              : (planned ? RANGE_PLANNED_ANY : RANGE_ANY);
    return memory_check_access(*start, extent(form->WidthInBytes, form->Height, form->Depth, *pitch, *slice), rule,
                               side->role, pageable, accessor, is_write);
}

CUresult copy_from_form(const CUDA_MEMCPY3D *form, bool planned, const struct accessor *accessor, struct copy *copy,
                        bool *source_pageable, bool *target_pageable) {
    *copy = (struct copy){.width = form->WidthInBytes, .height = form->Height, .depth = form->Depth};
    *source_pageable = *target_pageable = false;
    if (!form->WidthInBytes || !form->Height || !form->Depth) {
        copy->width = copy->height = copy->depth = 0;
        return CUDA_SUCCESS;
    }
    struct side source = {"the source",    form->srcMemoryType, (uint64_t)form->srcHost,
                          form->srcDevice, form->srcArray,      form->srcXInBytes,
                          form->srcY,      form->srcZ,          form->srcLOD,
                          form->srcPitch,  form->srcHeight};
    struct side target = {"the target",    form->dstMemoryType, (uint64_t)form->dstHost,
                          form->dstDevice, form->dstArray,      form->dstXInBytes,
                          form->dstY,      form->dstZ,          form->dstLOD,
                          form->dstPitch,  form->dstHeight};
    uint64_t from, to;
    RETURN_IF(resolve(&source, form, planned, accessor, false, &from, &copy->source_pitch, &copy->source_slice,
                      source_pageable));
    RETURN_IF(resolve(&target, form, planned, accessor, true, &to, &copy->target_pitch, &copy->target_slice,
                      target_pageable));
    copy->source = (const char *)from;
    copy->target = (char *)to;
    return CUDA_SUCCESS;
}

static CUDA_MEMCPY3D form_of_2d(const CUDA_MEMCPY2D *p) {
    return (CUDA_MEMCPY3D){
        .srcXInBytes = p->srcXInBytes,
        .srcY = p->srcY,
        .srcMemoryType = p->srcMemoryType,
        .srcHost = p->srcHost,
        .srcDevice = p->srcDevice,
        .srcArray = p->srcArray,
        .srcPitch = p->srcPitch,
        .dstXInBytes = p->dstXInBytes,
        .dstY = p->dstY,
        .dstMemoryType = p->dstMemoryType,
        .dstHost = p->dstHost,
        .dstDevice = p->dstDevice,
        .dstArray = p->dstArray,
        .dstPitch = p->dstPitch,
        .WidthInBytes = p->WidthInBytes,
        .Height = p->Height,
        .Depth = 1,
    };
}

static CUDA_MEMCPY3D form_of_peer(const CUDA_MEMCPY3D_PEER *p) {
    return (CUDA_MEMCPY3D){
        .srcXInBytes = p->srcXInBytes,
        .srcY = p->srcY,
        .srcZ = p->srcZ,
        .srcLOD = p->srcLOD,
        .srcMemoryType = p->srcMemoryType,
        .srcHost = p->srcHost,
        .srcDevice = p->srcDevice,
        .srcArray = p->srcArray,
        .srcPitch = p->srcPitch,
        .srcHeight = p->srcHeight,
        .dstXInBytes = p->dstXInBytes,
        .dstY = p->dstY,
        .dstZ = p->dstZ,
        .dstLOD = p->dstLOD,
        .dstMemoryType = p->dstMemoryType,
        .dstHost = p->dstHost,
        .dstDevice = p->dstDevice,
        .dstArray = p->dstArray,
        .dstPitch = p->dstPitch,
        .dstHeight = p->dstHeight,
        .WidthInBytes = p->WidthInBytes,
        .Height = p->Height,
        .Depth = p->Depth,
    };
}

/* The form of a plain copy. Pinned memory is host memory here, managed memory the device's. */
static CUDA_MEMCPY3D form_of_plain(uint64_t target, uint64_t source, size_t size) {
    cpu_allocation found;
    CUDA_MEMCPY3D form = {.WidthInBytes = size, .Height = 1, .Depth = 1};
    bool host = cpu_memory_lookup(source, &found) ? found.kind == CPU_MEMORY_PINNED : true;
    form.srcMemoryType = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (host) form.srcHost = (const void *)source;
    else form.srcDevice = source;
    host = cpu_memory_lookup(target, &found) ? found.kind == CPU_MEMORY_PINNED : true;
    form.dstMemoryType = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (host) form.dstHost = (void *)target;
    else form.dstDevice = target;
    return form;
}

/* ---- submitting --------------------------------------------------------------------------------------- */

enum when {
    WHEN_DONE,    /* return when the copy has been done */
    WHEN_QUEUED,  /* return when it is queued and pageable memory has been dealt with */
    WHEN_TAKEN,   /* return when the source has been read: CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL */
    WHEN_ORDERED, /* return when it is queued: the program keeps the source until then */
};

static bool stage(struct copy *copy) {
    if (copy->height != 1 || copy->depth != 1 || copy->width > LARGEST_STAGED) return false;
    copy->staging = malloc(copy->width);
    if (copy->staging == NULL) return false;
    memcpy(copy->staging, copy->source, copy->width);
    copy->source = copy->staging;
    return true;
}

static CUresult submit(CUstream stream, struct copy *copy, const CUDA_MEMCPY3D *form, bool source_pageable,
                       bool target_pageable, enum when when) {
    if (copy->width == 0) return capture_check(stream);
    struct op *op = op_new(OP_COPY, stream->context);
    if (op == NULL) return fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory to queue a copy.");
    if (unlikely(stream_is_capturing(stream))) {
        copy->form = malloc(sizeof *copy->form);
        if (copy->form)
            *copy->form = form ? *form : form_of_plain((uint64_t)copy->target, (uint64_t)copy->source, copy->width);
        op->copy = *copy;
        return stream_submit(stream, op);
    }
    bool wait = when == WHEN_DONE || (when == WHEN_QUEUED && target_pageable);
    if (!wait && (when == WHEN_TAKEN || (when == WHEN_QUEUED && source_pageable))) wait = !stage(copy);
    op->copy = *copy;
    if (wait) return stream_submit_and_wait(stream, op);
    const bool is_brief = copy->height == 1 && copy->depth == 1 && copy->width <= STREAM_BRIEF;
    return is_brief ? stream_submit_brief(stream, op) : stream_submit(stream, op);
}

static const struct accessor anybody = {.device = ANYBODY};

static struct accessor by_stream(CUstream stream) {
    return (struct accessor){stream->context->device->ordinal, "the stream's", false};
}

/* If no context is current, that of the stream is used. */
static struct accessor by_current(CUstream stream) {
    CUcontext context = current_owner();
    if (likely(context == NULL || context == stream->context)) return by_stream(stream);
    return (struct accessor){context->device->ordinal, "the current context's", false};
}

static CUresult between(CUstream stream, uint64_t target, enum range_rule to, struct accessor writer, uint64_t source,
                        enum range_rule from, struct accessor reader, size_t size, enum when when) {
    bool source_pageable = false, target_pageable = false;
    if (stream_is_capturing(stream)) {
        to = to == RANGE_ANY ? RANGE_PLANNED_ANY : RANGE_PLANNED;
        from = from == RANGE_ANY ? RANGE_PLANNED_ANY : RANGE_PLANNED;
    }
    RETURN_IF(memory_check_access(source, size, from, "the source", &source_pageable, &reader, false));
    RETURN_IF(memory_check_access(target, size, to, "the target", &target_pageable, &writer, true));
    struct copy copy = {.source = (const char *)source,
                        .target = (char *)target,
                        .width = size,
                        .height = 1,
                        .depth = 1,
                        .source_pitch = size,
                        .target_pitch = size,
                        .source_slice = size,
                        .target_slice = size};
    return submit(stream, &copy, NULL, source_pageable, target_pageable, when);
}

static CUresult plain(CUstream stream, struct accessor accessor, uint64_t target, enum range_rule to, uint64_t source,
                      enum range_rule from, size_t size, enum when when) {
    return between(stream, target, to, accessor, source, from, accessor, size, when);
}

static CUresult shaped(CUstream stream, struct accessor accessor, const CUDA_MEMCPY3D *form, enum when when) {
    struct copy copy;
    bool source_pageable, target_pageable;
    RETURN_IF(copy_from_form(form, stream_is_capturing(stream), &accessor, &copy, &source_pageable, &target_pageable));
    return submit(stream, &copy, form, source_pageable, target_pageable, when);
}

CUresult copy_submit_form(CUstream stream, const CUDA_MEMCPY3D *form, bool wait) {
    return shaped(stream, by_current(stream), form, wait ? WHEN_DONE : WHEN_QUEUED);
}

CUresult enter_synchronous(const char *call, CUstream *stream) {
    RETURN_IF(enter_stream(NULL, stream));
    return capture_check_thread(call);
}

/* ---- entry points: plain copies ----------------------------------------------------------------------- */

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
    CUstream stream;
    RETURN_IF(enter_synchronous("cuMemcpy", &stream));
    return plain(stream, by_current(stream), dst, RANGE_ANY, src, RANGE_ANY, ByteCount, WHEN_DONE);
}

CUresult cuMemcpyHtoD(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    CUstream stream;
    RETURN_IF(enter_synchronous("cuMemcpyHtoD", &stream));
    return plain(stream, by_current(stream), dstDevice, RANGE_DEVICE, (uint64_t)srcHost, RANGE_ANY, ByteCount,
                 WHEN_DONE);
}

CUresult cuMemcpyDtoH(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    CUstream stream;
    RETURN_IF(enter_synchronous("cuMemcpyDtoH", &stream));
    return plain(stream, by_current(stream), (uint64_t)dstHost, RANGE_ANY, srcDevice, RANGE_DEVICE, ByteCount,
                 WHEN_DONE);
}

CUresult cuMemcpyDtoD(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
    CUstream stream;
    RETURN_IF(enter_synchronous("cuMemcpyDtoD", &stream));
    return plain(stream, by_current(stream), dstDevice, RANGE_DEVICE, srcDevice, RANGE_DEVICE, ByteCount, WHEN_DONE);
}

/* Each side must be open to the device of the context that is named for it. A GPU's driver takes null, too, but crashes on
 * it where the memory is of a pool. */
static CUresult peer(CUcontext handle, const char *whose, struct accessor *accessor) {
    CUcontext context;
    *accessor = anybody;
    if (handle == NULL) return CUDA_SUCCESS;
    RETURN_IF(context_find(handle, &context));
    *accessor = (struct accessor){context->device->ordinal, whose, false};
    return CUDA_SUCCESS;
}

static CUresult copy_peers(CUstream stream, CUdeviceptr target, CUcontext of_target, CUdeviceptr source,
                           CUcontext of_source, size_t size, enum when when) {
    struct accessor writer, reader;
    RETURN_IF(peer(of_target, "the target's", &writer));
    RETURN_IF(peer(of_source, "the source's", &reader));
    return between(stream, target, RANGE_DEVICE, writer, source, RANGE_DEVICE, reader, size, when);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                      size_t ByteCount) {
    CUstream stream;
    RETURN_IF(enter_synchronous("cuMemcpyPeer", &stream));
    return copy_peers(stream, dstDevice, dstContext, srcDevice, srcContext, ByteCount, WHEN_DONE);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    return plain(stream, by_current(stream), dst, RANGE_ANY, src, RANGE_ANY, ByteCount, WHEN_QUEUED);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    return plain(stream, by_current(stream), dstDevice, RANGE_DEVICE, (uint64_t)srcHost, RANGE_ANY, ByteCount,
                 WHEN_QUEUED);
}

CUresult cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    return plain(stream, by_current(stream), (uint64_t)dstHost, RANGE_ANY, srcDevice, RANGE_DEVICE, ByteCount,
                 WHEN_QUEUED);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    return plain(stream, by_current(stream), dstDevice, RANGE_DEVICE, srcDevice, RANGE_DEVICE, ByteCount, WHEN_QUEUED);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                           size_t ByteCount, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    if (stream_is_capturing(stream)) return capture_refuse(stream, "cuMemcpyPeerAsync");
    return copy_peers(stream, dstDevice, dstContext, srcDevice, srcContext, ByteCount, WHEN_QUEUED);
}

/* ---- entry points: boxes ------------------------------------------------------------------------------ */

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *pCopy) {
    CUstream stream;
    RETURN_IF(enter_synchronous("cuMemcpy2D", &stream));
    if (pCopy == NULL) return fail_null("pCopy");
    CUDA_MEMCPY3D form = form_of_2d(pCopy);
    return shaped(stream, by_current(stream), &form, WHEN_DONE);
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *pCopy) { return cuMemcpy2D(pCopy); } /* no pitch is slow here */

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    if (pCopy == NULL) return fail_null("pCopy");
    CUDA_MEMCPY3D form = form_of_2d(pCopy);
    return shaped(stream, by_current(stream), &form, WHEN_QUEUED);
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D *pCopy) {
    CUstream stream;
    RETURN_IF(enter_synchronous("cuMemcpy3D", &stream));
    return pCopy ? shaped(stream, by_current(stream), pCopy, WHEN_DONE) : fail_null("pCopy");
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *pCopy, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    return pCopy ? shaped(stream, by_current(stream), pCopy, WHEN_QUEUED) : fail_null("pCopy");
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy) {
    CUstream stream;
    RETURN_IF(enter_synchronous("cuMemcpy3DPeer", &stream));
    if (pCopy == NULL) return fail_null("pCopy");
    CUDA_MEMCPY3D form = form_of_peer(pCopy);
    return shaped(stream, anybody, &form, WHEN_DONE);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    if (pCopy == NULL) return fail_null("pCopy");
    if (stream_is_capturing(stream)) return capture_refuse(stream, "cuMemcpy3DPeerAsync");
    CUDA_MEMCPY3D form = form_of_peer(pCopy);
    return shaped(stream, anybody, &form, WHEN_QUEUED);
}

/* ---- entry points: with attributes -------------------------------------------------------------------- */

static CUresult when_of(CUmemcpySrcAccessOrder order, unsigned flags, enum when *when) {
    switch ((int)order) {
        case CU_MEMCPY_SRC_ACCESS_ORDER_STREAM:
        case CU_MEMCPY_SRC_ACCESS_ORDER_ANY: *when = WHEN_ORDERED; break;
        case CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL: *when = WHEN_TAKEN; break;
        default:
            return fail(CUDA_ERROR_INVALID_VALUE, "srcAccessOrder is %d; it must be STREAM, DURING_API_CALL or ANY.",
                        (int)order);
    }
    if (flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)
        return fail(CUDA_ERROR_INVALID_VALUE, "a copy has unknown flags: %#x.", flags);
    return CUDA_SUCCESS;
}

static CUresult enter_batch(const char *call, CUstream hStream, CUstream *stream) {
    RETURN_IF(enter_stream(hStream, stream));
    if (current_context() == NULL)
        return fail(CUDA_ERROR_INVALID_VALUE, "no context is current on this thread, and %s needs one.", call);
    if ((*stream)->role == STREAM_LEGACY)
        return fail(CUDA_ERROR_INVALID_VALUE, "%s does not take the legacy default stream.", call);
    return stream_is_capturing(*stream) ? capture_refuse(*stream, call) : CUDA_SUCCESS;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream) {
    CUstream stream;
    enum when when;
    RETURN_IF(enter_batch("cuMemcpyBatchAsync", hStream, &stream));
    if (dsts == NULL || srcs == NULL || sizes == NULL) return fail_null("dsts, srcs or sizes");
    if (attrs == NULL || attrsIdxs == NULL) return fail_null("attrs or attrsIdxs");
    if (count == 0 || numAttrs == 0 || numAttrs > count)
        return fail(CUDA_ERROR_INVALID_VALUE, "%zu copies with %zu attributes: there must be 1 to as many as copies.",
                    count, numAttrs);
    for (size_t i = 0; i < numAttrs; i++) {
        RETURN_IF(when_of(attrs[i].srcAccessOrder, attrs[i].flags, &when));
        if (attrsIdxs[i] >= count || (i == 0 ? attrsIdxs[i] != 0 : attrsIdxs[i] <= attrsIdxs[i - 1]))
            return fail(CUDA_ERROR_INVALID_VALUE, "attrsIdxs must begin with 0, increase, and stay below count.");
    }
    struct accessor accessor = by_stream(stream);
    for (size_t i = 0; i < count; i++) {
        RETURN_IF(memory_check_access(srcs[i], sizes[i], RANGE_ANY, "a source of the batch", NULL, &accessor, false));
        RETURN_IF(memory_check_access(dsts[i], sizes[i], RANGE_ANY, "a target of the batch", NULL, &accessor, true));
    }
    for (size_t i = 0, a = 0; i < count; i++) {
        while (a + 1 < numAttrs && attrsIdxs[a + 1] <= i) a++;
        RETURN_IF(when_of(attrs[a].srcAccessOrder, attrs[a].flags, &when));
        RETURN_IF(plain(stream, accessor, dsts[i], RANGE_ANY, srcs[i], RANGE_ANY, sizes[i], when));
    }
    return CUDA_SUCCESS;
}

CUresult cuMemcpyWithAttributesAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes *attr,
                                     CUstream hStream) {
    CUstream stream;
    enum when when;
    RETURN_IF(enter_batch("cuMemcpyWithAttributesAsync", hStream, &stream));
    if (attr == NULL) return fail_null("attr");
    RETURN_IF(when_of(attr->srcAccessOrder, attr->flags, &when));
    return plain(stream, by_stream(stream), dst, RANGE_ANY, src, RANGE_ANY, size, when);
}

/* An operand in the terms of a form: `texel` is the size of an element, which counts what operands count. */
struct operand {
    CUmemorytype type;
    CUdeviceptr base;
    CUarray array;
    size_t x, y, z, pitch, height;
};

/* Of a pointer, what is zero is tightly packed. */
static CUresult read_operand(const char *role, const CUmemcpy3DOperand *given, const CUextent3D *extent, size_t texel,
                             struct operand *operand) {
    if ((int)given->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        const CUoffset3D *offset = &given->op.array.offset;
        *operand = (struct operand){
            .type = CU_MEMORYTYPE_ARRAY, .array = given->op.array.array, .y = offset->y, .z = offset->z};
        if (__builtin_mul_overflow(offset->x, texel, &operand->x))
            return fail(CUDA_ERROR_INVALID_VALUE, "the offset of %s is %zu texels.", role, offset->x);
        return CUDA_SUCCESS;
    }
    size_t row = given->op.ptr.rowLength ? given->op.ptr.rowLength : extent->width;
    *operand = (struct operand){.type = CU_MEMORYTYPE_UNIFIED,
                                .base = given->op.ptr.ptr,
                                .height = given->op.ptr.layerHeight ? given->op.ptr.layerHeight : extent->height};
    if (row < extent->width || operand->height < extent->height || __builtin_mul_overflow(row, texel, &operand->pitch))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "%s has rows of %zu elements and layers of %zu rows; the copy has %zu and %zu.", role, row,
                    operand->height, extent->width, extent->height);
    return CUDA_SUCCESS;
}

/* Elements are bytes between pointers, else the texels of the array, or of both. */
static CUresult element_size(const CUDA_MEMCPY3D_BATCH_OP *op, size_t *texel) {
    const CUmemcpy3DOperand *const sides[2] = {&op->src, &op->dst};
    *texel = 1;
    for (int i = 0; i < 2; i++) {
        if ((int)sides[i]->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
            RETURN_IF(array_texel(sides[i]->op.array.array, texel));
        else if ((int)sides[i]->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
            return fail(CUDA_ERROR_INVALID_VALUE, "the type of %s is %d; it must be POINTER or ARRAY.",
                        i ? "the target" : "the source", (int)sides[i]->type);
    }
    return CUDA_SUCCESS;
}

static CUresult form_of_operands(const CUDA_MEMCPY3D_BATCH_OP *op, CUDA_MEMCPY3D *form, enum when *when) {
    const CUextent3D *e = &op->extent;
    struct operand source, target;
    size_t texel, width;
    if (!e->width || !e->height || !e->depth)
        return fail(CUDA_ERROR_INVALID_VALUE, "the extent of a copy is %zu x %zu x %zu; none may be 0.", e->width,
                    e->height, e->depth);
    RETURN_IF(when_of(op->srcAccessOrder, op->flags, when));
    RETURN_IF(element_size(op, &texel));
    RETURN_IF(read_operand("the source", &op->src, e, texel, &source));
    RETURN_IF(read_operand("the target", &op->dst, e, texel, &target));
    if (__builtin_mul_overflow(e->width, texel, &width))
        return fail(CUDA_ERROR_INVALID_VALUE, "rows of %zu elements do not fit in the address space.", e->width);
    *form = (CUDA_MEMCPY3D){
        .srcMemoryType = source.type,
        .srcDevice = source.base,
        .srcArray = source.array,
        .srcXInBytes = source.x,
        .srcY = source.y,
        .srcZ = source.z,
        .srcPitch = source.pitch,
        .srcHeight = source.height,
        .dstMemoryType = target.type,
        .dstDevice = target.base,
        .dstArray = target.array,
        .dstXInBytes = target.x,
        .dstY = target.y,
        .dstZ = target.z,
        .dstPitch = target.pitch,
        .dstHeight = target.height,
        .WidthInBytes = width,
        .Height = e->height,
        .Depth = e->depth,
    };
    return CUDA_SUCCESS;
}

CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
                              CUstream hStream) {
    CUstream stream;
    CUDA_MEMCPY3D form;
    struct copy copy;
    enum when when;
    bool pageable;
    RETURN_IF(enter_batch("cuMemcpy3DBatchAsync", hStream, &stream));
    if (opList == NULL) return fail_null("opList");
    if (numOps == 0) return fail(CUDA_ERROR_INVALID_VALUE, "a batch must have at least one copy.");
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu.", flags);
    struct accessor accessor = by_stream(stream);
    for (size_t i = 0; i < numOps; i++) { /* all are checked before any is queued */
        RETURN_IF(form_of_operands(&opList[i], &form, &when));
        RETURN_IF(copy_from_form(&form, false, &accessor, &copy, &pageable, &pageable));
    }
    for (size_t i = 0; i < numOps; i++) {
        RETURN_IF(form_of_operands(&opList[i], &form, &when));
        RETURN_IF(shaped(stream, accessor, &form, when));
    }
    return CUDA_SUCCESS;
}

CUresult cuMemcpy3DWithAttributesAsync(CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream hStream) {
    CUstream stream;
    CUDA_MEMCPY3D form;
    enum when when;
    RETURN_IF(enter_batch("cuMemcpy3DWithAttributesAsync", hStream, &stream));
    if (op == NULL) return fail_null("op");
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu.", flags);
    RETURN_IF(form_of_operands(op, &form, &when));
    return shaped(stream, by_stream(stream), &form, when);
}

PER_THREAD(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t n), (dst, src, n))
PER_THREAD(cuMemcpyHtoD, (CUdeviceptr dst, const void *src, size_t n), (dst, src, n))
PER_THREAD(cuMemcpyDtoH, (void *dst, CUdeviceptr src, size_t n), (dst, src, n))
PER_THREAD(cuMemcpyDtoD, (CUdeviceptr dst, CUdeviceptr src, size_t n), (dst, src, n))
PER_THREAD(cuMemcpyPeer, (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t n),
           (dst, to, src, from, n))
PER_THREAD(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s), (dst, src, n, s))
PER_THREAD(cuMemcpyHtoDAsync, (CUdeviceptr dst, const void *src, size_t n, CUstream s), (dst, src, n, s))
PER_THREAD(cuMemcpyDtoHAsync, (void *dst, CUdeviceptr src, size_t n, CUstream s), (dst, src, n, s))
PER_THREAD(cuMemcpyDtoDAsync, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s), (dst, src, n, s))
PER_THREAD(cuMemcpyPeerAsync,
           (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t n, CUstream s),
           (dst, to, src, from, n, s))
PER_THREAD(cuMemcpy2D, (const CUDA_MEMCPY2D *p), (p))
PER_THREAD(cuMemcpy2DUnaligned, (const CUDA_MEMCPY2D *p), (p))
PER_THREAD(cuMemcpy2DAsync, (const CUDA_MEMCPY2D *p, CUstream s), (p, s))
PER_THREAD(cuMemcpy3D, (const CUDA_MEMCPY3D *p), (p))
PER_THREAD(cuMemcpy3DAsync, (const CUDA_MEMCPY3D *p, CUstream s), (p, s))
PER_THREAD(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *p), (p))
PER_THREAD(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *p, CUstream s), (p, s))
PER_THREAD(cuMemcpyBatchAsync,
           (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
            size_t *indices, size_t attr_count, CUstream s),
           (dsts, srcs, sizes, count, attrs, indices, attr_count, s))
PER_THREAD(cuMemcpyWithAttributesAsync,
           (CUdeviceptr dst, CUdeviceptr src, size_t n, CUmemcpyAttributes *attr, CUstream s),
           (dst, src, n, attr, s))
PER_THREAD(cuMemcpy3DBatchAsync,
           (size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream s),
           (count, ops, flags, s))
PER_THREAD(cuMemcpy3DWithAttributesAsync,
           (CUDA_MEMCPY3D_BATCH_OP * op, unsigned long long flags, CUstream s), (op, flags, s))

const struct entry copy_entries[] = {
    ENTRY_STREAM(cuMemcpy),
    ENTRY_STREAM(cuMemcpyPeer),
    ENTRY_STREAM(cuMemcpyAsync),
    ENTRY_STREAM(cuMemcpyPeerAsync),
    ENTRY_STREAM(cuMemcpy3DPeer),
    ENTRY_STREAM(cuMemcpy3DPeerAsync),
    ENTRY_STREAM(cuMemcpyWithAttributesAsync),
    ENTRY_STREAM(cuMemcpy3DWithAttributesAsync),
    ENTRY_STREAM_V2(cuMemcpyHtoD),
    ENTRY_STREAM_V2(cuMemcpyDtoH),
    ENTRY_STREAM_V2(cuMemcpyDtoD),
    ENTRY_STREAM_V2(cuMemcpyHtoDAsync),
    ENTRY_STREAM_V2(cuMemcpyDtoHAsync),
    ENTRY_STREAM_V2(cuMemcpyDtoDAsync),
    ENTRY_STREAM_V2(cuMemcpy2D),
    ENTRY_STREAM_V2(cuMemcpy2DUnaligned),
    ENTRY_STREAM_V2(cuMemcpy2DAsync),
    ENTRY_STREAM_V2(cuMemcpy3D),
    ENTRY_STREAM_V2(cuMemcpy3DAsync),
    ENTRY_STREAM_V2(cuMemcpyBatchAsync),
    ENTRY_STREAM_V2(cuMemcpy3DBatchAsync),
    {NULL, NULL, NULL},
};
