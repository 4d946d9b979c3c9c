"""What tensors say of their storage, and how they get another: `untyped_storage()`, `storage()`, `set_`."""

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import own_array, replace_array
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._core.tensor.predicates import is_same_memory
from cygrad._core.transforms.forward_mode import all_of
from cygrad._ops.base.arguments import require
from cygrad._ops.shape.storage import TypedStorage, UntypedStorage, whole_of
from cygrad._ops.shape.storage_bytes import type_name
from cygrad._ops.shape.strided import as_strided


def untyped_storage(self):
    """Return the memory of this tensor, and of all that share it, as bytes.

    >>> import cygrad
    >>> x = cygrad.arange(3.0)
    >>> x[1:].untyped_storage().data_ptr() == x.data_ptr(), x.untyped_storage().nbytes()
    (True, 12)
    """
    return UntypedStorage(require(self, "untyped_storage"))


def storage(self):
    """Return the memory of this tensor, and of all that share it, as elements of its dtype.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     print(cygrad.tensor([1.0, 2.0]).storage().tolist())
    [1.0, 2.0]
    """
    warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
        "class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
        "directly, use tensor.untyped_storage() instead of tensor.storage()"
    )
    return TypedStorage(require(self, "storage"))


def storage_type(self):
    """Return the class of storages of this tensor's dtype.

    >>> import cygrad
    >>> cygrad.ones(2).storage_type()
    <class 'cygrad.FloatStorage'>
    """
    from cygrad._ops.shape.legacy_storages import storage_class  # which few programs need

    return storage_class(type_name(require(self, "storage_type").dtype).rpartition(".")[2]) or TypedStorage


def _typed_storage(self):
    return TypedStorage(require(self, "_typed_storage"))


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Make this tensor use other memory: that of a tensor, part of a storage, or none; return it.

    Raises RuntimeError for another dtype, and for a tensor that requires grad while autograd is recording.

    >>> import cygrad
    >>> x, y = cygrad.zeros(0), cygrad.arange(6.0)
    >>> x.set_(y.untyped_storage(), 1, (2, 2))
    tensor([[1., 2.],
            [3., 4.]])
    """
    t = require(self, "set_")
    if t._base is not None:
        raise RuntimeError("set_() of a view: call it on the base of the view, or use `x.detach().set_(...)`")
    if t.requires_grad and not get_modes() & NO_GRAD:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation.\n"
            "  set its memory while recording is off: `with torch.no_grad(): x.set_(...)`"
        )
    if any(isinstance(x, Tensor) and all_of(x) for x in (t, source)):
        raise NotImplementedError(
            "Trying to use forward AD with set_ that does not support it because it has not been implemented yet."
        )
    if source is None:
        found = t.new_empty(0)
    elif isinstance(source, UntypedStorage):
        found = source._flat.view(t.dtype)
    elif isinstance(source, TypedStorage):
        found = source._flat
        if found.dtype is not t.dtype:
            own = messages.c_word(t).lower()
            raise RuntimeError(
                f"Expected a Storage of type {own} or an UntypedStorage, but got type {found.dtype.type_name} for "
                "argument 1 'storage'"
            )
    elif isinstance(source, Tensor):
        found = source
    else:
        raise messages.wrong_type("set_", "source", 1, "Tensor or Storage", source)
    if found.dtype is not t.dtype:
        was, own = found.dtype.type_name.lower(), t.dtype.type_name.lower()
        raise RuntimeError(f"Could not set tensor of type {was} to a tensor of type {own}")
    if found.device != t.device:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{t.device}" to a storage on different device '
            f'"{found.device}".  This is no longer allowed; the devices must match.'
        )
    if size is not None or isinstance(source, (UntypedStorage, TypedStorage)):
        whole = whole_of(found)
        shape = (len(whole) - storage_offset,) if size is None else tuple(size)
        steps = messages.contiguous_strides(shape) if stride is None else stride
        found = as_strided(whole, shape, steps, storage_offset)
    replace_array(t, own_array(found), "set_")
    return t


def is_set_to(self, tensor):
    """Whether both tensors show the same elements of the same memory: they have one storage, offset, shape and strides.

    >>> import cygrad
    >>> x = cygrad.arange(6.0)
    >>> x[2:].is_set_to(x[2:]), x[2:].is_set_to(x), x.is_set_to(x.clone())
    (True, False, False)
    """
    t = require(self, "is_set_to")
    if not isinstance(tensor, Tensor):
        raise messages.wrong_type("is_set_to", "tensor", 1, "Tensor", tensor)
    return is_same_memory(t, tensor) and _geometry(t) == _geometry(tensor)


def _geometry(t):
    return t.storage_offset(), t.shape, t.stride()


methods = {f.__name__: f for f in (untyped_storage, storage, storage_type, _typed_storage, set_, is_set_to)}
functions = publish(globals())
