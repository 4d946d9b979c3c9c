"""Where a tensor's elements are."""

from cygrad._core.messages import no_such_call, wrong_type


class device:
    """The kind of a device and its number: `device('cpu')`, `device('cuda:0')`, `device('cuda', 0)`.

    >>> import cygrad
    >>> cygrad.device("cpu")
    device(type='cpu')
    """

    __slots__ = {
        "type": "The kind of device: 'cpu' or 'cuda'.",
        "index": "The number of the device among those of its kind, or None.",
    }
    __module__ = "cygrad"
    type: str
    index: "int | None"

    def __init__(self, type, index=None):
        if isinstance(type, device):
            type, index = type.type, type.index
        if not isinstance(type, (str, int)):
            raise no_such_call("device", (type,), {}, ("Device device", "str type, int index = -1"))
        if index is not None and not isinstance(index, int):
            raise wrong_type("device", "index", 2, "int", index)
        kind, _, number = str(type).partition(":")
        if kind not in ("cpu", "cuda"):
            raise RuntimeError(f"Expected one of cpu, cuda device type at start of device string: {type}")
        if number and not number.isdigit():
            raise RuntimeError(f"Invalid device string: '{type}'")
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


cpu_device = device("cpu")


def check_device(wanted):
    """The device a new tensor is asked to be on.

    Raises RuntimeError for a GPU: this version keeps tensors on the CPU.
    """
    if wanted is None:
        return cpu_device
    wanted = device(wanted)
    if wanted.type != "cpu":
        raise RuntimeError(
            "No CUDA GPUs are available\n"
            "  cygrad: this version keeps tensors on the CPU; use device='cpu' or leave `device` out"
        )
    return wanted
