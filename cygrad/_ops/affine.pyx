"""Products to which something is added: `linear`, `addmm` and their kin.

Each is one node. `beta` scales what is added to, `alpha` the product; a beta of 0 leaves the first operand out,
whatever it holds.
"""

cimport numpy as cnp
from numpy cimport PyArray_NDIM, PyArray_SwapAxes, ndarray

import numpy as np

from cygrad._core.opdef cimport FUNCTION_ONLY, IN1, IN2, INPLACE, METHOD_ONLY, OpDef, OpNode, op, variant
from cygrad._core.opdef import publish
from cygrad._core.record cimport record_n, tensor_argument, write_into
from cygrad._core.tensor cimport Tensor
from cygrad._core import messages
cimport cygrad._kernels.products as kernels
from cygrad._ops.arithmetic cimport add, mul
from cygrad._ops.pointwise cimport conjugate
from cygrad._ops.products cimport (
    as_matrix, check_matrix_vector, check_not_bool, check_product, check_stack_sizes, check_stacks,
    fold, matmul, same_type, times, type_hint, without)
from cygrad._ops.views cimport t, unsqueeze

cnp.import_array()

cdef unsigned int ELSEWHERE = FUNCTION_ONLY | METHOD_ONLY    # neither: found in nn.functional


# -- linear ------------------------------------------------------------------------------------------------

def linear_array(ndarray bias, ndarray a, ndarray weight):
    """a @ weight.T + bias, `a` being a vector, a matrix, or a stack of them."""
    cdef ndarray transposed = PyArray_SwapAxes(weight, 0, 1)
    if PyArray_NDIM(a) == 2:
        return kernels.addmm(bias, a, transposed)
    shape = (<object>a).shape
    rows = kernels.addmm(bias, (<object>a).reshape(fold(shape)), transposed)
    return (<object>rows).reshape(shape[:PyArray_NDIM(a) - 1] + (weight.shape[0],))


cdef object linear_rule(OpNode n, object g):
    return (g,
            matmul(g, conjugate(n.saved(2))) if n.needs(1) else None,
            conjugate(times(as_rows(g), as_rows(n.saved(1)), True, False)) if n.needs(2) else None)


cdef Tensor as_rows(Tensor a):
    """A matrix of what `a` has along its last dimension."""
    return unsqueeze(a, 0) if a.array.ndim == 1 else as_matrix(a)


cdef OpDef LINEAR = op("linear", linear_rule).row(saves=(0, IN2, IN1), flags=ELSEWHERE, node="AddmmBackward0",
                       inputs="self mat1 weight", kernel=linear_array)
cdef OpDef LINEAR_FOLDED = variant(LINEAR, "ViewBackward0")     # PyTorch's last node if the input is no matrix

cpdef Tensor linear(object input, object weight, object bias=None):
    """`input @ weight^T + bias`: what a linear layer computes.

    Shapes: input (..., k), weight (m, k), bias (m) or None, result (..., m). With a bias it is one node, whose inputs
    are bias, input and weight. Saves weight and input for each other's gradient: g @ weight, and g^T @ input; the
    gradient of the bias is the sum of g. Raises RuntimeError for shapes that do not fit and for different dtypes.

    >>> import cygrad
    >>> weight = cygrad.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> cygrad.nn.functional.linear(cygrad.tensor([1.0, 1.0]), weight, cygrad.tensor([0.0, 0.0, 10.0]))
    tensor([ 3.,  7., 21.])
    """
    cdef Tensor a = tensor_argument(LINEAR, input, "input", 1)
    cdef Tensor w = tensor_argument(LINEAR, weight, "weight", 2)
    cdef Tensor b
    if a.array.ndim == 0:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are 0D and {w.array.ndim}D")
    if w.array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {w.array.ndim}D")
    if bias is None:
        return matmul(a, t(w))
    b = tensor_argument(LINEAR, bias, "bias", 3)
    if b.array.ndim > 1 and a.array.ndim != 2 or a.array.ndim == w.array.ndim == 1:
        return add(matmul(a, t(w)), b)
    check_linear(a, w, b)
    return record_n(LINEAR if a.array.ndim == 2 else LINEAR_FOLDED, linear_array(b.array, a.array, w.array), (b, a, w),
                    None)


cdef int check_linear(Tensor a, Tensor w, Tensor b) except -1:
    check_matrix(w, "mat2")
    rows, k = fold(a.array.shape)
    m, n = w.array.shape
    if k != n:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {n}x{m})\n"
            f"  linear: input has shape {a.array.shape}, whose last length {k} must be {n}, for weight has shape "
            f"{(m, n)}, that is (out_features, in_features)")
    return check_sum(b, (rows, m), a, w)


# -- addmm, addmv, baddbmm ---------------------------------------------------------------------------------

cdef ndarray scaled_sum(ndarray base, ndarray product, object beta, object alpha):
    """beta * base + alpha * product."""
    with np.errstate(all="ignore"):
        if alpha != 1:
            product = np.asarray(product * np.asarray(alpha).astype(product.dtype))
        if beta == 0:
            return product
        if beta != 1:
            base = np.asarray(base * np.asarray(beta).astype(base.dtype))
        return np.asarray(base + product)


def addmm_array(ndarray base, ndarray a, ndarray b, beta, alpha):
    """beta * base + alpha * (a @ b) for matrices."""
    if beta == 1 and alpha == 1:
        return kernels.addmm(base, a, b)
    return scaled_sum(base, kernels.matmul(a, b), beta, alpha)


def add_product_array(ndarray base, ndarray a, ndarray b, beta, alpha):
    """beta * base + alpha * (a @ b) for a matrix and a vector, or for stacks of matrices."""
    return scaled_sum(base, kernels.matmul(a, b), beta, alpha)


cdef object scaled(object g, object factor):
    return g if factor == 1 else mul(g, factor)


cdef object add_product_rule(OpNode n, object g):
    beta, alpha = n.args
    return (scaled(g, beta),
            scaled(times(g, n.saved(2), False, True), alpha) if n.needs(1) else None,
            scaled(times(n.saved(1), g, True, False), alpha) if n.needs(2) else None)


cdef object addmv_rule(OpNode n, object g):
    beta, alpha = n.args
    column = unsqueeze(g, 1)
    return (scaled(g, beta),
            scaled(times(column, unsqueeze(n.saved(2), 1), False, True), alpha) if n.needs(1) else None,
            scaled(without(times(n.saved(1), column, True, False), 1), alpha) if n.needs(2) else None)


cdef Tensor finished(OpDef op, object array, tuple inputs, tuple args, Tensor out):
    if out is None:
        return record_n(op, array, inputs, args)
    messages.check_out_type(array, out)
    if out is inputs[0] and out.array.shape != array.shape:
        raise RuntimeError(f"Bad in-place call: input tensor size {list(out.array.shape)} and output tensor size "
                           f"{list(array.shape)} should match")
    return write_into(op, out, array, inputs, args)


cdef OpDef ADDMM = op("addmm", add_product_rule).row(saves=(0, IN2, IN1), flags=INPLACE, kernel=addmm_array,
                      inputs="self mat1 mat2", attributes="beta alpha")

def addmm(input, mat1, mat2, *, beta=1, alpha=1, Tensor out=None):
    """`beta * input + alpha * (mat1 @ mat2)` for matrices (n, k) and (k, m); input broadcasts to (n, m).

    Saves each matrix for the other's gradient. Gradients: beta * g, alpha * g @ mat2^T, alpha * mat1^T @ g.
    Raises RuntimeError for shapes that do not fit and for different dtypes.

    >>> import cygrad
    >>> cygrad.addmm(cygrad.ones(2), cygrad.eye(2), cygrad.eye(2), alpha=3)
    tensor([[4., 1.],
            [1., 4.]])
    """
    cdef Tensor base = tensor_argument(ADDMM, input, "input", 1)
    cdef Tensor a = tensor_argument(ADDMM, mat1, "mat1", 2), b = tensor_argument(ADDMM, mat2, "mat2", 3)
    check_matrix(a, "mat1")
    check_matrix(b, "mat2")
    check_product(a.array.shape, b.array.shape, a, b)
    check_sum(base, (a.array.shape[0], b.array.shape[1]), a, b)
    return finished(ADDMM, addmm_array(base.array, a.array, b.array, beta, alpha), (base, a, b), (beta, alpha), out)


cdef OpDef ADDMV = op("addmv", addmv_rule).row(saves=(0, IN2, IN1), flags=INPLACE, kernel=add_product_array,
                      inputs="self mat vec", attributes="beta alpha")

def addmv(input, mat, vec, *, beta=1, alpha=1, Tensor out=None):
    """`beta * input + alpha * (mat @ vec)` for a matrix (n, m) and a vector (m); input broadcasts to (n).

    Saves each factor for the other's gradient. Gradients: beta * g, alpha * g times vec^T, alpha * mat^T @ g.
    Raises RuntimeError for shapes that do not fit and for different dtypes.

    >>> import cygrad
    >>> cygrad.addmv(cygrad.ones(2), cygrad.eye(2), cygrad.tensor([1.0, 2.0]))
    tensor([2., 3.])
    """
    cdef Tensor base = tensor_argument(ADDMV, input, "input", 1)
    cdef Tensor a = tensor_argument(ADDMV, mat, "mat", 2), b = tensor_argument(ADDMV, vec, "vec", 3)
    if base.array.ndim > 1 or a.array.ndim != 2 or b.array.ndim != 1:
        raise RuntimeError("vector + matrix @ vector expected, got "
                           f"{base.array.ndim}, {a.array.ndim}, {b.array.ndim}")
    size = base.array.size
    check_matrix_vector(a.array.shape, b.array.shape, a, b, size)
    if size != 1 and size != a.array.shape[0]:
        m, k = a.array.shape
        raise RuntimeError(f"size mismatch, got input ({size}), mat ({m}x{k}), vec ({b.array.size})\n  the result has "
                           f"{m} elements, to which an input of {size} can not be added")
    if not same_type(a, b) or not same_type(base, b):
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {base.dtype.type_name}, "
                           f"{a.dtype.type_name}, and {b.dtype.type_name}")
    check_not_bool(a, "addmv_impl_cpu")
    return finished(ADDMV, add_product_array(base.array, a.array, b.array, beta, alpha), (base, a, b), (beta, alpha),
                    out)


cdef OpDef BADDBMM = op("baddbmm", add_product_rule).row(saves=(0, IN2, IN1), flags=INPLACE, kernel=add_product_array,
                        inputs="self batch1 batch2", attributes="beta alpha")

def baddbmm(input, batch1, batch2, *, beta=1, alpha=1, Tensor out=None):
    """`beta * input + alpha * (batch1 @ batch2)` for stacks (b, n, k) and (b, k, m); input broadcasts to (b, n, m).

    Saves each stack for the other's gradient. Gradients: beta * g, alpha * g @ batch2^T, alpha * batch1^T @ g.
    Raises RuntimeError for shapes that do not fit and for different dtypes.

    >>> import cygrad
    >>> cygrad.baddbmm(cygrad.ones(1), cygrad.ones(1, 1, 2), cygrad.ones(1, 2, 1), beta=0.5)
    tensor([[[2.5000]]])
    """
    cdef Tensor base = tensor_argument(BADDBMM, input, "input", 1)
    cdef Tensor a = tensor_argument(BADDBMM, batch1, "batch1", 2), b = tensor_argument(BADDBMM, batch2, "batch2", 3)
    check_stacks(a, b)
    check_expands(base, a.array.shape[:2] + b.array.shape[2:])
    check_stack_sizes(a, b)
    if not same_type(base, a):
        raise RuntimeError(f"Input dtypes must be the same, got: input {messages.c_word(base)}, batch1: "
                           f"{messages.c_word(a)}, batch2: {messages.c_word(b)}")
    if not same_type(a, b):
        raise RuntimeError(f"expected scalar type {a.dtype.type_name} but found {b.dtype.type_name}{type_hint(a, b)}")
    check_not_bool(a, "baddbmm")
    return finished(BADDBMM, add_product_array(base.array, a.array, b.array, beta, alpha), (base, a, b),
                    (beta, alpha), out)


# -- checks ------------------------------------------------------------------------------------------------

cdef int check_matrix(Tensor a, str name) except -1:
    if a.array.ndim != 2:
        raise RuntimeError(f"{name} must be a matrix, got {a.array.ndim}-D tensor")
    return 0


cdef int check_sum(Tensor base, tuple shape, Tensor a, Tensor b) except -1:
    """Do the types agree, and does `base` broadcast to the shape of the product of a and b?"""
    if not same_type(base, b):
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {base.dtype.type_name} and "
                           f"{b.dtype.type_name}{type_hint(base, b)}")
    if not same_type(a, b):
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {a.dtype.type_name} and "
                           f"{b.dtype.type_name}{type_hint(a, b)}")
    check_not_bool(a, "addmm_impl_cpu_")
    return check_expands(base, shape)


cdef int check_expands(Tensor base, tuple wanted) except -1:
    cdef tuple shape = base.array.shape
    cdef Py_ssize_t i, extra = len(wanted) - len(shape)
    if extra < 0:
        raise RuntimeError(
            f"expand({messages.type_word(base.array)}{{{list(shape)}}}, size={list(wanted)}): the number of sizes "
            f"provided ({len(wanted)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(shape)})")
    for i in range(len(shape) - 1, -1, -1):
        if shape[i] != 1 and shape[i] != wanted[i + extra]:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted[i + extra]}) must match the existing size ({shape[i]}) at "
                f"non-singleton dimension {i + extra}.  Target sizes: {list(wanted)}.  Tensor sizes: {list(shape)}")
    return 0


functions = publish(globals())
