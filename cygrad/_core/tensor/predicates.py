"""Queries about tensors that do not read their elements."""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import bind, number_of, own_array, was_made_in_inference_mode, was_wrapped
from cygrad._core.graph.internals import holding_memory as own_memory
from cygrad._core.graph.opdef import shown, twin
from cygrad._core.graph.record import result_type as result_type_of
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.memory_format import contiguous_format, preserve_format
from cygrad._core.types.memory_format import memory_format as layout_in_memory
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.device.unresolved import memory_behind
from cygrad._kernels.tape.tape import look_at_offset


class layout:
    """The arrangement of a tensor's elements: `strided`, or one of the sparse ones, such as `sparse_coo`.

    >>> import cygrad
    >>> cygrad.ones(2).layout, cygrad.ones(2).to_sparse().layout
    (torch.strided, torch.sparse_coo)
    """

    __module__ = "cygrad"
    __slots__ = ("_name",)

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


# All layouts: in memory one after the other, by coordinates, and compressed by rows or columns, of numbers or blocks.
_LAYOUTS = "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged _mkldnn"
layouts = {name: layout(name) for name in _LAYOUTS.split()}
strided = layouts["strided"]


# Devices that only PyTorch has: {their kinds: what they are}.
_ABSENT = {
    "ipu": "a processor of Graphcore",
    "maia": "an accelerator of Microsoft",
    "mps": "an Apple GPU",
    "mtia": "an accelerator of Meta",
    "vulkan": "a GPU that Vulkan drives",
    "xla": "a device of XLA",
    "xpu": "an Intel GPU",
}


# -- methods and functions --


def _require(value, function, name="input", position=1):
    if not isinstance(value, Tensor):
        raise messages.wrong_type(function, name, position, "Tensor", value)
    return value


@shown
def is_floating_point(input):
    """Whether the elements are real floating-point numbers.

    >>> import cygrad
    >>> cygrad.is_floating_point(cygrad.tensor([1.0])), cygrad.is_floating_point(cygrad.tensor([1]))
    (True, False)
    """
    return _require(input, "is_floating_point").dtype.is_floating_point


@shown
def is_complex(input):
    """Whether the elements are complex numbers.

    >>> import cygrad
    >>> cygrad.is_complex(cygrad.tensor([1j])), cygrad.is_complex(cygrad.tensor([1.0]))
    (True, False)
    """
    return _require(input, "is_complex").dtype.is_complex


@shown
def is_signed(input):
    """Whether the elements can be negative.

    >>> import cygrad
    >>> cygrad.is_signed(cygrad.tensor([1])), cygrad.is_signed(cygrad.tensor([1], dtype=cygrad.uint8))
    (True, False)
    """
    return _require(input, "is_signed").dtype.is_signed


@shown
def is_same_size(input, other):
    """Whether both tensors have the same shape.

    >>> import cygrad
    >>> cygrad.is_same_size(cygrad.ones(2, 3), cygrad.ones(3, 2))
    False
    """
    return _require(input, "is_same_size").shape == _require(other, "is_same_size", "other", 2).shape


@shown
def is_nonzero(input):
    """Whether the only element is nonzero. Raises RuntimeError unless there is exactly one element.

    >>> import cygrad
    >>> cygrad.is_nonzero(cygrad.tensor([0.5]))
    True
    """
    return bool(_require(input, "is_nonzero"))


@shown
def is_inference(input):
    """Whether this tensor was made in inference mode.

    >>> import cygrad
    >>> with cygrad.inference_mode():
    ...     x = cygrad.ones(2)
    >>> cygrad.is_inference(x)
    True
    """
    return was_made_in_inference_mode(_require(input, "is_inference"))


@shown
def get_device(input):
    """Return the index of the tensor's GPU; -1 on the CPU.

    >>> import cygrad
    >>> cygrad.get_device(cygrad.ones(2))
    -1
    """
    device = _require(input, "get_device").device
    return -1 if device.index is None else device.index


@shown
def is_distributed(input):
    """Whether the tensor is distributed over several machines: always False.

    >>> import cygrad
    >>> cygrad.is_distributed(cygrad.ones(2))
    False
    """
    _require(input, "is_distributed")
    return False


# -- functions --


def is_tensor(obj):
    """Whether `obj` is a tensor.

    >>> import cygrad
    >>> cygrad.is_tensor(cygrad.zeros(1)), cygrad.is_tensor([0.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


def is_storage(obj):
    """Whether `obj` is the memory of a tensor, as returned by `untyped_storage()`.

    >>> import cygrad
    >>> x = cygrad.ones(2)
    >>> cygrad.is_storage(x.untyped_storage()), cygrad.is_storage(x)
    (True, False)
    """
    return getattr(type(obj), "_is_storage", False)


@shown
def numel(input):
    """Return the number of elements.

    >>> import cygrad
    >>> cygrad.numel(cygrad.zeros(2, 3))
    6
    """
    return _require(input, "numel").numel()


@shown
def result_type(tensor, other):
    """Return the dtype of the result of an operation on these two tensors or numbers.

    >>> import cygrad
    >>> cygrad.result_type(cygrad.tensor([1, 2]), 1.5)
    torch.float32
    """
    operands = tuple(value.item() if isinstance(value, np.generic) else value for value in (tensor, other))
    if not all(isinstance(value, (Tensor, bool, int, float, complex)) for value in operands):
        raise messages.no_such_call(
            "result_type",
            operands,
            {},
            (
                "Tensor tensor, Tensor other",
                "Number scalar, Tensor tensor",
                "Tensor tensor, Number other",
                "Number scalar1, Number scalar2",
            ),
        )
    return result_type_of(operands)


# -- methods and attributes --


def _only_there(kind):
    """Return a method that moves a tensor to a device which only PyTorch has: it raises PyTorch's error."""

    @shown
    def move(self, device=None, non_blocking=False, memory_format=preserve_format):
        return self.to(kind)

    move.__name__, move.__qualname__ = kind, f"Tensor.{kind}"
    move.__doc__ = f"""Raise PyTorch's error: cygrad does not compute on {_ABSENT[kind]}.

    >>> import cygrad
    >>> try:
    ...     cygrad.ones(2).{kind}()
    ... except (AssertionError, RuntimeError) as error:
    ...     print("not here")
    not here
    """
    return move


@shown
def is_contiguous(self, *, memory_format=contiguous_format):
    """Whether the elements are stored in the order of their indices, without gaps.

    With `memory_format=cygrad.channels_last` and the like, whether they are stored in that order.

    >>> import cygrad
    >>> x = cygrad.ones(2, 3)
    >>> x.is_contiguous(), x.t().is_contiguous()
    (True, False)
    """
    if not isinstance(memory_format, layout_in_memory):
        raise messages.wrong_keyword("is_contiguous", "memory_format", "torch.memory_format", memory_format)
    return memory_format.describes(own_memory(self))


def memory_of(tensor):
    """Return the array of all memory that a tensor shares with its base, or with what it was detached from.

    Memory from outside begins with the tensor.
    """
    own = own_memory(tensor)
    if tensor._base is not None:
        base = memory_of(tensor._base)
        if owner(own) is owner(base):
            return base
    if own.base is None or was_wrapped(tensor):
        return own
    return _whole(own)


def _whole(array):
    """Return the array of whose memory `array` is a part.

    It is an array of a tensor. Bytes in which tensors of other types lie, as results of replays do, are none.
    """
    while isinstance(array.base, type(array)) and (array.base.dtype != np.uint8 or array.dtype == np.uint8):
        array = array.base
    return array


def owner(array):
    """Return the object that owns the memory of `array`."""
    if is_array(array):
        return array.data.mem
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def is_same_memory(a, b):
    """Whether two tensors have one storage."""
    first, second = memory_of(a), memory_of(b)
    return owner(first) is owner(second) and address(first) == address(second)


def address(array):
    """Return the address of the first element of an array."""
    return array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else array.data.ptr


@shown
def storage_offset(self):
    """Return the offset of the first element in the base's memory, in elements; 0 for tensors that are not views.

    >>> import cygrad
    >>> cygrad.arange(4)[2:].storage_offset()
    2
    """
    memory = memory_of(self)
    own = own_memory(self)
    shown = getattr(own, "shown_offset", None)  # of a tensor without elements of its own
    if shown is not None:
        return shown
    if memory is own:
        return 0
    look_at_offset(own, memory)
    return (address(own) - address(memory)) // self.itemsize


@shown
def data_ptr(self):
    """Return the address of the first element; 0 without elements and on the device "meta".

    >>> import cygrad
    >>> x = cygrad.ones(4)
    >>> x[1:].data_ptr() - x.data_ptr()
    4
    """
    return 0 if self.is_meta or not self.numel() else address(memory_behind(own_array(self, True)))


@shown
def element_size(self):
    """Return the number of bytes per element.

    >>> import cygrad
    >>> cygrad.ones(2).element_size(), cygrad.ones(2, dtype=cygrad.int8).element_size()
    (4, 1)
    """
    return self.itemsize


@shown
def nelement(self):
    """Return the number of elements.

    >>> import cygrad
    >>> cygrad.ones(2, 3).nelement()
    6
    """
    return self.numel()


@shown
def ndimension(self):
    """Return the number of dimensions.

    >>> import cygrad
    >>> cygrad.ones(2, 3).ndimension()
    2
    """
    return self.ndim


def _itemsize(self):
    """The number of bytes per element."""
    return own_memory(self).itemsize


def _nbytes(self):
    """The number of bytes of all elements."""
    return self.numel() * self.itemsize


def _is_cuda(self):
    """Whether the tensor is on a GPU."""
    return self.device.type == "cuda"


def _is_cpu(self):
    """Whether the tensor is on the CPU."""
    return self.device.type == "cpu"


def _is_meta(self):
    """Whether the tensor is on the device "meta": it has a shape but no memory."""
    return self.device.type == "meta"


def _layout(self):
    """The arrangement of the elements: `strided`."""
    return strided


def _never(doc):
    return property(lambda self: False, doc=doc)


@shown
def _is_view(self):
    """Whether this tensor is a (differentiable) view of another."""
    return self._base is not None


functions = {
    "is_tensor": is_tensor,
    "is_storage": is_storage,
    "numel": numel,
    "result_type": result_type,
    "layout": layout,
    **layouts,
}
_both = {
    "is_floating_point": is_floating_point,
    "is_complex": is_complex,
    "is_signed": is_signed,
    "is_distributed": is_distributed,
    "is_same_size": is_same_size,
    "is_nonzero": is_nonzero,
    "is_inference": is_inference,
    "get_device": get_device,
}
functions |= _both
bind({name: twin(function) for name, function in _both.items()})
bind(
    {
        "is_contiguous": is_contiguous,
        "storage_offset": storage_offset,
        "data_ptr": data_ptr,
        "element_size": element_size,
        "nelement": nelement,
        "ndimension": ndimension,
        "_is_view": _is_view,
        "_cdata": property(number_of),
        "itemsize": property(_itemsize),
        "nbytes": property(_nbytes),
        "is_cuda": property(_is_cuda),
        "is_cpu": property(_is_cpu),
        "layout": property(_layout),
        "is_sparse": _never("Whether the layout is `sparse_coo`."),
        "is_sparse_csr": _never("Whether the layout is `sparse_csr`."),
        "is_quantized": _never("Whether the elements are stored as small integers with a scale: always False."),
        "const_data_ptr": data_ptr,
        **{kind: _only_there(kind) for kind in ("ipu", "mtia", "xpu")},
        "is_meta": property(_is_meta, doc=_is_meta.__doc__),
        **{f"is_{kind}": _never(f"Whether the tensor is on {what}: always False.") for kind, what in _ABSENT.items()},
        "is_nested": _never("Whether the tensor is a list of tensors of several sizes: always False."),
        "is_mkldnn": _never("Whether the elements are in the layout of MKL-DNN: always False."),
    }
)
