"""Fused elementwise functions and gradients on GPUs, by their names in `_kernels/cpu/elementwise/fused_loops.py`.

The formulas are those of `fused_loops.h`.
"""

import re
from functools import cache

from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.cupy_library import as_number, current_device, is_array, on_device
from cygrad._kernels.gpu.launch.elementwise_program import LOGISTIC, elementwise

_FUNCTIONS = (
    LOGISTIC
    + """
template <typename W> __device__ W between(W x, W low, W high) { return x < low ? low : x > high ? high : x; }
template <typename W> __device__ W log_of_1_and_exp(W x) { return log1p(exp(x > 0 ? -x : x)); }
template <typename W> __device__ W size(W x) { return x < 0 ? -x : x; }
"""
)

# x, y and z are elements of the operands; a, b and c are numbers.
_FORMULAS = {
    "leaky_relu": "x * (x > 0 ? W(1) : y)",
    "threshold": "x <= a ? b : x",
    "hardtanh": "between<W>(x, a, b)",
    "hardsigmoid": "between<W>(x + W(3), W(0), W(6)) / W(6)",
    "hardswish": "x * (between<W>(x + W(3), W(0), W(6)) / W(6))",
    "hardshrink": "x >= -a && x <= a ? W(0) : x",
    "softshrink": "size<W>(x) > a ? x - copysign(a, x) : x * W(0)",
    "softplus": "x * a > b ? x : ((x * a > 0 ? x * a : W(0)) + log_of_1_and_exp<W>(x * a)) / a",
    "logsigmoid": "(x < 0 ? x : W(0)) - log_of_1_and_exp<W>(x)",
    "erfc": "erfc(x)",
    "elu": "x > 0 ? x * b : expm1(x * c) * a",
    "leaky_relu_gradient": "x * (y > 0 ? W(1) : z)",
    "negative_products": "y > 0 ? W(0) : x * y",
    "above": "y <= a ? W(0) : x",
    "inside": "y <= a || y >= b ? W(0) : x",
    "hardsigmoid_gradient": "y > W(-3) && y < W(3) ? x * W(1.0 / 6) : W(0)",
    "hardswish_gradient": "y <= W(-3) ? W(0) : x * (y < W(3) ? y * W(1.0 / 3) + W(0.5) : W(1))",
    "outside": "y >= -a && y <= a ? W(0) : x",
    "softplus_gradient": "x * (y * a > b ? W(1) : logistic<W>(y * a))",
    "logsigmoid_gradient": "x * logistic<W>(-y)",
    "elu_gradient": "x * (y <= 0 ? exp(y * c) * a * c : b)",
    "squared_error": "(x - y) * (x - y)",
    "smooth_l1": "size<W>(x - y) < a ? (x - y) * (x - y) * b : size<W>(x - y) - W(0.5) * a",
    "huber": "size<W>(x - y) < a ? (x - y) * (x - y) * W(0.5) : a * (size<W>(x - y) - W(0.5) * a)",
    "binary_cross_entropy_with_logits": "(W(1) - y) * x + ((x < 0 ? -x : W(0)) + log_of_1_and_exp<W>(x))",
    "soft_margin": "(x * y < 0 ? -x * y : W(0)) + log_of_1_and_exp<W>(x * y)",
    "logaddexp": "(x < y ? y : x) + log_of_1_and_exp<W>(x == y ? W(0) : (x - y) * a) * b",
    "squared_error_gradient": "W(2) * (x - y) * z",
    "bounded_difference": "between<W>((x - y) * b, -a, a) * z",
    "binary_cross_entropy_with_logits_gradient": "(logistic<W>(x) - y) * z",
    "exponential_share": "logistic<W>(x == y ? W(0) : (x - y) * a) * z",
    "soft_margin_gradient": "-logistic<W>(-x * y) * y * z",
}
_NONE = 0.0, 0.0, 0.0  # placeholders for absent numbers


@cache
def _kernel(name, operands, arrays):
    """Return the kernel for `operands` operands, of which the first `arrays` have the element type."""
    letters = "xyz"[:operands]
    kinds = [f"T given_{x}" if i < arrays else f"float64 given_{x}" for i, x in enumerate(letters)]
    inputs = ", ".join([*kinds, *(f"float64 number_{a}" for a in "abc")])
    numbers = (f"{a} = W(number_{a})" for a in "abc" if re.search(rf"\b{a}\b", _FORMULAS[name]))
    values = ", ".join([*(f"{x} = W(given_{x})" for x in letters), *numbers])
    name_of_kernel = name if arrays == operands else f"{name}_{arrays}"
    return elementwise(name_of_kernel, inputs, "T out", f"const W {values}; out = T({_FORMULAS[name]});", _FUNCTIONS)


def form(kernel, otherwise):
    """Return the GPU form of one of our loops (`by_loop`): a launch, or `otherwise` where that is not possible."""
    loop = kernel.loop
    name, count, make, are_operands = loop.name, loop.count, loop.numbers, loop.are_operands
    if name not in _FORMULAS:
        return otherwise

    def call(*args, **how):
        arrays, ndarray = args[:count], cupy_library._found.ndarray
        numbers = None if how else make(*args[count:])
        if numbers is not None and all(type(a) is ndarray for a in arrays):
            dtype = arrays[0].dtype
            if dtype.kind in "fV":
                if are_operands:
                    numbers = [dtype.type(n) for n in numbers]
                given = (*map(float, numbers), *_NONE[0 if are_operands else len(numbers) :])
                found = _kernel(name, count + len(numbers) * are_operands, count).launched((*arrays, *given))
                if found is not None:
                    return found
        return otherwise(*args, **how)

    return call


def fused(name, *operands, numbers=()):
    """Apply a fused function to broadcastable arrays of one type, or 0-d arrays in host memory; None if unsupported."""
    if name not in _FORMULAS:
        return None
    device = next(a for a in operands if is_array(a)).data.device_id
    if device != current_device():
        with on_device(device):
            return fused(name, *operands, numbers=numbers)
    ndarray, count, arrays = cupy_library._found.ndarray, len(operands), 0
    for a in operands:
        if type(a) is not ndarray:
            break
        arrays += 1
    three = (*map(float, numbers), *_NONE[len(numbers) :])
    if arrays == count:
        found = _kernel(name, count, count).launched((*operands, *three))
    elif arrays == count - 1 and arrays and operands[0].dtype.kind in "fV":  # the last operand is a number
        number = float(operands[0].dtype.type(as_number(operands[arrays])))
        found = _kernel(name, count, arrays).launched((*operands[:arrays], number, *three))
    else:
        found = None
    if found is not None:
        return found
    dtype = next(a.dtype for a in operands if is_array(a))
    if dtype.kind not in "fV" or any(a.dtype != dtype for a in operands if is_array(a)):
        return None
    given = [a if is_array(a) else dtype.type(as_number(a)) for a in operands]
    return _kernel(name, count, count)(*given, *three)
