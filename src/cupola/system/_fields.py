"""Field values: many small facts of a device in one call."""

from __future__ import annotations

from collections.abc import Iterable

from cupola.bindings import nvml

from ._library import Unpicklable
from .typing import FieldId

FieldIds = Iterable["int | FieldId | tuple[int | FieldId, int]"]

_MEMBERS = {
    nvml.ValueType.DOUBLE: "d_val",
    nvml.ValueType.UNSIGNED_INT: "ui_val",
    nvml.ValueType.UNSIGNED_LONG: "ul_val",
    nvml.ValueType.UNSIGNED_LONG_LONG: "ull_val",
    nvml.ValueType.SIGNED_LONG_LONG: "sll_val",
    nvml.ValueType.SIGNED_INT: "si_val",
    nvml.ValueType.UNSIGNED_SHORT: "us_val",
}
"""Type of a value -> the member of NVML's union that holds it."""


class FieldValue(Unpicklable):
    """One of `FieldValues`."""

    def __init__(self, record: nvml.FieldValue) -> None:
        self._record = record

    @property
    def field_id(self) -> FieldId:
        """FieldId: which fact this is."""
        return FieldId(self._record.field_id)

    @property
    def scope_id(self) -> int:
        """int: which of several it is of, such as the number of a link."""
        return self._record.scope_id

    @property
    def timestamp(self) -> int:
        """int: when it was read, in microseconds since 1970."""
        return self._record.timestamp

    @property
    def latency_usec(self) -> int:
        """int: how long reading it took, in microseconds."""
        return self._record.latency_usec

    @property
    def value(self) -> int | float:
        """int or float: the fact; raises its own `NvmlError` where the device does not have it."""
        nvml.check_status(self._record.nvml_return)
        kind = self._record.value_type
        if kind not in _MEMBERS:
            raise AssertionError(f"NVML answered the value type {kind}, which cupola does not know")
        value: int | float = getattr(self._record.value, _MEMBERS[nvml.ValueType(kind)])
        return value


class FieldValues(Unpicklable):
    """What a device answered for several fields: a sequence (``nvmlDeviceGetFieldValues``)."""

    def __init__(self, records: nvml.FieldValue) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> FieldValue:
        return FieldValue(self._records[index])

    def validate(self) -> None:
        """Raise the error of the first field that has one."""
        for record in self._records:
            nvml.check_status(record.nvml_return)

    def get_all_values(self) -> list[int | float]:
        """The values of all fields; raises the error of the first field that has one."""
        self.validate()
        return [FieldValue(record).value for record in self._records]


def requested(fields: FieldIds) -> nvml.FieldValue:
    """Fields as NVML takes them: numbers, or pairs of number and scope."""
    pairs = [field if isinstance(field, tuple) else (field, 0) for field in fields]
    records = nvml.FieldValue(len(pairs))
    for record, (field, scope) in zip(records, pairs, strict=True):
        record.field_id = int(field)
        record.scope_id = scope
    return records
