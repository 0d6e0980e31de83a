# The driver's table and the helpers around it are for compiled modules only: see _cuda.pxd.

from cupola.core.base._errors import CUDAError

def take_unraised() -> CUDAError | None: ...
