"""Intel's GPUs, which cygrad does not use: these functions answer as PyTorch's do on a machine without one."""

from typing import Any

from cygrad.backends import _absent
from cygrad.xpu import memory, random, streams
from cygrad.xpu.streams import Event, Stream

_ABSENT = (AssertionError, "Torch not compiled with XPU enabled")

device: Any = _absent.device_context(__name__, *_ABSENT)


class device_of(device):
    """A context in which the device of a tensor is current; a tensor that is not on an Intel GPU is a no-op.

    >>> import cygrad
    >>> x = cygrad.ones(2)
    >>> with cygrad.xpu.device_of(x):
    ...     y = x + 1  # x is not on an Intel GPU, and nothing changes
    >>> y
    tensor([2., 2.])
    """

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_xpu else -1)


class StreamContext:
    """A context in which another stream is current; None is a no-op.

    >>> import cygrad
    >>> with cygrad.xpu.StreamContext(None):
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            raise AssertionError(_ABSENT[1])

    def __exit__(self, *error):
        """Nothing was changed."""


def stream(stream):
    """Return a context in which `stream` is current.

    >>> import cygrad
    >>> with cygrad.xpu.stream(None):
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """
    return StreamContext(stream)


_ANSWERS = {
    "device_count": 0,
    "get_arch_list": [],
    "get_gencode_flags": "",
    "is_available": False,
    "is_bf16_supported": False,
    "is_initialized": False,
    "is_tf32_supported": False,
    "set_stream": None,
}
_REFUSED = """
    can_device_access_peer current_device current_stream get_device_capability get_device_name get_device_properties
    get_stream_from_external init set_device synchronize
""".split()

default_generators = ()
globals().update(_absent.answering(__name__, _ANSWERS))
globals().update(_absent.refusing(__name__, dict.fromkeys(_REFUSED, _ABSENT)))
for _part in (memory, random):
    globals().update({name: getattr(_part, name) for name in _part.__all__})

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "default_generators",
    "device",
    "device_of",
    "memory",
    "random",
    "stream",
    "streams",
]
__all__ += [*_ANSWERS, *_REFUSED, *memory.__all__, *random.__all__]
