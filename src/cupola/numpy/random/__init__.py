"""Random numbers with the interface of ``numpy.random``: the same numbers on every device.

Bits come from Philox4x32-10, a function of a key and a counter, so element i of a sequence does not depend on how the
work is divided. The sequences differ from NumPy's.
"""

from __future__ import annotations

from typing import Any as _Any

from cupola.numpy.random._generator import Generator as Generator
from cupola.numpy.random._generator import Philox as Philox
from cupola.numpy.random._generator import default_rng as default_rng
from cupola.numpy.random._older import beta as beta
from cupola.numpy.random._older import binomial as binomial
from cupola.numpy.random._older import bytes as bytes
from cupola.numpy.random._older import chisquare as chisquare
from cupola.numpy.random._older import choice as choice
from cupola.numpy.random._older import dirichlet as dirichlet
from cupola.numpy.random._older import exponential as exponential
from cupola.numpy.random._older import gamma as gamma
from cupola.numpy.random._older import geometric as geometric
from cupola.numpy.random._older import gumbel as gumbel
from cupola.numpy.random._older import laplace as laplace
from cupola.numpy.random._older import logistic as logistic
from cupola.numpy.random._older import lognormal as lognormal
from cupola.numpy.random._older import multivariate_normal as multivariate_normal
from cupola.numpy.random._older import negative_binomial as negative_binomial
from cupola.numpy.random._older import normal as normal
from cupola.numpy.random._older import pareto as pareto
from cupola.numpy.random._older import permutation as permutation
from cupola.numpy.random._older import poisson as poisson
from cupola.numpy.random._older import power as power
from cupola.numpy.random._older import rand as rand
from cupola.numpy.random._older import randint as randint
from cupola.numpy.random._older import randn as randn
from cupola.numpy.random._older import random as random
from cupola.numpy.random._older import random_sample as random_sample
from cupola.numpy.random._older import ranf as ranf
from cupola.numpy.random._older import rayleigh as rayleigh
from cupola.numpy.random._older import sample as sample
from cupola.numpy.random._older import seed as seed
from cupola.numpy.random._older import shuffle as shuffle
from cupola.numpy.random._older import standard_cauchy as standard_cauchy
from cupola.numpy.random._older import standard_exponential as standard_exponential
from cupola.numpy.random._older import standard_gamma as standard_gamma
from cupola.numpy.random._older import standard_normal as standard_normal
from cupola.numpy.random._older import standard_t as standard_t
from cupola.numpy.random._older import triangular as triangular
from cupola.numpy.random._older import uniform as uniform
from cupola.numpy.random._older import weibull as weibull

__all__ = [
    "Generator", "Philox", "beta", "binomial", "bytes", "chisquare", "choice", "default_rng", "dirichlet",
    "exponential", "gamma", "geometric", "gumbel", "laplace", "logistic", "lognormal", "multivariate_normal",
    "negative_binomial", "normal", "pareto", "permutation", "poisson", "power", "rand", "randint", "randn",
    "random", "random_sample", "ranf", "rayleigh", "sample", "seed", "shuffle", "standard_cauchy",
    "standard_exponential", "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform", "weibull",
]  # fmt: skip

_INSTEAD = {
    **dict.fromkeys(["BitGenerator", "MT19937", "PCG64", "PCG64DXSM", "SFC64"], "Philox(seed) is the one there is"),
    "RandomState": "default_rng(seed) has the distributions",
    "SeedSequence": "Philox and default_rng take NumPy's",
    "get_state": "default_rng(seed).bit_generator.state is there",
    "random_integers": "randint is there",
    "set_state": "default_rng(seed).bit_generator.state is there",
}


def __getattr__(name: str) -> _Any:
    from cupola.numpy._known import nearest

    near = "" if name.startswith("_") else nearest(name, __all__, _INSTEAD.get(name))
    raise AttributeError(f"module 'cupola.numpy.random' has no attribute {name!r}{near}")
