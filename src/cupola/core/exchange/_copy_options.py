"""How a copy may be carried out, beyond its stream."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cupola.core.base._options import naming_options

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from cupola.core.device._device import Device
    from cupola.core.memory._host import Host


class MemcpySrcAccessOrder(StrEnum):
    """When the source of a copy may be read."""

    STREAM = "stream"
    DURING_API_CALL = "during_api_call"
    ANY = "any"


class MemcpyOverlapMode(StrEnum):
    """Whether a copy should run beside kernels."""

    DEFAULT = "default"
    PREFER_OVERLAP_WITH_COMPUTE = "prefer_overlap_with_compute"


@naming_options
@dataclass(frozen=True)
class CopyOptions:
    """Options of :meth:`.Buffer.copy_to`, :meth:`.Buffer.copy_from` and :func:`.copy_batch` (``CUmemcpyAttributes``).

    Parameters
    ----------
    src_access_order : MemcpySrcAccessOrder or str
        When the source may be read: in the order of the ``"stream"``; all of it ``"during_api_call"``, for memory that
        goes away behind the call; or ``"any"`` time until the copy is complete. Other than in the order of the stream,
        no work that is queued before may still write the source.
    src_location_hint, dst_location_hint : Device or Host, optional
        Where managed or system-allocated memory is at the time of the copy. Ignored for other memory.
    overlap_mode : MemcpyOverlapMode or str
        ``"prefer_overlap_with_compute"`` asks for copying beside kernels.

    Raises
    ------
    ValueError
        When an enum has no such value. The hints are checked by the copy.
    """

    src_access_order: MemcpySrcAccessOrder | str = MemcpySrcAccessOrder.STREAM
    src_location_hint: Device | Host | None = None
    dst_location_hint: Device | Host | None = None
    overlap_mode: MemcpyOverlapMode | str = MemcpyOverlapMode.DEFAULT

    def __post_init__(self) -> None:
        kinds: tuple[tuple[str, type[StrEnum]], ...] = (
            ("src_access_order", MemcpySrcAccessOrder),
            ("overlap_mode", MemcpyOverlapMode),
        )
        for field, kind in kinds:
            try:
                object.__setattr__(self, field, kind(getattr(self, field)))
            except ValueError:
                known = ", ".join(repr(str(member)) for member in kind)
                raise ValueError(f"invalid {field} {getattr(self, field)!r}; it must be one of {known}") from None
