"""What the Array API standard 2024.12 asks of a namespace: names, parameters, types, and what numbers they give."""

from __future__ import annotations

import inspect
import math

import numpy
import pytest

import cupola.numpy as np

# The functions of the standard with linalg and fft. ``=`` stands behind what has a default.
FUNCTIONS = """
abs(x, /)
acos(x, /)
acosh(x, /)
add(x1, x2, /)
all(x, /, *, axis=, keepdims=)
any(x, /, *, axis=, keepdims=)
arange(start, /, stop=, step=, *, dtype=, device=)
argmax(x, /, *, axis=, keepdims=)
argmin(x, /, *, axis=, keepdims=)
argsort(x, /, *, axis=, descending=, stable=)
asarray(obj, /, *, dtype=, device=, copy=)
asin(x, /)
asinh(x, /)
astype(x, dtype, /, *, copy=, device=)
atan(x, /)
atan2(x1, x2, /)
atanh(x, /)
bitwise_and(x1, x2, /)
bitwise_invert(x, /)
bitwise_left_shift(x1, x2, /)
bitwise_or(x1, x2, /)
bitwise_right_shift(x1, x2, /)
bitwise_xor(x1, x2, /)
broadcast_arrays(*arrays)
broadcast_shapes(*shapes)
broadcast_to(x, /, shape)
can_cast(from_, to, /)
ceil(x, /)
clip(x, /, min=, max=)
concat(arrays, /, *, axis=)
conj(x, /)
copysign(x1, x2, /)
cos(x, /)
cosh(x, /)
count_nonzero(x, /, *, axis=, keepdims=)
cumulative_prod(x, /, *, axis=, dtype=, include_initial=)
cumulative_sum(x, /, *, axis=, dtype=, include_initial=)
diff(x, /, *, axis=, n=, prepend=, append=)
divide(x1, x2, /)
empty(shape, *, dtype=, device=)
empty_like(x, /, *, dtype=, device=)
equal(x1, x2, /)
exp(x, /)
expand_dims(x, /, axis)
expm1(x, /)
eye(n_rows, n_cols=, /, *, k=, dtype=, device=)
finfo(type, /)
flip(x, /, *, axis=)
floor(x, /)
floor_divide(x1, x2, /)
from_dlpack(x, /, *, device=, copy=)
full(shape, fill_value, *, dtype=, device=)
full_like(x, /, fill_value, *, dtype=, device=)
greater(x1, x2, /)
greater_equal(x1, x2, /)
hypot(x1, x2, /)
iinfo(type, /)
imag(x, /)
isdtype(dtype, kind)
isfinite(x, /)
isin(x1, x2, /, *, invert=)
isinf(x, /)
isnan(x, /)
less(x1, x2, /)
less_equal(x1, x2, /)
linspace(start, stop, /, num, *, dtype=, device=, endpoint=)
log(x, /)
log10(x, /)
log1p(x, /)
log2(x, /)
logaddexp(x1, x2, /)
logical_and(x1, x2, /)
logical_not(x, /)
logical_or(x1, x2, /)
logical_xor(x1, x2, /)
matmul(x1, x2, /)
matrix_transpose(x, /)
max(x, /, *, axis=, keepdims=)
maximum(x1, x2, /)
mean(x, /, *, axis=, keepdims=)
meshgrid(*arrays, indexing=)
min(x, /, *, axis=, keepdims=)
minimum(x1, x2, /)
moveaxis(x, source, destination, /)
multiply(x1, x2, /)
negative(x, /)
nextafter(x1, x2, /)
nonzero(x, /)
not_equal(x1, x2, /)
ones(shape, *, dtype=, device=)
ones_like(x, /, *, dtype=, device=)
permute_dims(x, /, axes)
positive(x, /)
pow(x1, x2, /)
prod(x, /, *, axis=, dtype=, keepdims=)
real(x, /)
reciprocal(x, /)
remainder(x1, x2, /)
repeat(x, repeats, /, *, axis=)
reshape(x, /, shape, *, copy=)
result_type(*arrays_and_dtypes)
roll(x, /, shift, *, axis=)
round(x, /)
searchsorted(x1, x2, /, *, side=, sorter=)
sign(x, /)
signbit(x, /)
sin(x, /)
sinh(x, /)
sort(x, /, *, axis=, descending=, stable=)
sqrt(x, /)
square(x, /)
squeeze(x, /, axis)
stack(arrays, /, *, axis=)
std(x, /, *, axis=, correction=, keepdims=)
subtract(x1, x2, /)
sum(x, /, *, axis=, dtype=, keepdims=)
take(x, indices, /, *, axis=)
take_along_axis(x, indices, /, *, axis=)
tan(x, /)
tanh(x, /)
tensordot(x1, x2, /, *, axes=)
tile(x, repetitions, /)
tril(x, /, *, k=)
triu(x, /, *, k=)
trunc(x, /)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
unstack(x, /, *, axis=)
var(x, /, *, axis=, correction=, keepdims=)
vecdot(x1, x2, /, *, axis=)
where(condition, x1, x2, /)
zeros(shape, *, dtype=, device=)
zeros_like(x, /, *, dtype=, device=)
linalg.cholesky(x, /, *, upper=)
linalg.cross(x1, x2, /, *, axis=)
linalg.det(x, /)
linalg.diagonal(x, /, *, offset=)
linalg.eigh(x, /)
linalg.eigvalsh(x, /)
linalg.inv(x, /)
linalg.matmul(x1, x2, /)
linalg.matrix_norm(x, /, *, keepdims=, ord=)
linalg.matrix_power(x, n, /)
linalg.matrix_rank(x, /, *, rtol=)
linalg.matrix_transpose(x, /)
linalg.outer(x1, x2, /)
linalg.pinv(x, /, *, rtol=)
linalg.qr(x, /, *, mode=)
linalg.slogdet(x, /)
linalg.solve(x1, x2, /)
linalg.svd(x, /, *, full_matrices=)
linalg.svdvals(x, /)
linalg.tensordot(x1, x2, /, *, axes=)
linalg.trace(x, /, *, offset=, dtype=)
linalg.vecdot(x1, x2, /, *, axis=)
linalg.vector_norm(x, /, *, axis=, keepdims=, ord=)
fft.fft(x, /, *, n=, axis=, norm=)
fft.fftfreq(n, /, *, d=, dtype=, device=)
fft.fftn(x, /, *, s=, axes=, norm=)
fft.fftshift(x, /, *, axes=)
fft.hfft(x, /, *, n=, axis=, norm=)
fft.ifft(x, /, *, n=, axis=, norm=)
fft.ifftn(x, /, *, s=, axes=, norm=)
fft.ifftshift(x, /, *, axes=)
fft.ihfft(x, /, *, n=, axis=, norm=)
fft.irfft(x, /, *, n=, axis=, norm=)
fft.irfftn(x, /, *, s=, axes=, norm=)
fft.rfft(x, /, *, n=, axis=, norm=)
fft.rfftfreq(n, /, *, d=, dtype=, device=)
fft.rfftn(x, /, *, s=, axes=, norm=)
""".strip().splitlines()


@pytest.mark.parametrize("text", FUNCTIONS)
def test_parameters(text):
    path, _, wanted = text.rstrip(")").partition("(")
    found = np
    for name in path.split("."):
        assert name in found.__all__
        found = getattr(found, name)
    parameters = [one for one in wanted.split(", ") if one]
    if isinstance(found, np.ufunc):
        assert found.nin == len([one for one in parameters if one != "/"])
        return
    ours = list(inspect.signature(found).parameters.values())
    more = {one.kind for one in ours}
    slash = parameters.index("/") if "/" in parameters else 0
    star = parameters.index("*") if "*" in parameters else len(parameters)
    for k, one in enumerate(parameters):
        name = one.rstrip("=")
        if name in ("/", "*") or name.startswith("*"):
            continue
        position = k - (1 if slash and k > slash else 0)
        if k < star:
            if inspect.Parameter.VAR_POSITIONAL not in more:
                assert ours[position].kind in (ours[position].POSITIONAL_ONLY, ours[position].POSITIONAL_OR_KEYWORD)
            if k >= slash:
                assert ours[position].name == name
        else:
            (own,) = [x for x in ours if x.name == name]
            assert own.kind in (own.KEYWORD_ONLY, own.POSITIONAL_OR_KEYWORD)


# What NumPy's functions take and those here do not: parameters about objects and pickles, and one of its own.
NOT_TAKEN = {"array": {"ndmax"}, "load": {"fix_imports", "encoding", "max_header_size"}, "einsum_path": {"einsum_call"}}


def named(module, theirs):
    """The functions that both modules have, with parameters that can be looked at."""
    for name in sorted(set(module.__all__) & set(dir(theirs))):
        ours, right = getattr(module, name), getattr(theirs, name)
        if inspect.isfunction(ours) and callable(right) and not isinstance(right, (numpy.ufunc, type)):
            yield pytest.param(name, ours, right, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize(
    ("name", "ours", "right"),
    [*named(np, numpy), *named(np.linalg, numpy.linalg), *named(np.fft, numpy.fft)],
)
def test_parameters_have_numpys_names(name, ours, right):
    """Each may be given by its name, and by its place."""
    try:
        wanted = list(inspect.signature(right).parameters.values())
    except ValueError:  # NumPy says nothing about some of them
        return
    own = list(inspect.signature(ours).parameters.values())
    if any(one.kind is one.VAR_KEYWORD for one in own):
        return
    by_name = {one.name: one for one in own}
    for place, one in enumerate(wanted):
        if one.name in ("like", "kwargs", "start_or_stop") or one.name in NOT_TAKEN.get(name, ()):
            continue
        if one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL):
            assert own[place].kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.VAR_POSITIONAL)
            continue
        assert one.name in by_name, (one.name, list(by_name))
        assert by_name[one.name].kind is not one.POSITIONAL_ONLY, one.name
        if one.kind is one.POSITIONAL_OR_KEYWORD and name != "clip":
            assert own[place].name == one.name


MEMBERS = """
T device dtype mT ndim shape size __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__
__dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__
__lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__
__xor__ __radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rmod__ __rpow__ __rmatmul__ __rand__ __ror__ __rxor__
__rlshift__ __rrshift__ __iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __imatmul__ __iand__
__ior__ __ixor__ __ilshift__ __irshift__ to_device
""".strip().replace("\n", " ")


def test_members(device):
    x = np.ones((2, 2))
    assert [name for name in MEMBERS.split(" ") if not hasattr(x, name)] == []
    assert x.__array_namespace__(api_version="2024.12") is np
    assert np.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match="'1999.1' of the Array API is not known; 2024.12 is the last"):
        x.__array_namespace__(api_version="1999.1")
    assert x.to_device(x.device) is x
    assert np.zeros(2, device=x.device).device == x.device


def test_inspection(device):
    info = np.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() == device
    assert device in info.devices()
    assert info.default_dtypes()["indexing"] == np.int64
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert len(info.dtypes()) == 13
    with pytest.raises(ValueError, match="set_current"):
        np.zeros(2, device="elsewhere")


def test_types_of_functions(device):
    assert np.result_type(np.ones(1, np.int8), 1.5) == np.float64
    assert np.isdtype(np.float32, ("integral", "real floating"))
    assert not np.isdtype(np.bool, "numeric")
    assert type(np.finfo(np.ones(1, np.float32)).eps) is float
    assert np.finfo(np.complex64).dtype == np.float32
    assert np.iinfo(np.ones(1, np.uint8)).max == 255
    assert np.can_cast(np.ones(1, np.int8), np.int16)
    assert (np.e, np.pi, np.inf, np.newaxis) == (math.e, math.pi, math.inf, None)
    assert np.isnan(np.nan).dtype == numpy.bool_


def test_numbers_of_python_keep_their_signs(device):
    for value in (-0.0, complex(0.0, -0.0), complex(-0.0, 0.0)):
        found = np.asarray(value).to_numpy()
        assert numpy.signbit(found.real) == numpy.signbit(numpy.asarray(value).real)
        assert numpy.signbit(found.imag) == numpy.signbit(numpy.asarray(value).imag)
    assert math.copysign(1, float(np.full(1, -0.0)[0])) == -1
    assert math.copysign(1, float(np.where(np.ones(1, bool), -0.0, np.ones(1))[0])) == -1


def test_copies(device):
    x = np.ones(3)
    assert np.asarray(x, copy=False) is x
    assert np.asarray(x, copy=True) is not x
    assert np.astype(x, x.dtype, copy=False) is x
    assert np.array([1, 2], ndmin=2).shape == (1, 2)
    with pytest.raises(ValueError, match="copy"):
        np.asarray([1], copy=False)
    with pytest.raises(ValueError):
        np.reshape(np.ones((2, 2)).T[:, ::-1], (4,), copy=False)
