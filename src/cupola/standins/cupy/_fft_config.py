"""``cupy.fft.config``: plans of transforms, which are kept for each thread without it."""

from __future__ import annotations

from typing import Any

from cupola.numpy.fft import _transforms

enable_nd_planning = True
use_multi_gpus = False


class PlanCache:
    """The plans that the current thread keeps."""

    def clear(self) -> None:
        """Give them back."""
        _transforms.forget_plans()

    def get_curr_size(self) -> int:
        """How many there are."""
        return len(_transforms.kept_plans())

    def get_size(self) -> int:
        """How many are kept at most."""
        return _transforms.KEPT

    def set_size(self, size: int) -> None:
        """Refuse another size, but for 0, which gives back what there is."""
        if size == 0:
            self.clear()
        elif size != _transforms.KEPT:
            raise NotImplementedError(f"{_transforms.KEPT} plans are kept; clear() gives them back")

    def show_info(self) -> None:
        """Print how many there are."""
        print(f"plans of transforms: {self.get_curr_size()} of {self.get_size()}")

    def __repr__(self) -> str:
        return f"<PlanCache of {self.get_curr_size()} plans>"


_cache = PlanCache()


def get_plan_cache() -> PlanCache:
    """The plans that the current thread keeps."""
    return _cache


def clear_plan_cache() -> None:
    """Give them back."""
    _cache.clear()


def show_plan_cache_info() -> None:
    """Print how many there are."""
    _cache.show_info()


def set_cufft_gpus(gpus: Any) -> None:
    """Transforms on several devices are not there."""
    raise NotImplementedError("cupy.fft on several GPUs: cupola.dask has arrays on several devices")
