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
from cupola.numpy.random._older import f as f
from cupola.numpy.random._older import gamma as gamma
from cupola.numpy.random._older import geometric as geometric
from cupola.numpy.random._older import get_state as get_state
from cupola.numpy.random._older import gumbel as gumbel
from cupola.numpy.random._older import hypergeometric as hypergeometric
from cupola.numpy.random._older import laplace as laplace
from cupola.numpy.random._older import logistic as logistic
from cupola.numpy.random._older import lognormal as lognormal
from cupola.numpy.random._older import logseries as logseries
from cupola.numpy.random._older import multinomial as multinomial
from cupola.numpy.random._older import multivariate_normal as multivariate_normal
from cupola.numpy.random._older import negative_binomial as negative_binomial
from cupola.numpy.random._older import noncentral_chisquare as noncentral_chisquare
from cupola.numpy.random._older import noncentral_f as noncentral_f
from cupola.numpy.random._older import normal as normal
from cupola.numpy.random._older import pareto as pareto
from cupola.numpy.random._older import permutation as permutation
from cupola.numpy.random._older import poisson as poisson
from cupola.numpy.random._older import power as power
from cupola.numpy.random._older import rand as rand
from cupola.numpy.random._older import randint as randint
from cupola.numpy.random._older import randn as randn
from cupola.numpy.random._older import random as random
from cupola.numpy.random._older import random_integers as random_integers
from cupola.numpy.random._older import random_sample as random_sample
from cupola.numpy.random._older import ranf as ranf
from cupola.numpy.random._older import rayleigh as rayleigh
from cupola.numpy.random._older import sample as sample
from cupola.numpy.random._older import seed as seed
from cupola.numpy.random._older import set_state as set_state
from cupola.numpy.random._older import shuffle as shuffle
from cupola.numpy.random._older import standard_cauchy as standard_cauchy
from cupola.numpy.random._older import standard_exponential as standard_exponential
from cupola.numpy.random._older import standard_gamma as standard_gamma
from cupola.numpy.random._older import standard_normal as standard_normal
from cupola.numpy.random._older import standard_t as standard_t
from cupola.numpy.random._older import triangular as triangular
from cupola.numpy.random._older import uniform as uniform
from cupola.numpy.random._older import vonmises as vonmises
from cupola.numpy.random._older import wald as wald
from cupola.numpy.random._older import weibull as weibull
from cupola.numpy.random._older import zipf as zipf
from cupola.numpy.random._state import RandomState as RandomState

__all__ = [
    "Generator", "Philox", "RandomState", "beta", "binomial", "bytes", "chisquare", "choice", "default_rng",
    "dirichlet", "exponential", "f", "gamma", "geometric", "get_state", "gumbel", "hypergeometric", "laplace",
    "logistic", "lognormal", "logseries", "multinomial", "multivariate_normal", "negative_binomial",
    "noncentral_chisquare", "noncentral_f", "normal", "pareto", "permutation", "poisson", "power", "rand",
    "randint", "randn", "random", "random_integers", "random_sample", "ranf", "rayleigh", "sample", "seed",
    "set_state", "shuffle", "standard_cauchy", "standard_exponential", "standard_gamma", "standard_normal",
    "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull", "zipf",
]  # fmt: skip

_INSTEAD = {
    **dict.fromkeys(["BitGenerator", "MT19937", "PCG64", "PCG64DXSM", "SFC64"], "Philox(seed) is the one there is"),
    "SeedSequence": "Philox and default_rng take NumPy's",
}


def __getattr__(name: str) -> _Any:
    from cupola.numpy._known import missing

    raise missing(__name__, name, __all__, _INSTEAD)
