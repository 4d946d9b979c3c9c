"""Products of matrices and vectors.

The gradients of a product are products with one factor transposed. No factor is ever copied for that: BLAS takes
transposed operands as they are (`times`). Where a stack of matrices meets a single one, the stack is folded into one
tall matrix, so that one call of BLAS does the work, forward and for the single one's gradient.
"""

cimport numpy as cnp
from numpy cimport PyArray_NDIM, PyArray_SwapAxes, ndarray

import math

import numpy as np

from cygrad._core.dtypes cimport BOOLEAN, COMPLEX, category_of_num
from cygrad._core.opdef cimport IN0, IN1, OpDef, OpNode, op, variant
from cygrad._core.opdef import publish
from cygrad._core.record cimport record2, tensor_argument, write_into
from cygrad._core.state cimport NO_GRAD, thread_state
from cygrad._core.tensor cimport Tensor, requires_grad, wrap
from cygrad._core import messages
from cygrad._core.operands import unsupported_operand
cimport cygrad._kernels.products as kernels
from cygrad._kernels.products import dot as dot_kernel, matmul as matmul_kernel
from cygrad._ops.arithmetic cimport mul, operand
from cygrad._ops.pointwise cimport conjugate
from cygrad._ops.views cimport reshaped, t, transpose, unsqueeze

cnp.import_array()

cdef enum:                  # what the factors of a product are; kept in the node's `args`
    MATRIX                  # the second is a matrix,
    TRANSPOSED              # or one whose columns are contiguous, as w in x @ w.t()
    STACK                   # several matrices
    COLUMN                  # a vector
    ROW                     # the first is a vector

cdef tuple KINDS = ((MATRIX,), (TRANSPOSED,), (STACK,), (COLUMN,), (ROW,))


# -- arrays ------------------------------------------------------------------------------------------------

cdef inline ndarray flipped(ndarray a):
    """The last two axes exchanged."""
    return PyArray_SwapAxes(a, PyArray_NDIM(a) - 2, PyArray_NDIM(a) - 1)


cdef tuple fold(tuple shape):
    return math.prod(all_but_last(shape)), from_end(shape, 1)


# no negative indices: the build switches them off

cdef inline object from_end(tuple shape, Py_ssize_t i):
    """The i-th last length."""
    return shape[len(shape) - i]


cdef inline tuple all_but_last(tuple shape, Py_ssize_t n=1):
    return shape[:len(shape) - n]


cdef ndarray product(ndarray a, ndarray b):
    """a @ b; a stack of matrices times a matrix or vector is one product of two matrices."""
    if PyArray_NDIM(a) <= 2 or PyArray_NDIM(b) > 2:
        return kernels.matmul(a, b)
    shape = (<object>a).shape
    rows = kernels.matmul((<object>a).reshape(fold(shape)), b)
    return (<object>rows).reshape(all_but_last(shape) + (<object>b).shape[1:])


# -- gradients ---------------------------------------------------------------------------------------------

cdef Tensor times(Tensor a, Tensor b, bint transpose_a, bint transpose_b):
    """The product, one or the other factor transposed (and conjugated)."""
    if thread_state().modes & NO_GRAD and category_of_num(a.array.dtype.num) != COMPLEX:
        # an ordinary backward pass records nothing: no need to make tensors of the transposed factors
        return wrap(product(flipped(a.array) if transpose_a else a.array,
                            flipped(b.array) if transpose_b else b.array))
    return matmul(transpose(conjugate(a), -2, -1) if transpose_a else a,
                  transpose(conjugate(b), -2, -1) if transpose_b else b)


cdef Tensor as_matrix(Tensor a):
    return a if a.array.ndim == 2 else reshaped(a, fold(a.array.shape))


cdef Tensor without(Tensor a, Py_ssize_t dim):
    """Drop a dimension of length 1."""
    cdef tuple shape = a.array.shape
    return reshaped(a, shape[:dim] + shape[dim + 1:])


cdef object matmul_rule(OpNode n, object g):
    cdef int kind = n.args[0]
    cdef Tensor a, b, grad_a = None, grad_b = None
    if kind == ROW:
        g = unsqueeze(g, -2)
    elif kind == COLUMN:
        g = unsqueeze(g, -1)
    if n.needs(0):
        b = n.saved(1)
        grad_a = times(g, b if kind != COLUMN else unsqueeze(b, 1), False, True)
        if kind == ROW:
            grad_a = without(grad_a, grad_a.array.ndim - 2)
    if n.needs(1):
        a = n.saved(0)
        if kind == STACK or kind == ROW:
            grad_b = times(a if kind != ROW else unsqueeze(a, 0), g, True, False)
        elif kind == TRANSPOSED:
            # the gradient has the layout of the factor: so it is contiguous for the w of x @ w.t()
            grad_b = t(times(as_matrix(g), as_matrix(a), True, False))
        else:
            grad_b = times(as_matrix(a), as_matrix(g), True, False)
            if kind == COLUMN:
                grad_b = without(grad_b, 1)
    return grad_a, grad_b


cdef int kind_of(ndarray b) except -1:
    """The kind of a second factor whose first is no vector."""
    if PyArray_NDIM(b) == 1:
        return COLUMN
    if PyArray_NDIM(b) > 2:
        return STACK
    if (cnp.PyArray_IS_F_CONTIGUOUS(b) and not cnp.PyArray_IS_C_CONTIGUOUS(b)
            and category_of_num(cnp.PyArray_TYPE(b)) != COMPLEX):
        return TRANSPOSED
    return MATRIX


cdef Tensor multiplied(OpDef op, Tensor a, Tensor b, Tensor out):
    """The product of two tensors that have passed the checks."""
    array = product(a.array, b.array)
    args = KINDS[ROW if a.array.ndim == 1 else kind_of(b.array)]
    if out is None:
        return record2(op, array, a, b, args)
    messages.check_out_type(array, out)
    return write_into(op, out, array, (a, b), args)


# -- checks ------------------------------------------------------------------------------------------------

cdef str misfit(Tensor a, Tensor b):
    """What a user can do about two shapes that can not be multiplied."""
    cdef tuple left = a.array.shape, right = b.array.shape
    k = from_end(left, 1)
    if len(right) == 1:
        return f"\n  factors of shapes {left} and {right}: the last lengths, {k} and {right[0]}, must be equal"
    text = (f"\n  factors of shapes {left} and {right}: the last length of the first, {k}, must equal the second to "
            f"last of the second, {from_end(right, 2)}")
    if k == from_end(right, 1):
        text += f"; they fit with the second transposed: a @ b.{'t()' if len(right) == 2 else 'mT'}"
    elif len(left) > 1 and from_end(left, 2) == from_end(right, 2):
        text += f"; they fit with the first transposed: a.{'t()' if len(left) == 2 else 'mT'} @ b"
    return text


cdef int check_product(tuple left, tuple right, Tensor a, Tensor b) except -1:
    """Do the shapes fit, of the two matrices as which a and b are multiplied?"""
    if left[1] != right[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({left[0]}x{left[1]} and {right[0]}x{right[1]})"
                           + misfit(a, b))
    return 0


cdef int check_matrix_vector(tuple matrix, tuple vector, Tensor a, Tensor b, object size=None) except -1:
    """The same for a matrix and a vector; `size` is the length of what PyTorch adds the product to."""
    if matrix[1] != vector[0]:
        raise RuntimeError(f"size mismatch, got input ({matrix[0] if size is None else size}), "
                           f"mat ({matrix[0]}x{matrix[1]}), vec ({vector[0]})" + misfit(a, b))
    return 0


cdef int check_stacks(Tensor a, Tensor b) except -1:
    """Have both three dimensions?"""
    for stack, name in ((a, "batch1"), (b, "batch2")):
        if (<Tensor>stack).array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor\n  it has shape {(<Tensor>stack).array.shape}; a @ b takes "
                               "any number of dimensions")
    return 0


cdef int check_stack_sizes(Tensor a, Tensor b) except -1:
    expected = a.array.shape[0], a.array.shape[2]
    if b.array.shape[:2] != expected:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: {list(expected)} but got: "
                           f"{list(b.array.shape[:2])}." + misfit(a, b))
    return 0


cdef str type_hint(Tensor a, Tensor b):
    text = f"\n  the dtypes are {a.dtype} and {b.dtype}: convert one, as in b.to(a.dtype)"
    if "float64" in (a.dtype.name, b.dtype.name):
        text += "; NumPy's arrays are float64 unless made otherwise: torch.from_numpy(array).float()"
    return text


cdef int check_matrix_types(Tensor a, Tensor b) except -1:
    if not same_type(a, b):
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {messages.c_word(a)} != "
                           f"{messages.c_word(b)}{type_hint(a, b)}")
    return check_not_bool(a, "addmm_impl_cpu_")


cdef int check_stack_types(Tensor a, Tensor b) except -1:
    if not same_type(a, b):
        raise RuntimeError(f"expected scalar type {a.dtype.type_name} but found {b.dtype.type_name}{type_hint(a, b)}")
    return check_not_bool(a, "baddbmm")


cdef int check_vector_types(Tensor a, Tensor b) except -1:
    if not same_type(a, b):
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {b.dtype.type_name}, "
                           f"{a.dtype.type_name}, and {b.dtype.type_name}{type_hint(a, b)}")
    return check_not_bool(a, "addmv_impl_cpu")


cdef int check_not_bool(Tensor a, str kernel) except -1:
    if category_of_num(a.array.dtype.num) == BOOLEAN:
        raise messages.not_implemented_for(kernel, a.dtype)
    return 0


# -- matrices ----------------------------------------------------------------------------------------------

cdef OpDef MM = op("mm", matmul_rule).row(saves=(IN1, IN0), inputs="self mat2", kernel=matmul_kernel)

cpdef Tensor mm(object input, object mat2, Tensor out=None):
    """The product of two matrices, (n, k) and (k, m), of shape (n, m). Does not broadcast.

    Saves the factor that the other's gradient needs: g @ mat2^T, and input^T @ g.
    Raises RuntimeError for shapes that do not fit and for different dtypes.

    >>> import cygrad
    >>> cygrad.mm(cygrad.tensor([[1.0, 2.0]]), cygrad.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    cdef Tensor a = tensor_argument(MM, input, "input", 1), b = tensor_argument(MM, mat2, "mat2", 2)
    if a.array.ndim != 2 or b.array.ndim != 2:
        raise RuntimeError(f"{'self' if a.array.ndim != 2 else 'mat2'} must be a matrix\n  the shapes are "
                           f"{a.array.shape} and {b.array.shape}; a @ b takes vectors and stacks of matrices as well")
    return mm_tensors(a, b, out)


cdef Tensor mm_tensors(Tensor a, Tensor b, Tensor out):
    check_product(a.array.shape, b.array.shape, a, b)
    check_matrix_types(a, b)
    return multiplied(MM, a, b, out)


cdef OpDef BMM = op("bmm", matmul_rule).row(saves=(IN1, IN0), inputs="self mat2", kernel=matmul_kernel)

cpdef Tensor bmm(object input, object mat2, Tensor out=None):
    """The products of the matrices in two stacks, (b, n, k) and (b, k, m), of shape (b, n, m). Does not broadcast.

    Saves the factor that the other's gradient needs: g @ mat2^T, and input^T @ g.
    Raises RuntimeError for shapes that do not fit and for different dtypes.

    >>> import cygrad
    >>> cygrad.bmm(cygrad.ones(3, 1, 2), cygrad.ones(3, 2, 4)).shape
    torch.Size([3, 1, 4])
    """
    cdef Tensor a = tensor_argument(BMM, input, "input", 1), b = tensor_argument(BMM, mat2, "mat2", 2)
    check_stacks(a, b)
    check_stack_sizes(a, b)
    check_stack_types(a, b)
    return multiplied(BMM, a, b, out)


# -- vectors -----------------------------------------------------------------------------------------------

cdef OpDef MV = op("mv", matmul_rule).row(saves=(IN1, IN0), inputs="self vec", kernel=matmul_kernel)

cpdef Tensor mv(object input, object vec, Tensor out=None):
    """The product of a matrix (n, m) and a vector (m), of shape (n).

    Saves the factor that the other's gradient needs: g times vec^T, and input^T @ g.
    Raises RuntimeError for shapes that do not fit and for different dtypes.

    >>> import cygrad
    >>> cygrad.mv(cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]), cygrad.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    cdef Tensor a = tensor_argument(MV, input, "input", 1), b = tensor_argument(MV, vec, "vec", 2)
    if a.array.ndim != 2 or b.array.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a.array.ndim}, {b.array.ndim}")
    return mv_tensors(a, b, out)


cdef Tensor mv_tensors(Tensor a, Tensor b, Tensor out):
    check_matrix_vector(a.array.shape, b.array.shape, a, b)
    check_vector_types(a, b)
    return multiplied(MV, a, b, out)


cdef object dot_rule(OpNode n, object g):
    return (mul(g, conjugate(n.saved(1))) if n.needs(0) else None,
            mul(g, conjugate(n.saved(0))) if n.needs(1) else None)

cdef OpDef DOT = op("dot", dot_rule).row(saves=(IN1, IN0), inputs="self tensor", kernel=dot_kernel)

cpdef Tensor dot(object input, object tensor, Tensor out=None):
    """The sum of the products of two vectors of one length, a tensor without dimensions.

    Saves the vector that the other's gradient needs: g * tensor, and g * input.
    Raises RuntimeError for other shapes and for different dtypes.

    >>> import cygrad
    >>> cygrad.dot(cygrad.tensor([1.0, 2.0]), cygrad.tensor([3.0, 4.0]))
    tensor(11.)
    """
    cdef Tensor a = tensor_argument(DOT, input, "input", 1), b = tensor_argument(DOT, tensor, "tensor", 2)
    if a.array.ndim != 1 or b.array.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.array.ndim}D and {b.array.ndim}D tensors")
    return dot_tensors(a, b, out)


cdef Tensor dot_tensors(Tensor a, Tensor b, Tensor out):
    cdef Py_ssize_t m = a.array.size, n = b.array.size
    if not same_type(a, b):
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {a.dtype.type_name} and "
                           f"{b.dtype.type_name}{type_hint(a, b)}")
    if m != n:
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{m}] and src [{n}] to have the same number of "
                           f"elements, but got {m} and {n} elements respectively")
    check_not_bool(a, "dot")
    array = kernels.dot(a.array, b.array)
    if out is None:
        return record2(DOT, array, a, b, None)
    messages.check_out_type(array, out)
    return write_into(DOT, out, array, (a, b), None)


def outer(input, vec2, *, out=None):
    """All products of an element of `input` (n) and one of `vec2` (m), of shape (n, m).

    Raises RuntimeError if one is no vector.

    >>> import cygrad
    >>> cygrad.outer(cygrad.tensor([1, 2]), cygrad.tensor([3, 4, 5]))
    tensor([[ 3,  4,  5],
            [ 6,  8, 10]])
    """
    for i, (value, name) in enumerate(((input, "self"), (vec2, "vec2"))):
        if not isinstance(value, Tensor):
            raise messages.wrong_type("outer", ("input", "vec2")[i], i + 1, "Tensor", value)
        if (<Tensor>value).array.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {value.ndim}-D")
    return mul(unsqueeze(input, 1), vec2, out)


def inner(input, other, *, out=None):
    """The sums of products along the last dimension of both, of shape input.shape[:-1] + other.shape[:-1].

    A tensor without dimensions multiplies the other. Raises RuntimeError if the last lengths differ.

    >>> import cygrad
    >>> cygrad.inner(cygrad.tensor([1.0, 2.0]), cygrad.tensor([[3.0, 4.0], [5.0, 6.0]]))
    tensor([11., 17.])
    """
    cdef Tensor a, b
    for i, value in enumerate((input, other)):
        if not isinstance(value, Tensor):
            raise messages.wrong_type("inner", ("input", "other")[i], i + 1, "Tensor", value)
    a, b = input, other
    left, right = a.array.shape, b.array.shape
    if not left or not right:
        return mul(a, b, out)
    if from_end(left, 1) != from_end(right, 1):
        raise RuntimeError("inner() the last dimension must match on both input tensors but got shapes "
                           f"{list(left)} and {list(right)}")
    result = reshaped(mm_tensors(as_matrix(a), t(as_matrix(b)), None), all_but_last(left) + all_but_last(right))
    return result if out is None else out.copy_(result)


# -- matmul ------------------------------------------------------------------------------------------------

# One node whatever the shapes; each row is named as the last of the several that PyTorch makes.
cdef OpDef MATMUL = op("matmul", matmul_rule).row(saves=(IN1, IN0), node="UnsafeViewBackward0", kernel=matmul_kernel)
cdef OpDef VECTOR_MATRIX = variant(MATMUL, "SqueezeBackward4")

cpdef Tensor matmul(object input, object other, Tensor out=None):
    """The matrix product `input @ other`.

    Two vectors give their dot product, a matrix and a vector a vector, two matrices (n, k) and (k, m) a matrix
    (n, m). With more dimensions these are stacks of matrices: the last two are multiplied, the others broadcast. A
    vector as first factor counts as a row, as second as a column, and that dimension does not appear in the result.

    Saves the factor that the other's gradient needs: g @ other^T, and input^T @ g.
    Raises RuntimeError for shapes that do not fit, for tensors without dimensions and for different dtypes.

    >>> import cygrad
    >>> a = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> a @ cygrad.tensor([1.0, 1.0])
    tensor([3., 7.])
    >>> (cygrad.ones(5, 1, 2, 3) @ cygrad.ones(4, 3, 6)).shape
    torch.Size([5, 4, 2, 6])
    """
    cdef Tensor a = tensor_argument(MATMUL, input, "input", 1), b = tensor_argument(MATMUL, other, "other", 2)
    cdef int m = a.array.ndim, n = b.array.ndim
    if m == 2 and n == 2:
        return mm_tensors(a, b, out)
    if m == 2 and n == 1:
        return mv_tensors(a, b, out)
    if m == 1 and n == 1:
        return dot_tensors(a, b, out)
    if m == 0 or n == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D\n"
                           "  a tensor without dimensions multiplies by `*`")
    if m == 1 and n == 2:
        check_product((1, a.array.size), b.array.shape, a, b)
        check_matrix_types(a, b)
        return multiplied(VECTOR_MATRIX, a, b, out)
    check_stacked(a, b)
    return multiplied(MATMUL, a, b, out)


cdef int check_stacked(Tensor a, Tensor b) except -1:
    """Do they fit? One of them has more than two dimensions."""
    cdef tuple left = a.array.shape, right = b.array.shape
    if len(right) == 1:
        check_matrix_vector(fold(left), right, a, b)
        return check_vector_types(a, b)
    if len(right) == 2:
        check_product(fold(left), right, a, b)
        return check_matrix_types(a, b)
    if len(left) <= 2 and requires_grad(a):         # then PyTorch folds the second factor, and its texts say so
        tall = math.prod(all_but_last(right, 2)) * from_end(right, 1), from_end(right, 2)
        if len(left) == 1:
            check_matrix_vector(tall, left, a, b)
            return check_vector_types(b, a)
        if left[1] != tall[1]:
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied "
                               f"({tall[0]}x{tall[1]} and {left[1]}x{left[0]})" + misfit(a, b))
        return check_matrix_types(b, a)
    stack = stacked_shape(left[:max(len(left) - 2, 0)], all_but_last(right, 2))
    if from_end(left, 1) != from_end(right, 2):
        count = math.prod(stack)
        raise RuntimeError("Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{count}, {from_end(left, 1)}] but got: [{count}, {from_end(right, 2)}]." + misfit(a, b))
    return check_stack_types(a, b)


cdef tuple stacked_shape(tuple left, tuple right):
    """The dimensions before the last two of the product."""
    cdef Py_ssize_t i
    for i in range(1, min(len(left), len(right)) + 1):
        m, n = from_end(left, i), from_end(right, i)
        if m != n and m != 1 and n != 1:
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension "
                f"{max(len(left), len(right)) - i}\n  stacks of matrices of shapes {left} and {right} do not broadcast")
    return np.broadcast_shapes(left, right)


cdef object operator_matmul(object a, object b):
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        left, right = operand(a), operand(b)
        if not (isinstance(left, Tensor) and isinstance(right, Tensor)):
            return unsupported_operand("@", a, b)
        a, b = left, right
    return matmul(a, b)


def ger(input, vec2, *, out=None):
    """The old name of `outer`."""
    return outer(input, vec2, out=out)


composite = {"outer": 0, "ger": 0, "inner": 0}
functions = publish(globals())
