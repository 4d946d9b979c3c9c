"""Views: tensors that share memory with others.

Views share memory and version counter with their input; they copy nothing and save nothing but geometry. Modifying
one in place modifies the others (Note [Views and in-place] in inplace.pyx). The gradient of a view is the incoming
one, rearranged to the input's shape, with zeros for elements outside the view.
"""

from numpy cimport npy_intp

from cygrad._core.types.dtypes cimport as_dtype, dtype, dtype_of_num
from cygrad._core.graph.dual cimport is_forward
from cygrad._core.graph.observers cimport GEOMETRY, begin_change, end_change, is_observed, mark_start
from cygrad._core.graph.inplace cimport check_inplace, give_history, set_array
from cygrad._core.graph.node cimport set_meta
from cygrad._core.graph.opdef cimport LINEAR, METHOD_ONLY, PRIVATE, SELECTS, VIEW, OpDef, OpNode, op
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.record cimport node_of, record1, record_view
from cygrad._core.runtime.thread_state cimport ThreadState, is_recording, thread_state
from cygrad._core.graph.tensor cimport (
    CUT_NON_DIFFERENTIABLE, Tensor, alias as detached, bump, cut, held_array, requires_grad, version_of)
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._kernels.cpu.base.arrays cimport MAXDIMS, itemsize_of
from cygrad._kernels.device.unresolved cimport is_unresolved
from cygrad._kernels.cpu.base.view_geometry cimport (
    Geometry, geometry_of, insert_dim, permute_dims, remove_dim, reshape as fit_dims, swap_dims, view_of)
from cygrad._ops.base.arguments cimport (
    dim_argument, integers, is_integer, require, shape_to_c, variadic, wrap_dim, wrap_dims)
from cygrad._ops.base.copying cimport contiguous
from cygrad._ops.base.checks.tuples import of_tuple

cdef unsigned int MOVES = VIEW | LINEAR | SELECTS


cdef object checks():
    """Return the module that builds error messages; imported when an error occurs."""
    from cygrad._ops.base.checks import views as view_checks  # needed only for errors
    return view_checks


# -- view, reshape -----------------------------------------------------------------------------------------

cdef object view_rule(OpNode n, object g):
    return reshaped(g, n.arguments[0])

cdef OpDef VIEW_ROW = op("view", view_rule).row(flags=MOVES | METHOD_ONLY, attributes="self_sym_sizes")
cdef OpDef RESHAPE_ALIAS = op("reshape.alias", view_rule).row(
    flags=MOVES | PRIVATE, node="ReshapeAliasBackward0", attributes="self_sym_sizes")
cdef OpDef UNSAFE_VIEW = op("reshape.copy", view_rule).row(
    flags=LINEAR | SELECTS | PRIVATE, node="UnsafeViewBackward0", attributes="self_sym_sizes")


def view(input, *size, **named):
    """Return a view of the same elements in another shape, or of the same memory as another dtype.

    `view(2, 3)`, `view((2, 3))`: one length may be -1, which is inferred. `view(dtype)` reinterprets the bytes as that
    dtype; it has no gradient, and changes the last length if the item sizes differ. Saves nothing. Gradient: g in the
    input's shape.

    Raises RuntimeError if the number of elements differs, or if strides cannot express the shape (`reshape` copies in
    this case).

    >>> import cygrad
    >>> cygrad.tensor([[1, 2, 3], [4, 5, 6]]).view(3, -1)
    tensor([[1, 2],
            [3, 4],
            [5, 6]])
    """
    cdef Tensor t = require(input, "view")
    if len(size) == 1 and isinstance(size[0], dtype) and not named:
        return view_as_type(t, as_dtype(size[0]))
    if not size and len(named) == 1 and "dtype" in named:
        return view_as_type(t, as_dtype(named["dtype"]))
    if not size and "size" not in named or size and not isinstance(size[0], (list, tuple)) and (
            named or not is_integer(size[0])):
        raise messages.no_such_call("view", size, named, ("torch.dtype dtype", "tuple of ints size"))
    return viewed(t, variadic(size, named, "view", "size"))


cdef Tensor viewed(Tensor t, tuple shape):
    cdef Geometry g
    cdef npy_intp[MAXDIMS] dims
    cdef Py_ssize_t size = 1
    cdef int i
    array = held_array(t)
    geometry_of(array, &g)
    for i in range(g.ndim):
        size *= g.dims[i]
    shape = infer_shape(shape, size)
    if not fit_dims(&g, shape_to_c(shape, dims), dims, itemsize_of(array)):
        raise checks().no_view(t, shape)
    return record_view(VIEW_ROW, view_of(array, &g), t, (array.shape,))


cpdef tuple infer_shape(tuple shape, Py_ssize_t numel):
    """Replace the -1 in a shape. Raises RuntimeError if the shape does not have `numel` elements."""
    cdef Py_ssize_t i, unknown = -1
    product = 1
    for i in range(len(shape)):
        if shape[i] == -1 and unknown < 0:
            unknown = i
        elif shape[i] < 0:
            raise checks().wrong_length(shape, i)
        else:
            product *= shape[i]
    if unknown < 0:
        if product == numel:
            return shape
    elif product > 0 and numel % product == 0:
        return shape[:unknown] + (numel // product,) + shape[unknown + 1:]
    raise checks().wrong_size(shape, numel, unknown >= 0)


cdef Tensor view_as_type(Tensor t, dtype wanted):
    """Reinterpret the bytes of `t` as another dtype; without a gradient, but with a shared version counter."""
    cdef Tensor out
    own = dtype_of_num(t.array.dtype.num)
    if wanted is not own and is_unresolved(t.array):
        raise checks().view_of_unresolved(t)
    if wanted.itemsize != own.itemsize:
        checks().check_other_itemsize(t, own, wanted)
    out = detached(t)
    array = t.array if t.array.size else checks().with_strides(t)
    out.array = array.view(wanted.numpy) if wanted is not own else array.view()
    cut(out, t, CUT_NON_DIFFERENTIABLE, "view")
    if is_forward():
        from cygrad._core.transforms.forward_mode import view_samples  # needed only for forward mode or vmap
        view_samples(t, out, wanted)
    return out


def reshape(input, *shape, **named):
    """Return the same elements in another shape: a view if strides can express it, otherwise a copy.

    One length may be -1, which is inferred. Saves nothing. Gradient: g in the input's shape. Raises RuntimeError if the
    number of elements differs.

    >>> import cygrad
    >>> cygrad.reshape(cygrad.tensor([[1, 2], [3, 4]]).t(), (-1,))
    tensor([1, 3, 2, 4])
    """
    return reshaped(require(input, "reshape"), variadic(shape, named, "reshape", "shape"))


cdef Tensor reshaped(Tensor t, tuple shape):
    cdef Geometry g
    cdef npy_intp[MAXDIMS] dims
    cdef Tensor copy
    shape = infer_shape(shape, t.array.size)
    geometry_of(t.array, &g)
    if fit_dims(&g, shape_to_c(shape, dims), dims, t.array.itemsize):
        row = VIEW_ROW if t.array.flags.c_contiguous else RESHAPE_ALIAS
        return record_view(row, view_of(t.array, &g), t, (t.array.shape,))
    copy = contiguous(t)
    mark_start()
    return record1(UNSAFE_VIEW, copy.array.reshape(shape), copy, (t.array.shape,))


def flatten(input, start_dim=0, end_dim=-1):
    """Flatten dimensions `start_dim` to `end_dim` into one: the input itself or a view if possible, otherwise a copy.

    Raises IndexError for a dimension out of range, RuntimeError if the start comes after the end.

    >>> import cygrad
    >>> cygrad.flatten(cygrad.zeros(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    cdef Tensor t = require(input, "flatten")
    cdef int start = dim_argument(start_dim, t.array.ndim, "flatten", "start_dim", 1)
    cdef int end = dim_argument(end_dim, t.array.ndim, "flatten", "end_dim", 2)
    shape = t.array.shape
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshaped(t, (1,))
    if start == end:
        return t
    return reshaped(t, shape[:start] + (product(shape[start:end + 1]),) + shape[end + 1:])


def product(lengths):
    """Return the product of some lengths."""
    result = 1
    for length in lengths:
        result *= length
    return result


# -- order of dimensions -----------------------------------------------------------------------------------

cdef object transpose_rule(OpNode n, object g):
    return transpose(g, n.arguments[0], n.arguments[1])

cdef OpDef TRANSPOSE = op("transpose", transpose_rule).row(
    flags=MOVES, attributes="dim0 dim1", aliases="swapdims", spellings={"swapaxes": "swapaxes"})

cpdef Tensor transpose(object input, object dim0, object dim1):
    """Swap dimensions `dim0` and `dim1`. Saves nothing. Gradient: g, swapped back.

    Raises IndexError for a dimension out of range.

    >>> import cygrad
    >>> cygrad.transpose(cygrad.tensor([[1, 2, 3], [4, 5, 6]]), 0, 1)
    tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    cdef Tensor t = require(input, "transpose")
    cdef Geometry g
    cdef int a = dim_argument(dim0, t.array.ndim, "transpose", "dim0", 1)
    cdef int b = dim_argument(dim1, t.array.ndim, "transpose", "dim1", 2)
    geometry_of(t.array, &g)
    if a != b:
        swap_dims(&g, a, b)
    return record_view(TRANSPOSE, view_of(t.array, &g), t, (a, b))


def swapaxes(input, axis0, axis1):
    """Swap dimensions `axis0` and `axis1`; see `transpose`.

    >>> import cygrad
    >>> cygrad.swapaxes(cygrad.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    return transpose(input, axis0, axis1)


cdef object t_rule(OpNode n, object g):
    return t(g)

cdef OpDef T_ROW = op("t", t_rule).row(flags=MOVES)

cpdef Tensor t(object input):
    """Transpose a matrix; tensors with fewer dimensions are unchanged. Saves nothing. Gradient: g, transposed.

    Raises RuntimeError for more than 2 dimensions.

    >>> import cygrad
    >>> cygrad.t(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    cdef Tensor x = require(input, "t")
    cdef Geometry g
    geometry_of(x.array, &g)
    check_matrix(&g, "t")
    if g.ndim == 2:
        swap_dims(&g, 0, 1)
    return record_view(T_ROW, view_of(x.array, &g), x, None)


cdef int check_matrix(Geometry* g, str op) except -1:
    if g.ndim > 2:
        raise RuntimeError(f"{op}() expects a tensor with <= 2 dimensions, but self is {g.ndim}D")
    return 0


cdef object permute_rule(OpNode n, object g):
    dims = n.arguments[0]
    return permuted(g, tuple(sorted(range(len(dims)), key=dims.__getitem__)))

cdef OpDef PERMUTE = op("permute", permute_rule).row(flags=MOVES, attributes="dims")


def permute(input, *dims, **named):
    """Reorder the dimensions to the order `dims`. Saves nothing. Gradient: g in the inverse order.

    Raises RuntimeError if `dims` does not name each dimension once, IndexError for one out of range.

    >>> import cygrad
    >>> cygrad.permute(cygrad.zeros(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    return permuted(require(input, "permute"), variadic(dims, named, "permute", "dims"))


cdef Tensor permuted(Tensor t, tuple dims):
    cdef Geometry g
    cdef int[MAXDIMS] order
    cdef int i
    cdef unsigned long long seen = 0
    geometry_of(t.array, &g)
    if len(dims) != g.ndim:
        raise checks().wrong_order(g.ndim, dims)
    for i in range(g.ndim):
        order[i] = wrap_dim(dims[i], g.ndim)
        if seen >> order[i] & 1:
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        seen |= 1ull << order[i]
    args = (tuple([order[i] for i in range(g.ndim)]),)
    permute_dims(&g, order)
    return record_view(PERMUTE, view_of(t.array, &g), t, args)


def reversed_dims(self):
    """The dimensions in reverse order: the transpose of a matrix."""
    cdef Tensor t = require(self, "T")
    if t.array.ndim != 2:
        warn(
            "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases."
            if t.array.ndim == 0 else
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return permuted(t, tuple(range(t.array.ndim - 1, -1, -1)))


def matrix_transpose(self):
    """The last two dimensions swapped."""
    if self.ndim == 0:
        warn("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.")
        return self
    if self.ndim == 1:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return transpose(self, -2, -1)


# -- dimensions of length 1 --------------------------------------------------------------------------------

cdef object squeeze_rule(OpNode n, object g):
    return reshaped(g, n.arguments[0])

cdef OpDef SQUEEZE = op("squeeze", squeeze_rule).row(flags=MOVES, attributes="self_sym_sizes", overloads="1",
    takes_ints=True)
cdef OpDef SQUEEZE_DIM = op("squeeze.dim", squeeze_rule).row(
    flags=MOVES | PRIVATE, node="SqueezeBackward1", attributes="self_sym_sizes dim")
cdef OpDef SQUEEZE_DIMS = op("squeeze.dims", squeeze_rule).row(
    flags=MOVES | PRIVATE, node="SqueezeBackward2", attributes="self_sym_sizes dim")


def squeeze(input, dim=..., *, axis=None):
    """Remove dimensions of length 1: all of them, or those in `dim` (an int or several) that have length 1.

    Gradient: g in the input's shape. Raises IndexError for a dimension out of range, RuntimeError for a repeated one.
    Saves nothing.

    >>> import cygrad
    >>> x = cygrad.zeros(1, 3, 1)
    >>> x.squeeze().shape, x.squeeze(0).shape
    (torch.Size([3]), torch.Size([3, 1]))
    """
    cdef Tensor t = require(input, "squeeze")
    cdef Geometry g
    geometry_of(t.array, &g)
    row, args = drop_dims(&g, dim if axis is None else axis)
    return record_view(row, view_of(t.array, &g), t, (t.array.shape,) + args)


cdef tuple drop_dims(Geometry* g, object dim):
    """Remove the wanted dimensions from `g`; return the row for this form of the call and its arguments."""
    cdef int i
    if dim is ...:
        for i in range(g.ndim - 1, -1, -1):
            if g.dims[i] == 1:
                remove_dim(g, i)
        return SQUEEZE, ()
    if isinstance(dim, (list, tuple)):
        dims = wrap_dims(integers(dim, "squeeze", "dim", 1), g.ndim)
        row, args = SQUEEZE_DIMS, (dims,)
    elif not is_integer(dim):
        raise messages.no_such_call("squeeze", (dim,), {}, ("", "int dim", "tuple of ints dim"))
    else:
        dims = (dim_argument(dim, g.ndim, "squeeze", "dim", 1),)
        row, args = SQUEEZE_DIM, dims
    for d in sorted(dims, reverse=True):
        if d < g.ndim and g.dims[<int>d] == 1:
            remove_dim(g, d)
    return row, args


cdef object unsqueeze_rule(OpNode n, object g):
    return squeeze(g, n.arguments[0])

cdef OpDef UNSQUEEZE = op("unsqueeze", unsqueeze_rule).row(flags=MOVES, attributes="dim")

cpdef Tensor unsqueeze(object input, object dim=None, object axis=None):
    """Insert a new dimension of length 1 at position `dim`. Saves nothing. Gradient: g without it.

    Raises IndexError unless -ndim - 1 <= dim <= ndim.

    >>> import cygrad
    >>> cygrad.unsqueeze(cygrad.tensor([1, 2]), 1)
    tensor([[1],
            [2]])
    """
    cdef Tensor x = require(input, "unsqueeze")
    cdef Geometry g
    geometry_of(x.array, &g)
    dim = add_dim(&g, axis if dim is None else dim, x.array.itemsize)
    return record_view(UNSQUEEZE, view_of(x.array, &g), x, (dim,))


cdef int add_dim(Geometry* g, object dim, npy_intp itemsize) except -1:
    cdef int d
    if dim is None:
        raise TypeError('unsqueeze() missing 1 required positional arguments: "dim"')
    d = dim_argument(dim, g.ndim + 1, "unsqueeze", "dim", 1)
    insert_dim(g, d, itemsize)
    return d


# -- expand ------------------------------------------------------------------------------------------------

cdef object expand_rule(OpNode n, object g):
    return g                # the engine sums over the expanded dimensions

cdef OpDef EXPAND = op("expand", expand_rule).row(flags=MOVES | METHOD_ONLY, derived="self_sym_sizes")


def expand(input, *size, implicit=False, **named):
    """Expand dimensions of length 1 to the lengths `size`, without copying; new ones may be added in front.

    -1 keeps a length. Saves nothing. Gradient: g summed over the expanded dimensions. The result cannot be modified in
    place, since several of its elements share memory.

    Raises RuntimeError if a length other than 1 would have to change.

    >>> import cygrad
    >>> cygrad.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return expanded(require(input, "expand"), variadic(size, named, "expand", "size"))


cdef Tensor expanded(Tensor t, tuple shape):
    cdef Geometry g
    cdef npy_intp[MAXDIMS] dims
    cdef int i, ndim = shape_to_c(shape, dims), added
    cdef double elements = 1
    geometry_of(t.array, &g)
    added = ndim - g.ndim
    if added < 0:
        raise checks().no_expansion(t, shape)
    for i in range(ndim - 1, -1, -1):
        if i < added:
            if dims[i] < 0:
                raise checks().no_expansion(t, shape)
            g.strides[i] = g.dims[i + 1] * g.strides[i + 1] if dims[i] == 1 and i + 1 < ndim else 0
            g.dims[i] = dims[i]
            continue
        g.strides[i] = g.strides[i - added]
        g.dims[i] = g.dims[i - added]
        if dims[i] == -1 or dims[i] == g.dims[i]:
            continue
        if g.dims[i] != 1 or dims[i] < 0:
            raise checks().no_expansion(t, shape)
        g.dims[i] = dims[i]
        g.strides[i] = 0
    for i in range(ndim):
        elements *= g.dims[i]
    if elements >= 2.0 ** 63:
        raise RuntimeError("numel: integer multiplication overflow")
    g.ndim = ndim
    return record_view(EXPAND, view_of(t.array, &g), t, None)


# -- alias -------------------------------------------------------------------------------------------------

cdef object alias_rule(OpNode n, object g):
    return g

cdef OpDef ALIAS = op("alias", alias_rule).row(flags=MOVES | PRIVATE)

cpdef Tensor alias(object input):
    """Return the tensor as a view of itself. Gradient: g."""
    cdef Tensor x = require(input, "alias")
    cdef Geometry g
    geometry_of(x.array, &g)
    return record_view(ALIAS, view_of(x.array, &g), x, None)


# -- in place ----------------------------------------------------------------------------------------------
#
# Families in Python use these to change no element, but a tensor's own shape and strides.

cpdef Tensor look_otherwise(OpDef op, Tensor x, object array, tuple args):
    cdef ThreadState* state = thread_state()
    cdef OpNode node = None
    cdef unsigned int mask
    if requires_grad(x) and is_recording():
        node = node_of(op, (x,), args, &mask)
    if is_observed(state):
        begin_change(op, GEOMETRY, x, (x,), args, None, state)
    set_array(x, array)
    bump(x, op.name + "_")
    if node is not None:
        set_meta(node, x.array)
        give_history(x, node)
        if x.view is not None:
            x.view.attr_version = version_of(x)
    if is_observed(state):
        end_change(x, node, state)
    return x


cpdef int may_look_otherwise(Tensor x, str op_name) except -1:
    """Raise if `x` is a leaf that requires grad, or a view that cannot be modified in place."""
    return check_inplace(x, op_name, requires_grad(x) and is_recording())


composite = {"reshape": 0, "flatten": 0, "swapaxes": 0}
methods = {"T": property(reversed_dims), "mT": property(matrix_transpose)}
functions = publish(globals(), {"reshape": of_tuple(reshape, "shape"), "permute": of_tuple(permute, "dims")})
