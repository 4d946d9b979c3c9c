"""Matrix exponentials of batches.

Scaling and squaring with Pade approximants: N. J. Higham, "The scaling and squaring method for the matrix exponential
revisited" (2005). THETA holds the 1-norm up to which the approximant of each degree is exact to rounding.
"""

import math

import numpy as np

from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.device.cupy_library import module_of
from cygrad._kernels.device.dispatch import dispatching

THETA = {
    "d": {
        3: 1.495585217958292e-2,
        5: 2.539398330063230e-1,
        7: 9.504178996162932e-1,
        9: 2.097847961257068,
        13: 5.371920351148152,
    },
    "f": {3: 4.258730016922831e-1, 5: 1.880152677804762, 7: 3.925724783138660},
}


@over_stacks(2)
def matrix_exp(a):
    """e^A, in C order; NaN for matrices that contain NaN or inf."""
    if not a.size:
        return a.copy()
    if a.dtype.char not in "fdFD":
        return matrix_exp(a.astype(np.float32)).astype(a.dtype)
    stack = a.reshape(-1, *a.shape[-2:])
    finite = np.isfinite(stack).all((-2, -1))
    result = np.full_like(stack, np.nan, order="C")
    with np.errstate(all="ignore"):
        result[finite] = exponentials(stack[finite])
    return result.reshape(a.shape)


def exponentials(stack):
    """`matrix_exp` of finite matrices; the batch may be empty."""
    if not len(stack):
        return stack
    norms = np.abs(stack).sum(-2).max(-1)
    theta = THETA["f" if stack.dtype.char in "fF" else "d"]
    degree = next((m for m in theta if norms.max() <= theta[m]), max(theta))
    squarings = np.zeros(len(stack), int)
    large = norms > theta[degree]
    squarings[large] = np.ceil(np.log2(norms[large] / theta[degree]))
    result = pade(stack * np.ldexp(1.0, -squarings).astype(norms.dtype)[:, None, None], degree)
    for i in range(int(squarings.max())):
        more = squarings > i
        result[more] = result[more] @ result[more]
    return result


def pade(a, m):
    """The quotient p(A) / p(-A), where p has the coefficients (2m - j)! m! / ((2m)! j! (m - j)!)."""
    whole = math.factorial(2 * m) // math.factorial(m)
    c = [math.factorial(2 * m - j) / (whole * math.factorial(j) * math.factorial(m - j)) for j in range(m + 1)]
    one = module_of(a).eye(a.shape[-1], dtype=a.dtype)
    square = a @ a
    power, even, odd = square, c[0] * one + c[2] * square, c[1] * one + c[3] * square
    for j in range(4, m, 2):
        power = power @ square
        even += c[j] * power
        odd += c[j + 1] * power
    del power, square
    odd = a @ odd
    even += odd  # their sum
    odd *= -2
    odd += even
    return np.linalg.solve(odd, even).astype(a.dtype, copy=False)


dispatching(globals(), "matrix_exp")
