"""Sparse tensors: the class of tensors whose array is a sparse one (Note [Sparse arrays]).

Note [Calls with sparse tensors]
--------------------------------
No op of the other families takes a sparse tensor. Its class overrides calls as a class with `__torch_function__` does
(Note [Overriding]): public functions, methods and operators arrive in `dispatch.call`, which knows the few functions
that PyTorch has for sparse tensors, and raises PyTorch's error for all others. Dense calls pay nothing for it: until
sparse tensors are used they test one pointer.
"""

from cygrad._core.graph.internals import of_class, own_array, tensor_of
from cygrad._core.graph.record import record_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.predicates import layouts
from cygrad._core.types.device import cpu_device, device_of
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.sparse.array import Compressed, Coordinates
from cygrad._library import later

dispatch = later("cygrad._ops.sparse.dispatch")  # which imports this module
text = later("cygrad._ops.sparse.text")  # most programs show no sparse tensors
pickling = later("cygrad._ops.sparse.pickling")  # which imports this module

# Methods of Tensor that are right for sparse tensors, too, because they do not look at the elements.
KEPT = frozenset(
    "size dim numel register_hook register_post_accumulate_grad_hook retain_grad requires_grad_ is_inference "
    "is_floating_point is_complex is_signed is_distributed is_same_size get_device element_size nelement ndimension "
    "_is_view _make_subclass has_names".split()
)
# The dunder methods of Tensor that Python itself needs; the others are operators and conversions.
_OF_PYTHON = frozenset(
    "__class__ __delattr__ __dict__ __dir__ __doc__ __getattr__ __getattribute__ __hash__ __init__ __init_subclass__ "
    "__module__ __new__ __pyx_vtable__ __setattr__ __torch_function__ __weakref__ __array_priority__ __setstate__ "
    "__cython_cimport__ __delitem__ __orig_bases__ __torch_dispatch__ _make_wrapper_subclass".split()
)


class SparseTensor(Tensor):
    """A tensor that stores the elements that may differ from zero; made by `sparse_coo_tensor`, `to_sparse` and others.

    >>> import cygrad
    >>> x = cygrad.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> x.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """

    _results_keep_class = False
    __module__ = "cygrad"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Run a public function that was called with a sparse tensor."""
        return dispatch.call(func, args, kwargs or {})

    @property
    def layout(self):
        """The arrangement of the elements: `sparse_coo`, `sparse_csr`, ..."""
        return layouts[array(self).layout]

    @property
    def is_sparse(self):
        """Whether the layout is `sparse_coo`."""
        return isinstance(array(self), Coordinates)

    @property
    def is_sparse_csr(self):
        """Whether the layout is `sparse_csr`."""
        return array(self).layout == "sparse_csr"

    @property
    def device(self):
        """The device that holds the indices and values."""
        values = array(self).values
        return device_of(values) if is_array(values) else cpu_device

    @property
    def data(self):
        """A tensor with the same indices and values that has no history. Settable."""
        return without_history(self)

    @data.setter
    def data(self, value):
        dispatch.call_by_name("set_data", (self, value), {})

    @property
    def T(self):
        """The transpose of a matrix."""
        return dispatch.call_by_name("T", (self,), {})

    mT = property(lambda self: dispatch.call_by_name("mT", (self,), {}), doc="The transpose of a matrix.")
    H = property(lambda self: dispatch.call_by_name("adjoint", (self,), {}), doc="The conjugate transpose of a matrix.")
    mH = H

    @property
    def nbytes(self):
        """Raises AttributeError: a sparse tensor has several parts."""
        raise AttributeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add "
            "the nbytes "
            "of the indices and values.  If you want the size of the  equivalent dense tensor, multiply numel() by "
            "element_size()"
        )

    def __repr__(self, *, tensor_contents=None):
        return text.repr_of(self)

    def __format__(self, spec):
        return object.__format__(self, spec)

    def __reduce_ex__(self, protocol):
        return pickling.reduced(self)

    def __copy__(self):
        return pickling.copied(self)

    def __deepcopy__(self, memo):
        return pickling.deep_copied(self, memo)

    def _as_gradient(self):
        """Return a copy that becomes the `grad` of a leaf; as in PyTorch, it does not count as coalesced."""
        found = self.clone()
        if self.is_sparse:
            a = array(found)
            a.is_coalesced = a.indices.shape[1] < 2
        return found

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]


def _forwarding(name):
    def method(*args, **kwargs):
        return dispatch.call_by_name(name, args, kwargs)

    method.__name__ = method.__qualname__ = name
    return method


def _forward_all():
    """Let every method of Tensor that looks at elements, and that the class does not define, arrive in `dispatch`."""
    for name, value in list(vars(Tensor).items()):
        own = vars(SparseTensor).get(name)
        is_asking = hasattr(own, "is_asking")  # put there by `begin_overriding`, for classes of users
        if is_asking and name in KEPT:
            delattr(SparseTensor, name)
        if (own is not None and not is_asking) or name in KEPT or name in _OF_PYTHON:
            continue
        if not (isinstance(value, property) or type(value).__name__ == "getset_descriptor") and value is not None:
            setattr(SparseTensor, name, _forwarding(name))


_forward_all()
for _name in ("_coalesced_", "sparse_resize_", "sparse_resize_and_clear_"):  # which dense tensors do not have
    setattr(SparseTensor, _name, _forwarding(_name))


def is_sparse(value):
    """Whether a value is a sparse tensor, of any layout."""
    return isinstance(value, SparseTensor)


def array(tensor):
    """Return the sparse array of a sparse tensor."""
    return own_array(tensor, True)


def wrapped(sparse_array):
    """Return a new tensor without history that has this sparse array."""
    return of_class(SparseTensor, tensor_of(sparse_array), False)


def recorded(row, sparse_array, inputs, args=None):
    """Return a tensor with this sparse array, recorded as the result of a row."""
    return of_class(SparseTensor, record_n(row, sparse_array, inputs, args), True)


def without_history(tensor):
    """Return a tensor with the same parts and no history."""
    return wrapped(array(tensor))


def of_parts(layout, parts, shape, is_coalesced=False):
    """Return a sparse array of a layout from the arrays of its parts."""
    if layout == "sparse_coo":
        indices, values = parts
        return Coordinates(indices, values, shape, is_coalesced)
    bounds, plain, values = parts
    return Compressed(bounds, plain, values, shape, layout)
