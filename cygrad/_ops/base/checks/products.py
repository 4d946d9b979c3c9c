"""Checks of the operands of matrix products, with PyTorch's errors plus a hint at a fix.

Called when a product cannot be computed, and by the families written in Python. Shapes are passed separately where a
tensor is multiplied as if it had another shape.
"""

import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._ops.base.checks.common import explanation as explanation
from cygrad._ops.base.views import expand


def check_factors(op_name, a, b):
    """Raise the error for two factors whose numbers of dimensions the op supports."""
    left, right = tuple(a.shape), tuple(b.shape)
    if op_name == "bmm":
        check_stack_sizes(a, b)
        check_stack_types(a, b)
    elif len(left) == len(right) == 1:
        check_vectors(a, b)
    elif len(left) <= 2 and len(right) == 2:
        check_product((1, *left) if len(left) == 1 else left, right, a, b)
        check_matrix_types(a, b)
    elif len(left) == 2 and len(right) == 1:
        check_matrix_vector(left, right, a, b)
        check_vector_types(a, b)
    else:
        check_stacked(left, right, a, b)


# -- shapes --


def fold(shape):
    """Return the shape of a batch of matrices viewed as one tall matrix."""
    return math.prod(shape[:-1]), shape[-1]


def misfit(a, b):
    """Return a hint on how to fix two shapes that cannot be multiplied."""
    left, right = tuple(a.shape), tuple(b.shape)
    k = left[-1]
    if len(right) == 1:
        return f"\n  factors of shapes {left} and {right}: the last sizes, {k} and {right[0]}, must be equal"
    text = (
        f"\n  factors of shapes {left} and {right}: the last size of the first, {k}, must equal the second to last "
        f"of the second, {right[-2]}"
    )
    if k == right[-1]:
        text += f"; transposing the second makes them fit: a @ b.{'t()' if len(right) == 2 else 'mT'}"
    elif len(left) > 1 and left[-2] == right[-2]:
        text += f"; transposing the first makes them fit: a.{'t()' if len(left) == 2 else 'mT'} @ b"
    return text


def check_product(left, right, a, b):
    """Check the shapes of the two matrices as which a and b are multiplied."""
    if left[1] != right[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({left[0]}x{left[1]} and {right[0]}x{right[1]})" + misfit(a, b)
        )


def check_matrix_vector(matrix, vector, a, b, size=None):
    """Check the shapes of a matrix and a vector; `size` is the length of the vector the product is added to."""
    if matrix[1] != vector[0]:
        raise RuntimeError(
            f"size mismatch, got input ({matrix[0] if size is None else size}), mat ({matrix[0]}x{matrix[1]}), "
            f"vec ({vector[0]})" + misfit(a, b)
        )


def check_stacks(a, b):
    """Check that both have three dimensions."""
    for stack, name in ((a, "batch1"), (b, "batch2")):
        if stack.ndim != 3:
            raise RuntimeError(
                f"{name} must be a 3D tensor\n  it has shape {tuple(stack.shape)}; a @ b takes any number of dimensions"
            )


def check_stack_sizes(a, b):
    """Check the sizes of two batches of matrices, which do not broadcast."""
    (count, _, inner), found = array_of(a).shape, array_of(b).shape[:2]
    if found != (count, inner):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {[count, inner]} but got: {list(found)}."
            + misfit(a, b)
        )


def check_stacked(left, right, a, b):
    """Check the shapes of factors, one of which has more than two dimensions."""
    if len(right) == 1:
        check_matrix_vector(fold(left), right, a, b)
        check_vector_types(a, b)
    elif len(right) == 2:
        check_product(fold(left), right, a, b)
        check_matrix_types(a, b)
    elif len(left) <= 2 and a.requires_grad:  # PyTorch then folds the second factor, and its errors state that shape
        tall = math.prod(right[:-2]) * right[-1], right[-2]
        if len(left) == 1:
            check_matrix_vector(tall, left, a, b)
            check_vector_types(b, a)
        else:
            check_product(tall, left[::-1], a, b)
            check_matrix_types(b, a)
    else:
        stack = stacked_shape(left[:-2], right[:-2])
        if left[-1] != right[-2]:
            count = math.prod(stack)
            raise RuntimeError(
                f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {left[-1]}] but got: "
                f"[{count}, {right[-2]}]." + misfit(a, b)
            )
        check_stack_types(a, b)


def stacked_shape(left, right):
    """Return the batch dimensions of the product."""
    for i in range(1, min(len(left), len(right)) + 1):
        m, n = left[-i], right[-i]
        if m != n and m != 1 and n != 1:
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension "
                f"{max(len(left), len(right)) - i}\n"
                f"  batches of matrices of shapes {left} and {right} do not broadcast"
            )
    return np.broadcast_shapes(left, right)


# -- dtypes --


def type_hint(a, b):
    text = f"\n  the dtypes are {a.dtype} and {b.dtype}: convert one, as in b.to(a.dtype)"
    if "float64" in (a.dtype.name, b.dtype.name):
        text += "; NumPy arrays are float64 by default: torch.from_numpy(array).float()"
    return text


def check_not_bool(a, kernel):
    if a.dtype.name == "bool":
        raise messages.not_implemented_for(kernel, a.dtype)


def check_matrix_types(a, b):
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {messages.c_word(a)} != "
            f"{messages.c_word(b)}{type_hint(a, b)}"
        )
    check_not_bool(a, "addmm_impl_cpu_")


def check_stack_types(a, b):
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {a.dtype.type_name} but found {b.dtype.type_name}{type_hint(a, b)}")
    check_not_bool(a, "baddbmm")


def check_vector_types(a, b):
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {b.dtype.type_name}, {a.dtype.type_name}, and "
            f"{b.dtype.type_name}{type_hint(a, b)}"
        )
    check_not_bool(a, "addmv_impl_cpu")


def check_vectors(a, b):
    """Check the two vectors of a dot product."""
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {a.dtype.type_name} and {b.dtype.type_name}"
            f"{type_hint(a, b)}"
        )
    m, n = len(a), len(b)
    if m != n:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{m}] and src [{n}] to have the same number of elements, "
            f"but got {m} and {n} elements respectively"
        )
    check_not_bool(a, "dot")


# -- sums with a product --


def check_linear(a, w, b):
    """Check the input, weight and bias of `linear`."""
    check_matrix(w, "mat2")
    rows, k = fold(a.shape)
    m, n = w.shape
    if k != n:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {n}x{m})\n"
            f"  linear: input has shape {tuple(a.shape)}, whose last size, {k}, must be {n}, because weight has shape "
            f"{(m, n)}, that is (out_features, in_features)"
        )
    check_sum(b, (rows, m), a, w)


def check_matrix(a, name):
    if a.ndim != 2:
        raise RuntimeError(f"{name} must be a matrix, got {a.ndim}-D tensor")


def check_sum(base, shape, a, b):
    """Check that the dtypes match, and that `base` broadcasts to the shape of the product of a and b."""
    if base.dtype is not b.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {base.dtype.type_name} and "
            f"{b.dtype.type_name}{type_hint(base, b)}"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {a.dtype.type_name} and "
            f"{b.dtype.type_name}{type_hint(a, b)}"
        )
    check_not_bool(a, "addmm_impl_cpu_")
    if tuple(base.shape) != shape:
        expand(base, shape)
