"""Tensors as lists, NumPy arrays, copies, pickles. Bound as methods of Tensor."""

import warnings

import numpy as np

from cygrad._core.diagnostics import graph_errors
from cygrad._core.graph.dual import is_forward
from cygrad._core.graph.internals import array_of, attributes_of, bind, dictionary_of, of_class, tensor_of
from cygrad._core.graph.opdef import registry
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import get_modes
from cygrad._core.tensor.shared_memory import to_send
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.gpu.base import arrays

NO_GRAD = 1  # the bit of `state.pxd`


def tolist(self):
    """The values as nested lists of Python numbers; of a 0-dim tensor the number itself.

    >>> import cygrad
    >>> cygrad.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    _check_memory(self)
    return arrays.in_memory(array_of(self)).tolist()


def _check_memory(t):
    """Raise in `vmap` for a tensor that is another one for each sample."""
    if is_forward():
        from cygrad._core.transforms.forward_mode import has_samples

        if has_samples(t):
            raise RuntimeError(
                "Cannot access data pointer of Tensor that doesn't have storage\n"
                "  inside of vmap it has other values for each sample: keep it a tensor"
            )


# -- NumPy --


def numpy(self, *, force=False):
    """The elements as a NumPy array on the same memory: a change of one is a change of the other.

    Raises RuntimeError if the tensor requires grad, unless `force` says to look past that or grad mode is off.

    >>> import cygrad
    >>> t = cygrad.zeros(2)
    >>> t.numpy()[0] = 5
    >>> t
    tensor([5., 0.])
    """
    if self.requires_grad and not force and not get_modes() & NO_GRAD:
        raise graph_errors.read_of_gradient(self)
    _check_memory(self)
    if not isinstance(array_of(self), np.ndarray):
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    return array_of(self).view()  # another array object, whose shape the caller may set


def __array__(self, dtype=None, copy=None):
    """What `np.asarray(tensor)` calls. Raises RuntimeError if the tensor requires grad."""
    return np.array(numpy(self), dtype=dtype, copy=copy)


# -- subclasses --


def _make_subclass(cls, data, require_grad=False):
    """A tensor of the Python class `cls` that shares the memory of the tensor `data` and has no history."""
    if require_grad and not (data.is_floating_point() or data.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    new = of_class(cls, data, False)
    return new.requires_grad_() if require_grad else new


def as_subclass(self, cls):
    """This tensor as one of the class `cls`: a view of the same memory, with the history of this tensor.

    What is computed from the result, and its views, are of that class as well; its gradients are not.
    Raises TypeError if `cls` is no subclass of Tensor.

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
    """Lets a class with `__torch_function__` take over calls, and tells one that expects calls which never come."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    own = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    if own is not None and own is not __torch_function__:
        from cygrad._core.registry.torch_function import begin_overriding  # which few programs need

        begin_overriding(cls)
    if vars(cls).get("__torch_dispatch__") is not None:
        warnings.warn(
            f"{cls.__name__}.__torch_dispatch__ will not be called: ops ask no class what to do. "
            "`__torch_function__` and methods and operators that the class defines itself are called, and results are "
            "of it; see docs/architecture.md, Subclasses",
            stacklevel=2,
        )


def __torch_function__(cls, func, types, args=(), kwargs=None):
    """Calls `func` without asking a class again; tensors among the results are of the class.

    What a subclass calls from its own `__torch_function__` by `super()`. NotImplemented if `types` has one that the
    class does not derive from.
    """
    from cygrad._core.registry.torch_function import call_plainly

    return call_plainly(cls, func, types, args, kwargs)


# -- pickles --


def _rebuild(cls, array, requires_grad, attributes):
    tensor = tensor_of(array)
    if cls is not Tensor:
        tensor = Tensor._make_subclass(cls, tensor)
    if requires_grad:
        tensor.requires_grad_()
    for name, value in attributes.items():
        setattr(tensor, name, value)
    return tensor


def __reduce_ex__(self, protocol):
    """For pickle: the elements, `requires_grad` and the user's attributes.

    History, `grad` and hooks are left out.
    """
    for hook in (self._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=2,
            )
    array, rest = array_of(self), (self.requires_grad, attributes_of(self))
    if is_array(array):
        return _rebuild_on_gpu, (type(self), arrays.move(array, None), array.device.id, *rest)
    return _rebuild, (type(self), to_send(array), *rest)


def _rebuild_on_gpu(cls, array, index, requires_grad, attributes):
    return _rebuild(cls, arrays.move(array, index), requires_grad, attributes)


# -- copies --


def __copy__(self):
    """A leaf on the same memory, with the user's attributes."""
    return _rebuild(type(self), array_of(self), self.requires_grad, attributes_of(self))


def __deepcopy__(self, memo):
    """A copy of a leaf with memory of its own, its `grad` and the user's attributes.

    Tensors that share memory do so as copies, too, if they are copied in one go. Raises
    RuntimeError for a tensor with a history.
    """
    import copy  # not before: only its functions call this one

    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise graph_errors.not_a_leaf_to_copy(self)
    new = memo[id(self)] = _rebuild(type(self), _copied_memory(array_of(self), memo), self.requires_grad, {})
    for name, value in attributes_of(self).items():
        setattr(new, name, copy.deepcopy(value, memo))
    if self._grad is not None:
        new.grad = copy.deepcopy(self._grad, memo)
    return new


def _copied_memory(array, memo):
    """`array` on a copy of the memory that it is a part of."""
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
        memo[id(memo[key])] = owner  # which keeps its id from being given to another array
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, memo[key], offset, array.strides)


def _copied_on_gpu(array, memo):
    memory = array.data.mem
    key = "memory", id(memory)
    if key not in memo:
        memo[key] = arrays.copy_of_memory(array)
        memo[id(memo[key])] = memory  # which keeps its id from being given to another
    return arrays.on_copied_memory(array, memo[key])


def __repr__(self, *, tensor_contents=None):
    """`repr(self)`, with `tensor_contents` in place of the elements."""
    from cygrad._core.tensor.show import repr_of

    class_name = None if type(self) is Tensor else type(self).__name__
    return repr_of(self, class_name=class_name, tensor_contents=tensor_contents)


def __format__(self, spec):
    """`format(tensor, spec)`: of a 0-dim tensor the number's, else (or of a subclass without `spec`) `str(tensor)`."""
    if self.ndim == 0 and (spec or type(self) is Tensor):
        return self.item().__format__(spec)
    if spec and isinstance(spec, str):
        raise TypeError(f"unsupported format string passed to {type(self).__name__}.__format__")
    return object.__format__(self, spec)


def __dir__(self):
    """The names of all attributes."""
    return sorted({*object.__dir__(self), *attributes_of(self)})


bind(
    {
        "tolist": tolist,
        "numpy": numpy,
        "__array__": __array__,
        "__array_priority__": 1000,  # as PyTorch's tensors have
        "_make_subclass": staticmethod(_make_subclass),
        "as_subclass": as_subclass,
        "__init_subclass__": classmethod(__init_subclass__),
        "__torch_function__": classmethod(__torch_function__),
        "__reduce_ex__": __reduce_ex__,
        "__copy__": __copy__,
        "__deepcopy__": __deepcopy__,
        "__repr__": __repr__,  # the type's slot is quicker, but takes no arguments
        "__format__": __format__,
        "__dict__": property(dictionary_of, doc="What the user hung onto this tensor, by name."),
        "__dir__": __dir__,
    }
)
