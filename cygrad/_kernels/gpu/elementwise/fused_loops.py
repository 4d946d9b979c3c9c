"""Fused elementwise functions and gradients on GPUs, made from the formulas of the CPU's loops (fused_formulas.h)."""

import re
from functools import cache
from typing import Any

from cygrad._kernels.cpu.base.loop_table import formulas
from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.cupy_library import as_number, current_device, is_array, on_device
from cygrad._kernels.device.gpu_forms import captures
from cygrad._kernels.gpu.launch.elementwise_program import LOGISTIC, elementwise
from cygrad._kernels.gpu.launch.groups import waits_by
from cygrad._kernels.gpu.runtime.graph_capture import join, keep, used

# The functions and stages that formulas use, by their names in C.
_FUNCTIONS = (
    LOGISTIC
    + """
template <typename W> __device__ W ABS(W x) { return x < 0 ? -x : x; }
template <typename W> __device__ W COPYSIGN(W x, W sign) { return copysign(x, sign); }
template <typename W> __device__ W KEPT(W x, bool holds) { return holds ? x : W(0); }
template <typename W, typename L, typename H> __device__ W BETWEEN(W x, L low, H high) {
    return x < W(low) ? W(low) : x > W(high) ? W(high) : x;
}
template <typename W> __device__ W EXP(W x) { return exp(x); }
template <typename W> __device__ W EXPM1(W x) { return expm1(x); }
template <typename W> __device__ W LOG1PEXP(W x) { return log1p(exp(x)); }
template <typename W> __device__ W LOGISTIC(W x) { return logistic<W>(x); }
"""
)
_FORMULAS = formulas()
_NONE = 0.0, 0.0, 0.0  # placeholders for absent numbers


@cache
def _kernel(name, operands, arrays):
    """Return the kernel for `operands` operands, of which the first `arrays` have the element type."""
    _, stage, argument, formula = _FORMULAS[name]
    letters = "xyz"[:operands]
    kinds = [f"T given_{x}" if i < arrays else f"float64 given_{x}" for i, x in enumerate(letters)]
    inputs = ", ".join([*kinds, *(f"float64 number_{a}" for a in "abc")])
    values = [f"{x} = W(given_{x})" for x in letters]
    values += [f"{a} = W(number_{a})" for a in "abc" if re.search(rf"\b{a}\b", f"{argument} {formula}")]
    values += [f"e = {stage}<W>({argument})"] if stage else []
    text = f"typedef W REAL; const W {', '.join(values)}; out = T({formula});"
    return elementwise(name if arrays == operands else f"{name}_{arrays}", inputs, "T out", text, _FUNCTIONS)


def form(kernel, otherwise):
    """Return the GPU form of one of our loops (`by_loop`): a launch, or `otherwise` where that is not possible."""
    loop = kernel.loop
    name, count, make, are_operands = loop.name, loop.count, loop.numbers, loop.are_operands
    if name not in _FORMULAS:
        return otherwise

    def described(*args):
        """Return (function, operands) of a call, or None."""
        arrays, numbers = args[:count], make(*args[count:])
        if numbers is None or any(type(a) is not cupy_library._found.ndarray for a in arrays):
            return None
        dtype = arrays[0].dtype
        if dtype.kind not in "fV":
            return None
        if are_operands:
            numbers = [dtype.type(n) for n in numbers]
        given = (*map(float, numbers), *_NONE[0 if are_operands else len(numbers) :])
        return _kernel(name, count + len(numbers) * are_operands, count), (*arrays, *given)

    @waits_by(described)
    def call(*args, **how):
        found = None if how else described(*args)
        if found is not None:
            found = found[0].launched(found[1])
        return otherwise(*args, **how) if found is None else found

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
    found: Any
    for a in operands:
        if type(a) is not ndarray:
            break
        arrays += 1
    three, found = (*map(float, numbers), *_NONE[len(numbers) :]), None
    if arrays == count:
        found = _kernel(name, count, count), (*operands, *three)
    elif arrays == count - 1 and arrays and operands[0].dtype.kind in "fV":  # the last operand is a number
        number = float(operands[0].dtype.type(as_number(operands[arrays])))
        found = _kernel(name, count, arrays), (*operands[:arrays], number, *three)
    if found is not None:
        function, given = found
        if captures:
            keep(given)
            found = join(function, given)
        else:
            found = None
        if found is None:
            found = function.launched(given)
    else:
        used(operands)
    if found is not None:
        return found
    dtype = next(a.dtype for a in operands if is_array(a))
    if dtype.kind not in "fV" or any(a.dtype != dtype for a in operands if is_array(a)):
        return None
    given = [a if is_array(a) else dtype.type(as_number(a)) for a in operands]
    return _kernel(name, count, count)(*given, *three)
