"""Shared by the linear algebra modules: argument checks with PyTorch's errors, adjoints, and multi-tensor results."""

import numpy as np

from cygrad._core.engine.blocked_gradients import reused
from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_recorded
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, METHOD_ONLY, registry
from cygrad._core.graph.record import record_n, record_outputs
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base import matmul as blas
from cygrad._kernels.device.cupy_library import is_meta
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import type_name
from cygrad._ops.base.checks.creation import out_requires_grad
from cygrad._ops.base.products import matmul
from cygrad._ops.base.slicing import cat
from cygrad._ops.base.views import unsqueeze
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.common.out_argument import given, unrecorded, write_several

LINALG = FUNCTION_ONLY | METHOD_ONLY  # neither in cygrad nor a method: found in cygrad.linalg


class _LinAlgError(RuntimeError):
    """Raised for a matrix that is not invertible or positive-definite, where a function requires it.

    >>> import cygrad
    >>> cygrad.linalg.inv(cygrad.zeros(2, 2))
    Traceback (most recent call last):
        ...
    cygrad._C._LinAlgError: linalg.inv: The diagonal element 1 is zero, the inversion could not ...
    """

    __module__ = "cygrad._C"


LinAlgError = _LinAlgError


# -- checks --


def check_matrices(t, shown, name="A"):
    """Require at least two dimensions; `shown` is the function's name in error messages."""
    if t.dim() < 2:
        raise RuntimeError(f"{shown}: The input tensor {name} must have at least 2 dimensions.")


def check_square(t, shown, name="A"):
    """Require square matrices."""
    check_matrices(t, shown, name)
    check_lengths(t, f"{shown}: ", name)


def check_lengths(t, before="", name="A"):
    """Require that the last two dimensions have equal length."""
    shape = array_of(t).shape
    if shape[-1] != shape[-2]:
        raise RuntimeError(
            f"{before}{name} must be batches of square matrices, but they are {t.shape[-2]} by {t.shape[-1]} matrices"
        )


def check_inexact(t, shown):
    """Require a floating-point or complex dtype."""
    if not (t.dtype.is_floating_point or t.dtype.is_complex):
        raise RuntimeError(f"{shown}: Expected a floating point or complex tensor as input. Got {t.dtype.type_name}")


def check_precision(t, shown):
    """Require a floating-point or complex dtype of at least single precision."""
    check_inexact(t, shown)
    if array_of(t).dtype.char not in "fdFD":
        raise RuntimeError(f"{shown}: Low precision dtypes not supported. Got {t.dtype.type_name}")


def check_kernel(t, kernel):
    """Require one of the four dtypes that LAPACK supports."""
    if array_of(t).dtype.char not in "fdFD":
        raise messages.not_implemented_for(kernel, t.dtype)


def check_same_dtype(a, b, shown, names):
    if a.dtype is not b.dtype:
        first, second = names
        raise RuntimeError(
            f"{shown}: Expected {first} and {second} to have the same dtype, but found {first} of type "
            f"{a.dtype.type_name} and {second} of type {b.dtype.type_name} instead"
        )


def check_equation(a, b, shown, left):
    """Require that the matrices B can be the right-hand side of a system with the matrices A."""
    if b.size(-2 if left else -1) != a.size(-1):
        raise RuntimeError(
            f"{shown}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )


def check_old_system(b, a, shown):
    """Like `check_equation`, with the errors of the older functions, which are called as f(B, A)."""
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {b.dtype.type_name} and A of type "
            f"{a.dtype.type_name} instead."
        )
    check_lengths(a)
    if a.size(-1) != b.size(-2):
        raise RuntimeError(
            f"Incompatible matrix sizes for {shown}: each A matrix is {a.shape[-1]} by {a.shape[-1]} "
            f"but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )


def batch_element(number, ndim):
    """Return the prefix by which errors identify a matrix of a batch."""
    return f"(Batch element {number}): " if ndim > 2 else ""


@noted
def first_failure(info):
    """Return (index of the first matrix whose info is not 0, that info), or None."""
    if is_meta(info) or not (info.item() if info.size == 1 else np.count_nonzero(info)):
        return None
    bad = info.reshape(-1).nonzero()[0]
    return (int(bad[0]), int(info.reshape(-1)[bad[0]])) if bad.size else None


# -- expressions --


def times_adjoint(a, b):
    """Compute `a @ adjoint(b)`."""
    if not _are_long(a, b):
        return matmul(a, adjoint(b))
    return tensor_of(_times_adjoint(array_of(a), array_of(b)))


def adjoint_times(a, b):
    """Compute `adjoint(a) @ b`."""
    if not _are_long(b, a):
        return matmul(adjoint(a), b)
    return tensor_of(_times_adjoint(array_of(b).T, array_of(a).T).T)


def _are_long(a, b):
    """Whether to multiply chunk by chunk, without a full copy of conj(b): large b, in an unrecorded backward pass."""
    return b.is_complex() and reused(b) is not None and a.ndim == b.ndim == 2 and isinstance(array_of(b), np.ndarray)


def _times_adjoint(a, b):
    step = max(1, b.shape[1] * chunks.SIZE // b.size)
    parts = (slice(start, start + step) for start in range(0, b.shape[1], step))
    return sum(blas.matmul(a[:, part], np.conjugate(b[:, part]).T) for part in parts)


def as_matrix(t):
    """Reshape scalars to 1x1 matrices."""
    return unsqueeze(unsqueeze(t, -1), -1)


def lengthened(t, length, dim):
    """Pad with zeros at the end of `dim` (negative) up to this length."""
    missing = length - t.shape[dim]
    if not missing:
        return t
    shape = list(t.shape)
    shape[dim] = missing
    return cat((t, tensor_of(np.zeros(shape, array_of(t).dtype, like=array_of(t)))), dim)


# -- results --


def delivered(name, array, out, t):
    """Return an array as the result, or write it to `out`. Not recorded, so t must not require grad."""
    if is_recorded(t):
        raise out_requires_grad(name)
    return given(name, tensor_of(array), out, t)


def several(op, kind, arrays, inputs, args, out=None, differentiable=None):
    """Record an op with several results, as the named tuple `kind`; the first `differentiable` have gradients."""
    n = len(arrays) if differentiable is None else differentiable
    if out is None:
        return kind(record_outputs(op, arrays, inputs, args, n))
    check_outs(op.name, out, len(arrays))
    return kind(write_several(op, out, arrays, inputs, args))


def check_outs(name, out, n):
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"{name}(): argument 'out' must be tuple of Tensors, not {type_name(out)}")
    if len(out) != n:
        raise TypeError(f"expected tuple of {n} elements but got {len(out)}")
    for i, one in enumerate(out):
        if not isinstance(one, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 'out', but got {type_name(one)}")


def constant(name, array, *inputs, args=None, hint=None):
    """Return a result without a gradient."""
    return record_n(unrecorded(name), array, inputs, args, hint)


# -- batching rules of several ops --


def decomposition(call):
    """Call the entry point with the arguments that are noted under their names in the row."""
    named = dict(zip(call.op.attributes, call.args, strict=True))
    found = registry[call.key].entry(call.full(call.inputs[0]), **named)
    if isinstance(found, Tensor):
        return found
    pairs = zip(found, call.outs, strict=False)
    return [part if out.numel() else part.new_zeros((call.size, *out.shape)) for part, out in pairs]


def of_factors(call):
    """Call the entry point, all of whose tensors have samples."""
    return registry[call.key].entry(*[call.full(x) for x in call.inputs], *call.args)


def aligned_factors(call):
    """Return factors, pivots and right-hand sides whose batch dimensions broadcast; the first two share theirs."""
    factors, pivots, b = call.inputs
    ndim = max(factors.ndim, b.ndim)
    if call.has(factors) or call.has(pivots):
        shape = (*(1,) * (ndim - factors.ndim), *factors.shape)
        factors, pivots = call.shaped(call.full(factors), shape), call.shaped(call.full(pivots), shape[:-1])
    return factors, pivots, call.aligned(b, ndim)
