"""Products of matrices and vectors.

The gradients of a product are products with one factor transposed. Factors are never copied for that, since BLAS
accepts transposed operands (`times`). Where a batch of matrices is multiplied by a single one, the batch is folded into
one tall matrix, so that one BLAS call computes the product, and another the gradient of the single matrix.
"""

from numpy cimport NPY_BOOL

import math

from numpy cimport PyArray_SIZE, ndarray

from cygrad._core.types.dtypes cimport COMPLEX, category_of_num
from cygrad._core.graph.opdef cimport FUNCTION_ONLY, IN0, IN1, IN2, METHOD_ONLY, PRODUCT, OpDef, OpNode, op, variant
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.record cimport record2, record_n, tensor_argument, write_into
from cygrad._core.runtime.thread_state cimport NO_GRAD, thread_state
from cygrad._core.graph.tensor cimport Tensor, held_array, wrap
from cygrad._core.registry import autocast
from cygrad._core import operators
cimport cygrad._kernels.array_ops as kernels
from cygrad._kernels.array_ops cimport is_contiguous, length_of, ndim_of, swap_last, typenum_of
from cygrad._kernels.cpu.base.arrays cimport dense, may_overlap
from cygrad._kernels.tape.tape cimport tape_open
from cygrad._kernels.cpu.base.matmul import dot as dot_kernel, matmul as matmul_kernel
from cygrad._ops.base.arithmetic cimport add, mul, operand
from cygrad._ops.base.pointwise cimport conjugate
from cygrad._ops.base.views cimport reshaped, t, transpose, unsqueeze


cdef enum:                  # the kinds of factors of a product; kept in the node's `args`
    MATRIX                  # the second is a matrix
    TRANSPOSED              # the second is a matrix in column-major order, as w.t() in x @ w.t()
    STACK                   # the second is a batch of matrices
    COLUMN                  # the second is a vector
    ROW                     # the first is a vector

cdef tuple KINDS = ((MATRIX,), (TRANSPOSED,), (STACK,), (COLUMN,), (ROW,))


cdef object checks():
    """Return the module that builds error messages; imported when an error occurs."""
    from cygrad._ops.base.checks import products as product_checks  # needed only for errors
    return product_checks


cdef object instead = None      # `autocast.instead` while autocast or a selective checkpoint is active in a thread


def call_instead(function):
    """Set the function that matrix products call first, or None."""
    global instead
    instead = function

autocast.follow(call_instead)


# -- arrays ------------------------------------------------------------------------------------------------

cdef tuple fold(tuple shape):
    cdef Py_ssize_t last = len(shape) - 1       # the build disables negative indices
    return math.prod(shape[:last]), shape[last]


cdef object folded(object a):
    """Reshape a batch of matrices to one matrix."""
    rows = a.reshape(fold(a.shape))
    if tape_open and type(a) is ndarray and not may_overlap(rows, a):
        return dense(a).reshape(fold(a.shape))      # a copy that the tape knows
    return rows


cdef object product(object a, object b):
    """Compute a @ b; a batch of matrices times a matrix or vector is computed as one product of two matrices."""
    cdef int ndim = ndim_of(a)
    if ndim <= 2 or ndim_of(b) > 2:
        return kernels.matmul(a, b)
    shape = a.shape
    return kernels.matmul(folded(a), b).reshape(shape[:ndim - 1] + b.shape[1:])


# -- gradients ---------------------------------------------------------------------------------------------

cpdef Tensor times(Tensor a, Tensor b, bint transpose_a, bint transpose_b):
    """Compute the product with either factor transposed and conjugated."""
    if thread_state().modes & NO_GRAD and category_of_num(a.array.dtype.num) != COMPLEX:
        # an ordinary backward pass records nothing, so no tensors are needed for the transposed factors
        return wrap(product(swap_last(a.array) if transpose_a else held_array(a),
                            swap_last(b.array) if transpose_b else held_array(b)))
    return matmul(transpose(conjugate(a), -2, -1) if transpose_a else a,
                  transpose(conjugate(b), -2, -1) if transpose_b else b)


cpdef Tensor as_matrix(Tensor a):
    """Reshape a batch of matrices, or a vector, to one tall matrix of its rows along the last dimension."""
    return a if a.array.ndim == 2 else reshaped(a, fold(a.array.shape))


cdef Tensor without(Tensor a, Py_ssize_t dim):
    """Remove a dimension of length 1."""
    cdef tuple shape = a.array.shape
    return reshaped(a, shape[:dim] + shape[dim + 1:])


cdef object column_rule(OpNode n, Tensor g):
    """The rule of a matrix times a vector."""
    cdef Tensor grad_a = None, grad_b = None
    if n.needs(0):
        grad_a = times(unsqueeze(g, -1), unsqueeze(n.saved(1), 1), False, True)
    if n.needs(1):
        grad_b = times(n.saved(0), g, True, False)
    return grad_a, grad_b


cdef object matmul_rule(OpNode n, object g):
    cdef int kind = n.arguments[0]
    if kind == COLUMN and (<Tensor>g).array.ndim == 1:
        return column_rule(n, g)
    cdef Tensor a, b, grad_a = None, grad_b = None
    if kind == ROW:
        g = unsqueeze(g, -2)
    elif kind == COLUMN:
        g = unsqueeze(g, -1)
    if n.needs(0):
        b = n.saved(1)
        if kind == STACK and type((<Tensor>g).array) is ndarray and PyArray_SIZE(<ndarray>(<Tensor>g).array) > 1 << 15:
            from cygrad._core.engine.blocked_gradients import of_common_factor  # needed only for large gradients
            grad_a = of_common_factor(n, g, b)
        if grad_a is None:
            grad_a = times(g, b if kind != COLUMN else unsqueeze(b, 1), False, True)
        if kind == ROW:
            grad_a = without(grad_a, grad_a.array.ndim - 2)
    if n.needs(1):
        a = n.saved(0)
        if kind == STACK or kind == ROW:
            grad_b = times(a if kind != ROW else unsqueeze(a, 0), g, True, False)
        elif kind == TRANSPOSED:
            # the gradient has the layout of the factor, so for x @ w.t() it is contiguous with respect to w
            grad_b = t(times(as_matrix(g), as_matrix(a), True, False))
        else:
            grad_b = times(as_matrix(a), as_matrix(g), True, False)
            if kind == COLUMN:
                grad_b = without(grad_b, 1)
    return grad_a, grad_b


cdef int kind_of(object b) except -1:
    """Return the kind of a second factor, if the first is not a vector."""
    cdef int ndim = ndim_of(b)
    if ndim == 1:
        return COLUMN
    if ndim > 2:
        return STACK
    if not is_contiguous(b) and is_contiguous(swap_last(b)) and category_of_num(typenum_of(b)) != COMPLEX:
        return TRANSPOSED
    return MATRIX


cdef Tensor multiplied(OpDef op, Tensor a, Tensor b, Tensor out):
    """Multiply two tensors whose numbers of dimensions have been checked, and nothing else."""
    cdef int num = typenum_of(a.array)
    if num != typenum_of(b.array) or num == NPY_BOOL:
        checks().check_factors(op.name, a, b)
    try:
        array = product(a.array, b.array)
    except ValueError as error:
        raise checks().explanation(error, checks().check_factors, op.name, a, b) from None
    args = KINDS[ROW if a.array.ndim == 1 else kind_of(b.array)]
    if out is None:
        return record2(op, array, a, b, args)
    return write_into(op, out, array, (a, b), args)


# -- matrices ----------------------------------------------------------------------------------------------

cdef OpDef MM = op("mm", matmul_rule).row(saves=(IN1, IN0), inputs="self mat2", flags=PRODUCT, kernel=matmul_kernel,
    autocast="lower", autocast_gpu="lower", casts_itself=True, out_dtype="same", overloads="24",
    derived="self_sym_sizes mat2_sym_sizes self_sym_strides mat2_sym_strides")

cpdef Tensor mm(object input, object mat2, Tensor out=None):
    """Compute the product of two matrices, (n, k) and (k, m), of shape (n, m). Does not broadcast.

    out[i, j] = sum over l of input[i, l] * mat2[l, j].

    Saves each factor if the other needs a gradient: g @ mat2^T, and input^T @ g.
    Raises RuntimeError for mismatched shapes and dtypes.

    >>> import cygrad
    >>> cygrad.mm(cygrad.tensor([[1.0, 2.0]]), cygrad.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    cdef Tensor a, b
    if instead is not None:
        found = instead(mm, out, input, mat2)
        if found is not None:
            return found
    a, b = tensor_argument(MM, input, "input", 1), tensor_argument(MM, mat2, "mat2", 2)
    if a.array.ndim != 2 or b.array.ndim != 2:
        raise RuntimeError(f"{'self' if a.array.ndim != 2 else 'mat2'} must be a matrix\n  the shapes are "
                           f"{a.array.shape} and {b.array.shape}; a @ b also takes vectors and batches of matrices")
    return multiplied(MM, a, b, out)


cdef OpDef BMM = op("bmm", matmul_rule).row(saves=(IN1, IN0), inputs="self mat2", kernel=matmul_kernel,
    autocast="lower", autocast_gpu="lower", casts_itself=True, out_dtype="same", overloads="24", float8="bmm")

cpdef Tensor bmm(object input, object mat2, Tensor out=None):
    """Compute the products of two batches of matrices, (b, n, k) and (b, k, m), of shape (b, n, m). Does not broadcast.

    out[b, i, j] = sum over l of input[b, i, l] * mat2[b, l, j].

    Saves each factor if the other needs a gradient: g @ mat2^T, and input^T @ g.
    Raises RuntimeError for mismatched shapes and dtypes.

    >>> import cygrad
    >>> cygrad.bmm(cygrad.ones(3, 1, 2), cygrad.ones(3, 2, 4)).shape
    torch.Size([3, 1, 4])
    """
    cdef Tensor a, b
    if instead is not None:
        found = instead(bmm, out, input, mat2)
        if found is not None:
            return found
    a, b = tensor_argument(BMM, input, "input", 1), tensor_argument(BMM, mat2, "mat2", 2)
    if a.array.ndim != 3 or b.array.ndim != 3:
        checks().check_stacks(a, b)
    if a.array.shape[0] != b.array.shape[0]:
        checks().check_stack_sizes(a, b)
    return multiplied(BMM, a, b, out)


# -- vectors -----------------------------------------------------------------------------------------------

cdef OpDef MV = op("mv", matmul_rule).row(saves=(IN1, IN0), inputs="self vec", kernel=matmul_kernel,
    autocast_gpu="lower", casts_itself=True,
    float8="addmv_impl_cpu",
    out_dtype="addmv input tensors must have the same dtype, but got {out}, {result}, and {result}")

cpdef Tensor mv(object input, object vec, Tensor out=None):
    """Compute the product of a matrix (n, m) and a vector (m), of shape (n).

    out[i] = sum over j of input[i, j] * vec[j].

    Saves each factor if the other needs a gradient: the outer product of g and vec, and input^T @ g.
    Raises RuntimeError for mismatched shapes and dtypes.

    >>> import cygrad
    >>> cygrad.mv(cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]), cygrad.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    if instead is not None:
        found = instead(mv, out, input, vec)
        if found is not None:
            return found
    cdef Tensor a = tensor_argument(MV, input, "input", 1), b = tensor_argument(MV, vec, "vec", 2)
    if a.array.ndim != 2 or b.array.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a.array.ndim}, {b.array.ndim}")
    return multiplied(MV, a, b, out)


cdef object dot_rule(OpNode n, object g):
    return (mul(g, conjugate(n.saved(1))) if n.needs(0) else None,
            mul(g, conjugate(n.saved(0))) if n.needs(1) else None)

cdef OpDef DOT = op("dot", dot_rule).row(saves=(IN1, IN0), inputs="self tensor", kernel=dot_kernel,
    autocast_gpu="widest", casts_itself=True, out_dtype="result", float8="dot")

cpdef Tensor dot(object input, object tensor, Tensor out=None):
    """Compute the dot product of two vectors of equal length, a 0-dim tensor.

    The result is sum over i of input[i] * tensor[i].

    Saves each vector if the other needs a gradient: g * tensor, and g * input.
    Raises RuntimeError for other shapes and for different dtypes.

    >>> import cygrad
    >>> cygrad.dot(cygrad.tensor([1.0, 2.0]), cygrad.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if instead is not None:
        found = instead(dot, out, input, tensor)
        if found is not None:
            return found
    cdef Tensor a = tensor_argument(DOT, input, "input", 1), b = tensor_argument(DOT, tensor, "tensor", 2)
    if a.array.ndim != 1 or b.array.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.array.ndim}D and {b.array.ndim}D tensors")
    return multiplied(DOT, a, b, out)


# -- matmul ------------------------------------------------------------------------------------------------

# One node for all shapes; each row is named like the last of the several nodes that PyTorch records.
cdef OpDef MATMUL = op("matmul", matmul_rule).row(saves=(IN1, IN0), node="UnsafeViewBackward0", flags=PRODUCT,
                                   kernel=matmul_kernel, autocast="lower", autocast_gpu="lower", casts_itself=True,
    out_dtype="same")
cdef OpDef VECTOR_MATRIX = variant(MATMUL, "SqueezeBackward4")

cpdef Tensor matmul(object input, object other, Tensor out=None):
    """Compute the matrix product `input @ other`.

    For matrices, out[i, j] = sum over l of input[i, l] * other[l, j].

    Two vectors give their dot product, a matrix and a vector a vector, two matrices (n, k) and (k, m) a matrix
    (n, m). Tensors with more dimensions are batches of matrices: the last two dimensions are multiplied, the others
    broadcast. A vector as first factor is treated as a row, as second factor as a column, and that dimension is removed
    from the result.

    Saves each factor if the other needs a gradient: g @ other^T, and input^T @ g.
    Raises RuntimeError for mismatched shapes and dtypes, and for 0-dim tensors.

    >>> import cygrad
    >>> a = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> a @ cygrad.tensor([1.0, 1.0])
    tensor([3., 7.])
    >>> (cygrad.ones(5, 1, 2, 3) @ cygrad.ones(4, 3, 6)).shape
    torch.Size([5, 4, 2, 6])
    """
    cdef Tensor a, b
    if instead is not None:
        found = instead(matmul, out, input, other)
        if found is not None:
            return found
    a, b = tensor_argument(MATMUL, input, "input", 1), tensor_argument(MATMUL, other, "other", 2)
    cdef int m = a.array.ndim, n = b.array.ndim
    if m == 2 and n <= 2 and n:
        return multiplied(MM if n == 2 else MV, a, b, out)
    if m == 1 and n == 1:
        return multiplied(DOT, a, b, out)
    if m == 0 or n == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D\n"
                           "  use `*` to multiply by a 0-dim tensor")
    return multiplied(VECTOR_MATRIX if m == 1 and n == 2 else MATMUL, a, b, out)


# -- linear ------------------------------------------------------------------------------------------------

def linear_array(bias, a, weight):
    """Compute a @ weight.T + bias for a vector, a matrix, or a batch of matrices `a`."""
    cdef object transposed = swap_last(weight)
    cdef int ndim = ndim_of(a)
    if ndim == 2:
        return kernels.addmm(bias, a, transposed)
    shape = a.shape
    rows = kernels.addmm(bias, folded(a), transposed)
    return rows.reshape(shape[:ndim - 1] + (length_of(weight, 0),))


cdef object linear_rule(OpNode n, object g):
    return (g,
            matmul(g, conjugate(n.saved(2))) if n.needs(1) else None,
            conjugate(times(as_matrix(g), as_matrix(n.saved(1)), True, False)) if n.needs(2) else None)


cdef OpDef LINEAR = op("linear", linear_rule).row(
    saves=(0, IN2, IN1), node="AddmmBackward0", inputs="self mat1 weight", kernel=linear_array,
    flags=FUNCTION_ONLY | METHOD_ONLY | PRODUCT, autocast="lower", autocast_gpu="lower",
    casts_itself=True)                                          # both flags: found only in nn.functional
cdef OpDef LINEAR_FOLDED = variant(LINEAR, "ViewBackward0")     # PyTorch's last node if the input is not a matrix

def linear(input, weight, bias=None):
    """Compute `input @ weight^T + bias`, a linear layer.

    Shapes: input (..., k), weight (m, k), bias (m) or None, result (..., m). With a bias it is one node with inputs bias,
    input and weight. Saves weight and input if the other needs a gradient: g @ weight, and g^T @ input; the gradient of
    the bias is the sum of g. Raises RuntimeError for mismatched shapes and dtypes.

    >>> import cygrad
    >>> weight = cygrad.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> cygrad.nn.functional.linear(cygrad.tensor([1.0, 1.0]), weight, cygrad.tensor([0.0, 0.0, 10.0]))
    tensor([ 3.,  7., 21.])
    """
    cdef Tensor a, w, b
    cdef int num
    if instead is not None:
        found = instead(linear, None, input, weight, bias)
        if found is not None:
            return found
    a, w = tensor_argument(LINEAR, input, "input", 1), tensor_argument(LINEAR, weight, "weight", 2)
    if a.array.ndim == 0:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are 0D and {w.array.ndim}D")
    if bias is None or w.array.ndim > 2:        # t() rejects the latter
        return matmul(a, t(w))
    b = tensor_argument(LINEAR, bias, "bias", 3)
    if b.array.ndim > 1 and a.array.ndim != 2 or a.array.ndim == w.array.ndim == 1:
        return add(matmul(a, t(w)), b)
    num = typenum_of(a.array)
    if w.array.ndim != 2 or num != typenum_of(w.array) or num != typenum_of(b.array) or num == NPY_BOOL:
        checks().check_linear(a, w, b)
    try:
        array = linear_array(b.array, a.array, w.array)
    except ValueError as error:
        raise checks().explanation(error, checks().check_linear, a, w, b) from None
    return record_n(LINEAR if a.array.ndim == 2 else LINEAR_FOLDED, array, (b, a, w), None)


cdef object operator_matmul(object a, object b):
    if not (type(a) is Tensor and type(b) is Tensor):
        left, right = operand(a), operand(b)
        if not (isinstance(left, Tensor) and isinstance(right, Tensor)):
            return operators.unsupported_operand("@", a, b)
        a, b = left, right
    return matmul(a, b)


functions = publish(globals())
