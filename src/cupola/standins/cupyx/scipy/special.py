"""``cupyx.scipy.special``: functions of ``scipy.special``, computed on the host."""

from __future__ import annotations

from typing import Any

import cupola.numpy as _np
from cupola.standins.cupy._kernels import ElementwiseKernel
from cupola.standins.cupyx.scipy._host import function

NAMES = [
    "bdtr",
    "bdtrc",
    "bdtri",
    "beta",
    "betainc",
    "betaincinv",
    "betaln",
    "binom",
    "boxcox",
    "boxcox1p",
    "btdtr",
    "btdtri",
    "cbrt",
    "chdtr",
    "chdtrc",
    "chdtri",
    "cosdg",
    "cosm1",
    "cotdg",
    "digamma",
    "ellipeinc",
    "ellipj",
    "ellipk",
    "ellipkinc",
    "ellipkm1",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp1",
    "exp10",
    "exp2",
    "expi",
    "expit",
    "expm1",
    "expn",
    "exprel",
    "fdtr",
    "fdtrc",
    "fdtri",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "gammasgn",
    "gdtr",
    "gdtrc",
    "huber",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "inv_boxcox",
    "inv_boxcox1p",
    "j0",
    "j1",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kl_div",
    "lambertw",
    "log1p",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "lpmv",
    "multigammaln",
    "nbdtr",
    "nbdtrc",
    "nbdtri",
    "ndtr",
    "ndtri",
    "pdtr",
    "pdtrc",
    "pdtri",
    "poch",
    "polygamma",
    "pseudo_huber",
    "psi",
    "radian",
    "rel_entr",
    "rgamma",
    "round",
    "shichi",
    "sici",
    "sinc",
    "sindg",
    "softmax",
    "sph_harm_y",
    "tandg",
    "wright_bessel",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "yn",
    "zeta",
    "zetac",
]

# What CUDA's functions compute on the device: of x, or of x and y, for floating-point numbers.
DEVICE = {
    "cbrt": "cbrt(x)", "erf": "erf(x)", "erfc": "erfc(x)", "erfcx": "erfcx(x)", "erfinv": "erfinv(x)",
    "erfcinv": "erfcinv(x)", "exp10": "exp10(x)", "exp2": "exp2(x)", "expm1": "expm1(x)", "log1p": "log1p(x)",
    "gamma": "tgamma(x)", "gammaln": "lgamma(x)", "i0": "cyl_bessel_i0(x)", "i1": "cyl_bessel_i1(x)", "j0": "j0(x)",
    "j1": "j1(x)", "y0": "y0(x)", "y1": "y1(x)", "ndtr": "normcdf(x)", "ndtri": "normcdfinv(x)",
    "expit": "T(1) / (T(1) + exp(-x))", "logit": "log(x / (T(1) - x))", "round": "rint(x)",
    "log_expit": "x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x))",
    "entr": "x > 0 ? -x * log(x) : x < 0 ? -T(INFINITY) : x == 0 ? T(0) : x",
    "cosm1": "T(-2) * sin(x / 2) * sin(x / 2)",
    "sinc": "x == 0 ? T(1) : sinpi(x) / (T(3.14159265358979323846) * x)",
    "xlogy": "x == 0 && y == y ? T(0) : x * log(y)", "xlog1py": "x == 0 && y == y ? T(0) : x * log1p(y)",
    "kl_div": "x != x || y != y ? x + y : x > 0 && y > 0 ? x * log(x / y) - x + y : x == 0 && y >= 0 ? y : T(INFINITY)",
    "rel_entr": "x != x || y != y ? x + y : x > 0 && y > 0 ? x * log(x / y) : x == 0 && y >= 0 ? T(0) : T(INFINITY)",
    "huber": "x < 0 ? T(INFINITY) : fabs(y) <= x ? y * y / 2 : x * (fabs(y) - x / 2)",
}  # fmt: skip
_PREAMBLE = "#define INFINITY __longlong_as_double(0x7ff0000000000000)\n"

__all__ = ["DEVICE", "NAMES"]


def __getattr__(name: str) -> Any:
    globals()[name] = found = elementwise(name) if name in DEVICE else function("special", name, NAMES)
    return found


# Of these CuPy computes what fits into float32 in that type, and of sinc and round what fits into float16 in that one;
# of all others, float16 as float64.
IN_SINGLE = ("entr", "erfcinv", "erfinv", "huber", "kl_div", "ndtri", "rel_entr")
IN_HALF = ("round", "sinc")


def types(name: str, kind: Any) -> tuple[Any, Any]:
    """The type that a function computes elements of a type in, which is float32 for halves, and that of its result."""
    double, single, half = map(_np.dtype, ("float64", "float32", "float16"))
    if name == "round" and kind.kind in "iu":
        return double, kind
    if name in IN_HALF and _np.can_cast(kind, half):
        return single, half
    if kind == single or (name in IN_SINGLE and _np.can_cast(kind, single)):
        return single, single
    return double, double


def elementwise(name: str) -> Any:
    """The function of arrays that computes an entry of `DEVICE`, in the types that CuPy's has."""
    parameters = "T x, T y" if "y" in DEVICE[name].replace("cyl", "").replace("y0(", "(").replace("y1(", "(") else "T x"
    kernel = ElementwiseKernel(parameters, "T out", f"out = {DEVICE[name]}", f"special_{name}", preamble=_PREAMBLE)

    def special(*arguments: Any, out: Any = None) -> Any:
        arrays = [_np.asarray(one) for one in arguments]
        kind = _np.result_type(*arguments)
        if kind.kind == "c":
            raise TypeError(f"cupyx.scipy.special.{name} takes real numbers here; scipy.special takes x.get()")
        to, result = types(name, kind)
        made = kernel(*[one.astype(to, copy=False) for one in arrays])
        if out is None:
            return made.astype(result, copy=False)
        out[...] = made
        return out

    special.__name__, special.__doc__ = name, f"As ``scipy.special.{name}``, on the device."
    return special


def __dir__() -> list[str]:
    return sorted([*globals(), *NAMES])
