"""What is written on the board: the InfoROM, and the parts of a MIG device."""

from __future__ import annotations

from cupola.bindings import nvml

from ._library import Unpicklable
from ._names import INFOROM_OBJECTS
from .typing import InforomObject


class InforomInfo(Unpicklable):
    """The InfoROM of a board, which tells its identity and history."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def get_version(self, inforom: InforomObject | str) -> str:
        """Ask for the version of a part (``nvmlDeviceGetInforomVersion``).

        Parameters
        ----------
        inforom
            The part.
        """
        return nvml.device_get_inforom_version(self._handle, INFOROM_OBJECTS.number(inforom))

    @property
    def image_version(self) -> str:
        """str: version of the whole (``nvmlDeviceGetInforomImageVersion``)."""
        return nvml.device_get_inforom_image_version(self._handle)

    @property
    def configuration_checksum(self) -> int:
        """int: a checksum of the configuration (``nvmlDeviceGetInforomConfigurationChecksum``)."""
        return nvml.device_get_inforom_configuration_checksum(self._handle)

    def validate(self) -> None:
        """Compare contents and checksums (``nvmlDeviceValidateInforom``); `CorruptedInforomError` where they differ."""
        nvml.device_validate_inforom(self._handle)

    @property
    def bbx_flush_time(self) -> tuple[int, int]:
        """tuple of int: when the black box was last written, and how many microseconds that took."""
        return nvml.device_get_last_bbx_flush_time(self._handle)

    @property
    def board_part_number(self) -> str:
        """str: the number by which the board is ordered (``nvmlDeviceGetBoardPartNumber``)."""
        return nvml.device_get_board_part_number(self._handle)


class DeviceAttributes(Unpicklable):
    """The share of a GPU that a MIG device has (``nvmlDeviceGetAttributes_v2``)."""

    def __init__(self, handle: int) -> None:
        self._attributes = nvml.device_get_attributes_v2(handle)

    @property
    def multiprocessor_count(self) -> int:
        """int: multiprocessors."""
        return self._attributes.multiprocessor_count

    @property
    def shared_copy_engine_count(self) -> int:
        """int: copy engines, shared with others of the same GPU instance."""
        return self._attributes.shared_copy_engine_count

    @property
    def shared_decoder_count(self) -> int:
        """int: video decoders, shared."""
        return self._attributes.shared_decoder_count

    @property
    def shared_encoder_count(self) -> int:
        """int: video encoders, shared."""
        return self._attributes.shared_encoder_count

    @property
    def shared_jpeg_count(self) -> int:
        """int: JPEG decoders, shared."""
        return self._attributes.shared_jpeg_count

    @property
    def shared_ofa_count(self) -> int:
        """int: optical flow engines, shared."""
        return self._attributes.shared_ofa_count

    @property
    def gpu_instance_slice_count(self) -> int:
        """int: slices of the GPU that its GPU instance has."""
        return self._attributes.gpu_instance_slice_count

    @property
    def compute_instance_slice_count(self) -> int:
        """int: slices of the GPU that its compute instance has."""
        return self._attributes.compute_instance_slice_count

    @property
    def memory_size_mb(self) -> int:
        """int: memory in MiB."""
        return self._attributes.memory_size_mb
