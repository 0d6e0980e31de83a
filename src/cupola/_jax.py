"""JAX on the CPU device: what its CUDA plugin needs besides a driver and libraries.

JAX looks for the device files of NVIDIA's driver before it loads the plugin, and compares the versions of libraries by
means of CUPTI, which works with NVIDIA's driver only. So where the CPU device runs CUDA programs, this answers the
first question and turns the second one off. XLA keeps the PTX of its kernels when it is asked for line information. To
choose the fastest of several kernels it would measure them, which says nothing here.

`install` is called by ``cupola run`` and the pytest plugin. It imports nothing of JAX.
"""

from __future__ import annotations

import os
from types import ModuleType

from cupola._after_import import after_import

MODULE = "jax._src.hardware_utils"
VARIABLES = {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
FLAGS = {"--xla_gpu_generate_line_info": "true", "--xla_gpu_autotune_level": "0"}


def install() -> None:
    """Have JAX use its CUDA plugin, if it is installed, in this process and those that it starts with cupola."""
    after_import(MODULE, _change)


def _change(module: ModuleType) -> None:
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)
    given = os.environ.get("XLA_FLAGS", "").split()
    named = {flag.partition("=")[0] for flag in given}
    given += [f"{name}={value}" for name, value in FLAGS.items() if name not in named]
    os.environ["XLA_FLAGS"] = " ".join(given)  # read when the plugin is loaded
    module.has_visible_nvidia_gpu = lambda: True  # type: ignore[attr-defined]
