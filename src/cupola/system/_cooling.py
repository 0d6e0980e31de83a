"""Temperatures, coolers and fans."""

from __future__ import annotations

import warnings

from cupola.bindings import nvml

from ._library import Unpicklable
from ._names import (
    COOLER_CONTROLS,
    COOLER_TARGETS,
    FAN_CONTROL_POLICIES,
    TEMPERATURE_THRESHOLDS,
    THERMAL_CONTROLLERS,
    THERMAL_TARGETS,
)
from .typing import (
    CoolerControl,
    CoolerTarget,
    DeviceArch,
    FanControlPolicy,
    TemperatureThresholds,
    ThermalController,
    ThermalTarget,
)

_IN_FIELDS = frozenset(["SHUTDOWN", "SLOWDOWN", "MEM_MAX", "GPU_MAX"])
"""Thresholds that NVML serves as field values since Ada."""


class CoolerInfo(Unpicklable):
    """A cooler of a device (``nvmlDeviceGetCoolerInfo``)."""

    def __init__(self, handle: int) -> None:
        self._info = nvml.device_get_cooler_info(handle)

    @property
    def signal_type(self) -> CoolerControl | None:
        """CoolerControl or None: how the cooler can be controlled, None when it cannot be."""
        number = self._info.signal_type
        return None if number == nvml.CoolerControl.NONE else COOLER_CONTROLS.member(number)

    @property
    def target(self) -> list[CoolerTarget]:
        """list of CoolerTarget: what it cools."""
        return COOLER_TARGETS.members(self._info.target)


class FanInfo(Unpicklable):
    """One fan of a device."""

    def __init__(self, handle: int, fan: int) -> None:
        count = nvml.device_get_num_fans(handle)
        if not 0 <= fan < count:
            raise ValueError(f"fan must be from 0 to {count - 1}, got {fan}" if count else "the device has no fans")
        self._handle = handle
        self._fan = fan

    @property
    def speed(self) -> int:
        """int: intended speed in percent of the highest; administrators may set it (``nvmlDeviceSetFanSpeed_v2``)."""
        return nvml.device_get_fan_speed_v2(self._handle, self._fan)

    @speed.setter
    def speed(self, percent: int) -> None:
        nvml.device_set_fan_speed_v2(self._handle, self._fan, percent)

    @property
    def speed_rpm(self) -> int:
        """int: speed in turns a minute (``nvmlDeviceGetFanSpeedRPM``)."""
        return nvml.device_get_fan_speed_rpm(self._handle, self._fan)

    @property
    def target_speed(self) -> int:
        """int: the speed that the driver aims at, in percent (``nvmlDeviceGetTargetFanSpeed``)."""
        return nvml.device_get_target_fan_speed(self._handle, self._fan)

    @property
    def min_max_speed(self) -> tuple[int, int]:
        """tuple of int: lowest and highest speed that may be set, in percent (``nvmlDeviceGetMinMaxFanSpeed``)."""
        return nvml.device_get_min_max_fan_speed(self._handle)

    @property
    def control_policy(self) -> FanControlPolicy:
        """FanControlPolicy: who sets the speed (``nvmlDeviceGetFanControlPolicy_v2``)."""
        return FAN_CONTROL_POLICIES.member(nvml.device_get_fan_control_policy_v2(self._handle, self._fan))

    def set_default_speed(self) -> None:
        """Let the driver set the speed again (``nvmlDeviceSetDefaultFanSpeed_v2``)."""
        nvml.device_set_default_fan_speed_v2(self._handle, self._fan)


class ThermalSensor(Unpicklable):
    """One sensor of `ThermalSettings`."""

    def __init__(self, record: nvml.GpuThermalSettings_sensor) -> None:
        self._record = record

    @property
    def controller(self) -> ThermalController:
        """ThermalController: the chip that reads the sensor."""
        return THERMAL_CONTROLLERS.member(self._record.controller)

    @property
    def target(self) -> ThermalTarget:
        """ThermalTarget: what the temperature is of."""
        return THERMAL_TARGETS.member(self._record.target)

    @property
    def default_min_temp(self) -> int:
        """int: the lowest temperature that the sensor shows, in degrees Celsius."""
        return self._record.default_min_temp

    @property
    def default_max_temp(self) -> int:
        """int: the highest temperature that the sensor shows, in degrees Celsius."""
        return self._record.default_max_temp

    @property
    def current_temp(self) -> int:
        """int: the temperature in degrees Celsius."""
        return self._record.current_temp


class ThermalSettings(Unpicklable):
    """The sensors of one target: a sequence (``nvmlDeviceGetThermalSettings``)."""

    def __init__(self, handle: int, target: int) -> None:
        settings = nvml.device_get_thermal_settings(handle, target)
        self._sensors = settings.sensor[: settings.count]

    def __len__(self) -> int:
        return len(self._sensors)

    def __getitem__(self, index: int) -> ThermalSensor:
        return ThermalSensor(self._sensors[index])


class Temperature(Unpicklable):
    """The temperatures of a device, in degrees Celsius."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def get_sensor(self) -> int:
        """Ask for the temperature of the GPU (``nvmlDeviceGetTemperatureV``)."""
        return nvml.device_get_temperature_v(self._handle, nvml.TemperatureSensors.GPU)

    def get_threshold(self, threshold_type: TemperatureThresholds | str) -> int:
        """Ask at which temperature something happens (``nvmlDeviceGetTemperatureThreshold``).

        Parameters
        ----------
        threshold_type
            What happens there.

        Warns
        -----
        DeprecationWarning
            On Ada and newer for the thresholds that NVML is going to serve as field values only
            (``FieldId.DEV_TEMPERATURE_*_TLIMIT``).
        """
        number = TEMPERATURE_THRESHOLDS.number(threshold_type)
        name = TemperatureThresholds(threshold_type).name
        arch = nvml.device_get_architecture(self._handle)
        if name in _IN_FIELDS and arch >= DeviceArch.ADA and arch != DeviceArch.UNKNOWN:
            warnings.warn(
                f"NVML will not serve the threshold {name.lower()!r} this way on Ada and newer: "
                "use Device.get_field_values with FieldId.DEV_TEMPERATURE_*_TLIMIT",
                DeprecationWarning,
                stacklevel=2,
            )
        return nvml.device_get_temperature_threshold(self._handle, number)

    @property
    def margin(self) -> int:
        """int: degrees left until the clocks are slowed down (``nvmlDeviceGetMarginTemperature``)."""
        return nvml.device_get_margin_temperature(self._handle)

    def get_thermal_settings(self, sensor_index: ThermalTarget | str) -> ThermalSettings:
        """Ask for the sensors of a target.

        Parameters
        ----------
        sensor_index
            What the temperatures are of.
        """
        return ThermalSettings(self._handle, THERMAL_TARGETS.number(sensor_index))
