"""NumPy's exceptions."""

from numpy.exceptions import AxisError as AxisError
from numpy.exceptions import ComplexWarning as ComplexWarning
from numpy.exceptions import ModuleDeprecationWarning as ModuleDeprecationWarning
from numpy.exceptions import RankWarning as RankWarning
from numpy.exceptions import TooHardError as TooHardError
from numpy.exceptions import VisibleDeprecationWarning as VisibleDeprecationWarning
