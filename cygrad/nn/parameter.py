"""Parameters and buffers: tensors that a module registers on assignment."""

from __future__ import annotations

import copy
from typing import Any, TypeGuard

import cygrad
from cygrad import Tensor
from cygrad._core.registry.disabled import disabled
from cygrad._core.tensor.tensor_str import repr_of
from cygrad.utils.interop import on_writable_memory

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(type):
    """Makes tensors of other classes parameters, too, if they are marked so."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type(instance) is Tensor:  # never marked; said first, since modules ask for each attribute
            return False
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a `Module` registers as a parameter when it is assigned as an attribute.

    The parameter shares memory with `data` (an empty tensor if None), of any shape and of a
    floating-point or complex dtype. Parameters require grad unless `requires_grad` is false,
    which also permits integer dtypes. If `data` is of a subclass of `Tensor`, so is the parameter,
    which is nevertheless an instance of `Parameter`.

    >>> import cygrad
    >>> cygrad.nn.Parameter(cygrad.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)

    Raises `RuntimeError` if `requires_grad` is true for a dtype without gradients, and if `detach()` of a
    subclass returns another class.
    """

    __torch_function__ = disabled  # ops on a parameter return plain tensors
    _results_keep_class = False

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = cygrad.empty(0)
        if not hasattr(data, "detach"):
            raise AttributeError(
                f"'{type(data).__name__}' object has no attribute 'detach'\n"
                "  to fix it: pass a tensor, as in nn.Parameter(torch.tensor(data))"
            )
        if data.layout is not cygrad.strided and not issubclass(cls, type(data)):
            cls = _of_sparse(cls, type(data))
        elif _is_of_users(type(data)):
            return _marked(data, requires_grad)
        return Tensor._make_subclass(cls, data.detach(), requires_grad)

    def __repr__(self) -> str:
        return repr_of(
            self, class_name=None if type(self) is Parameter else type(self).__name__, is_parameter_prefix=True
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = new = type(self)(self.data.clone(), self.requires_grad)
            new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.data, (self.requires_grad,), self.__dict__)


_sparse_classes: dict[Any, Any] = {}


def _of_sparse(cls: Any, kind: Any) -> Any:
    """Return the class of the parameters of class `cls` that are sparse tensors, whose class is `kind`."""
    if cls in _sparse_classes:
        return _sparse_classes[cls]

    def __repr__(self: Any) -> str:
        return "Parameter containing:\n" + kind.__repr__(self)

    def __reduce_ex__(self: Any, protocol: Any) -> tuple:
        return _rebuild, (cls, self.data, (self.requires_grad,), self.__dict__)

    own = {"__repr__": __repr__, "__reduce_ex__": __reduce_ex__, "__deepcopy__": cls.__deepcopy__}
    made = _sparse_classes[cls] = type(cls.__name__, (kind, cls), {"__module__": cls.__module__, **own})
    return made


def _is_of_users(kind: type) -> bool:
    """Whether a class of tensors is neither `Tensor` nor one of those here, which parameters take the place of."""
    return kind is not Tensor and not issubclass(kind, (Parameter, Buffer, UninitializedTensorMixin))


def _marked(data: Any, requires_grad: bool) -> Any:
    """Return a tensor of the class of `data` that is marked as a parameter."""
    kind = type(data)
    made = data.detach().requires_grad_(requires_grad)
    if type(made) is not kind:
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {kind.__name__} requires that detach() returns an instance "
            f"of the same type, but return type {type(made).__name__} was found instead. To use the type as a "
            "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    made._is_param = True
    return made


class Buffer(Tensor):
    """A tensor that a `Module` registers as a buffer when it is assigned as an attribute.

    Buffers are state that no optimizer updates: running statistics, masks, tables. They move and
    convert with the module, and are part of its `state_dict` if `persistent`.

    >>> import cygrad
    >>> module = cygrad.nn.Module()
    >>> module.mask = cygrad.nn.Buffer(cygrad.ones(2))
    >>> dict(module.state_dict())
    {'mask': tensor([1., 1.])}
    """

    persistent: bool
    __torch_function__ = disabled
    _results_keep_class = False

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = cygrad.empty(0)
        buffer = Tensor._make_subclass(cls, data.detach(), data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __repr__(self) -> str:
        return repr_of(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), persistent=self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.data, (), self.__dict__)


class UninitializedTensorMixin(Tensor):
    """A tensor without a shape until `materialize` is called; few operations are allowed before that.

    Raises ValueError if it is used in a computation, RuntimeError if its shape is queried.

    >>> from cygrad import nn
    >>> p = nn.UninitializedParameter()
    >>> isinstance(p, nn.parameter.UninitializedTensorMixin), p
    (True, <UninitializedParameter>)
    """

    cls_to_become: type
    _results_keep_class = False
    _allowed = frozenset(
        "char cls_to_become copy_ cpu cuda data device double dtype float get_device grad grad_dtype grad_fn half int "
        "is_complex is_cpu is_cuda is_floating_point is_ipu is_leaf is_maia is_meta is_mkldnn is_mps is_mtia is_nested "
        "is_quantized is_sparse is_sparse_csr is_vulkan is_xla is_xpu itemsize layout long materialize name ndim "
        "output_nr persistent requires_grad requires_grad_ retains_grad shape share_memory_ short size to type "
        "volatile".split()
    )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a parameter or buffer of this shape (integers, or one), with uninitialized values.

        >>> from cygrad import nn
        >>> p = nn.UninitializedParameter()
        >>> p.materialize((2, 3))
        >>> p.shape
        torch.Size([2, 3])
        """
        like = self.data
        self.data = cygrad.empty(
            shape, device=like.device if device is None else device, dtype=like.dtype if dtype is None else dtype
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Raises RuntimeError."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        """Raises RuntimeError.

        >>> from cygrad import nn
        >>> nn.UninitializedParameter().share_memory_()
        Traceback (most recent call last):
            ...
        RuntimeError: Can't share memory on an uninitialized parameter or buffer. Call `forward` to ini...
        """
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __getattribute__(self, name: str) -> Any:
        if (
            name[0] != "_"
            and name != "shape"
            and name not in UninitializedTensorMixin._allowed
            and hasattr(Tensor, name)
        ):
            raise _used_too_early(name)
        return super().__getattribute__(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, None, self.dtype)


def _used_too_early(name: str) -> ValueError:
    return ValueError(
        f"Attempted to use an uninitialized parameter in {name}. This error happens when you are using a `LazyModule` "
        "or explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call "
        "`forward` with a dummy batch to initialize the parameters before calling torch functions"
    )


def _refusing(name: str) -> Any:
    def refuse(self: Any, *args: Any) -> Any:
        raise _used_too_early(name)

    return refuse


# Operators bypass __getattribute__, so they are overridden individually.
for _name in "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift".split():
    for _form in (f"__{_name}__", f"__r{_name}__", f"__i{_name}__"):
        setattr(UninitializedTensorMixin, _form, _refusing(_form))
for _name in "neg abs invert bool float int index complex len iter getitem setitem lt le gt ge".split():
    setattr(UninitializedTensorMixin, f"__{_name}__", _refusing(f"__{_name}__"))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; `materialize` turns it into a `Parameter`.

    >>> import cygrad
    >>> parameter = cygrad.nn.UninitializedParameter()
    >>> parameter
    <UninitializedParameter>
    >>> parameter.materialize((2, 3))
    >>> type(parameter).__name__, parameter.shape
    ('Parameter', torch.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        return Tensor._make_subclass(cls, cygrad.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet; `materialize` turns it into a `Buffer`.

    >>> import cygrad
    >>> buffer = cygrad.nn.UninitializedBuffer()
    >>> buffer.materialize((3,))
    >>> buffer.shape
    torch.Size([3])
    """

    cls_to_become = Buffer

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        buffer = Tensor._make_subclass(cls, cygrad.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        return buffer


def is_lazy(param: Any) -> TypeGuard[UninitializedTensorMixin]:
    """Whether this is a parameter or buffer without a shape.

    >>> import cygrad
    >>> cygrad.nn.parameter.is_lazy(cygrad.nn.LazyLinear(3).weight)
    True
    """
    return isinstance(param, UninitializedTensorMixin)


def _rebuild(cls: type, data: Tensor, arguments: tuple[Any, ...], attributes: dict[str, Any]) -> Tensor:
    """Rebuild a pickled parameter or buffer, on memory that can be written."""
    tensor = cls(on_writable_memory(data), *arguments)
    tensor.__dict__.update(attributes)
    return tensor
