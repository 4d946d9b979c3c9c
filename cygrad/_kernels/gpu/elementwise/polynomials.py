"""Orthogonal polynomials on GPUs, evaluated per element by recurrence; see `cpu/elementwise/polynomials.py`."""

from functools import cache

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, is_array
from cygrad._kernels.gpu.launch.elementwise_program import elementwise


@cache
def _kernel(family, order):
    (start, slope), (*numbers, divides) = family
    over = " / W(m + 1)" if divides else ""
    a, b, c = (f"W({numbers[i]} + {numbers[i + 1]} * m){over}" for i in (0, 2, 4))
    return elementwise(
        f"polynomial_{order}",
        "T argument, int64 degree",
        "T out",
        f"""const int K = {order};
        W x = argument, former[K + 1], latest[K + 1];
        for (int k = 0; k <= K; k++) former[k] = latest[k] = W(0);
        former[0] = W(1);
        latest[0] = W({slope}) * x + W({start});
        if (K > 0) latest[K > 0] = W({slope});
        for (long long m = 1; m < degree; m++) {{
            const W a = {a}, b = {b}, c = {c};
            for (int k = K; k >= 0; k--) {{
                W next = (a + b * x) * latest[k] - c * former[k];
                if (k > 0) next += W(k) * b * latest[k - (k > 0)];
                former[k] = latest[k];
                latest[k] = next;
            }}
        }}
        out = degree < 0 ? T(W(0)) : degree == 0 ? T(W(K == 0)) : T(latest[K]);""",
    )


def polynomial(x, degree, family, order=0):
    """Return the `order`-th derivatives of the polynomials of these degrees; 0 for a negative degree."""
    if not is_array(x):
        x = cupy().full((), x)
    degree = degree.astype(np.int64, copy=False) if is_array(degree) else int(degree)
    return _kernel(family, order)(x, degree)
