"""Random numbers with the interface of ``numpy.random``: the same numbers on every device.

Bits come from Philox4x32-10, a function of a key and a counter, so element i of a sequence does not depend on how the
work is divided. The sequences differ from NumPy's.
"""

from __future__ import annotations

from cupola.numpy.random._generator import Generator as Generator
from cupola.numpy.random._generator import Philox as Philox
from cupola.numpy.random._generator import default_rng as default_rng
from cupola.numpy.random._older import choice as choice
from cupola.numpy.random._older import exponential as exponential
from cupola.numpy.random._older import normal as normal
from cupola.numpy.random._older import permutation as permutation
from cupola.numpy.random._older import rand as rand
from cupola.numpy.random._older import randint as randint
from cupola.numpy.random._older import randn as randn
from cupola.numpy.random._older import random as random
from cupola.numpy.random._older import random_sample as random_sample
from cupola.numpy.random._older import seed as seed
from cupola.numpy.random._older import shuffle as shuffle
from cupola.numpy.random._older import standard_normal as standard_normal
from cupola.numpy.random._older import uniform as uniform

__all__ = [
    "Generator", "Philox", "choice", "default_rng", "exponential", "normal", "permutation", "rand", "randint", "randn",
    "random", "random_sample", "seed", "shuffle", "standard_normal", "uniform",
]  # fmt: skip
