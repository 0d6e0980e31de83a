"""Resources of devices and contexts: what there is, and how multiprocessors are split into groups.

The driver has two ways to split. Since CUDA 13.1 a split says of each group what it shall be like
(`cuDevSmResourceSplit`); before, all groups are alike and counts are rounded up (`cuDevSmResourceSplitByCount`).

Imported when resources are asked for.
"""

from _thread import allocate_lock
from collections.abc import Sequence

from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from cupola.core.base._errors import CUDAError
from cupola.core.base._cuda cimport (
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, CUDA_SUCCESS, CU_DEV_RESOURCE_TYPE_SM,
    CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG, CU_DEV_SM_RESOURCE_GROUP_BACKFILL, CU_DEV_SM_RESOURCE_GROUP_PARAMS,
    CU_WORKQUEUE_SCOPE_DEVICE_CTX, CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED, CUdevResource, CUdevResourceType,
    CUcontext, CUdevResourceDesc, CUdevWorkqueueConfigScope, CUgreenCtx, CU_GREEN_CTX_DEFAULT_STREAM, CUresult, check, cu,
    factory_error, fail_because
)
from cupola.core.device._context cimport Context, add_green, primary_context, resets, wrap_context
from cupola.core.device._green cimport GreenContext

from cupola._above import above

cdef int SPLIT_VERSION = 13010          # cuDevSmResourceSplit and workqueues
cdef int GREEN_VERSION = 12040

cdef int _version = 0                   # of the driver, 0 until asked


cdef int driver_version() except -1:
    global _version
    if _version == 0:
        check(cu.cuDriverGetVersion(&_version), b"cuDriverGetVersion")
    return _version


cdef int _require(int version, str what) except -1:
    cdef int found = driver_version()
    if found < version:
        raise RuntimeError(
            f"{what} need a driver of CUDA {version // 1000}.{version % 1000 // 10} or newer, "
            f"and this one is of CUDA {found // 1000}.{found % 1000 // 10}"
        )
    return 0


cdef class DeviceResources:
    """What of a device a context may use; asked for anew at each read.

    Get it from :attr:`Device.resources`, :attr:`Context.resources` or :attr:`Stream.resources`.

    Notes
    -----
    Threads may share it.

    Examples
    --------
    >>> dev.resources.sm.sm_count
    132
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("DeviceResources", "Device.resources, Context.resources or Stream.resources")

    @property
    def sm(self):
        """SMResource: the multiprocessors (``cuDeviceGetDevResource``, ``cuCtxGetDevResource``)."""
        cdef SMResource found = SMResource.__new__(SMResource)
        _require(GREEN_VERSION, "resources of devices")
        _read(self, CU_DEV_RESOURCE_TYPE_SM, &found.raw)
        found.least, found.alignment = found.raw.sm.minSmPartitionSize, found.raw.sm.smCoscheduledAlignment
        return found

    @property
    def workqueue(self):
        """WorkqueueResource: how streams are spread over the device's queues.

        Raises
        ------
        RuntimeError
            The driver is older than CUDA 13.1.
        """
        cdef WorkqueueResource found = WorkqueueResource.__new__(WorkqueueResource)
        _require(SPLIT_VERSION, "workqueues")
        _read(self, CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG, &found.raw)
        return found

    def __repr__(self):
        shown = ["<DeviceResources"]
        for name in ("sm", "workqueue"):
            try:
                shown.append(f"{name}={getattr(self, name)!r}")
            except (CUDAError, RuntimeError) as error:  # such as a driver that is too old for workqueues
                shown.append(f"{name}: {type(error).__name__}")
        return " ".join(shown) + ">"

    def __reduce__(self):
        raise TypeError("DeviceResources belong to this process: they cannot be pickled or copied")


cdef int _read(DeviceResources resources, CUdevResourceType type, CUdevResource* raw) except -1:
    cdef CUresult status
    cdef Context context
    memset(raw, 0, sizeof(raw[0]))
    if resources.context is None:
        with nogil:
            status = cu.cuDeviceGetDevResource(resources.device_id, raw, type)
        return check(status, b"cuDeviceGetDevResource")
    context = <Context>resources.context
    with nogil:
        status = cu.cuCtxGetDevResource(context.pointer, raw, type)
    return check(status, b"cuCtxGetDevResource")


def resources_of_device(int device_id):
    cdef DeviceResources resources = DeviceResources.__new__(DeviceResources)
    resources.device_id = device_id
    return resources


def resources_of_context(Context context):
    """They stay usable when the user closes the context: they hold a wrapper of their own."""
    cdef DeviceResources resources = DeviceResources.__new__(DeviceResources)
    resources.context = wrap_context(context.pointer)
    return resources


# ---- multiprocessors ------------------------------------------------------------------------------------------------

cdef class SMResource:
    """Multiprocessors of a device: all of them, those of a context, or a group that :meth:`split` gave.

    Get it from :attr:`DeviceResources.sm` or :meth:`split`. It takes nothing of the device: only a context that is
    made of it does (:meth:`Device.create_context`), and several contexts may share multiprocessors.

    Notes
    -----
    Threads may share it: splits of one resource run one after the other.
    """

    def __cinit__(self):
        self.lock = allocate_lock()

    def __init__(self, *args, **kwargs):
        raise factory_error("SMResource", "DeviceResources.sm or SMResource.split()")

    @property
    def handle(self):
        """int: address of the native ``CUdevResource``, valid as long as this object lives."""
        return <uintptr_t>&self.raw

    @property
    def sm_count(self):
        """int: how many multiprocessors there are."""
        return self.raw.sm.smCount

    @property
    def min_partition_size(self):
        """int: how many multiprocessors a group has at least, unless a split says otherwise."""
        return self.least

    @property
    def coscheduled_alignment(self):
        """int: so many multiprocessors at a time are close to each other, so that clusters have room on them."""
        return self.alignment

    @property
    def flags(self):
        """int: the driver's flags of the group (``CUdevSmResourceGroup_flags``)."""
        return self.raw.sm.flags

    def split(self, options, *, dry_run=False):
        """Split the multiprocessors into groups and the rest. This resource stays as it is.

        Parameters
        ----------
        options : SMResourceOptions
            How many groups, and what they are like.
        dry_run : bool
            Tell sizes only: no context can be made of the result.

        Returns
        -------
        list of SMResource
            The groups. Drivers older than CUDA 13.1 may give fewer than asked for, and round counts up.
        SMResource
            What is left; it may have no multiprocessors.

        Raises
        ------
        ValueError
            A count is negative, there are no groups, or the fields of `options` have different lengths.
        TypeError
            `options` are no SMResourceOptions, or a count is no int.
        RuntimeError
            The driver is older than CUDA 13.1, and the counts differ, or an option needs a newer one.
        CUDAError
            The hardware does not allow such groups; the text says which counts it does.

        Examples
        --------
        >>> groups, rest = dev.resources.sm.split(SMResourceOptions(count=[16, 16]))
        >>> [group.sm_count for group in groups], rest.sm_count
        ([16, 16], 100)
        """
        from cupola.core.device._options import SMResourceOptions

        if not isinstance(options, SMResourceOptions):
            raise TypeError(f"options must be SMResourceOptions, not {type(options).__name__}")
        rows = _rows(options)
        self.lock.acquire()
        try:
            if driver_version() >= SPLIT_VERSION:
                return _split(self, rows, bool(dry_run))
            return _split_by_count(self, options, rows, bool(dry_run))
        finally:
            self.lock.release()

    def __repr__(self):
        return f"<SMResource of {self.sm_count} multiprocessors>"

    def __reduce__(self):
        raise TypeError("an SMResource belongs to this process: it cannot be pickled or copied")


cdef list _rows(object options):
    """The groups as tuples (count, coscheduled, preferred, backfill), with 0 for what the driver shall find."""
    count = options.count
    scalar = count is None or isinstance(count, int)
    if not scalar and not isinstance(count, Sequence):
        raise TypeError(f"count must be an int, a sequence of them, or None, not {type(count).__name__}")
    if not scalar and len(count) == 0:
        raise ValueError("count has no entries: give one for each group")
    length = 1 if scalar else len(count)
    columns = []
    for name in ("count", "coscheduled_sm_count", "preferred_coscheduled_sm_count", "backfill"):
        value = getattr(options, name)
        if name != "count" and isinstance(value, Sequence):
            if scalar:
                raise ValueError(f"{name} is a sequence, but count is not: give count an entry for each group")
            if len(value) != length:
                raise ValueError(f"{name} has {len(value)} entries, expected {length}, as count has")
        column = list(value) if isinstance(value, Sequence) else [value] * length
        columns.append(list(map(bool, column)) if name == "backfill" else [_number(name, entry) for entry in column])
    return list(zip(*columns))


cdef object _number(str name, object value):
    if value is None:
        return 0
    if not isinstance(value, int):
        raise TypeError(f"{name} must be made of ints or None, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must be non-negative, got {value}")
    return value


cdef SMResource _part(CUdevResource* raw, SMResource parent, bint dry):
    cdef SMResource part = SMResource.__new__(SMResource)
    part.raw = raw[0]
    # A driver need not fill in what is the same as in the whole.
    part.least = raw.sm.minSmPartitionSize or parent.least
    part.alignment = raw.sm.smCoscheduledAlignment or parent.alignment
    part.dry = dry
    return part


cdef object _split(SMResource whole, list rows, bint dry):
    cdef unsigned int count = len(rows), i, taken = 0
    cdef CU_DEV_SM_RESOURCE_GROUP_PARAMS* wanted = <CU_DEV_SM_RESOURCE_GROUP_PARAMS*>calloc(count, sizeof(wanted[0]))
    cdef CUdevResource* made = <CUdevResource*>calloc(count + 1, sizeof(made[0]))
    cdef CUdevResource* results = NULL if dry else made
    cdef CUresult status
    try:
        if wanted == NULL or made == NULL:
            raise MemoryError
        _fill_groups(rows, wanted)
        with nogil:
            status = cu.cuDevSmResourceSplit(results, count, &whole.raw, NULL if dry else &made[count], 0, wanted)
        if status == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION:
            possible = _possible(whole, count)
            _fill_groups(rows, wanted)      # again, for the driver's explanation is that of the last call
            status = cu.cuDevSmResourceSplit(results, count, &whole.raw, NULL if dry else &made[count], 0, wanted)
            fail_because(status, b"cuDevSmResourceSplit", possible)
        check(status, b"cuDevSmResourceSplit")
        if dry:
            for i in range(count):
                made[i].type = CU_DEV_RESOURCE_TYPE_SM
                made[i].sm.smCount, made[i].sm.flags = wanted[i].smCount, wanted[i].flags
                taken += wanted[i].smCount
            made[count].type = CU_DEV_RESOURCE_TYPE_SM
            made[count].sm.smCount = whole.raw.sm.smCount - taken
        return [_part(&made[i], whole, dry) for i in range(count)], _part(&made[count], whole, dry)
    finally:
        free(wanted)
        free(made)


cdef int _fill_groups(list rows, CU_DEV_SM_RESOURCE_GROUP_PARAMS* wanted) except -1:
    cdef Py_ssize_t i
    for i in range(len(rows)):
        wanted[i].smCount, wanted[i].coscheduledSmCount, wanted[i].preferredCoscheduledSmCount, backfill = rows[i]
        wanted[i].flags = CU_DEV_SM_RESOURCE_GROUP_BACKFILL if backfill else 0
    return 0


cdef object _split_by_count(SMResource whole, object options, list rows, bint dry):
    cdef unsigned int count = len(rows), i, least
    cdef CUdevResource* made
    cdef CUresult status
    for name in ("coscheduled_sm_count", "preferred_coscheduled_sm_count"):
        if getattr(options, name) is not None:
            _require(SPLIT_VERSION, f"{name} of SMResourceOptions")
    least = rows[0][0]
    if any(row[0] != least for row in rows):
        _require(SPLIT_VERSION, "groups of different counts")
    made = <CUdevResource*>calloc(count + 1, sizeof(made[0]))
    try:
        if made == NULL:
            raise MemoryError
        i = count
        with nogil:
            status = cu.cuDevSmResourceSplitByCount(made, &i, &whole.raw, &made[count], 0, least)
        if status == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION:
            possible = _possible(whole, count)
            i = count       # as in _split
            status = cu.cuDevSmResourceSplitByCount(made, &i, &whole.raw, &made[count], 0, least)
            fail_because(status, b"cuDevSmResourceSplitByCount", possible)
        check(status, b"cuDevSmResourceSplitByCount")
        groups = [_part(&made[j], whole, dry) for j in range(i)]
        return groups, _part(&made[count], whole, dry)
    finally:
        free(made)


cdef str _possible(SMResource whole, unsigned int groups):
    """Which counts the driver does allow for so many groups that are alike, as a sentence."""
    cdef unsigned int total = whole.raw.sm.smCount, asked, found
    cdef CUdevResource made
    cdef CU_DEV_SM_RESOURCE_GROUP_PARAMS* wanted = <CU_DEV_SM_RESOURCE_GROUP_PARAMS*>calloc(groups, sizeof(wanted[0]))
    cdef CUresult status
    sizes = set()
    if wanted == NULL:
        raise MemoryError
    for asked in range(1, total // groups + 1):
        if driver_version() >= SPLIT_VERSION:
            memset(wanted, 0, groups * sizeof(wanted[0]))
            for found in range(groups):
                wanted[found].smCount = asked
            if cu.cuDevSmResourceSplit(NULL, groups, &whole.raw, NULL, 0, wanted) == CUDA_SUCCESS:
                sizes.add(asked)
        else:
            found = 0
            if cu.cuDevSmResourceSplitByCount(NULL, &found, &whole.raw, NULL, 0, asked) != CUDA_SUCCESS:
                continue
            if found < groups:
                continue
            found = 1
            status = cu.cuDevSmResourceSplitByCount(&made, &found, &whole.raw, NULL, 0, asked)
            if status == CUDA_SUCCESS:
                sizes.add(made.sm.smCount)
    free(wanted)
    if not sizes:
        return (
            "a resource that split() gave cannot be split again: make a context of it, and split context.resources.sm"
            if groups == 1 else f"the {total} multiprocessors cannot be split into {groups} groups"
        )
    what = "a group of them" if groups == 1 else f"each of {groups} groups"
    return f"of these {total} multiprocessors {what} can have {_ranges(sorted(sizes))}"


cdef str _ranges(list sizes):
    """8, 16 ... 128 or 132"""
    texts = []
    while sizes:
        step = sizes[1] - sizes[0] if len(sizes) > 1 else 0
        end = 1
        while end < len(sizes) and sizes[end] - sizes[end - 1] == step:
            end += 1
        if end < 4:
            end = 1
            texts.append(str(sizes[0]))
        else:
            texts.append(f"{sizes[0]}, {sizes[1]} ... {sizes[end - 1]}")
        sizes = sizes[end:]
    return " or ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


# ---- workqueues -----------------------------------------------------------------------------------------------------

cdef class WorkqueueResource:
    """How the streams of a context are spread over the queues of the device.

    Get it from :attr:`DeviceResources.workqueue`, :meth:`configure` it, and make a context of it together with
    multiprocessors (:meth:`Device.create_context`). Needs a driver of CUDA 13.1.

    Notes
    -----
    Threads may share it, except while one of them calls :meth:`configure`.
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("WorkqueueResource", "DeviceResources.workqueue")

    @property
    def handle(self):
        """int: address of the native ``CUdevResource``, valid as long as this object lives."""
        return <uintptr_t>&self.raw

    @property
    def sharing_scope(self):
        """WorkqueueSharingScopeType: with whom the queues are shared."""
        from cupola.typing import WorkqueueSharingScopeType

        scope = _SCOPE_NAMES.get(<int>self.raw.wqConfig.sharingScope)
        if scope is None:
            raise RuntimeError(f"the driver has a sharing scope that is not known: {<int>self.raw.wqConfig.sharingScope}")
        return WorkqueueSharingScopeType(scope)

    @property
    def concurrency_limit(self):
        """int: how many streams are expected to be at work at the same time."""
        return self.raw.wqConfig.wqConcurrencyLimit

    @property
    def device(self):
        """Device: the device of the queues."""
        return above("Device")(self.raw.wqConfig.device)

    def configure(self, options):
        """Change this resource, for contexts that are made of it from here on.

        Parameters
        ----------
        options : WorkqueueResourceOptions
            What is None stays as it is.

        Raises
        ------
        TypeError
            `options` are something else.
        """
        from cupola.core.device._options import WorkqueueResourceOptions

        if not isinstance(options, WorkqueueResourceOptions):
            raise TypeError(f"options must be WorkqueueResourceOptions, not {type(options).__name__}")
        if options.sharing_scope is not None:
            self.raw.wqConfig.sharingScope = <CUdevWorkqueueConfigScope><int>_SCOPES[str(options.sharing_scope)]
        if options.concurrency_limit is not None:
            self.raw.wqConfig.wqConcurrencyLimit = options.concurrency_limit

    def __repr__(self):
        return f"<WorkqueueResource scope={self.sharing_scope!r} limit={self.concurrency_limit}>"

    def __reduce__(self):
        raise TypeError("a WorkqueueResource belongs to this process: it cannot be pickled or copied")


cdef dict _SCOPES = {
    "device_ctx": <int>CU_WORKQUEUE_SCOPE_DEVICE_CTX, "green_ctx_balanced": <int>CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED,
}
cdef dict _SCOPE_NAMES = {number: name for name, number in _SCOPES.items()}


# ---- for contexts ---------------------------------------------------------------------------------------------------

cdef class Raw:
    def __dealloc__(self):
        free(self.items)


cdef Raw resource_array(object resources):
    cdef Raw raw = Raw.__new__(Raw)
    cdef list chosen = list(resources)
    for resource in chosen:
        if not isinstance(resource, (SMResource, WorkqueueResource)):
            raise TypeError(
                f"a context is made of SMResource and WorkqueueResource objects, not of {type(resource).__name__}"
            )
        if isinstance(resource, SMResource) and (<SMResource>resource).dry:
            raise ValueError("a resource of a dry-run split only tells sizes: split without dry_run=True")
    raw.items = <CUdevResource*>calloc(len(chosen) or 1, sizeof(raw.items[0]))
    if raw.items == NULL:
        raise MemoryError
    for resource in chosen:
        if isinstance(resource, SMResource):
            raw.items[raw.count] = (<SMResource>resource).raw
        else:
            raw.items[raw.count] = (<WorkqueueResource>resource).raw
        raw.count += 1
    return raw


def create_green_context(int device_id, resources):
    """Make a green context on the device from SMResource and WorkqueueResource objects; it is not made current."""
    cdef Raw raw = resource_array(resources)
    cdef CUdevResourceDesc description = NULL
    cdef GreenContext green = GreenContext.__new__(GreenContext)
    cdef CUgreenCtx pointer = NULL
    cdef CUcontext owner = primary_context(device_id)
    cdef CUresult status
    with nogil:
        status = cu.cuDevResourceGenerateDesc(&description, raw.items, raw.count)
    if status == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION:
        fail_because(
            status, b"cuDevResourceGenerateDesc",
            "groups of multiprocessors in one context must be different ones of the same split(), "
            "and there must be at least one",
        )
    check(status, b"cuDevResourceGenerateDesc")
    with nogil:
        status = cu.cuGreenCtxCreate(&pointer, description, device_id, CU_GREEN_CTX_DEFAULT_STREAM)
    check(status, b"cuGreenCtxCreate")
    green.pointer, green.born, green.owner = pointer, resets, owner
    status = cu.cuCtxFromGreenCtx(&green.context, pointer)
    if status != CUDA_SUCCESS:
        green.pointer = NULL
        cu.cuGreenCtxDestroy(pointer)
        check(status, b"cuCtxFromGreenCtx")
    add_green(green.context, green)
    return wrap_context(green.context)
