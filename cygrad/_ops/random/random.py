"""New tensors of random numbers: rand, randn, randint and their `_like` forms.

`generator` is the stream to draw from, the default one if None. Numbers are drawn in the dtype of the result; float32
costs half as much as float64. Distributions with parameters are in sampling.py.
"""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import facts, shown
from cygrad._core.runtime.thread_state import is_forward
from cygrad._core.types.dtypes import as_dtype, dtype_of_number, get_default_dtype
from cygrad._kernels.cpu.base import copying
from cygrad._kernels.cpu.random import mersenne
from cygrad._kernels.cpu.random.random import NORMALS, UNIFORMS
from cygrad._ops.base.arguments import require
from cygrad._ops.base.checks import creation as checks
from cygrad._ops.base.creation import (
    blank_like,
    check_place,
    check_size,
    delivered,
    drawn_in_memory,
    fresh,
    only_strided,
    place_beside,
    place_of,
    size_of,
    type_of_new,
)
from cygrad._ops.random.source import source_of

# -- drawing arrays --


def floating_point(kernel, dtype):
    if not dtype.is_floating_point and not dtype.is_complex:
        raise messages.not_implemented_for(kernel, dtype)
    return dtype.numpy


def uniform(shape, dtype, generator, function, place=None):
    """Return an array of samples from the uniform distribution on [0, 1)."""
    numpy_type = floating_point(_CHECK[uniform], dtype)
    kernels, numbers = source_of(generator, function, place)
    return kernels.uniform(numbers, shape, numpy_type)


def gaussian(shape, dtype, generator, function, place=None):
    """Return an array of samples from the normal distribution of mean 0 and variance 1."""
    numpy_type = floating_point(_CHECK[gaussian], dtype)
    kernels, numbers = source_of(generator, function, place)
    return kernels.gaussian(numbers, shape, numpy_type)


def whole_numbers(shape, low, high, dtype, generator, function, place=None):
    """Return an array of integers sampled uniformly from low to high - 1."""
    kernels, numbers = source_of(generator, function, place)
    checks.check_bounds(low, high, dtype)
    return kernels.whole_numbers(numbers, shape, low, high, dtype.numpy)


def in_memory_order(array, draw):
    """Return `draw(shape)` for the dimensions of an array from the largest stride to the least, put back in order.

    PyTorch fills tensors in this order.
    """
    if array.flags.c_contiguous:
        return draw(array.shape)
    order = mersenne.order_in_memory(array)
    back = sorted(range(array.ndim), key=order.__getitem__)
    return draw(tuple(array.shape[i] for i in order)).transpose(back)


def keep_mask(shape, probability, generator, place=None):
    """Return a boolean array, each element of which is True with this probability."""
    kernels, numbers = source_of(generator, "bernoulli", place)
    return kernels.keep_mask(numbers, shape, probability)


def scaled_coins(shape, probability, scale):
    """Return an array of `scale`, a float32 or float64, with this probability, and of 0 otherwise."""
    kernels, numbers = source_of(None, "bernoulli")
    return kernels.scaled_coins(numbers, shape, probability, scale)


def for_each_sample(t, draw):
    """Return `t`, a drawn sample; under `vmap` draw for the samples of the batch with `draw(shape)`, if necessary."""
    if is_forward():
        from cygrad._core.transforms.vmap_random import draw_for_samples  # rarely needed

        return draw_for_samples(t, draw)
    return t


def _place(place, out):
    """Return the device to draw on: that of `out`, if given."""
    return place if out is None else place_of(out)


# -- new tensors --

_NUMBER = {uniform: UNIFORMS, gaussian: NORMALS}
_CHECK = {uniform: "check_uniform_bounds", gaussian: "normal_kernel_cpu"}  # the names of PyTorch's kernels


def drawn(function, draw, size, named, generator, out, dtype, requires_grad, place):
    """Return a tensor of the given size, drawn by `uniform` or `gaussian`."""
    if not size and not named:
        raise checks.no_size(function)
    if out is place is None and not is_forward():
        found = drawn_in_memory(
            function, source_of(generator, function), _NUMBER[draw], size, named, dtype, requires_grad
        )
        if found is not None:
            return found
    wanted = type_of_new(dtype, out, get_default_dtype(), function)
    array = draw(size_of(size, named, function), wanted, generator, function, _place(place, out))
    found = delivered(array, out, requires_grad, function)
    if out is not None or not is_forward():
        return found
    return for_each_sample(found, lambda shape: draw(shape, wanted, generator, function, place))


@shown
@facts(overloads="18")
def rand(
    *size,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    **named,
):
    """Return samples from the uniform distribution on [0, 1). `size` is given as ints or as one sequence.

    Raises NotImplementedError for an integer dtype.

    >>> import cygrad
    >>> x = cygrad.rand(2, 3)
    >>> x.shape, bool(((0 <= x) & (x < 1)).all())
    (torch.Size([2, 3]), True)
    """
    only_strided(layout, "rand", out, device)
    place = check_place(device, pin_memory)
    return drawn("rand", uniform, size, named, generator, out, dtype, requires_grad, place)


@shown
@facts(overloads="18")
def randn(
    *size,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    **named,
):
    """Return samples from the normal distribution of mean 0 and variance 1. `size` is given as ints or as one sequence.

    Raises NotImplementedError for an integer dtype.

    >>> import cygrad
    >>> cygrad.randn(2, 3).shape
    torch.Size([2, 3])
    """
    only_strided(layout, "randn", out, device)
    place = check_place(device, pin_memory)
    return drawn("randn", gaussian, size, named, generator, out, dtype, requires_grad, place)


@shown
@facts(overloads="2")
def randint(
    *args,
    low=None,
    high=None,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """`randint(high, size)`, `randint(low, high, size)`: return integers drawn uniformly from low (or 0) to high - 1.

    The dtype defaults to int64. Raises RuntimeError for an empty range, and for one that exceeds the dtype.

    >>> import cygrad
    >>> x = cygrad.randint(3, 10, (100,))
    >>> x.dtype, x.min().item() >= 3, x.max().item() <= 9
    (torch.int64, True, True)
    """
    only_strided(layout, "randint", out, device)
    place = check_place(device, pin_memory)
    first, last, shape = checks.randint_arguments(args, low, high, size)
    wanted = type_of_new(dtype, out, dtype_of_number(0), "randint")
    place = _place(place, out)
    array = whole_numbers(check_size(shape), first, last, wanted, generator, "randint", place)
    found = delivered(array, out, requires_grad, "randint", None, (first, last, list(array.shape)))
    if out is not None or not is_forward():
        return found
    return for_each_sample(found, lambda shape: whole_numbers(shape, first, last, wanted, generator, "randint", place))


# -- in the shape of another --


def filled_like(t, wanted, memory_format, what, bounds, generator, function):
    """Return an array of dtype `wanted` in the memory layout of `t`, filled in the order of its memory."""
    kernels, numbers = source_of(generator, function)
    return kernels.draw(numbers, blank_like(t, wanted, memory_format), what, *bounds)


def drawn_like(function, draw, t, generator, dtype, memory_format, requires_grad, place):
    """Return a tensor like `t`, drawn by `uniform` or `gaussian`."""
    wanted = type_of_new(dtype, None, t.dtype, function)
    if place is None and t.is_cpu:
        floating_point(_CHECK[draw], wanted)
        array = filled_like(t, wanted, memory_format, _NUMBER[draw], (0, 1), generator, function)
    else:
        array = laid_out(draw(tuple(t.shape), wanted, generator, function, place), t, memory_format)
    found = fresh(array, requires_grad, function, t)
    return for_each_sample(found, lambda shape: draw(shape, wanted, generator, function, place))


def laid_out(array, t, memory_format):
    """Return an array on a GPU in the memory layout of `t`, if that is there, too."""
    if isinstance(array, np.ndarray) or t.is_cpu or (memory_format is None and t.is_contiguous()):
        return array
    out = blank_like(t, as_dtype(array.dtype), memory_format)
    copying.copy_into(out, array)
    return out


@shown
@facts(overloads="18")
def rand_like(
    input,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    memory_format=None,
):
    """Return samples from the uniform distribution on [0, 1), in the shape and dtype of `input`.

    >>> import cygrad
    >>> x = cygrad.rand_like(cygrad.empty(2, 3))
    >>> x.shape, bool(((x >= 0) & (x < 1)).all())
    (torch.Size([2, 3]), True)
    """
    only_strided(layout, "rand_like")
    require(input, "rand_like")
    place = place_beside(input, device, pin_memory)
    return drawn_like("rand_like", uniform, input, generator, dtype, memory_format, requires_grad, place)


@shown
@facts(overloads="18")
def randn_like(
    input,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    memory_format=None,
):
    """Return samples from the normal distribution of mean 0 and variance 1, in the shape and dtype of `input`.

    >>> import cygrad
    >>> cygrad.randn_like(cygrad.empty(2, 3, dtype=cygrad.float64)).dtype
    torch.float64
    """
    only_strided(layout, "randn_like")
    require(input, "randn_like")
    place = place_beside(input, device, pin_memory)
    return drawn_like("randn_like", gaussian, input, generator, dtype, memory_format, requires_grad, place)


functions = {name: globals()[name] for name in "rand randn randint rand_like randn_like".split()}
