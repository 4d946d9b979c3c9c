"""New tensors of random numbers.

`generator` is the stream to draw from, the default one if None. Numbers are drawn in the type of the result: float32
costs half of what float64 does. Distributions with parameters, and tensors overwritten with numbers, stand in
sampling.py.
"""

from numpy cimport NPY_INT64, PyArray_IS_C_CONTIGUOUS, PyArray_TYPE, ndarray

from cygrad._core.dtypes cimport FLOATING, INTEGRAL, default_dtype, dtype, dtype_of_num
from cygrad._core.tensor cimport Tensor, dtype_of
from cygrad._core import messages
from cygrad._kernels import copying, random as kernels
from cygrad._ops.arguments cimport require
from cygrad._ops.creation cimport blank_like, check_place, check_size, delivered, fresh, size_of, type_of_new
from cygrad._ops import creation_checks as checks
from cygrad._ops.generator import numbers_of

cdef dtype INT64 = dtype_of_num(NPY_INT64)


# -- drawing arrays ----------------------------------------------------------------------------------------

cpdef object uniform(tuple shape, dtype wanted, object generator, str function):
    if wanted.category < FLOATING:
        raise messages.not_implemented_for("check_uniform_bounds", wanted)
    return kernels.uniform(numbers_of(generator, function), shape, wanted.numpy)


cpdef object gaussian(tuple shape, dtype wanted, object generator, str function):
    if wanted.category < FLOATING:
        raise messages.not_implemented_for("normal_kernel_cpu", wanted)
    return kernels.gaussian(numbers_of(generator, function), shape, wanted.numpy)


cpdef object whole_numbers(tuple shape, object low, object high, dtype wanted, object generator, str function):
    numbers = numbers_of(generator, function)
    if wanted.category != INTEGRAL or not 0 <= low < high <= 128:       # every integer type can hold these
        checks.check_bounds(low, high, wanted)
    return kernels.whole_numbers(numbers, shape, low, high, wanted.numpy)


cpdef object keep_mask(tuple shape, object probability, object generator):
    return kernels.keep_mask(numbers_of(generator, "bernoulli"), shape, probability)


# -- new tensors -------------------------------------------------------------------------------------------

def rand(*size, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
         requires_grad=False, **named):
    """Numbers drawn uniformly from [0, 1). `size` is given as ints or as one sequence.

    Raises NotImplementedError for an integer dtype.

    >>> import cygrad
    >>> x = cygrad.rand(2, 3)
    >>> x.shape, bool(((0 <= x) & (x < 1)).all())
    (torch.Size([2, 3]), True)
    """
    check_place(device, pin_memory)
    if not size and not named:
        raise checks.no_size("rand")
    wanted = type_of_new(dtype, out, default_dtype(), "rand")
    array = uniform(size_of(size, named, "rand"), wanted, generator, "rand")
    return delivered(array, out, requires_grad, "rand")


def randn(*size, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
          requires_grad=False, **named):
    """Numbers drawn from the normal distribution of mean 0 and variance 1. `size` is given as ints or as one sequence.

    Raises NotImplementedError for an integer dtype.

    >>> import cygrad
    >>> cygrad.randn(2, 3).shape
    torch.Size([2, 3])
    """
    check_place(device, pin_memory)
    if not size and not named:
        raise checks.no_size("randn")
    wanted = type_of_new(dtype, out, default_dtype(), "randn")
    array = gaussian(size_of(size, named, "randn"), wanted, generator, "randn")
    return delivered(array, out, requires_grad, "randn")


def randint(*args, low=None, high=None, size=None, generator=None, out=None, dtype=None, layout=None, device=None,
            pin_memory=False, requires_grad=False):
    """`randint(high, size)` or `randint(low, high, size)`: integers drawn uniformly from low (or 0) to high - 1.

    Of int64 unless `dtype` says otherwise. Raises RuntimeError for an empty range, and for one the type can not hold.

    >>> import cygrad
    >>> x = cygrad.randint(3, 10, (100,))
    >>> x.dtype, x.min().item() >= 3, x.max().item() <= 9
    (torch.int64, True, True)
    """
    check_place(device, pin_memory)
    first, last, shape = checks.randint_arguments(args, low, high, size)
    wanted = type_of_new(dtype, out, INT64, "randint")
    array = whole_numbers(check_size(shape), first, last, wanted, generator, "randint")
    return delivered(array, out, requires_grad, "randint")


# -- like another ------------------------------------------------------------------------------------------

cpdef Tensor laid_out(ndarray array, Tensor t, object memory_format, object requires_grad, str function):
    cdef ndarray out
    if memory_format is not None or not PyArray_IS_C_CONTIGUOUS(<ndarray>t.array):
        out = blank_like(t, dtype_of_num(PyArray_TYPE(array)), memory_format)
        copying.copy_into(out, array)
        array = out
    return fresh(array, requires_grad, function)


def rand_like(input, *, generator=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
              memory_format=None):
    """Numbers drawn uniformly from [0, 1), in the shape and type of `input`."""
    cdef Tensor t = require(input, "rand_like")
    check_place(device, pin_memory)
    wanted = type_of_new(dtype, None, dtype_of(t), "rand_like")
    array = uniform(t.array.shape, wanted, generator, "rand_like")
    return laid_out(array, t, memory_format, requires_grad, "rand_like")


def randn_like(input, *, generator=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
               memory_format=None):
    """Numbers drawn from the normal distribution of mean 0 and variance 1, in the shape and type of `input`."""
    cdef Tensor t = require(input, "randn_like")
    check_place(device, pin_memory)
    wanted = type_of_new(dtype, None, dtype_of(t), "randn_like")
    array = gaussian(t.array.shape, wanted, generator, "randn_like")
    return laid_out(array, t, memory_format, requires_grad, "randn_like")


functions = {name: globals()[name] for name in "rand randn randint rand_like randn_like".split()}
