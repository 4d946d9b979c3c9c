"""Products with an added operand: `addmm` and its relatives. `linear` is in products.pyx.

Each op is one node. `beta` scales the added operand and `alpha` the product. If `beta` is 0, the first operand is
ignored, whatever its values (including NaN).
"""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import IN1, IN2, INPLACE, declare, facts, publish
from cygrad._core.graph.record import record_n, result_type, write_into
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.dispatch import unseen
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.chunks import SIZE
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.base.half_sums import in_float32, is_half, sum_type
from cygrad._kernels.cpu.base.matmul import addmm as sum_with_product
from cygrad._kernels.cpu.base.matmul import matmul
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.device.cupy_library import as_array, gpu_class
from cygrad._kernels.tape.calls import called
from cygrad._ops.base.arguments import wrap_dim
from cygrad._ops.base.arithmetic import mul
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.batching.sums_and_products import product
from cygrad._ops.base.checks.common import require_tensors, write_converted
from cygrad._ops.base.checks.products import (
    check_matrix,
    check_matrix_vector,
    check_not_bool,
    check_product,
    check_stack_sizes,
    check_stack_types,
    check_stacks,
    check_sum,
)
from cygrad._ops.base.pointwise import conjugate
from cygrad._ops.base.products import matmul as matmul_of
from cygrad._ops.base.products import times
from cygrad._ops.base.views import expand, squeeze, transpose, unsqueeze

# -- addmm, addmv, baddbmm --


def broadcast_to(t, size):
    """Return `t` expanded to `size`, seen by nobody; raises if that is impossible."""
    with unseen():
        return expand(t, size)


def scaled_sum(base, product, beta, alpha):
    """Return beta * base + alpha * product; the result may reuse the memory of `product`."""
    if product.size > chunks.SIZE:
        return chunks.in_blocks(lambda base, product: _scaled_sum(base, product, beta, alpha), (base, product), product)
    return _scaled_sum(base, product, beta, alpha)


@silent
def _scaled_sum(base, product, beta, alpha):
    if alpha != 1:
        product = as_array(product * as_array(alpha).astype(product.dtype)[()])
    if beta == 0:
        return product
    if beta != 1:
        base = as_array(base * as_array(beta).astype(base.dtype)[()])
    return as_array(base + product)


def add_product_array(base, a, b, beta, alpha):
    """Return beta * base + alpha * (a @ b) for matrices, a matrix and a vector, or stacks of matrices."""
    if beta == 1 and alpha == 1 and b.ndim <= 2:
        return sum_with_product(base, a, b)
    if type(base) is gpu_class() and _is_for_cublas(base, a, b, beta, alpha):
        beta, alpha = (f.real if isinstance(f, complex) and not f.imag else f for f in (beta, alpha))
        return sum_with_product(base, a, b, beta, alpha)
    if is_half(base):
        return in_float32(add_product_array, base, a, b, beta, alpha)
    return scaled_sum(base, matmul(a, b), beta, alpha)


def _is_for_cublas(base, a, b, beta, alpha):
    """Whether cuBLAS multiplies by the factors, too, and adds: in half precision it rounds once."""
    dtype = base.dtype
    of_one_type = dtype == a.dtype == b.dtype and (dtype.char in "fdFD" or sum_type(dtype) != dtype)
    return of_one_type and a.size and b.size and not isinstance(beta, Tensor) and not isinstance(alpha, Tensor)


def scaled(g, factor):
    return g if factor == 1 else mul(g, factor.conjugate())


def add_product_rule(n, g):
    beta, alpha = n.args
    return (
        scaled(g, beta),
        scaled(times(g, n.saved(2), False, True), alpha) if n.needs(1) else None,
        scaled(times(n.saved(1), g, True, False), alpha) if n.needs(2) else None,
    )


def addmv_rule(n, g):
    beta, alpha = n.args
    column = unsqueeze(g, 1)
    return (
        scaled(g, beta),
        scaled(times(column, unsqueeze(n.saved(2), 1), False, True), alpha) if n.needs(1) else None,
        scaled(squeeze(times(n.saved(1), column, True, False), 1), alpha) if n.needs(2) else None,
    )


FACTORS = (int, float, complex, np.number, Tensor)


def added(op, inputs, beta, alpha, out):
    """Compute and record the op on operands that have passed the checks."""
    args = beta, alpha
    for value in args:
        if not isinstance(value, FACTORS) or isinstance(value, Tensor) and (value.ndim or value.requires_grad):
            raise messages.fits_none(op.name)
        if isinstance(value, complex) and value.imag and not any(t.is_complex() for t in inputs):
            raise RuntimeError(f"value cannot be converted to type {messages.c_word(inputs[0])} without overflow")
    array = called(op.kernel, *map(array_of, inputs), *args)
    if out is None:
        return record_n(op, array, inputs, args)
    if out is inputs[0] and out.shape != array.shape:
        raise RuntimeError(
            f"Bad in-place call: input tensor size {list(out.shape)} and output tensor size {list(array.shape)} "
            "should match"
        )
    return write_into(op, out, array, inputs, args)


# PyTorch's former orders of arguments: factors (n) among the tensors (t) before those that are multiplied; their names
FACTORS_FIRST = "nt ntn tn tnn", "beta alpha"


def row(name, rule, inputs, kernel=add_product_array, **more):
    return declare(
        name,
        rule,
        saves=(0, IN2, IN1),
        flags=INPLACE,
        kernel=kernel,
        inputs=inputs,
        attributes="beta alpha",
        **more,
    )


ADDMM = row("addmm", add_product_rule, "self mat1 mat2")


@facts(
    devices="together",
    autocast="lower",
    autocast_gpu="lower",
    out_dtype="same",
    overloads="37",
    arguments_first=("mat1 mat2", *FACTORS_FIRST),
)
def addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """`beta * input + alpha * (mat1 @ mat2)` for matrices (n, k) and (k, m); `input` broadcasts to (n, m).

    Saves each matrix for the other's gradient. Gradients: beta * g, alpha * g @ mat2^T, alpha * mat1^T @ g.
    Raises RuntimeError for incompatible shapes and for different dtypes.

    >>> import cygrad
    >>> cygrad.addmm(cygrad.ones(2, 2), cygrad.eye(2), cygrad.eye(2), alpha=3)
    tensor([[4., 1.],
            [1., 4.]])
    """
    require_tensors(ADDMM, input, mat1, mat2, names=("input", "mat1", "mat2"))
    check_matrix(mat1, "mat1")
    check_matrix(mat2, "mat2")
    check_product(mat1.shape, mat2.shape, mat1, mat2)
    check_sum(input, (mat1.shape[0], mat2.shape[1]), mat1, mat2)
    return added(ADDMM, (input, mat1, mat2), beta, alpha, out)


ADDMV = row("addmv", addmv_rule, "self mat vec", float8="addmv_impl_cpu")


@facts(
    devices="together",
    autocast_gpu="lower",
    out_dtype="same",
    arguments_first=("mat vec", *FACTORS_FIRST),
)
def addmv(input, mat, vec, *, beta=1, alpha=1, out=None):
    """`beta * input + alpha * (mat @ vec)` for a matrix (n, m) and a vector (m); `input` broadcasts to (n).

    Saves each factor for the other's gradient. Gradients: beta * g, alpha * g times vec^T, alpha * mat^T @ g.
    Raises RuntimeError for incompatible shapes and for different dtypes.

    >>> import cygrad
    >>> cygrad.addmv(cygrad.ones(2), cygrad.eye(2), cygrad.tensor([1.0, 2.0]))
    tensor([2., 3.])
    """
    require_tensors(ADDMV, input, mat, vec, names=("input", "mat", "vec"))
    base, a, b = array_of(input), array_of(mat), array_of(vec)
    if base.ndim > 1 or a.ndim != 2 or b.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {base.ndim}, {a.ndim}, {b.ndim}")
    size, (m, k) = base.size, a.shape
    check_matrix_vector(a.shape, b.shape, mat, vec, size)
    if size not in (1, m):
        raise RuntimeError(
            f"size mismatch, got input ({size}), mat ({m}x{k}), vec ({len(b)})\n  the result has {m} elements, to "
            f"which an input of size {size} cannot be added"
        )
    if not input.dtype is mat.dtype is vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {input.dtype.type_name}, {mat.dtype.type_name}, "
            f"and {vec.dtype.type_name}"
        )
    check_not_bool(mat, "addmv_impl_cpu")
    return added(ADDMV, (input, mat, vec), beta, alpha, out)


BADDBMM = row("baddbmm", add_product_rule, "self batch1 batch2", float8="baddbmm")


@facts(
    devices="together",
    autocast="lower",
    autocast_gpu="lower",
    out_dtype="same",
    overloads="37",
    arguments_first=("batch1 batch2", *FACTORS_FIRST),
)
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """`beta * input + alpha * (batch1 @ batch2)` for stacks (b, n, k) and (b, k, m); `input` broadcasts to (b, n, m).

    Saves each stack for the other's gradient. Gradients: beta * g, alpha * g @ batch2^T, alpha * batch1^T @ g.
    Raises RuntimeError for incompatible shapes and for different dtypes.

    >>> import cygrad
    >>> cygrad.baddbmm(cygrad.ones(1, 1, 1), cygrad.ones(1, 1, 2), cygrad.ones(1, 2, 1), beta=0.5)
    tensor([[[2.5000]]])
    """
    require_tensors(BADDBMM, input, batch1, batch2, names=("input", "batch1", "batch2"))
    check_stacks(batch1, batch2)
    wanted = (*array_of(batch1).shape[:2], array_of(batch2).shape[2])
    if array_of(input).shape != wanted:
        broadcast_to(input, wanted)  # raises if that is impossible
    check_stack_sizes(batch1, batch2)
    if input.dtype is not batch1.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {messages.c_word(input)}, batch1: {messages.c_word(batch1)}, "
            f"batch2: {messages.c_word(batch2)}"
        )
    check_stack_types(batch1, batch2)
    return added(BADDBMM, (input, batch1, batch2), beta, alpha, out)


def add_stack_array(base, a, b, beta, alpha):
    """Return beta * base + alpha * the sum of all products a[i] @ b[i]."""
    if is_half(base):
        return in_float32(add_stack_array, base, a, b, beta, alpha)
    step = max(1, SIZE // max(a.shape[1] * b.shape[2], 1))  # number of products summed at once
    kind = sum_type(a.dtype)
    total = matmul(a[:step], b[:step]).sum(0, dtype=kind)
    for start in range(step, len(a), step):
        total += matmul(a[start : start + step], b[start : start + step]).sum(0, dtype=kind)
    return scaled_sum(base, in_dtype(total, a.dtype), beta, alpha)


ADDBMM = row(
    "addbmm",
    add_product_rule,
    "self batch1 batch2",
    add_stack_array,
    derived={"batch1_sym_argsize_0": ..., "batch1_sym_argsize_1": ..., "batch2_sym_argsize_2": ...},
)


@facts(
    devices="together",
    autocast="lower",
    autocast_gpu="lower",
    out_dtype="self and mat2 must have the same dtype, but got {out} and {result}",
    arguments_first=("batch1 batch2", *FACTORS_FIRST),
)
def addbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """`beta * input + alpha * (batch1 @ batch2).sum(0)` for stacks (b, n, k) and (b, k, m).

    `input` broadcasts to (n, m). Saves each stack for the other's gradient. Gradients: beta * g, alpha * g @ batch2^T,
    alpha * batch1^T @ g. Raises RuntimeError for incompatible shapes and for different dtypes.

    >>> import cygrad
    >>> cygrad.addbmm(cygrad.ones(1, 1), cygrad.ones(3, 1, 2), cygrad.ones(3, 2, 1))
    tensor([[7.]])
    """
    require_tensors(ADDBMM, input, batch1, batch2, names=("input", "batch1", "batch2"))
    rows, columns = (t.shape[wrap_dim(i, t.ndim)] for i, t in ((1, batch1), (2, batch2)))
    broadcast_to(input, (rows, columns))
    check_stacks(batch1, batch2)
    if len(batch1) != len(batch2):
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {len(batch1)} and {len(batch2)}")
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({rows}x{batch1.shape[2]} and {batch2.shape[1]}x{columns})"
        )
    check_sum(input, (rows, columns), batch1, batch2)
    return added(ADDBMM, (input, batch1, batch2), beta, alpha, out)


@silent
def addr_array(base, a, b, beta, alpha):
    """Return beta * base + alpha * the outer product of two vectors."""
    if base.dtype == bool:
        product = np.logical_and(a[:, None], b) & bool(alpha)
        return (base & bool(beta)) | product
    return scaled_sum(base, a[:, None] * b, beta, alpha)


def addr_rule(n, g):
    beta, alpha = n.args
    return (
        scaled(g, beta),
        scaled(matmul_of(g, conjugate(n.saved(2))), alpha) if n.needs(1) else None,
        scaled(matmul_of(transpose(g, 0, 1), conjugate(n.saved(1))), alpha) if n.needs(2) else None,
    )


ADDR = row("addr", addr_rule, "self vec1 vec2", addr_array, float8="addr_cpu")


@facts(devices="together", autocast_gpu="lower", arguments_first=("vec1 vec2", *FACTORS_FIRST))
def addr(input, vec1, vec2, *, beta=1, alpha=1, out=None):
    """`beta * input + alpha * outer(vec1, vec2)` for vectors (n) and (m); `input` broadcasts to (n, m).

    Saves each vector for the other's gradient. Gradients: beta * g, alpha * g @ vec2, alpha * g^T @ vec1. Raises
    RuntimeError for incompatible shapes, and for non-integer `beta` or `alpha` with integer tensors.

    >>> import cygrad
    >>> cygrad.addr(cygrad.ones(2, 2), cygrad.tensor([1.0, 2.0]), cygrad.tensor([3.0, 4.0]))
    tensor([[4., 5.],
            [7., 9.]])
    """
    require_tensors(ADDR, input, vec1, vec2, names=("input", "vec1", "vec2"))
    for t, name in ((vec1, "vec1"), (vec2, "vec2")):
        if t.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {t.ndim}-D")
    if out is input and tuple(input.shape) != (len(vec1), len(vec2)):
        raise RuntimeError(f"size mismatch, input: {list(input.shape)}, v1: {list(vec1.shape)}, v2: {list(vec2.shape)}")
    base = broadcast_to(input, (len(vec1), len(vec2)))
    if not any(t.is_floating_point() or t.is_complex() for t in (input, vec1, vec2)):
        for value, name in ((beta, "beta"), (alpha, "alpha")):
            if isinstance(value, (float, complex)):
                raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    kind = result_type((base, vec1, vec2))  # here `input` counts as a matrix, whatever its shape
    for value, name in ((beta, "beta"), (alpha, "alpha")):
        if type(value) is bool and kind.name != "bool":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    with unseen():
        operands = tuple(t if t.dtype is kind else t.to(kind) for t in (input, vec1, vec2))
    if out is input is not operands[0]:
        return write_converted(out, added(ADDR, operands, beta, alpha, None))
    return added(ADDR, operands, beta, alpha, out)


# -- batching rules --


@rule("addmm baddbmm")
def _add_matrices(call):
    return _add_product(call, product(call, *call.inputs[1:]))


@rule("addmv")
def _add_vector(call):
    return _add_product(call, product(call, *call.inputs[1:]).flatten(1))


@rule("addbmm")
def _add_sum(call):
    return _add_product(call, product(call, *call.inputs[1:]).sum(1))


@rule("addr")
def _add_outer(call):
    _, a, b = call.inputs
    return _add_product(call, call.near(a).unsqueeze(2) * call.near(b).unsqueeze(1))


def _add_product(call, found):
    beta, alpha = call.args
    found = found if alpha == 1 else found * alpha
    if beta == 0:
        return call.shaped(found.expand(call.size, *found.shape[1:]), call.out.shape)
    return (call.aligned(call.inputs[0], call.out.ndim) * beta + found).to(call.out.dtype)


functions = publish(globals())
