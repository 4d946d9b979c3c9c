"""Tensor: an array, its place in the graph, and PyTorch's attributes. The registry binds ops as methods.

Note [Version counters]
-----------------------
Every in-place op increments a counter. The count is stored when a tensor is saved, and using the saved tensor raises an
error if the count has changed since. Views and `detach()` share the counter of the memory they share; `.data` does not,
which is why it hides changes. Most tensors are never shared or changed, so the counter is created on first use; until
then the version is 0. The counter also records the op and the site of the latest change, for error messages.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from numpy cimport ndarray, PyArray_TYPE

from cygrad._core.types.dtypes cimport default_dtype, dtype_of_num, is_float_num
from cygrad._core.runtime.thread_state cimport FORWARD, INFERENCE, current_site, thread_state
from cygrad._core.graph.accumulate_grad cimport new_accumulator
from cygrad._core.graph.inplace cimport let_go, regenerate, set_array, set_grad, set_history
from cygrad._core.engine.backward cimport run_backward
from cygrad._kernels.cpu.base.arrays cimport is_on_cpu, keep_spare
from cygrad._kernels.tape.tape cimport refuse
from cygrad._kernels.device.unresolved cimport behind
cimport cygrad._core.tensor.scalar as scalar
cimport cygrad._ops.base.arguments as arguments
cimport cygrad._ops.base.arithmetic as arithmetic
cimport cygrad._ops.base.comparisons as comparisons
cimport cygrad._ops.base.indexing as indexing
cimport cygrad._ops.base.slicing as slicing
cimport cygrad._ops.base.pointwise as pointwise
cimport cygrad._ops.base.products as products
cimport cygrad._ops.base.views as views

from numbers import Number

import numpy as np

from cygrad._core import graph_errors
from cygrad._core.errors import messages
from cygrad._core.tensor.from_python import legacy_array
from cygrad._core.types.device import cpu_device, device_of
from cygrad._core.types.size import Size
from cygrad._library import later

passes = later("cygrad._core.engine.arguments")     # needed only for backward passes

cnp.import_array()

cdef object nothing = np.empty(0, np.float32)   # placeholder array of a tensor that has none yet

# Modes of `__torch_function__` see operators, and methods that are not published, by way of `see`, which returns what a
# mode made of the call, in a tuple, or None; see `function_modes.py`. It is called only if a thread has a mode. Classes
# that override calls have operators of their own (`torch_function.py`), but Python calls those of the tensor on the left
# if such a class on the right refuses, or if the operator writes to that tensor.
cdef bint watched = False       # whether there is a mode
cdef bint asked = False         # whether there is a mode or such a class
cdef set overriding = set()     # such classes
cdef object see = None
cdef dict reflected = {f"__r{name}__": f"__{name}__" for name in (
    "add", "sub", "mul", "truediv", "matmul", "pow", "floordiv", "mod", "and", "or", "xor", "lshift")} | {
    "__rrshift__": "__rshift__"}


def watch(function, bint modes, set classes):
    """Have this function see the calls of operators in modes, and those on objects of `classes`."""
    global watched, asked, overriding, see
    see, overriding = function, classes
    watched = modes
    asked = modes or bool(classes)


cdef inline bint overrides(object value):
    return type(value) is not Tensor and type(value) in overriding


cdef object see_both(str name, object a, object b):
    """Same as `see`, for an operator with two operands, the second of which may be of a class that overrides it.

    Python calls the reflected operator of a subclass first, such as Parameter; of two tensors, modes see the plain one.
    """
    if name in reflected and isinstance(b, Tensor):
        name, a, b = reflected[name], b, a
    return see(name, (a, b)) if watched or overrides(b) or overrides(a) else None


cdef object see_index(str name, tuple operands):
    """Same as `see`, for an operator whose operands may be tuples."""
    if watched:
        return see(name, operands)
    for value in operands:
        if overrides(value) or type(value) is tuple and any([overrides(one) for one in value]):
            return see(name, operands)
    return None


cdef extern from "atomic_owner.h":
    object cygrad_published(object)

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* tp_dict
        const char* tp_name
        unsigned long tp_flags
    ctypedef object (*newfunc)(PyTypeObject* cls, object args, PyObject* kwargs)
    unsigned long Py_TPFLAGS_IMMUTABLETYPE
    void PyType_Modified(PyTypeObject* type)
    ctypedef struct TypeWithNew "PyTypeObject":
        newfunc tp_new
    int PyObject_GenericSetAttr(object o, object name, PyObject* value) except -1


@cython.final
@cython.no_gc
cdef class VersionCounter:
    pass


@cython.final
cdef class ViewMeta:
    pass


@cython.freelist(64)
@cython.trashcan(True)
cdef class Tensor:
    """An n-dimensional array that records how it was computed.

    `Tensor(2, 3)` is uninitialized and has the default dtype; `Tensor([1, 2])` copies data into the default dtype.
    Prefer `cygrad.tensor(data, dtype=..., requires_grad=...)`.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    def __cinit__(self):
        self.array = nothing            # Tensor.__new__(Tensor) must yield a usable tensor, too
        if type(self) is not Tensor and (keeps := getattr(type(self), "_results_keep_class", True)):
            self.flags = KEEPS_CLASS if keeps is True else KEEPS_CLASS | DISPATCHES

    def __dealloc__(self):
        keep_spare(<PyObject*>self.array)

    def __init__(self, *args, **kwargs):
        if self.array is nothing:       # otherwise created by `new_tensor` or _make_subclass
            fill(self, args, kwargs)

    # -- place in the graph --------------------------------------------------------------------------------

    @property
    def requires_grad(self):
        """Whether gradients flow to this tensor. Settable on leaves."""
        return requires_grad(self)

    @requires_grad.setter
    def requires_grad(self, value):
        if type(value) is not bool:
            raise RuntimeError("requires_grad must be a bool")
        if grad_fn_of(self) is not None:
            raise RuntimeError(messages.NON_LEAF_REQUIRES_GRAD if not value else
                               "you can only change requires_grad flags of leaf variables.")
        set_leaf_requires_grad(self, value)

    @requires_grad.deleter
    def requires_grad(self):
        raise RuntimeError("requires_grad must be a bool")

    @property
    def grad_fn(self):
        """The node that computed this tensor; None for leaves."""
        cdef Node node = grad_fn_of(self)
        return None if node is None else node.shown()

    @property
    def is_leaf(self):
        """Whether this tensor was created by the user rather than by a recorded op."""
        return grad_fn_of(self) is None

    @property
    def output_nr(self):
        """The index of this tensor among the outputs of `grad_fn`."""
        grad_fn_of(self)
        return self.output_nr_

    @property
    def grad(self):
        """The gradient that `backward()` accumulated here: a tensor of the same shape, or None."""
        cdef Tensor grad = self.grad_
        if grad is None and self.grad_fn_ is not None and not self.flags & RETAINS_GRAD:
            graph_errors.warn_non_leaf_grad(self.grad_fn_)
        return grad

    @grad.setter
    def grad(self, value):
        if value is not None:
            messages.check_grad_assignment(self, value)
        set_grad(self, value)

    @grad.deleter
    def grad(self):
        set_grad(self, None)

    @property
    def data(self):
        """A tensor that shares this memory but has no history and does not count changes. Settable."""
        cdef Tensor out = wrap_like(self, self.array)
        if self.flags & DISPATCHES:     # the class holds what the attributes are
            out = <Tensor?>dispatched_call("detach", self, out)
        out.flags |= self.flags & (IS_INFERENCE | WAS_WRAPPED)
        cut(out, self, CUT_DATA, ".data")
        return out

    @data.setter
    def data(self, value):
        messages.check_data_assignment(self, value)
        set_array(self, (<Tensor>value).array)

    @data.deleter
    def data(self):
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @property
    def _version(self):
        """The number of in-place changes made to this tensor's memory."""
        if self.flags & IS_INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        return version_of(self)

    @property
    def _base(self):
        """The tensor this is a view of, or None."""
        return None if self.view is None else self.view.base

    def detach(self):
        """Return a tensor that shares this memory but has no history; in-place changes are still counted.

        No gradient flows through it.

        >>> import cygrad
        >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * 2).detach()
        tensor([2., 4.])
        """
        if watched and (seen := see("detach", (self,))):
            return seen[0]
        cdef Tensor out = alias(self, True)
        if self.flags & DISPATCHES or thread_state().dispatching:
            out = <Tensor?>dispatched_call("detach", self, out)
        out.flags |= self.flags & IS_VOLATILE
        cut(out, self, CUT_DETACH, "detach")
        if thread_state().modes & FORWARD:
            from cygrad._core.transforms.forward_mode import detach_samples  # needed only for forward mode or vmap
            out.array = self.array[...]     # a new array object: samples are looked up by it
            detach_samples(self, out)
        return out

    # -- backward; hooks are in tensor_hooks.pyx ------------------------------------------------------------

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None, *,
                 retain_variables=None):
        """Compute the gradients of this tensor with respect to the leaves, and add them to their `grad`.

        `gradient` (same shape) is the gradient of the final result with respect to this tensor; it may be omitted
        for a tensor with one element. `retain_graph` keeps the saved values for another pass; `create_graph`
        records the pass itself; `inputs` limits accumulation to the given tensors.

        Raises RuntimeError if nothing requires grad, if the graph has been freed, or if a saved tensor was changed.

        >>> import cygrad
        >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        if retain_variables is not None:
            messages.deprecated("retain_variables", "retain_graph")
            retain_graph = retain_variables
        if watched and (seen := see("backward", (self,), gradient=gradient, retain_graph=retain_graph,
                                    create_graph=create_graph, inputs=inputs)):
            return seen[0]
        gradients = (gradient,) if gradient is None else passes.gradients_for((self,), gradient)
        run_backward((self,), gradients, retain_graph, create_graph, inputs, "backward")

    # -- shape and type ------------------------------------------------------------------------------------

    @property
    def shape(self):
        """The size of each dimension, as a `Size`."""
        return tuple.__new__(Size, self.array.shape)

    def size(self, dim=None):
        """Return the shape, or the size of dimension `dim`.

        Raises IndexError if there is no such dimension.

        >>> import cygrad
        >>> x = cygrad.ones(2, 3)
        >>> x.size(), x.size(-1)
        (torch.Size([2, 3]), 3)
        """
        if watched and (seen := see("size", (self,) if dim is None else (self, dim))):
            return seen[0]
        if dim is None:
            return tuple.__new__(Size, self.array.shape)
        return entry_of(self.array.shape, dim, "size")

    @property
    def ndim(self):
        """The number of dimensions."""
        return self.array.ndim

    def dim(self):
        """Return the number of dimensions.

        >>> import cygrad
        >>> cygrad.ones(2, 3).dim()
        2
        """
        if watched and (seen := see("dim", (self,))):
            return seen[0]
        return self.array.ndim

    def numel(self):
        """Return the number of elements, the product of all sizes.

        >>> import cygrad
        >>> cygrad.ones(2, 3).numel()
        6
        """
        if watched and (seen := see("numel", (self,))):
            return seen[0]
        return self.array.size

    @property
    def dtype(self):
        """The type of the elements."""
        return dtype_of(self)

    @property
    def device(self):
        """The device that holds the elements."""
        array = behind(self.array)
        return cpu_device if is_on_cpu(array) else device_of(array)

    def stride(self, dim=None):
        """Return the stride of each dimension (or of `dim`), in elements.

        >>> import cygrad
        >>> cygrad.ones(2, 3).stride(), cygrad.ones(2, 3).stride(0)
        ((3, 1), 3)
        """
        if watched and (seen := see("stride", (self,) if dim is None else (self, dim))):
            return seen[0]
        cdef Py_ssize_t itemsize = self.array.itemsize
        strides = tuple([s // itemsize for s in self.array.strides])
        if self.array.size == 0 and not any(strides):   # NumPy leaves the strides at 0
            strides = messages.contiguous_strides(self.array.shape)
        return strides if dim is None else entry_of(strides, dim, "stride")

    # -- as a Python object --------------------------------------------------------------------------------

    def __len__(self):
        if watched and (seen := see("__len__", (self,))):
            return seen[0]
        if self.array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.array.shape[0]

    def item(self):
        """Return the value of this tensor's only element as a Python number.

        Raises RuntimeError unless the tensor has exactly one element.

        >>> import cygrad
        >>> cygrad.tensor([2.5]).item()
        2.5
        """
        if watched and (seen := see("item", (self,))):
            return seen[0]
        return scalar.item(self)

    def __bool__(self):
        if watched and (seen := see("__bool__", (self,))):
            return seen[0]
        return scalar.truth(self)

    def __float__(self):
        if watched and (seen := see("__float__", (self,))):
            return seen[0]
        value = scalar.as_float(self)
        if requires_grad(self):
            messages.warn_scalar_of_gradient()
        return value

    def __int__(self):
        if watched and (seen := see("__int__", (self,))):
            return seen[0]
        return scalar.as_int(self)

    def __complex__(self):
        if watched and (seen := see("__complex__", (self,))):
            return seen[0]
        value = scalar.as_complex(self)
        if requires_grad(self):
            messages.warn_scalar_of_gradient()
        return value

    def __index__(self):
        if watched and (seen := see("__index__", (self,))):
            return seen[0]
        return scalar.as_index(self)

    def __iter__(self):
        if self.array.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(slicing.unbind(self))

    def __contains__(self, element):
        if watched and (seen := see("__contains__", (self, element))):
            return seen[0]
        if not isinstance(element, (Tensor, Number)):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
        refuse("reads values", "__contains__")
        equal = element == self     # by the method of the element, which may return anything
        return bool((<Tensor>equal).array.any() if type(equal) is Tensor else equal.any())

    def __hash__(self):
        return <Py_hash_t><void*>self

    def __repr__(self):
        if watched and (seen := see("__repr__", (self,))):
            return seen[0]
        from cygrad._core.tensor.tensor_str import repr_of  # most programs show no tensors
        return repr_of(self, class_name=None if type(self) is Tensor else type(self).__name__)

    # A __dict__ would be allocated for every tensor, including the many temporaries that never get an attribute. These
    # methods create the dictionary on the first assignment instead.

    def __setattr__(self, str name, value):
        try:
            PyObject_GenericSetAttr(self, name, <PyObject*>value)
        except AttributeError:
            if hasattr(type(self), name):
                raise
            own_attributes(self)[name] = value

    def __getattr__(self, str name):
        if self.attributes is not None and name in self.attributes:
            return self.attributes[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, str name):
        if self.attributes is not None and name in self.attributes:
            del self.attributes[name]
        elif hasattr(self, name):  # of the class, or in the dictionary that instances of a subclass have
            PyObject_GenericSetAttr(self, name, NULL)
        else:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __getitem__(self, index):
        if asked and (seen := see_index("__getitem__", (self, index))):
            return seen[0]
        return indexing.getitem(self, index)

    def __setitem__(self, index, value):
        if asked and see_index("__setitem__", (self, index, value)):
            return
        indexing.setitem(self, index, value)

    def __delitem__(self, index):
        raise TypeError("Tensor does not support deleting items")

    def __add__(self, other):
        if asked and (seen := see_both("__add__", self, other)):
            return seen[0]
        return arithmetic.operator_add(self, other)

    def __radd__(self, other):
        if asked and (seen := see_both("__radd__", self, other)):
            return seen[0]
        return arithmetic.operator_add(other, self)

    def __iadd__(self, other):
        if asked and (seen := see_both("__iadd__", self, other)):
            return seen[0]
        return arithmetic.operator_iadd(self, other)

    def __sub__(self, other):
        if asked and (seen := see_both("__sub__", self, other)):
            return seen[0]
        return arithmetic.operator_sub(self, other)

    def __rsub__(self, other):
        if asked and (seen := see_both("__rsub__", self, other)):
            return seen[0]
        return arithmetic.operator_sub(other, self)

    def __isub__(self, other):
        if asked and (seen := see_both("__isub__", self, other)):
            return seen[0]
        return arithmetic.operator_isub(self, other)

    def __mul__(self, other):
        if asked and (seen := see_both("__mul__", self, other)):
            return seen[0]
        return arithmetic.operator_mul(self, other)

    def __rmul__(self, other):
        if asked and (seen := see_both("__rmul__", self, other)):
            return seen[0]
        return arithmetic.operator_mul(other, self)

    def __imul__(self, other):
        if asked and (seen := see_both("__imul__", self, other)):
            return seen[0]
        return arithmetic.operator_imul(self, other)

    def __truediv__(self, other):
        if asked and (seen := see_both("__truediv__", self, other)):
            return seen[0]
        return arithmetic.operator_div(self, other)

    def __rtruediv__(self, other):
        if asked and (seen := see_both("__rtruediv__", self, other)):
            return seen[0]
        return arithmetic.operator_rdiv(self, other)

    def __itruediv__(self, other):
        if asked and (seen := see_both("__itruediv__", self, other)):
            return seen[0]
        return arithmetic.operator_idiv(self, other)

    def __matmul__(self, other):
        if asked and (seen := see_both("__matmul__", self, other)):
            return seen[0]
        return products.operator_matmul(self, other)

    def __rmatmul__(self, other):
        if asked and (seen := see_both("__rmatmul__", self, other)):
            return seen[0]
        return products.operator_matmul(other, self)

    def __pow__(self, other, modulo):
        if asked and (seen := see_both("__pow__", self, other)):
            return seen[0]
        if modulo is not None:
            return NotImplemented
        return arithmetic.operator_pow(self, other)

    def __rpow__(self, other, modulo):
        if asked and (seen := see_both("__rpow__", self, other)):
            return seen[0]
        return arithmetic.operator_pow(other, self)

    def __ipow__(self, other):
        if asked and (seen := see_both("__ipow__", self, other)):
            return seen[0]
        return arithmetic.operator_ipow(self, other)

    def __neg__(self):
        if watched and (seen := see("__neg__", (self,))):
            return seen[0]
        return arithmetic.neg(self)

    def __pos__(self):
        if watched and (seen := see("__pos__", (self,))):
            return seen[0]
        return pointwise.positive(self)

    def __abs__(self):
        if watched and (seen := see("__abs__", (self,))):
            return seen[0]
        return pointwise.abs(self)

    def __floordiv__(self, other):
        if asked and (seen := see_both("__floordiv__", self, other)):
            return seen[0]
        return arithmetic.operator_named("floor_divide", "//", self, other, None)

    def __rfloordiv__(self, other):
        if asked and (seen := see_both("__rfloordiv__", self, other)):
            return seen[0]
        return arithmetic.operator_named("floor_divide", "//", other, self, None)

    def __ifloordiv__(self, other):
        if asked and (seen := see_both("__ifloordiv__", self, other)):
            return seen[0]
        return arithmetic.operator_named("floor_divide", "//=", self, other, self)

    def __mod__(self, other):
        if asked and (seen := see_both("__mod__", self, other)):
            return seen[0]
        return arithmetic.operator_named("remainder", "%", self, other, None)

    def __rmod__(self, other):
        if asked and (seen := see_both("__rmod__", self, other)):
            return seen[0]
        return arithmetic.operator_named("remainder", "%", other, self, None)

    def __imod__(self, other):
        if asked and (seen := see_both("__imod__", self, other)):
            return seen[0]
        return arithmetic.operator_named("remainder", "%=", self, other, self)

    def __and__(self, other):
        if asked and (seen := see_both("__and__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_and", "&", self, other, None)

    def __rand__(self, other):
        if asked and (seen := see_both("__rand__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_and", "&", other, self, None)

    def __iand__(self, other):
        if asked and (seen := see_both("__iand__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_and", "&=", self, other, self)

    def __or__(self, other):
        if asked and (seen := see_both("__or__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_or", "|", self, other, None)

    def __ror__(self, other):
        if asked and (seen := see_both("__ror__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_or", "|", other, self, None)

    def __ior__(self, other):
        if asked and (seen := see_both("__ior__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_or", "|=", self, other, self)

    def __xor__(self, other):
        if asked and (seen := see_both("__xor__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_xor", "^", self, other, None)

    def __rxor__(self, other):
        if asked and (seen := see_both("__rxor__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_xor", "^", other, self, None)

    def __ixor__(self, other):
        if asked and (seen := see_both("__ixor__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_xor", "^=", self, other, self)

    def __lshift__(self, other):
        if asked and (seen := see_both("__lshift__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_left_shift", "<<", self, other, None)

    def __rlshift__(self, other):
        if asked and (seen := see_both("__rlshift__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_left_shift", "<<", other, self, None)

    def __ilshift__(self, other):
        if asked and (seen := see_both("__ilshift__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_left_shift", "<<=", self, other, self)

    def __rshift__(self, other):
        if asked and (seen := see_both("__rshift__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_right_shift", ">>", self, other, None)

    def __rrshift__(self, other):
        if asked and (seen := see_both("__rrshift__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_right_shift", ">>", other, self, None)

    def __irshift__(self, other):
        if asked and (seen := see_both("__irshift__", self, other)):
            return seen[0]
        return arithmetic.operator_named("bitwise_right_shift", ">>=", self, other, self)

    def __invert__(self):
        if watched and (seen := see("__invert__", (self,))):
            return seen[0]
        return arithmetic.operator_invert(self)

    def __richcmp__(self, other, int op):
        if asked and (seen := see_both(("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__")[op], self, other)):
            return seen[0]
        return comparisons.compare(self, other, op)


(<PyTypeObject*>Tensor).tp_name = b"cygrad.Tensor"       # its public name


def name_by_torch():
    """Say from now on that `Tensor` is of the module `torch`, by which libraries tell tensors of their back ends."""
    (<PyTypeObject*>Tensor).tp_name = b"torch.Tensor"


cdef int fill(Tensor t, tuple args, dict kwargs) except -1:
    """Give a new tensor what `Tensor(*args, **kwargs)` asks for."""
    if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
        become(t, views.alias(args[0]))
    else:
        t.array = legacy_array(args, kwargs, default_dtype())
    return 0


cdef object new_tensor(PyTypeObject* cls, object args, PyObject* kwargs):
    """`Tensor.__new__(cls, *args, **kwargs)`: makes the whole tensor, as `__init__` of a class may not pass on args."""
    cdef Tensor t = bare_new(cls, args, kwargs)
    cdef dict named = <dict>kwargs if kwargs is not NULL else {}
    if args or named:
        fill(t, args, named)
    return t


cdef newfunc bare_new = (<TypeWithNew*>Tensor).tp_new
(<TypeWithNew*>Tensor).tp_new = new_tensor
(<PyTypeObject*>Tensor).tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE    # users may add methods to it, as to PyTorch's


cdef object entry_of(tuple lengths, object dim, str name):
    """Return entry `dim` of the shape or of the strides, for `size(dim)` and `stride(dim)`."""
    i = arguments.dim_argument(dim, len(lengths), name, "dim", 1)
    if not lengths:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return lengths[i]


cdef int become(Tensor new, Tensor view) except -1:
    """Move the memory and the history of a view into `new`; nobody else may hold the view."""
    new.array, new.grad_fn_, new.output_nr_ = view.array, view.grad_fn_, view.output_nr_
    new.flags |= view.flags & ~KEEPS_CLASS
    new.counter, new.view = view.counter, view.view
    return 0


# -- helpers for the rest of the core ----------------------------------------------------------------------

cdef Tensor wrap(object array):
    cdef Tensor t = Tensor.__new__(Tensor)
    t.array = array
    return t


cdef Tensor wrap_as(Tensor like, object array):
    if thread_state().run != NULL:      # gradients are plain tensors
        return wrap(array)
    cdef Tensor t = Tensor.__new__(type(like))
    t.array = array
    return t


cdef Tensor wrap_in_mode(object array):
    cdef Tensor t = wrap(array)
    if thread_state().modes & INFERENCE:
        t.flags |= IS_INFERENCE
    return t


cdef dict own_attributes(Tensor t):
    if t.attributes is None:
        with cython.critical_section(t):
            if t.attributes is None:
                t.attributes = <dict>cygrad_published({})
    return t.attributes


cdef VersionCounter counter_of(Tensor t):
    if t.counter is None:
        with cython.critical_section(t):
            if t.counter is None:
                t.counter = <VersionCounter>cygrad_published(VersionCounter.__new__(VersionCounter))
    return t.counter


cdef int bump(Tensor t, object op_name) except -1:
    cdef VersionCounter counter
    if t.flags & IS_INFERENCE:
        return 0
    counter = counter_of(t)
    counter.version += 1
    code = current_site(&counter.lasti)
    if counter.code is not code or counter.op_name is not op_name:
        with cython.critical_section(counter):
            counter.op_name, counter.code = op_name, code
    return 0


cdef Node accumulator_of(Tensor t):
    cdef Node node
    if t.accumulator is None:
        node = new_accumulator(t)           # may run the garbage collector, and so other threads
        with cython.critical_section(t):
            if t.accumulator is None:
                t.accumulator = <Node>cygrad_published(node)
    return t.accumulator


cdef Node grad_fn_of(Tensor t):
    if t.view is not None and t.view.attr_version != version_of(t):
        with cython.critical_section(t):
            if t.view.attr_version != version_of(t):
                regenerate(t)
    cdef PyObject* node = <PyObject*>t.grad_fn_     # read once, as in `held_array`
    return <Node>node


cdef dtype dtype_of(Tensor t):
    if type(t.array) is ndarray:
        return dtype_of_num(PyArray_TYPE(<ndarray>t.array))
    return dtype_of_num(t.array.dtype.num)


cdef object copy_of_class = None, dispatch_call = None


def dispatch_calls(copy, call):
    """Set the functions of dispatch.py: another tensor of the same class on the same memory; a call that is no op's."""
    global copy_of_class, dispatch_call
    copy_of_class, dispatch_call = copy, call


cdef object dispatched_call(str name, Tensor t, object out):
    return out if dispatch_call is None else dispatch_call(name, t, out)


cdef Tensor alias(Tensor t, bint keep_class=False):
    cdef Tensor out
    if t.flags & DISPATCHES and copy_of_class is not None:
        out = copy_of_class(t)
    else:
        out = wrap_like(t, t.array) if keep_class else wrap(t.array)
    out.flags |= t.flags & (IS_INFERENCE | WAS_WRAPPED)
    if not t.flags & IS_INFERENCE:
        out.counter = counter_of(t)
    return out


cdef int cut(Tensor out, Tensor source, int kind, object name) except -1:
    """Record on `out` where the gradient was cut: here if `source` requires grad, else where that of `source` was."""
    if source.flags & REQUIRES_GRAD:
        set_origin(out, current_site(&out.origin_lasti), name)
        out.origin_kind = kind
    elif out is not source and source.origin_kind != CUT_NONE:
        set_origin(out, source.origin_code, source.origin_name)
        out.origin_lasti = source.origin_lasti
        out.origin_kind = source.origin_kind
    return 0


cdef inline int set_origin(Tensor out, object code, object name) except -1:
    if out.origin_code is None:             # a new tensor
        out.origin_code, out.origin_name = code, name
    elif out.origin_code is not code or out.origin_name is not name:
        with cython.critical_section(out):
            former = out.origin_code, out.origin_name
            out.origin_code, out.origin_name = code, name
        let_go(former, 0)
    return 0


cdef int become_volatile(Tensor out) except -1:
    """Make `out`, which a volatile tensor was written into, volatile, and its base if it is a view."""
    cdef Tensor t
    for t in (out,) if out.view is None else (out, out.view.base):
        set_history(t, None, 0)
        t.flags = (t.flags & ~REQUIRES_GRAD) | IS_VOLATILE
    return 0


cdef int set_leaf_requires_grad(Tensor t, bint value) except -1:
    if grad_fn_of(t) is not None:
        if value:
            return 0
        raise RuntimeError(messages.NON_LEAF_REQUIRES_GRAD)
    if value:
        if (t.flags & IS_VOLATILE or not is_float_num(t.array.dtype.num)
                or t.flags & IS_INFERENCE and not thread_state().modes & INFERENCE):
            messages.refuse_gradient(t.flags & IS_VOLATILE, dtype_of(t))
        t.flags |= REQUIRES_GRAD
    else:
        t.flags &= ~REQUIRES_GRAD
    return 0


cdef int bind_methods(dict methods) except -1:
    """Put compiled functions into Tensor's type dictionary; this is how ops become methods."""
    (<dict>(<PyTypeObject*>Tensor).tp_dict).update(methods)
    PyType_Modified(<PyTypeObject*>Tensor)
    return 0
