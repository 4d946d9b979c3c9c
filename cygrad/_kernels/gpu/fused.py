"""Kernels of our own on GPUs: made when first called, compiled by CuPy, which keeps them on disk."""

from functools import cache

from cygrad._kernels.gpu.library import cupy

# What a type is computed in: half precision in single. `W` is that of `T`, the type of the elements.
_WIDE = """
template <typename T> struct wide { typedef T type; };
template <> struct wide<float16> { typedef float type; };
"""


@cache
def _compiled(inputs, outputs, operation, name, preamble, _library):
    text = f"typedef typename wide<T>::type W;\n{operation}"
    return _library.ElementwiseKernel(inputs, outputs, text, f"cygrad_{name}", preamble=_WIDE + preamble)


def elementwise(name, inputs, outputs, operation, preamble=""):
    """A function of arrays of floating-point numbers in one pass.

    `inputs`, `outputs` and `operation` are those of CuPy's `ElementwiseKernel`; the type of the elements is `T`, and
    `W` the one to compute in. Where all of them are raw, the function wants `size=`.
    """

    def run(*arrays, **how):
        return _compiled(inputs, outputs, operation, name, preamble, cupy())(*arrays, **how)

    run.__name__ = name
    return run
