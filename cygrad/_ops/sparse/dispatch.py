"""What calls of public functions, methods and operators with sparse tensors do; Note [Calls with sparse tensors].

The tables `forms` of this family's modules name the functions that take sparse tensors. All others raise PyTorch's
error.
"""

from functools import cache
from importlib import import_module

from cygrad._core.errors import messages
from cygrad._core.graph.internals import become_result, replace_array
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.torch_function import Handling
from cygrad._core.types.dtypes import by_name
from cygrad._kernels.sparse import coordinates as kernels
from cygrad._kernels.sparse.array import Coordinates
from cygrad._kernels.sparse.errors import backend, not_for
from cygrad._ops.sparse import creation
from cygrad._ops.sparse.like import empty_like, is_compressed
from cygrad._ops.sparse.tensor import KEPT, array, is_sparse, without_history

_MODULES = ("arithmetic", "conversions", "like", "low_rank", "products", "reductions", "shapes")
# PyTorch's words in errors for functions that it writes in terms of others.
_REFUSED = {
    "numpy": lambda self: TypeError(
        f"can't convert {creation.word(self.layout)} layout tensor to numpy. Use Tensor.to_dense() first."
    ),
    "tolist": lambda self: _no_memory(),
    "data_ptr": lambda self: _no_memory(),
    "storage": lambda self: _no_storage(self),
    "untyped_storage": lambda self: _no_storage(self),
    "reshape": lambda self: RuntimeError("reshape is not implemented for sparse tensors"),
    "flatten": lambda self: RuntimeError("reshape is not implemented for sparse tensors"),
    "expand": lambda self: RuntimeError("expand is unsupported for Sparse tensors"),
    "broadcast_to": lambda self: RuntimeError("expand is unsupported for Sparse tensors"),
    "contiguous": lambda self: RuntimeError("unsupported memory format option Contiguous"),
}
_REFUSED["__array__"] = _REFUSED["numpy"]
# Names of PyTorch's operators where they differ from those of functions; for comparisons, that of the second operand
# too.
_OPERATORS = {
    "__mod__": "remainder.Tensor",
    "mean": "mean.dim",
    "softmax": "_softmax",
    "log_softmax": "_log_softmax",
    "linalg_norm": "linalg_vector_norm",
    "where": "where.self",
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _no_memory():
    return RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def _no_storage(self):
    kind = "SparseTensorImpl" if self.is_sparse else "SparseCsrTensorImpl"
    return NotImplementedError(f"Cannot access storage of {kind}")


_OF_ATTRIBUTES = ("__get__", "__set__", "__delete__")


@cache
def _forms():
    """Return {name: function for sparse tensors}."""
    found: dict = {}
    for name in _MODULES:
        found |= import_module(f"cygrad._ops.sparse.{name}").forms
    return found | creation.methods | forms


def call(function, args, kwargs):
    """Run a public function that was called with a sparse tensor among its arguments."""
    if function.__name__ in KEPT or function.__name__ in _OF_ATTRIBUTES:
        with Handling():
            return function(*args, **kwargs)
    return call_by_name(function.__name__, args, kwargs)


def call_by_name(name, args, kwargs):
    """Run the function, method or operator of this name."""
    form = _forms().get(name)
    if form is None:
        raise _refused(name, args, kwargs)
    if "input" in kwargs and not args:
        args = (kwargs.pop("input"),)
    return form(*args, **kwargs)


def _refused(name, args, kwargs):
    """Return the error for a function that takes no sparse tensors."""
    sparse = next(_sparse_among((*args, *kwargs.values())), None)
    if sparse is None:  # deep within the arguments
        return not_for(name, backend("sparse_coo"))
    if name in _REFUSED:
        return _REFUSED[name](sparse)
    plain = name.removeprefix("__").removesuffix("__")
    if plain in _COMPARISONS:
        plain += ".Tensor" if len(args) > 1 and isinstance(args[1], Tensor) else ".Scalar"
    return array(sparse).refused(_OPERATORS.get(name, plain))


def _sparse_among(values):
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _sparse_among(value)
        elif is_sparse(value):
            yield value


# -- methods that are neither ops nor conversions --


def _detach_(self):
    if self.grad_fn is not None:
        become_result(self, without_history(self), "detach_")
    return self.requires_grad_(False)


def _set_data(self, value):
    messages.check_data_assignment(self, value)
    become_result(self, without_history(value), "set_data")


def _coalesced_(self, coalesced):
    """Note whether the coordinates are in order and occur once. Raises RuntimeError if that is claimed and untrue."""
    if not is_sparse(self) or not self.is_sparse:
        raise _refused("_coalesced_", (self,), {})
    a = array(self)
    if coalesced and kernels.grouped(a.indices, a.shape[: len(a.indices)])[1] is not None:
        raise RuntimeError(
            "_coalesced_(): the coordinates are out of order or occur several times\n"
            "  call .coalesce(), which sorts and adds"
        )
    noted = Coordinates(a.indices, a.values, a.shape, bool(coalesced))
    noted.is_coalesced = bool(coalesced)  # of fewer than two values, too
    replace_array(self, noted, "_coalesced_")
    return self


def _is_contiguous(self, *, memory_format=None):
    if not self.is_sparse:
        raise RuntimeError("Sparse CSR tensors do not have is_contiguous")
    return False


def _stride(self, dim=None):
    if not self.is_sparse:
        raise RuntimeError("Sparse CSR tensors do not have strides")
    return (0,) * self.ndim if dim is None else 0


def _dense_zeros(shape, dtype, device):
    from cygrad._ops.base.creation import zeros  # which few programs call for sparse tensors

    return zeros(tuple(shape), dtype=dtype, device=device)


def _zeros_like(
    input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None
):
    wanted = layout or input.layout
    if memory_format is not None and wanted._name != "strided":
        raise RuntimeError("memory format option is only supported by strided tensors")
    place = input.device if device is None else device
    kind = dtype or input.dtype
    if not is_sparse(input) or wanted._name == "strided":
        found = _dense_zeros(input.shape, kind, place)
        found = found if memory_format is None else found.clone(memory_format=memory_format)
        return found.requires_grad_(requires_grad)
    if wanted._name != "sparse_coo":
        return creation.new_zeros_in(wanted, input.shape, kind, place, requires_grad)
    return _emptied(input.detach().to(device=place, dtype=kind), input.shape, requires_grad)


def _empty_like(input, *, layout=None, **options):
    if is_compressed(input) and layout in (None, input.layout):
        return empty_like(input, **options)
    return _zeros_like(input, layout=layout, **options)


def _emptied(input, size, requires_grad=False):
    found = input[:0] if input.ndim and not input.dense_dim() else None
    if found is None or len(size) != input.ndim:
        return creation.new_zeros_in(creation.layouts["sparse_coo"], size, input.dtype, input.device, requires_grad)
    return creation.new_zeros_in(input.layout, size, input.dtype, input.device, requires_grad)


def _new_zeros(self, *lengths, size=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    shape = creation.size_of(lengths if size is None else (size,))
    place, kind = device or self.device, dtype or self.dtype
    if layout is not None and layout._name == "strided":
        return _dense_zeros(shape, kind, place).requires_grad_(requires_grad)
    return creation.new_zeros_in(layout or self.layout, shape, kind, place, requires_grad)


def _new(self, *given, device=None):
    """Make a tensor as the old `new` does: of nothing, of a size, or of indices, values and a size."""
    if self.is_sparse and given and isinstance(given[0], Tensor):
        if len(given) == 1:
            raise messages.no_such_call("new", given, {}, _NEW)
        return creation.sparse_coo_tensor(*given, dtype=self.dtype, device=device)
    if not self.is_sparse:
        raise RuntimeError(
            "Cannot map DispatchKey SparseCsrCPU to a unique layout.\n  call `new_zeros`, which keeps the layout"
        )
    return _new_zeros(self, *(given or ((0,),)), device=device)


_NEW = (
    "*, torch.device device = None",
    "Tensor indices, Tensor values, *, torch.device device = None",
    "Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None",
    "tuple of ints size, *, torch.device device = None",
)


def _zeros_into(
    *lengths, size=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    from cygrad._ops.sparse.writing import written  # which imports `tensor`, as this module does

    if not is_sparse(out):
        raise _refused("zeros", lengths, {})
    if dtype not in (None, out.dtype):
        raise RuntimeError(
            f"dtype {dtype.type_name} does not match dtype of out parameter ({out.dtype.type_name})\n"
            "  leave dtype out, or write into a tensor that has it"
        )
    if layout not in (None, out.layout):
        words = creation.word(layout), creation.word(out.layout)
        raise RuntimeError(f"layout {words[0]} does not match layout of out parameter ({words[1]})")
    shape = creation.size_of(lengths if size is None else (size,))
    zeros = creation.new_zeros_in(out.layout, shape, out.dtype, out.device, False)
    return written(out, zeros, True).requires_grad_(requires_grad or out.requires_grad)


def _full_into(*args, **kwargs):
    raise RuntimeError("full(...) is not implemented for sparse layout\n  only zeros and empty are")


def _sparse_resize_(self, size, sparse_dim, dense_dim):
    return _resized(self, size, sparse_dim, dense_dim, False)


def _sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
    return _resized(self, size, sparse_dim, dense_dim, True)


def _resized(self, size, sparse_dim, dense_dim, clears):
    from cygrad._ops.sparse.entries import built, entries  # which import `tensor`, as this module does

    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, "
            f"dense_dim = {dense_dim}"
        )
    a = array(self)
    if clears or not len(a.values):
        zeros = creation.new_zeros_in(creation.layouts["sparse_coo"], size[:sparse_dim], self.dtype, self.device, False)
        values = entries(zeros).reshape(0, *size[sparse_dim:])
        become_result(self, built(array(zeros).indices, values, size), "sparse_resize_")
        return self
    if (sparse_dim, dense_dim) != (self.sparse_dim(), self.dense_dim()):
        raise RuntimeError(
            f"changing the number of sparse dimensions (from {self.sparse_dim()} to {sparse_dim}) on a "
            f"non-empty sparse "
            "tensor is not supported."
        )
    if any(new < old for new, old in zip(size[:sparse_dim], self.shape)):
        raise RuntimeError(
            f"shrinking the size of sparse dimensions (from {list(self.shape[:sparse_dim])} to "
            f"{list(size[:sparse_dim])}) "
            "on a non-empty sparse tensor is not supported."
        )
    if tuple(size[sparse_dim:]) != tuple(self.shape[sparse_dim:]):
        raise RuntimeError(
            f"changing the size of dense dimensions (from {list(self.shape[sparse_dim:])} to "
            f"{list(size[sparse_dim:])}) on "
            "a non-empty sparse tensor is not supported."
        )
    become_result(self, built(a.indices, entries(self), size, a.is_coalesced), "sparse_resize_")
    return self


def _resize_as_sparse_(self, the_template, *, memory_format=None):
    """Give a sparse tensor the size of another, as `sparse_resize_` does, or copy one by rows or columns."""
    if not is_sparse(the_template) or self.layout is not the_template.layout:
        raise RuntimeError(
            "resize_as_sparse_: layouts of the tensors must be the same sparse one, but got "
            f"{creation.word(self.layout)} and {creation.word(the_template.layout)}"
        )
    if self.is_sparse:
        return _sparse_resize_(self, the_template.shape, the_template.sparse_dim(), the_template.dense_dim())
    if self.shape != the_template.shape:
        become_result(self, the_template.detach().clone().to(self.dtype), "resize_as_sparse_")
    return self


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    from cygrad._ops.base.creation import tensor  # which few programs call for sparse tensors

    return tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def _copy_(self, src, non_blocking=False):
    from cygrad._ops.sparse.writing import written  # which imports `tensor`, as this module does

    if is_sparse(self) != is_sparse(src):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{self.type()} and src type = {src.type()}"
        )
    return written(self, src.clone(), not array(self).values.size)


def _as_tensor(data, dtype=None, device=None, **kwargs):
    return data.to(device=data.device if device is None else device, dtype=data.dtype if dtype is None else dtype)


def _tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    found = data.detach().to(device=data.device if device is None else device, dtype=dtype or data.dtype, copy=True)
    return found.requires_grad_() if requires_grad else found


def _to(name):
    def convert(self, memory_format=None):
        return self.to(by_name()[name])

    return convert


def _is_never(self, *args):
    return False


forms = {
    "detach_": _detach_,
    "set_data": _set_data,
    "_coalesced_": _coalesced_,
    "is_contiguous": _is_contiguous,
    "stride": _stride,
    "storage_offset": lambda self: 0,
    "zeros_like": _zeros_like,
    "empty_like": _empty_like,
    "new_zeros": _new_zeros,
    "new_empty": _new_zeros,
    "new": _new,
    "zeros": _zeros_into,
    "empty": _zeros_into,
    "ones": _full_into,
    "full": _full_into,
    "copy_": _copy_,
    "resize_as_": _resize_as_sparse_,
    "sparse_resize_": _sparse_resize_,
    "resize_as_sparse_": _resize_as_sparse_,
    "new_tensor": _new_tensor,
    "sparse_resize_and_clear_": _sparse_resize_and_clear_,
    "is_pinned": _is_never,
    "is_conj": _is_never,
    "is_neg": _is_never,
    "is_shared": _is_never,
    "expand_as": lambda self, other: self.expand(other.shape),
    "reshape_as": lambda self, other: self.reshape(other.shape),
    "view_as": lambda self, other: self.view(other.shape),
    "backward": lambda self, *args, **kwargs: Tensor.backward(self, *args, **kwargs),
    "is_tensor": lambda obj: True,
    "tensor": _tensor,
    "as_tensor": _as_tensor,
    "asarray": _as_tensor,
    "float": _to("float32"),
    "double": _to("float64"),
    "half": _to("float16"),
    "bfloat16": _to("bfloat16"),
    "int": _to("int32"),
    "long": _to("int64"),
    "short": _to("int16"),
    "char": _to("int8"),
    "byte": _to("uint8"),
    "bool": _to("bool"),
    "cfloat": _to("complex64"),
    "cdouble": _to("complex128"),
}
