/* Settings of plans of cuFFT: streams, work areas, properties; and what the library says of itself. */
#include "fft.h"

/* Do `body` with the plan of `handle`, and without its lock afterwards. */
#define WITH_PLAN(function, body)                                          \
    struct fft_plan *plan = fft_plan_get(handle, function);                \
    if (!plan) return CUFFT_INVALID_PLAN;                                  \
    cufftResult status = CUFFT_SUCCESS;                                    \
    pthread_mutex_lock(&plan->lock);                                       \
    body;                                                                  \
    pthread_mutex_unlock(&plan->lock);                                     \
    fft_plan_release(plan);                                                \
    return status

static cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
    WITH_PLAN("cufftSetStream", plan->stream = stream);
}

static cufftResult cufftGetSize(cufftHandle handle, size_t *size) {
    if (!size) return fft_fail(CUFFT_INVALID_VALUE, "cufftGetSize: 'workSize' is a null pointer");
    WITH_PLAN("cufftGetSize", {
        if (plan->is_made) *size = 0;
        else status = fft_fail(CUFFT_INVALID_PLAN, "cufftGetSize: plan %d is not made yet", handle);
    });
}

/* Nothing here needs work space, so these change nothing. */
static cufftResult cufftSetAutoAllocation(cufftHandle handle, int allocate) {
    (void)allocate;
    WITH_PLAN("cufftSetAutoAllocation", (void)0);
}
static cufftResult cufftSetWorkArea(cufftHandle handle, void *area) {
    (void)area;
    WITH_PLAN("cufftSetWorkArea", (void)0);
}
static cufftResult cufftXtSetWorkArea(cufftHandle handle, void **areas) {
    (void)areas;
    WITH_PLAN("cufftXtSetWorkArea", (void)0);
}
static cufftResult cufftXtSetWorkAreaPolicy(cufftHandle handle, cufftXtWorkAreaPolicy policy, size_t *size) {
    WITH_PLAN("cufftXtSetWorkAreaPolicy", {
        if (!plan->is_made)
            status = fft_fail(CUFFT_INVALID_PLAN, "cufftXtSetWorkAreaPolicy: plan %d is not made yet", handle);
        else if ((unsigned)policy > CUFFT_WORKAREA_PERFORMANCE)
            status = fft_fail(CUFFT_INVALID_VALUE, "cufftXtSetWorkAreaPolicy: %d is no policy", (int)policy);
        else if (policy == CUFFT_WORKAREA_USER && !size)
            status = fft_fail(CUFFT_INVALID_VALUE, "cufftXtSetWorkAreaPolicy: 'workSize' is a null pointer");
    });
}

/* ---- properties: switches for how a GPU makes its kernels, noted and given back ------------------------------------ */

static cufftResult check_property(const char *function, cufftProperty property) {
    switch (property) {
        case NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT:
        case NVFFT_PLAN_PROPERTY_INT64_BLUESTEIN_ONLY:
        case NVFFT_PLAN_PROPERTY_INT64_DISABLE_FMA: return CUFFT_SUCCESS;
        case NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS:
            return fft_fail(CUFFT_NOT_SUPPORTED, "%s: the number of host threads cannot be set", function);
    }
    return fft_fail(CUFFT_INVALID_VALUE, "%s: %d is no property of a plan", function, (int)property);
}

static cufftResult set_property(const char *function, cufftHandle handle, cufftProperty property, bool value) {
    WITH_PLAN(function, {
        if (plan->is_made)
            status = fft_fail(CUFFT_NOT_SUPPORTED, "%s: properties are set before the plan is made", function);
        else if (!(status = check_property(function, property))) plan->property[property] = value;
    });
}

static cufftResult cufftSetPlanPropertyInt64(cufftHandle handle, cufftProperty property, const long long value) {
    return set_property("cufftSetPlanPropertyInt64", handle, property, value);
}

static cufftResult cufftResetPlanProperty(cufftHandle handle, cufftProperty property) {
    return set_property("cufftResetPlanProperty", handle, property, false);
}

static cufftResult cufftGetPlanPropertyInt64(cufftHandle handle, cufftProperty property, long long *value) {
    WITH_PLAN("cufftGetPlanPropertyInt64", {
        if (!value)
            status = fft_fail(CUFFT_INVALID_VALUE, "cufftGetPlanPropertyInt64: the result's place is a null pointer");
        else if (!(status = check_property("cufftGetPlanPropertyInt64", property))) *value = plan->property[property];
    });
}

/* ---- the library ------------------------------------------------------------------------------------------------- */

static cufftResult cufftGetVersion(int *version) {
    if (version) *version = CUFFT_VERSION; /* a null pointer is no error, as in cuFFT */
    return CUFFT_SUCCESS;
}

static cufftResult cufftGetProperty(libraryPropertyType type, int *value) {
    static const int parts[] = {CUFFT_VER_MAJOR, CUFFT_VER_MINOR, CUFFT_VER_PATCH};
    if ((unsigned)type > 2)
        return fft_fail(CUFFT_INVALID_TYPE, "cufftGetProperty: %d is no property of a library", (int)type);
    if (!value) return fft_fail(CUFFT_INVALID_VALUE, "cufftGetProperty: 'value' is a null pointer");
    *value = parts[type];
    return CUFFT_SUCCESS;
}

const struct entry fft_setting_entries[] = {
    FFT_ENTRY(cufftSetStream),
    FFT_ENTRY(cufftGetSize),
    FFT_ENTRY(cufftSetAutoAllocation),
    FFT_ENTRY(cufftSetWorkArea),
    FFT_ENTRY(cufftXtSetWorkArea),
    FFT_ENTRY(cufftXtSetWorkAreaPolicy),
    FFT_ENTRY(cufftSetPlanPropertyInt64),
    FFT_ENTRY(cufftResetPlanProperty),
    FFT_ENTRY(cufftGetPlanPropertyInt64),
    FFT_ENTRY(cufftGetVersion),
    FFT_ENTRY(cufftGetProperty),
    {NULL, NULL, NULL},
};
