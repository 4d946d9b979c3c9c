"""Powers and exponentials of square matrices, and products of several matrices."""

from functools import lru_cache

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, IN0, declare, facts, publish
from cygrad._core.graph.record import apply_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.memory_format import contiguous_format
from cygrad._kernels.cpu.linalg.matrix_exponential import matrix_exp as matrix_exp_array
from cygrad._ops.base.arguments import integer, require, tensor_list
from cygrad._ops.base.batching.rules import leading
from cygrad._ops.base.products import matmul, mm
from cygrad._ops.base.slicing import cat
from cygrad._ops.base.views import reshape, unsqueeze
from cygrad._ops.common.blocked_composites import in_steps
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.common.out_argument import given
from cygrad._ops.creation.ranges import eye
from cygrad._ops.linalg.common import LINALG, check_inexact, check_square
from cygrad._ops.linalg.solve import linalg_inv

# -- powers, exponentials --


def _by_rows(t):
    return t.clone(memory_format=contiguous_format)


@facts(out_castable="{title} result")
def matrix_power(input, n, *, out=None):
    """Raise square matrices (..., m, m) to the integer power `n`; for n < 0, raise the inverse to the power -n.

    A^n is A @ A @ ... @ A with n factors, and the identity for n = 0.

    >>> import cygrad
    >>> cygrad.matrix_power(cygrad.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    t = require(input, "matrix_power")
    n = integer(n, "matrix_power", "n", 2)
    if t.dim() < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if t.shape[-1] != t.shape[-2]:
        raise RuntimeError(
            "linalg.matrix_power: A must be batches of square matrices, "
            f"but they are {t.shape[-2]} by {t.shape[-1]} matrices"
        )
    if n < 0:
        t, n = linalg_inv(t), -n
    if n == 0:
        result = _by_rows(t).copy_(eye(t.shape[-1], dtype=t.dtype, device=t.device))  # its gradient is zero
    else:
        result = _power(t, n) if n > 1 else _by_rows(t) if t is input else t
    return given("matrix_power", result, out, input)


@in_steps(2, last=2, node="UnsafeViewBackward0")
def _power(t, n):
    result = None
    while n:
        if n & 1:
            result = t if result is None else matmul(result, t)
        n >>= 1
        if n:
            t = matmul(t, t)
    return result


@in_parts(smaller=4)
def exp_rule(n, g):
    """The derivative at A^H in the direction g: the upper right block of e^[[A^H, g], [0, A^H]]."""
    a = adjoint(n.saved(0))
    size = a.shape[-1]
    zeros = a.new_zeros(a.shape)
    both = cat((cat((a, g), -1), cat((zeros, a), -1)), -2)
    return linalg_matrix_exp(both)[..., :size, size:]


EXP = declare(
    "linalg_matrix_exp", exp_rule, saves=IN0, flags=LINALG, kernel=matrix_exp_array, inputs="self", batching=leading
)


def linalg_matrix_exp(A):
    """Compute e^A for square matrices A of shape (..., n, n), by scaling and squaring (Higham 2005).

    e^A is the sum of A^k / k! over k >= 0.

    Saves A. Gradient: the derivative of the exponential at A^H in the direction g, which is a block of the exponential
    of a matrix of twice the size: A. H. Al-Mohy, N. J. Higham, "Computing the Frechet derivative of the matrix
    exponential, with an application to condition number estimation" (2009).

    >>> import cygrad
    >>> cygrad.linalg.matrix_exp(cygrad.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    t = require(A, "linalg_matrix_exp")
    check_square(t, "linalg.matrix_exp")
    check_inexact(t, "linalg.matrix_exp")
    return apply_n(EXP, (t,))


def matrix_exp(input):
    """Compute e^A for square matrices; see `linalg.matrix_exp`.

    >>> import cygrad
    >>> cygrad.matrix_exp(cygrad.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return linalg_matrix_exp(require(input, "matrix_exp"))


# -- products of several --


@facts(autocast_gpu="lower", out_dtype="chain", in_python=True)
def chain_matmul(*matrices, out=None):
    """Multiply several matrices in the order that needs the fewest scalar multiplications.

    The result is A1 @ A2 @ ... @ An.

    >>> import cygrad
    >>> cygrad.chain_matmul(cygrad.ones(2, 3), cygrad.ones(3, 4), cygrad.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
    for i, matrix in enumerate(matrices):
        if require(matrix, "chain_matmul", "matrices", i + 1).ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if len(matrices) == 1:
        return given("clone", matrices[0].clone(), out, *matrices)
    product = in_best_order(list(matrices))
    return given("chain_matmul", product, out, *matrices)


def in_best_order(matrices):
    """Multiply a chain in the cheapest order (Cormen et al., Introduction to Algorithms, 15.2)."""
    place = splits((array_of(matrices[0]).shape[0], *[array_of(m).shape[1] for m in matrices]))

    def product(i, j):
        return matrices[i] if i == j else mm(product(i, place[i, j]), product(place[i, j] + 1, j))

    return product(0, len(matrices) - 1)


@lru_cache(256)
def splits(sizes):
    """Return {(i, j): k}, where to split the product of matrices i to j, given the sizes along the chain."""
    n = len(sizes) - 1
    cost, place = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], place[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return place


@facts(autocast_gpu="lower", out_dtype="chain")
def linalg_multi_dot(tensors, *, out=None):
    """Multiply two or more matrices in the order that needs the fewest scalar multiplications.

    The result is A1 @ A2 @ ... @ An.

    The first may be a vector, treated as a row, and the last, treated as a column. Raises RuntimeError for mismatched
    shapes and for different dtypes.

    >>> import cygrad
    >>> cygrad.linalg.multi_dot([cygrad.ones(2), cygrad.ones(2, 3), cygrad.ones(3)])
    tensor(6.)
    """
    given_tensors = factors(tensors)
    first, last = given_tensors[0], given_tensors[-1]
    matrices = list(given_tensors)
    if first.dim() == 1:
        matrices[0] = unsqueeze(first, 0)
    if last.dim() == 1:
        matrices[-1] = unsqueeze(last, 1)
    shape = tuple(first.shape[:-1]) + tuple(last.shape[1:])
    if isinstance(out, Tensor) and out.dtype is not first.dtype:
        raise RuntimeError(
            f"multi_dot(): expected out tensor to have dtype {messages.c_word(first)} but got {messages.c_word(out)}"
        )
    return given("linalg_multi_dot", reshape(in_best_order(matrices), shape), out, *given_tensors)


def factors(tensors):
    """Check the shapes and dtypes of the tensors and return them."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(
            "linalg_multi_dot(): argument 'tensors' (position 1) must be tuple of Tensors, "
            f"not {messages.type_name(tensors)}"
        )
    tensors = tensor_list(tensors, "linalg_multi_dot")
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for place, t in (("first", tensors[0]), ("last", tensors[-1])):
        if t.dim() not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {place} tensor must be 1D or 2D but got {t.dim()}D")
    for i, t in enumerate(tensors[1:-1], 1):
        if t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.dim()}D")
    for i, t in enumerate(tensors[1:], 1):
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{messages.c_word(tensors[0])} and tensor {i} {messages.c_word(t)}"
            )
    for i, (a, b) in enumerate(zip(tensors, tensors[1:])):
        if a.shape[-1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be "
                "multiplied"
            )
    return tensors


composite = {
    "matrix_power": 0,
    "matrix_exp": 0,
    "chain_matmul": FUNCTION_ONLY,
    "linalg_multi_dot": LINALG,
}
functions = publish(globals())
