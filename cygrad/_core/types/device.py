"""Devices of tensors, and the default device of new ones."""

from _thread import _local

import numpy as np

from cygrad._core.errors import messages
from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.cupy_library import META, cupy, current_device
from cygrad._library import later

allocator = later("cygrad._kernels.gpu.runtime.allocator")  # needed only on GPUs

_KINDS = (  # those that PyTorch knows
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, "
    "privateuseone"
)

KINDS = frozenset(_KINDS.split(", "))


class device:
    """A device type and index: `device('cpu')`, `device('cuda:0')`, `device('cuda', 0)`, `device('meta')`.

    Devices that only PyTorch has (`device('mps')`, `device('xpu')`, ...) can be named and compared; a tensor there
    raises the error that PyTorch raises on a machine without such a device.

    Tensors on the device 'meta' have a shape, strides and a dtype, but no elements: nothing is computed and no
    memory is needed, so that a module of any size can be made, and its shapes be looked at, before weights are loaded.

    >>> import cygrad
    >>> cygrad.device("cpu")
    device(type='cpu')
    """

    __slots__ = {
        "type": "The kind of device: 'cpu', 'cuda', 'meta', or one that only PyTorch has.",
        "index": "The index of the device among those of its kind, or None.",
    }
    __module__ = "cygrad"
    type: str
    index: int | None

    def __init__(self, type, index=None):
        if isinstance(type, device):
            type, index = type.type, type.index
        if not isinstance(type, (str, int, np.integer)) or isinstance(type, bool):
            raise messages.no_such_call("device", (type,), {}, ("Device device", "str type, int index = -1"))
        if isinstance(type, np.integer):
            type = int(type)
        if isinstance(index, np.integer):
            index = int(index)
        if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
            raise messages.wrong_type("device", "index", 2, "int", index)
        if type == "":
            raise RuntimeError("Device string must not be empty")
        if isinstance(type, int):
            type, index = "cuda", type
            if index >= 0 and not cupy_library.is_available():
                raise RuntimeError("Cannot access accelerator device when none is available.")
        if index is not None and index < 0:
            raise RuntimeError("Device index must not be negative")
        kind, colon, number = type.partition(":")
        is_number = number.isascii() and number.isdigit() and (number == "0" or number[0] != "0")
        if not (kind.isascii() and kind.replace("_", "a").isalpha()) or (colon and not is_number):
            raise RuntimeError(f"Invalid device string: '{type}'{messages.without_quotes(type)}")
        if number and index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
        if kind not in KINDS:
            raise RuntimeError(
                f"Expected one of {_KINDS} device type at start of device string: {kind}\n  here: cpu, cuda, meta"
            )
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", int(number) if number else index)

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        return f"device(type='{self.type}'" + ("" if self.index is None else f", index={self.index}") + ")"

    def __reduce__(self):
        return device, (str(self),)

    def __enter__(self):
        """Make this device the default for new tensors in the block."""
        defaults.in_use = True
        _of_thread.__dict__.setdefault("outer", []).append(default_device())
        _of_thread.device = self
        return self

    def __exit__(self, *error):
        _of_thread.device = _of_thread.outer.pop()


class defaults:
    """Whether any thread may have changed the default device."""

    in_use = False


_of_thread = _local()
cpu_device = device("cpu")
meta_device = device("meta")
_device = device
_gpus: dict[int, device] = {}  # by index


def default_device():
    """Return the default device of this thread's new tensors."""
    return getattr(_of_thread, "device", cpu_device)


def get_default_device():
    """Return the default device of new tensors: the CPU unless changed by `set_default_device` or by a block `with
    torch.device(...)`.

    >>> import cygrad
    >>> cygrad.get_default_device()
    device(type='cpu')
    """
    found = default_device()
    return check_device(found) if found.type == "cuda" and found.index is None else found


def set_default_device(device):
    """Set the default device of this thread's new tensors; None stands for the CPU.

    Tensors made from other tensors stay on the device of those. Raises RuntimeError if the GPU does not exist.

    >>> import cygrad
    >>> cygrad.set_default_device("meta")
    >>> cygrad.ones(2).device
    device(type='meta')
    >>> cygrad.set_default_device(None)
    """
    wanted = cpu_device if device is None else _device(device)
    if wanted.type == "cuda":
        check_device(wanted)
    _of_thread.device = wanted
    defaults.in_use = defaults.in_use or _of_thread.device.type != "cpu"


def device_of(array):
    """Return the device of an array on a GPU, or of a meta array."""
    shown = getattr(array, "shown_device", None)  # of a tensor without elements of its own
    return device_at(array.device.id) if shown is None else shown


def device_at(index):
    """Return the GPU with this index, or the device "meta" for META."""
    if index == META:
        return meta_device
    if index not in _gpus:
        _gpus[index] = device("cuda", index)
    return _gpus[index]


def check_device(wanted, moving=False):
    """Return the device requested for a new tensor, or for the copy of one, with an explicit index for a GPU.

    Raises RuntimeError if the GPU does not exist, or if the requirements for using it are missing. For devices that
    only PyTorch has, raises what PyTorch raises on a machine without them.
    """
    if wanted is None:
        return cpu_device
    wanted = device(wanted)
    if wanted.type == "cpu":
        return cpu_device  # there is only one, whatever the index
    if wanted.type == "meta":
        return meta_device  # likewise
    if wanted.type != "cuda":
        raise _not_here(wanted.type, moving)
    count = cupy().cuda.runtime.getDeviceCount()
    index = current_device() if wanted.index is None else wanted.index
    if not 0 <= index < count:
        raise RuntimeError(
            f"CUDA error: invalid device ordinal\n  there is no {wanted}: the GPUs are numbered from 0 to {count - 1}"
        )
    return device("cuda", index)


def _not_here(kind, moving):
    """Return the error for a tensor on a device that only PyTorch has."""
    advice = "\n  cygrad computes on CPUs and on NVIDIA's GPUs: use device='cpu' or 'cuda'"
    if kind == "xpu":
        return AssertionError(f"Torch not compiled with XPU enabled{advice}")
    if kind == "mtia":
        return AssertionError(
            "Torch not compiled with MTIA enabled. Ensure you have `import "
            "mtia.host_runtime.torch_mtia.dynamic_library` in your python src file and include "
            f"`//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!{advice}"
        )
    if kind in ("hpu", "privateuseone"):
        return ModuleNotFoundError(f"No module named 'torch.{kind}'{advice}", name=f"torch.{kind}")
    if moving:
        return RuntimeError(f"PyTorch is not linked with support for {kind} devices{advice}")
    backend = kind.capitalize() if kind in ("lazy", "vulkan") else kind.upper()
    return NotImplementedError(
        f"Could not run 'aten::empty.memory_format' with arguments from the '{backend}' backend. This could be because "
        "the operator doesn't exist for this backend, or was omitted during the selective/custom build process (if "
        f"using custom build).{advice}"
    )


def place_of_device(wanted):
    """Return the place of new arrays on a device from `check_device`: None, the index of a GPU, or META."""
    return None if wanted.type == "cpu" else META if wanted.type == "meta" else wanted.index


def _explain_shortage(size, device, text):
    from cygrad._core.runtime.memory_stats import gpu_is_full  # its imports are needed only for errors

    return gpu_is_full(size, device, text)


cupy_library.followers.append(lambda: allocator.connect(_explain_shortage))
