"""Conversions of tensors: to lists, NumPy arrays, copies and pickles. Bound as methods of Tensor."""

import copyreg

import numpy as np

from cygrad._core import graph_errors
from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_forward
from cygrad._core.graph.internals import (
    array_of,
    attributes_of,
    bind,
    dictionary_of,
    of_class,
    own_array,
    shows_opposite,
    tensor_of,
)
from cygrad._core.graph.opdef import registry, shown
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._core.tensor.scalar import collected
from cygrad._core.tensor.transfer import to_send
from cygrad._core.types.hook_handles import warn_if_has_hooks
from cygrad._kernels.device.cupy_library import is_array, is_meta
from cygrad._kernels.device.unresolved import is_deferred, memory_behind, opposite, resolved
from cygrad._kernels.tape.tape import is_open
from cygrad._library import later

conditions = later("cygrad._kernels.tape.conditions")  # needed only to compile
arrays = later("cygrad._kernels.gpu.base.arrays")  # needed only for GPU arrays and copies of shared memory


@shown
def tolist(self):
    """Return the values as nested lists of Python numbers; for a 0-dim tensor the number itself.

    >>> import cygrad
    >>> cygrad.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    _check_memory(self)
    found = collected(self, "tolist")
    if found is not None:
        return found[0]
    if is_open() and not self.is_floating_point() and not self.is_complex():
        return conditions.whole_numbers(own_array(self, False))
    array = array_of(self)
    return (arrays.move(array, None) if is_array(array) else array).tolist()


def _check_memory(t):
    """Raise inside `vmap` for a tensor that differs between samples."""
    if is_forward():
        from cygrad._core.transforms.forward_mode import has_samples  # needed only for forward mode or vmap

        if has_samples(t):
            raise RuntimeError(
                "Cannot access data pointer of Tensor that doesn't have storage\n"
                "  inside vmap it has different values for each sample: keep it a tensor"
            )


# -- NumPy --


@shown
def numpy(self, *, force=False):
    """Return the elements as a NumPy array on the same memory: changes are visible in both.

    Raises RuntimeError if the tensor requires grad, unless `force` is set or grad mode is off.

    >>> import cygrad
    >>> t = cygrad.zeros(2)
    >>> t.numpy()[0] = 5
    >>> t
    tensor([5., 0.])
    """
    if not isinstance(force, bool):
        raise messages.wrong_keyword("numpy", "force", "bool", force)
    if self.requires_grad and not force and not get_modes() & NO_GRAD:
        raise graph_errors.read_of_gradient(self)
    _check_memory(self)
    array = own_array(self, True)
    if type(array) is not np.ndarray:
        array = _as_numpy(self, array, force)
    return array.view()  # a new array object, whose shape the caller may set


def _as_numpy(self, array, force):
    if shows_opposite(self) and not force:
        raise _no_array_of_view(self)
    if not isinstance(array_of(self), np.ndarray):
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    return resolved(array)


def _no_array_of_view(t):
    kind, resolve = ("conjugate", "resolve_conj") if t.is_complex() else ("negative", "resolve_neg")
    return RuntimeError(
        f"Can't call numpy() on Tensor that has {kind} bit set. Use tensor.{resolve}().numpy() instead.\n"
        "  its memory is that of another tensor and holds other values, which an array on it would show"
    )


def __array__(self, dtype=None, copy=None):
    """Implements `np.asarray(tensor)`. Raises RuntimeError if the tensor requires grad."""
    return np.array(numpy(self), dtype=dtype, copy=copy)


# -- subclasses --


def _make_subclass(cls, data, require_grad=False):
    """Return a tensor of class `cls` that shares the memory of the tensor `data` and has no history."""
    if require_grad and not (data.is_floating_point() or data.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    new = of_class(cls, data, False)
    return new.requires_grad_() if require_grad else new


def as_subclass(self, cls):
    """Return this tensor as an instance of class `cls`: a view of the same memory, with the history of this tensor.

    Results computed from it, and its views, have that class as well; its gradients do not.
    Raises TypeError if `cls` is not a subclass of Tensor.

    >>> import cygrad
    >>> class Length(cygrad.Tensor):
    ...     pass
    >>> cygrad.tensor([1.0, 2.0]).as_subclass(Length) * 2
    Length([2., 4.])
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. "
            "Make sure your class inherits from Tensor."
        )
    return of_class(cls, registry["alias"].entry(self), True)


def __init_subclass__(cls, **kwargs):
    """Let a class with `__torch_function__` override calls; warn if it expects calls that never come."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    own = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    if own is not None and own is not __torch_function__:
        from cygrad._core.registry.disabled import disabled  # needed only for subclasses
        from cygrad._core.registry.torch_function import begin_overriding  # which few programs need

        if own is disabled:
            cls._results_keep_class = False
        else:
            if getattr(cls, "_results_keep_class", True) is True:
                cls._results_keep_class = None  # `Tensor.__torch_function__` gives results the class
            begin_overriding(cls)
    handler = cls.__torch_dispatch__
    if handler is not None and getattr(handler, "__func__", handler) is not disabled_torch_dispatch:
        from cygrad._core.registry import dispatch  # which few programs need

        cls._results_keep_class = "dispatches"
        dispatch.begin()


def __torch_function__(cls, func, types, args=(), kwargs=None):
    """Call `func` without dispatching to a class again; tensors among the results get the class.

    Subclasses call this from their own `__torch_function__` through `super()`. Returns NotImplemented if `types`
    contains a class that `cls` does not derive from.
    """
    from cygrad._core.registry.torch_function import call_plainly  # needed only for subclasses

    return call_plainly(cls, func, types, args, kwargs)


def disabled_torch_dispatch(cls, func, types, args=(), kwargs=None):
    """As a class's `__torch_dispatch__`: ops are not dispatched to the class. Calls `func`."""
    from cygrad._core.registry import dispatch  # needed only for subclasses

    with dispatch.without_classes():
        return func(*args, **(kwargs or {}))


def _make_wrapper_subclass(
    cls,
    size,
    strides=None,
    storage_offset=None,
    memory_format=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    dispatch_sizes_strides_policy=None,
    dispatch_device=False,
    dispatch_layout=False,
    _extra_dispatch_keys=None,
    storage_size=None,
):
    """Return a tensor of a class with `__torch_dispatch__` that has a shape, dtype and device, but no elements.

    Ops on it are answered by its class, which holds other tensors in its attributes. Raises TypeError if the class
    does not define `__torch_dispatch__`.
    """
    from cygrad._core.registry.wrappers import make  # needed only for such classes

    return make(cls, size, strides, storage_offset, memory_format, dtype, device, requires_grad)


@shown
def module_load(self, other, assign=False):
    """Return what `Module.load_state_dict` gives a parameter or buffer, `self`, for the value `other` in the state.

    This is a copy of `other` in the memory of `self`, or with `assign` a tensor on the memory of `other`. It is called
    where `cygrad.__future__.set_swap_module_params_on_conversion` was. A class of tensors whose `__torch_function__`
    receives it can make another one, which is neither `self` nor `other`.

    >>> import cygrad
    >>> x = cygrad.zeros(2)
    >>> x.module_load(cygrad.tensor([1, 2]))
    tensor([1., 2.])
    >>> x
    tensor([1., 2.])
    """
    return other.detach() if assign else self.copy_(other).detach()


# -- pickles --


def _attributes_and_slots(t):
    """Return what the user has set on a tensor, by name."""
    if type(t) is Tensor:
        return attributes_of(t)
    names = copyreg._slotnames(type(t))  # type: ignore[attr-defined]
    slots = {name: getattr(t, name) for name in names if hasattr(t, name)}
    return {**attributes_of(t), **slots}


def _rebuild(cls, array, requires_grad, attributes):
    """Rebuild a pickled tensor. A leaf with gradients gets memory of its own, as optimizers write to it.

    The memory that came with the pickle may be read-only, and belong to others (Ray's object store, say).
    """
    if requires_grad and isinstance(array, np.ndarray) and not array.flags.writeable:
        array = array.copy()
    return _made(cls, array, requires_grad, attributes)


def _made(cls, array, requires_grad, attributes):
    tensor = tensor_of(array)
    if cls is not None and cls is not Tensor:
        tensor = Tensor._make_subclass(cls, tensor)
    if requires_grad:
        tensor.requires_grad_()
    for name, value in attributes.items():
        setattr(tensor, name, value)
    return tensor


def __reduce_ex__(self, protocol):
    """Support pickling of the elements, `requires_grad` and user attributes.

    History, `grad` and hooks are not included. Nor is the name of the class `Tensor`, which is another one where cygrad
    stands for PyTorch.
    """
    warn_if_has_hooks(self)
    return reduced(self, to_send)


def reduced(t, represent):
    """Return how a pickle rebuilds a tensor; `represent(array)` is what it holds for an array on the CPU."""
    cls = None if type(t) is Tensor else type(t)
    array, rest = memory_behind(own_array(t, True)), (t.requires_grad, _attributes_and_slots(t))
    if cls is not None and is_meta(array):
        from cygrad._core.registry.wrappers import is_wrapper, outline_of, remade  # needed only for such tensors

        if is_wrapper(t):
            return remade, (cls, outline_of(t), *rest)
    if is_array(array) and not is_meta(array):
        how: tuple = _rebuild_on_gpu, (cls, arrays.move(array, None), array.device.id, *rest)
    else:
        how = _rebuild, (cls, array if is_meta(array) else represent(array), *rest)
    return (_rebuild_view, how) if shows_opposite(t) else how


def _rebuild_view(rebuild, arguments):
    """Rebuild a tensor that shows the conjugates, or the negatives, of the elements in memory."""
    tensor = rebuild(*arguments)
    tensor.data = tensor_of(opposite(own_array(tensor)))
    return tensor


def _rebuild_on_gpu(cls, array, index, requires_grad, attributes):
    return _made(cls, arrays.move(array, index), requires_grad, attributes)


# -- copies --


def __copy__(self):
    """Return a leaf on the same memory, with the user attributes."""
    return _made(type(self), own_array(self, True), self.requires_grad, attributes_of(self))


def __deepcopy__(self, memo):
    """Return a copy of a leaf with its own memory, its `grad` and the user attributes.

    Tensors that share memory also do so as copies, if they are copied in one operation. Raises
    RuntimeError for a tensor with a history.
    """
    import copy  # deferred: only functions of this module call us

    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise graph_errors.not_a_leaf_to_copy(self)
    new = memo[id(self)] = _copied(self, memo)
    for name, value in _attributes_and_slots(self).items():
        setattr(new, name, copy.deepcopy(value, memo))
    if self._grad is not None:
        new.grad = copy.deepcopy(self._grad, memo)
    return new


def _copied(t, memo):
    """Return a copy of `t` with its own memory, if it has any, without attributes."""
    array = own_array(t, True)
    if type(t) is not Tensor and is_meta(array):
        from cygrad._core.registry.wrappers import is_wrapper, outline_of, remade  # needed only for such tensors

        if is_wrapper(t):
            return remade(type(t), outline_of(t), t.requires_grad, {})
    return _made(type(t), _copied_memory(array, memo), t.requires_grad, {})


def _copied_memory(array, memo):
    """Return `array` on a copy of the memory that it is a part of."""
    if is_deferred(array):
        return opposite(_copied_memory(opposite(array), memo))
    if is_array(array):
        return _copied_on_gpu(array, memo)
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if owner.dtype != array.dtype or not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        return np.array(array, order="K")
    key = "memory", id(owner)
    if key not in memo:
        memo[key] = owner.ravel("K").copy()
        memo[id(memo[key])] = owner  # keeps the id from being reused for another array
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, memo[key], offset, array.strides)


def _copied_on_gpu(array, memo):
    memory = array.data.mem
    key = "memory", id(memory)
    if key not in memo:
        memo[key] = arrays.copy_of_memory(array)
        memo[id(memo[key])] = memory  # keeps the id from being reused
    return arrays.on_copied_memory(array, memo[key])


def __repr__(self, *, tensor_contents=None):
    """Return `repr(self)`, with `tensor_contents` in place of the elements."""
    from cygrad._core.tensor.tensor_str import repr_of  # most programs show no tensors

    class_name = None if type(self) is Tensor else type(self).__name__
    return repr_of(self, class_name=class_name, tensor_contents=tensor_contents)


def _set_dictionary(self, attributes):
    if not isinstance(attributes, dict):
        raise TypeError(f"__dict__ must be set to a dictionary, not a '{type(attributes).__name__}'")
    own, new = dictionary_of(self), dict(attributes)
    own.clear()
    own.update(new)


def __format__(self, spec):
    """Format the number of a 0-dim tensor; otherwise (or for a subclass without `spec`) return `str(tensor)`."""
    if self.ndim == 0 and not self.is_meta and (spec or type(self) is Tensor):
        return self.item().__format__(spec)
    if spec and isinstance(spec, str):
        raise TypeError(f"unsupported format string passed to {type(self).__name__}.__format__")
    return object.__format__(self, spec)


def __dir__(self):
    """Return the names of all attributes."""
    names = {*object.__dir__(self), *attributes_of(self)}
    return sorted(names if self.is_cuda else names - {"__cuda_array_interface__"})


bind(
    {
        "tolist": tolist,
        "numpy": numpy,
        "__array__": __array__,
        "__array_priority__": 1000,  # the value of PyTorch's tensors
        "_make_subclass": staticmethod(_make_subclass),
        "_make_wrapper_subclass": staticmethod(_make_wrapper_subclass),
        "__torch_dispatch__": classmethod(disabled_torch_dispatch),
        "as_subclass": as_subclass,
        "module_load": module_load,
        "__init_subclass__": classmethod(__init_subclass__),
        "__torch_function__": classmethod(__torch_function__),
        "__reduce_ex__": __reduce_ex__,
        "__copy__": __copy__,
        "__deepcopy__": __deepcopy__,
        "__repr__": __repr__,  # the type's slot is quicker, but takes no arguments
        "__format__": __format__,
        "__dict__": property(dictionary_of, _set_dictionary, doc="Attributes set by the user on this tensor, by name."),
        "__dir__": __dir__,
    }
)
