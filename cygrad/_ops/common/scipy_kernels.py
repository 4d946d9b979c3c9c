"""Ops whose values come from SciPy, an optional dependency: without it they raise an explanatory ImportError."""

from functools import lru_cache, partial

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import ELEMENTWISE, FLOAT_RESULT, FUNCTION_ONLY, IN0, INPLACE, METHOD_ONLY, declare
from cygrad._kernels.cpu.elementwise.polynomial_tables import Tabled
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.gpu.libraries.scipy_special import special_function
from cygrad._ops.base.arguments import require

SMOOTH = ELEMENTWISE | INPLACE | FLOAT_RESULT
SPECIAL = ELEMENTWISE | FLOAT_RESULT | FUNCTION_ONLY | METHOD_ONLY  # in neither namespace, only in cygrad.special


def by_scipy(name, function, which=None):
    """Return a kernel for the op `function` that calls `scipy.special.<name>` in float64, or float32 for float32.

    `which` selects one of several results.
    """

    def kernel(*arrays):
        if any(map(is_array, arrays)):
            return special_function(name, function, arrays, which)
        special = scipy_for(function)
        if not any(isinstance(a, np.ndarray) for a in arrays[:-1]):
            found = _table(name, which, arrays[:-1])(arrays[-1])
            if found is not None:
                return found
        dtype = np.result_type(*(a for a in arrays if isinstance(a, np.ndarray)))
        with np.errstate(all="ignore"):
            if dtype == np.float16:
                arrays = tuple(a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in arrays)
            values = getattr(special, name)(*arrays)
            return np.asarray(values if which is None else values[which]).astype(dtype, copy=False)

    return partial(kernel)  # not a plain function, so it receives large arrays whole


def scipy_for(function):
    try:
        from scipy import special  # optional
    except ImportError:
        text = f"cygrad.{function} needs SciPy, which is not installed\n  pip install scipy"
        raise ImportError(text) from None
    return special


@lru_cache(64)
def _table(name, which, numbers):
    """Return the lookup table of a SciPy function of `numbers` and one array."""
    from scipy import special  # optional

    def function(x):
        values = getattr(special, name)(*numbers, x)
        return values if which is None else values[which]

    return Tabled(function, negative=name != "polygamma")  # whose time grows with the magnitude there


def require_real_input(op, input, kernel=None, name="input"):
    """Raise unless the argument called `name` is a real tensor."""
    is_special = op.flags & METHOD_ONLY
    if require(input, f"special_{op.name}" if is_special else op.name, name).is_complex():
        raise messages.not_implemented_for(kernel or op.name + ("_cpu" if is_special else "_vml_cpu"), input.dtype)


def unary(name, rule, *, saves=IN0, flags=SMOOTH, scipy=None, **row):
    """Declare the row of a function of one tensor whose values come from the SciPy function of that name."""
    kernel = by_scipy(scipy or name, f"special.{name}" if flags & METHOD_ONLY else name)
    return declare(name, rule, saves=saves, flags=flags, kernel=kernel, inputs="self", **row)
