"""What a GPU's driver measures: load, temperature, power, clock. Needs NVIDIA's library nvidia-ml-py."""

from typing import Any

from cygrad._kernels.device.cupy_library import cupy
from cygrad.cuda.devices import _index

__all__ = ["clock_rate", "device_memory_used", "memory_usage", "power_draw", "temperature", "utilization"]


def _library() -> Any:
    """Return NVIDIA's library, ready for use. Raises PyTorch's error if it is not installed."""
    try:
        import pynvml  # optional
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "nvidia-ml-py does not seem to be installed or it can't be imported.\n  to fix it: pip install nvidia-ml-py"
        ) from error
    pynvml.nvmlInit()
    return pynvml


def _measured(device: Any) -> tuple[Any, Any]:
    library = _library()
    bus = cupy().cuda.Device(_index(device)).pci_bus_id  # the library counts all GPUs, also those that are hidden here
    return library, library.nvmlDeviceGetHandleByPciBusId(bus)


def utilization(device: Any = None) -> int:
    """Return for what percentage of about the last second kernels were running on a GPU.

    >>> import cygrad
    >>> from importlib.util import find_spec
    >>> cannot = not cygrad.cuda.is_available() or find_spec("pynvml") is None
    >>> cannot or 0 <= cygrad.cuda.utilization() <= 100
    True
    """
    library, handle = _measured(device)
    return library.nvmlDeviceGetUtilizationRates(handle).gpu


def memory_usage(device: Any = None) -> int:
    """Return for what percentage of about the last second a GPU was reading or writing its memory.

    >>> import cygrad
    >>> from importlib.util import find_spec
    >>> cannot = not cygrad.cuda.is_available() or find_spec("pynvml") is None
    >>> cannot or 0 <= cygrad.cuda.memory_usage() <= 100
    True
    """
    library, handle = _measured(device)
    return library.nvmlDeviceGetUtilizationRates(handle).memory


def device_memory_used(device: Any = None) -> int:
    """Return the bytes of a GPU's memory that all processes use.

    >>> import cygrad
    >>> from importlib.util import find_spec
    >>> cannot = not cygrad.cuda.is_available() or find_spec("pynvml") is None
    >>> cannot or cygrad.cuda.device_memory_used() > 0
    True
    """
    library, handle = _measured(device)
    return library.nvmlDeviceGetMemoryInfo(handle).used


def temperature(device: Any = None) -> int:
    """Return the temperature of a GPU in degrees Celsius.

    >>> import cygrad
    >>> from importlib.util import find_spec
    >>> cannot = not cygrad.cuda.is_available() or find_spec("pynvml") is None
    >>> cannot or cygrad.cuda.temperature() > 0
    True
    """
    library, handle = _measured(device)
    return library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU)


def power_draw(device: Any = None) -> int:
    """Return the power that a GPU draws, in milliwatts.

    >>> import cygrad
    >>> from importlib.util import find_spec
    >>> cannot = not cygrad.cuda.is_available() or find_spec("pynvml") is None
    >>> cannot or cygrad.cuda.power_draw() > 0
    True
    """
    library, handle = _measured(device)
    return library.nvmlDeviceGetPowerUsage(handle)


def clock_rate(device: Any = None) -> int:
    """Return the clock of a GPU's multiprocessors in MHz.

    >>> import cygrad
    >>> from importlib.util import find_spec
    >>> cannot = not cygrad.cuda.is_available() or find_spec("pynvml") is None
    >>> cannot or cygrad.cuda.clock_rate() > 0
    True
    """
    library, handle = _measured(device)
    return library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM)
