"""In-place random sampling: overwrites tensors with random numbers.

`generator` is the stream to draw from, the default one if None. The samples do not depend on the overwritten values, so
gradients are zero, as in PyTorch.
"""

from functools import cache, partial

from cygrad._core.graph.dual cimport is_forward
from cygrad._core.graph.opdef cimport OpDef
from cygrad._core.graph.observers cimport dispatches
from cygrad._core.graph.record cimport written_in_place
from cygrad._core.graph.tensor cimport Tensor, dtype_of, held_array
from cygrad._core.types.dtypes cimport FLOATING, dtype, is_float_num
from cygrad._kernels.cpu.random.draw cimport draw
from cygrad._kernels.cpu.random.twister cimport Twister
from cygrad._ops.base.creation cimport place_of
from cygrad._ops.random.source cimport source_of
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import note_facts, publish, variant
from cygrad._core.types.type_info import finfo
from cygrad._kernels.cpu.base.copying import FITS, copy_into
from cygrad._kernels.cpu.random import mersenne
from cygrad._kernels.cpu.random.random import COINS, EXPONENTIALS, INTEGERS, NORMALS, UNIFORMS
from cygrad._kernels.cpu.random.twister import KINDS
from cygrad._ops.base.arguments import integer, require
from cygrad._ops.base.checks import creation as checks
from cygrad._ops.base.creation import number
from cygrad._ops.random.random import whole_numbers
from cygrad._ops.random.sampling import BERNOULLI, check_deviation, check_probability, coins, drawn


PLAIN_BOUND = FITS / 2                  # bounds up to here need no look at the dtype
WORDS_BELOW = KINDS.WORDS_BELOW         # integers of one word each, whatever the span


def _row(node, name):
    note_facts(name, {"batching": drawn})
    return variant(BERNOULLI, node, name=name)


UNIFORM = _row("UniformBackward0", "uniform")
NORMAL_INPLACE = _row("NormalBackward0", "normal")
EXPONENTIAL = _row("ExponentialBackward0", "exponential")
RANDOM = _row("RandomBackward2", "random")
BERNOULLI_TENSOR = variant(BERNOULLI, "BernoulliBackward1")
BERNOULLI_NUMBER = variant(BERNOULLI, "BernoulliBackward2")


def overwritten(op, t, draw, *others, args):
    """Overwrite `t` with the array returned by `draw()`, which runs after all checks, so that errors draw nothing.

    `args`: the arguments of the method, used only by batching rules.
    """
    args = args if is_forward() or dispatches else None
    return written_in_place(op, t, (t, *others), args, None, lambda: copy_into(array_of(t), draw()))


cdef Tensor filled(OpDef op, Tensor t, int what, object a, object b, object generator, tuple args):
    """Overwrite `t` with samples of a distribution that the kernels' `draw` supports, with parameters a and b.

    `args`: see `overwritten`.
    """
    cdef str name = None if generator is None else op.name + "_"        # only errors need it
    cdef tuple source = source_of(generator, name, place_of(t))
    cdef tuple asked = (*args, generator) if is_forward() or dispatches else None
    return written_in_place(op, t, (t,), asked, None, draw_into, (t, source, what, a, b))


def draw_into(Tensor t, tuple source, int what, a, b):
    """Overwrite the array of a tensor with random numbers."""
    if type(source[1]) is Twister:
        draw(source[1], held_array(t), what, a, b)
    else:
        source[0].draw(source[1], held_array(t), what, a, b)


cdef object real_number(object value, str function, str name, int position):
    """Check a parameter of a distribution and return it."""
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, Tensor):
        raise messages.wrong_type(function, name, position, "float", value)
    try:
        return number(value, function, name, position)
    except TypeError:
        raise messages.wrong_type(function, name, position, "float", value) from None


cdef int check_floating_point(str kernel, Tensor t) except -1:
    """Raise NotImplementedError for integers and bool; `kernel` is the name of PyTorch's."""
    if not is_float_num(dtype_of(t).num):
        raise messages.not_implemented_for(kernel, dtype_of(t))
    return 0


cdef bint is_real(Tensor t):
    return dtype_of(t).category == FLOATING


def uniform_(self, from_=0, to=1, *, generator=None):
    """Overwrite this tensor with samples from the uniform distribution on [from, to), and return it.

    >>> import cygrad
    >>> x = cygrad.empty(3).uniform_(1, 2)
    >>> bool(((x >= 1) & (x < 2)).all())
    True
    """
    cdef Tensor t = require(self, "uniform_")
    low, high = real_number(from_, "uniform_", "from", 1), real_number(to, "uniform_", "to", 2)
    check_floating_point("check_uniform_bounds", t)
    if not -PLAIN_BOUND <= low <= high <= PLAIN_BOUND:
        check_range(low, high, t.dtype)
    return filled(UNIFORM, t, UNIFORMS, low, high, generator, (low, high))


def check_range(low, high, dtype):
    """Raise RuntimeError unless [low, high) is a valid range for the dtype."""
    limit = finfo(dtype).max
    for value, name in ((low, "from"), (high, "to")):
        if not abs(value) <= limit:
            raise RuntimeError(f"{name} is out of bounds for {messages.c_name(dtype)}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{dtype.type_name}>::max(), but found to="
            f"{high:g} and from={low:g} which result in to-from to exceed the limit"
        )


def normal_(self, mean=0, std=1, *, generator=None):
    """Overwrite this tensor with samples from a normal distribution, and return it.

    >>> import cygrad
    >>> cygrad.empty(3).normal_(2.0, 0.0)
    tensor([2., 2., 2.])
    """
    cdef Tensor t = require(self, "normal_")
    mean, std = real_number(mean, "normal_", "mean", 1), real_number(std, "normal_", "std", 2)
    if not std >= 0:
        check_deviation(std)
    check_floating_point("normal_kernel_cpu", t)
    return filled(NORMAL_INPLACE, t, NORMALS, mean, std, generator, (mean, std))


def exponential_(self, lambd=1, *, generator=None):
    """Overwrite this tensor with samples of density lambd * exp(-lambd * x), and return it.

    >>> import cygrad
    >>> bool((cygrad.empty(3).exponential_() >= 0).all())
    True
    """
    cdef Tensor t = require(self, "exponential_")
    if not is_real(t):
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {t.dtype.type_name}"
        )
    rate = real_number(lambd, "exponential_", "lambd", 1)
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    return filled(EXPONENTIAL, t, EXPONENTIALS, rate, 1, generator, (rate,))


@cache
def end_of_whole_numbers(dtype wanted):
    """Return the number behind those that `random_()` draws for a dtype: all integers up to there are exact."""
    if wanted.numpy.kind in "iub":
        return checks.limits(wanted)[1] + 1
    return 2 ** checks.precision(wanted) + 1


NOT_GIVEN = object()        # tells random_(n) from random_(n, None)


def random_(self, from_=NOT_GIVEN, to=NOT_GIVEN, *, generator=None):
    """`random_()`, `random_(to)`, `random_(from, to)`: overwrite this tensor with random integers, and return it.

    They range from `from` (or 0) to `to` - 1; without `to`, or with None in `random_(from, None)`, to the largest integer
    that the dtype can hold. Raises TypeError for a `from` of None.

    >>> import cygrad
    >>> x = cygrad.empty(3, dtype=cygrad.int64).random_(5)
    >>> bool(((x >= 0) & (x < 5)).all())
    True
    """
    cdef Tensor t = require(self, "random_")
    cdef dtype wanted = dtype_of(t)
    if from_ is None:
        raise messages.no_such_call("random_", (None,) if to is NOT_GIVEN else (None, to), {}, (
            "*, torch.Generator generator = None", "int to, *, torch.Generator generator = None",
            "int from, int to, *, torch.Generator generator = None"))
    if from_ is NOT_GIVEN:
        from_ = None
    if to is NOT_GIVEN:
        from_, to = None, from_
    if to is None and from_ is None and wanted.itemsize < 8 and place_of(t) is None:
        high = end_of_whole_numbers(wanted)
        return filled(RANDOM, t, WORDS_BELOW, 0, high, generator, (0, high))
    low = 0 if from_ is None else integer(from_, "random_", "from", 1)
    if to is not None:
        high = integer(to, "random_", "to", 1 if from_ is None else 2)
    else:
        high = end_of_whole_numbers(wanted)
    if high <= 2**63 and high - low < 2**64 and place_of(t) is None:
        if to is not None or from_ is not None:
            checks.check_bounds(low, high, wanted)
        return filled(RANDOM, t, INTEGERS, low, high - low, generator, (low, high))
    arguments = array_of(t).shape, low, high, wanted, generator, "random_", place_of(t)
    if high - low == 2**64:         # PyTorch takes the drawn bits as they are, where `whole_numbers` adds `low`
        return overwritten(RANDOM, t, lambda: whole_numbers(*arguments) ^ low, args=(low, high, generator))
    return overwritten(RANDOM, t, lambda: whole_numbers(*arguments), args=(low, high, generator))


def bernoulli_(self, p=0.5, *, generator=None):
    """Overwrite this tensor with 1, with probability `p` (a number or a tensor), or else 0, and return it.

    >>> import cygrad
    >>> cygrad.empty(3).bernoulli_(1.0)
    tensor([1., 1., 1.])
    """
    cdef Tensor t = require(self, "bernoulli_")
    if isinstance(p, Tensor):
        array, place = array_of(t), place_of(t)
        order = None if place is not None or array.flags.c_contiguous else mersenne.order_in_memory(array)
        draw = partial(coins, p, array.shape, generator, place, order)
        return overwritten(BERNOULLI_TENSOR, t, draw, p, args=(generator,))
    check_probability(p)
    return filled(BERNOULLI_NUMBER, t, COINS, p, 1, generator, (p,))


# -- further distributions --

CAUCHY = _row("CauchyBackward0", "cauchy")
LOG_NORMAL = _row("LogNormalBackward0", "log_normal")
GEOMETRIC = _row("GeometricBackward0", "geometric")


def cauchy_(self, median=0, sigma=1, *, generator=None):
    """Overwrite this tensor with samples of density sigma / (pi * (sigma^2 + (x - median)^2)), and return it.

    Raises RuntimeError for dtypes that are not floating-point, and if `sigma` is not positive.

    >>> import cygrad
    >>> cygrad.zeros(3).cauchy_().shape
    torch.Size([3])
    """
    t = require(self, "cauchy_")
    middle, width = real_number(median, "cauchy_", "median", 1), real_number(sigma, "cauchy_", "sigma", 2)
    if not width > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={width:g}")
    if not is_real(t):
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {messages.c_word(t)}"
        )
    return filled(CAUCHY, t, KINDS.CAUCHY, middle, width, generator, (middle, width))


def log_normal_(self, mean=1, std=2, *, generator=None):
    """Overwrite this tensor with samples whose logarithm is normally distributed with `mean` and `std`; return it.

    Raises NotImplementedError for dtypes that are not floating-point, RuntimeError if `std` is not positive.

    >>> import cygrad
    >>> bool((cygrad.zeros(3).log_normal_() > 0).all())
    True
    """
    t = require(self, "log_normal_")
    middle, width = real_number(mean, "log_normal_", "mean", 1), real_number(std, "log_normal_", "std", 2)
    if not width > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={width:g}")
    if not is_real(t):
        raise messages.not_implemented_for("log_normal_cpu", t.dtype)
    return filled(LOG_NORMAL, t, KINDS.LOG_NORMAL, middle, width, generator, (middle, width))


def geometric_(self, p, *, generator=None):
    """Overwrite this tensor with the number of trials up to the first success, which has probability `p`; return it.

    Raises RuntimeError unless 0 < p < 1, NotImplementedError for bool and complex tensors.

    >>> import cygrad
    >>> bool((cygrad.zeros(3).geometric_(0.5) >= 1).all())
    True
    """
    t = require(self, "geometric_")
    chance = real_number(p, "geometric_", "p", 1)
    if not 0 < chance < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={chance:g}")
    if t.dtype.is_complex or t.dtype.numpy.kind == "b":
        raise messages.not_implemented_for("geometric_cpu", t.dtype)
    return filled(GEOMETRIC, t, KINDS.TRIALS, chance, 1, generator, (chance,))


methods = {
    method.__name__: method
    for method in (
        *(uniform_, normal_, exponential_, random_, bernoulli_),
        *(cauchy_, log_normal_, geometric_),
    )
}
functions = publish(globals())
