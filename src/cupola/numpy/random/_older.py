"""The older functions of ``numpy.random``: the methods of one RandomState."""

from __future__ import annotations

from cupola.numpy.random._state import RandomState

_shared = RandomState()

(
    beta, binomial, chisquare, dirichlet, exponential, f, gamma, geometric, gumbel, hypergeometric, laplace,
    logistic, lognormal, logseries, multinomial, negative_binomial, noncentral_chisquare, noncentral_f, normal,
    pareto, poisson, power, rayleigh, standard_cauchy, standard_exponential, standard_gamma, standard_normal,
    standard_t, triangular, uniform, vonmises, wald, weibull, zipf,
) = map(
    _shared.__getattribute__,
    [
        "beta", "binomial", "chisquare", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel",
        "hypergeometric", "laplace", "logistic", "lognormal", "logseries", "multinomial", "negative_binomial",
        "noncentral_chisquare", "noncentral_f", "normal", "pareto", "poisson", "power", "rayleigh",
        "standard_cauchy", "standard_exponential", "standard_gamma", "standard_normal", "standard_t",
        "triangular", "uniform", "vonmises", "wald", "weibull", "zipf",
    ],
)  # fmt: skip
bytes = _shared.bytes
choice = _shared.choice
get_state = _shared.get_state
multivariate_normal = _shared.multivariate_normal
permutation = _shared.permutation
rand = _shared.rand
randint = _shared.randint
randn = _shared.randn
random = _shared.random
random_integers = _shared.random_integers
random_sample = _shared.random_sample
seed = _shared.seed
set_state = _shared.set_state
shuffle = _shared.shuffle
ranf = sample = random_sample
