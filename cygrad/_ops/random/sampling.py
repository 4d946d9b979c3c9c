"""Samples from distributions with parameters. The in-place forms are in inplace_sampling.py.

`generator` is the stream to draw from, the default one if None. Gradients with respect to the parameters are zero, as
in PyTorch.
"""

import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import NONDIFF, declare, facts, publish, variant
from cygrad._core.graph.record import record_n, write_into
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import is_forward
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._core.transforms.vmap_random import take_back
from cygrad._core.types.dtypes import dtype_of_number, get_default_dtype
from cygrad._kernels.cpu.base import chunks, copying
from cygrad._kernels.cpu.random import random as kernels_of_memory
from cygrad._kernels.cpu.random.random import INTEGERS, NORMALS
from cygrad._kernels.device.cupy_library import is_array, is_meta
from cygrad._kernels.gpu.random import random as kernels_of_gpu
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import broadcast_shape, integer, integers, require
from cygrad._ops.base.batching.rules import operands, rule
from cygrad._ops.base.checks import creation as checks
from cygrad._ops.base.copying import zeros_of
from cygrad._ops.base.creation import (
    check_place,
    check_size,
    delivered,
    fresh,
    number,
    only_strided,
    place_beside,
    place_of,
    type_of_new,
)
from cygrad._ops.random.random import (
    filled_like,
    floating_point,
    for_each_sample,
    gaussian,
    keep_mask,
    laid_out,
    whole_numbers,
)
from cygrad._ops.random.source import source_of


def zero_rule(n, g):
    zero = zeros_of(g)
    return zero if len(n.next_functions) == 1 else (zero, zero)


def _recorded(row, array, inputs, out, args):
    """Record the result of an op; its arguments are used only by batching rules, and shown to modes."""
    known, args = args, args if is_forward() else None
    return record_n(row, array, inputs, args, known) if out is None else write_into(row, out, array, inputs, args)


# -- integers --


@facts(overloads="18")
def randperm(
    n, *, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """Return the integers 0 to n - 1 in random order, of dtype int64 by default.

    Raises RuntimeError for a dtype that cannot hold them.

    >>> import cygrad
    >>> sorted(cygrad.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    only_strided(layout, "randperm", out, device)
    place = check_place(device, pin_memory)
    (count,) = check_size((integer(n, "randperm", "n", 1),))
    kind = type_of_new(dtype, out, dtype_of_number(0), "randperm")
    wanted = kind.numpy
    if wanted.kind in "bc":
        raise messages.not_implemented_for("randperm", kind)
    if count > 128:  # every dtype can hold smaller ones
        _check_holds(count, kind)
    kernels, numbers = source_of(generator, "randperm", place if out is None else place_of(out))
    found = delivered(kernels.permutation(numbers, count, wanted), out, requires_grad, "randperm", None, (count,))

    def permutations(shape):
        rows = [kernels.permutation(numbers, count, wanted) for _ in range(math.prod(shape[:-1]))]
        return np.stack(rows).reshape(shape)

    return found if out is not None or place is not None else for_each_sample(found, permutations)


def _check_holds(count, wanted):
    """Raise RuntimeError for a dtype that cannot represent all integers below `count`."""
    if wanted.is_floating_point:
        bits = 64 if wanted.name == "bfloat16" else np.finfo(wanted.numpy).nmant + 1  # PyTorch rounds to bfloat16
        if count > 2**bits + 1:
            most = 2**bits + 1 if bits < 24 else f"2^{bits}+1"
            raise RuntimeError(f"n cannot be greater than {most} for {wanted.type_name} type.")
    else:
        copying.element(count - 1, wanted.numpy)  # raises if it does not fit


@facts(overloads="")
def randint_like(
    input,
    low_or_high=None,
    high=None,
    *,
    low=None,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    memory_format=None,
):
    """`randint_like(input, high)`, `randint_like(input, low, high)`: return integers from low (or 0) to high - 1.

    They have the shape and dtype of `input`.

    >>> import cygrad
    >>> x = cygrad.randint_like(cygrad.empty(2, 3), 5)
    >>> x.dtype, bool(((x >= 0) & (x < 5)).all())
    (torch.float32, True)
    """
    only_strided(layout, "randint_like")
    if low is None and high is not None:
        low = low_or_high
    elif high is None:
        high = low_or_high
    name = "randint_like"
    t = require(input, name)
    place = place_beside(t, device, pin_memory)
    wanted = type_of_new(dtype, None, t.dtype, name)
    first = 0 if low is None else integer(low, name, "low", 2)
    last = integer(high, name, "high", 2 if low is None else 3)
    if place is None and t.is_cpu and last <= 2**63 and last - first < 2**64:
        checks.check_bounds(first, last, wanted)
        array = filled_like(t, wanted, memory_format, INTEGERS, (first, last - first), generator, name)
    else:
        array = laid_out(whole_numbers(tuple(t.shape), first, last, wanted, generator, name, place), t, memory_format)
    found = fresh(array, requires_grad, name, t, None, (last,) if low is None else (first, last))
    return for_each_sample(found, lambda shape: whole_numbers(shape, first, last, wanted, generator, name, place))


# -- normal --

BERNOULLI = declare("bernoulli", zero_rule, inputs="self", vmap_write="inplace bernoulli")
NORMAL_MEAN = variant(BERNOULLI, "NormalBackward1", name="normal")
NORMAL_STD = variant(BERNOULLI, "NormalBackward2", name="normal")
NORMAL_BOTH = variant(BERNOULLI, "NormalBackward3", name="normal")


def normal(
    mean,
    std=1.0,
    size=None,
    *,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """Return samples from normal distributions.

    `mean` and `std` are tensors with one distribution per element, or numbers; if both are numbers, `size` is required.
    Raises RuntimeError for a negative std.

    >>> import cygrad
    >>> cygrad.normal(cygrad.tensor([0.0, 100.0]), 0.1).round(decimals=-1).abs()
    tensor([  0., 100.])
    """
    only_strided(layout, "normal", out, device)
    place = check_place(device, pin_memory)
    if size is not None:  # one distribution, whose mean and std may be 0-dim tensors
        if any(isinstance(value, Tensor) and value.ndim for value in (mean, std)):
            raise checks.no_normal_of(mean, std, size)
        mean, std = number(mean, "normal", "mean", 1), number(std, "normal", "std", 2)
    inputs = tuple(value for value in (mean, std) if isinstance(value, Tensor))
    if not inputs:
        if size is None:
            raise checks.no_normal_of(mean, std)
        wanted = type_of_new(dtype, out, get_default_dtype(), "normal")
        shape = check_size(integers(size, "normal", "size", 3))
        check_deviation(std)

        def draw(shape):
            return normal_numbers(shape, wanted, mean, std, generator, place)

        found = delivered(draw(shape), out, requires_grad, "normal")
        return found if out is not None else for_each_sample(found, draw)
    if isinstance(std, Tensor) and std.is_complex():
        raise RuntimeError("normal expects standard deviation to be non-complex")
    place = place_of(inputs[0] if inputs[0].ndim else inputs[-1])
    mean_of, deviation = (array_of(value) if isinstance(value, Tensor) else value for value in (mean, std))
    check_deviation(deviation)
    shape, wanted = broadcast_shape(_shape_of(mean), _shape_of(std)), inputs[0].dtype
    if isinstance(std, Tensor):
        array = spread(gaussian(shape, wanted, generator, "normal", place), mean_of, deviation)
    else:
        array = spread(normal_numbers(shape, wanted, 0, std, generator, place), mean_of, 1)
    row = NORMAL_BOTH if len(inputs) == 2 else NORMAL_MEAN if inputs[0] is mean else NORMAL_STD
    return _recorded(row, array, inputs, out, (mean, std, generator))


def _shape_of(value):
    return array_of(value).shape if isinstance(value, Tensor) else ()


def normal_numbers(shape, dtype, mean, std, generator, place):
    """Return an array of samples from one normal distribution."""
    if place is not None:
        return spread(gaussian(shape, dtype, generator, "normal", place), mean, std)
    kernels, numbers = source_of(generator, "normal")
    return kernels.draw(numbers, np.empty(shape, floating_point("normal_kernel_cpu", dtype)), NORMALS, mean, std)


@noted
def check_deviation(std):
    """Raise for a negative standard deviation, a number or an array; called before anything is drawn."""
    if isinstance(std, np.ndarray) or is_array(std):
        if not is_meta(std) and not (std >= 0).all():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def spread(array, mean, std):
    """Scale and shift standard normal samples to the given mean and standard deviation, numbers or arrays."""
    if is_meta(array):
        return array
    return (kernels_of_gpu if is_array(array) else kernels_of_memory).spread(array, mean, std)


# -- bernoulli, multinomial --


def bernoulli(input, p=None, *, generator=None, out=None):
    """Return 1 with the probability given by each element of `input`, or by `p`, else 0; in shape and dtype of `input`.

    Gradient: zeros. Raises RuntimeError for probabilities outside [0, 1], NotImplementedError for an integer input.
    Saves nothing.

    >>> import cygrad
    >>> cygrad.bernoulli(cygrad.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    t = require(input, "bernoulli")
    shape, kind = tuple(t.shape), (out if isinstance(out, Tensor) else t).dtype.numpy
    if p is not None:
        check_probability(p)
        place = place_of(t)

        def draw(shape):
            return kernels_of_memory.of_type(keep_mask(shape, p, generator, place), kind)

        found = delivered(draw(shape), out, False, "bernoulli")
        return found if out is not None else for_each_sample(found, draw)
    drawn = kernels_of_memory.of_type(coins(t, shape, generator, place_of(t)), kind)
    return _recorded(BERNOULLI, drawn, (t,), out, (generator,))


def check_probability(p):
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


def coins(p, shape, generator, place, order=None):
    """Return a boolean array, True with the probabilities in the tensor `p`.

    They are drawn in the order of the dimensions `order`, if that is given.
    """
    array = array_of(p)
    if not p.dtype.is_floating_point:
        raise messages.not_implemented_for("bernoulli_tensor_cpu_p_", p.dtype)
    if isinstance(array, np.ndarray) and not kernels_of_memory.are_probabilities(array):  # would wait for a GPU
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If "
            "so, please report an enhancement request to PyTorch.)\n"
            "  probabilities must be between 0 and 1; sigmoid or softmax computes them from logits"
        )
    if array.shape != shape:
        array = array_of(p.expand(shape))
    if order is None:
        return keep_mask(shape, array, generator, place)
    turned = array.transpose(order)
    return keep_mask(turned.shape, turned, generator, place).transpose(np.argsort(order))


MULTINOMIAL = declare(
    "multinomial",
    flags=NONDIFF,
    inputs="self",
    out_dtype="multinomial expects Long tensor out, got: {out}",
    float8="aminmax_cpu",
)


def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    """Draw indices with probabilities proportional to `input`; of int64.

    P(i) = input[i] / sum(input) in the first draw.

    Shapes: input (n) or (m, n), result (num_samples) or (m, num_samples). Without `replacement`, each index is drawn at
    most once. Raises RuntimeError for weights that are negative, not finite or all zero, and if fewer of them than
    needed are above 0.

    >>> import cygrad
    >>> cygrad.multinomial(cygrad.tensor([0.0, 10.0, 0.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    t = require(input, "multinomial")
    count = integer(num_samples, "multinomial", "num_samples", 2)
    messages.check_flag("multinomial", "replacement", 3, replacement)
    _check_weights(t, count, replacement)
    weights = array_of(t)
    check_size((*weights.shape[:-1], count))
    if t.ndim == 1:
        weights = weights[None]
    kernels, numbers = source_of(generator, "multinomial", place_of(t))
    draw = kernels.picked if replacement else kernels.picked_once
    needed = (1 if replacement else count), bool(replacement) and count > 1
    if 0 < weights.size <= chunks.SIZE:
        array = draw(numbers, *_with_sums(kernels, weights, *needed), count)
    else:
        array = _in_parts(draw, kernels, numbers, weights, needed, count)
    args = count, replacement, generator
    return _recorded(MULTINOMIAL, array if t.ndim == 2 else array[0], (t,), out, args)


def _in_parts(draw, kernels, numbers, weights, needed, count):
    """Return what `draw` draws from the rows of weights, a few rows at a time; all are checked first."""
    is_in_memory = isinstance(weights, np.ndarray) and weights.flags.c_contiguous  # others are drawn in another order
    step = max(1, chunks.SIZE // weights.shape[1]) if is_in_memory and weights.size else len(weights)
    first, *others = [weights[start : start + step] for start in range(0, len(weights), step or 1)] or [weights]
    found = _with_sums(kernels, first, *needed)
    for part in others:
        _with_sums(kernels, part, *needed)
    array = draw(numbers, *found, count)
    if not others:
        return array
    whole = np.empty((len(weights), count), np.int64)
    whole[:step] = array
    for start, part in zip(range(step, len(weights), step), others):
        whole[start : start + step] = draw(numbers, *_with_sums(kernels, part, *needed), count)
    return whole


@rule("multinomial")
def _picked(call):
    count, replacement, generator = call.needed_args()
    (weights,) = _parameters(call, call.inputs)
    rows = weights.reshape(-1, weights.shape[-1])
    return call.shaped(multinomial(rows, count, replacement, generator=generator), call.out.shape)


def _with_sums(kernels, weights, needed, is_repeated=False):
    """Return rows of weights, and what `picked` needs of them besides; `is_repeated`: several are drawn from all.

    Raises RuntimeError for invalid weights, and for rows with fewer than `needed` weights above 0.
    """
    sums = kernels.running_weights(weights)
    if sums is None:
        wide = weights.astype(np.float64)
        if (wide >= 0).all() and (wide.sum(1) < math.inf).all():
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        raise _wrong_weight(wide, is_repeated)
    if needed > 1 and not is_meta(weights):
        _check_enough(weights, needed)
    return weights, sums


def _wrong_weight(weights, is_repeated):
    """The error of weights that are negative or not finite; drawing with replacement names the first."""
    if not is_repeated:
        return RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    first = weights[~((weights >= 0) & (weights < math.inf))][:1]
    which = "= infinity or NaN" if (first == math.inf).any() else "< 0"  # PyTorch says so of NaN, too
    return RuntimeError(f"invalid multinomial distribution (encountering probability entry {which})")


@noted
def _check_enough(weights, needed):
    """Raise RuntimeError unless each row of weights has enough that are not 0."""
    if np.count_nonzero(weights) == weights.size:
        return
    counts = np.count_nonzero(weights, 1)
    if (counts < needed).any():
        row = int((counts < needed).argmax())
        raise RuntimeError(
            "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)\n"
            f"  {needed} different indices were requested, but row {row} has only {int(counts[row])} positive weights\n"
            "  to fix it: draw fewer, or pass replacement=True"
        )


def _check_weights(t, count, replacement):
    array = array_of(t)
    if not t.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {t.dtype.type_name}")
    if not 1 <= array.ndim <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if array.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if not replacement and count > array.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")


# -- poisson, binomial --

POISSON = declare("poisson", zero_rule, inputs="self", float8="poisson_cpu")


def poisson(input, generator=None):
    """Sample from Poisson distributions with the rates in `input`.

    P(k) = rate^k exp(-rate) / k!.

    The result has the shape and dtype of `input`. Saves nothing. Gradient: zeros. Raises RuntimeError for negative or
    NaN rates, NotImplementedError for dtypes that are not floating-point.

    >>> import cygrad
    >>> cygrad.poisson(cygrad.tensor([0.0, 1e4])) > 5000
    tensor([False,  True])
    """
    t = require(input, "poisson")
    if not t.dtype.is_floating_point:
        raise messages.not_implemented_for("poisson_cpu", t.dtype)
    rates = array_of(t)
    if isinstance(rates, np.ndarray) and not kernels_of_memory.are_rates(rates):  # the check would wait for a GPU
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    kernels, numbers = source_of(generator, "poisson", place_of(t))
    return _recorded(POISSON, kernels.poisson(numbers, rates), (t,), None, (generator,))


def no_derivative_rule(n, g):
    raise RuntimeError("derivative for aten::binomial is not implemented")


BINOMIAL = declare(
    "binomial",
    no_derivative_rule,
    inputs="count prob",
    node="NotImplemented",
    devices="together",
    float8="binomial_cpu",
)


def binomial(count, prob, generator=None):
    """Sample from binomial distributions: the number of successes in `count` trials of probability `prob`. Broadcasts.

    P(k) = (n choose k) p^k (1 - p)^(n - k).

    Counts are truncated to integers and probabilities clamped to [0, 1]. Not differentiable: a backward pass raises
    RuntimeError, as do tensors of different dtypes. Raises ValueError for dtypes that are not floating-point. Saves
    nothing.

    >>> import cygrad
    >>> cygrad.binomial(cygrad.tensor([5.0, 6.0]), cygrad.tensor([0.0, 1.0]))
    tensor([0., 6.])
    """
    trials, chance = require(count, "binomial", "count"), require(prob, "binomial", "prob", 2)
    for value, name in ((trials, "count"), (chance, "prob")):
        if not value.dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {value.dtype.type_name}")
    if trials.dtype is not chance.dtype:
        raise RuntimeError(f"Found dtype {chance.dtype.type_name} but expected {trials.dtype.type_name}")
    shape = broadcast_shape(_shape_of(trials), _shape_of(chance))
    kernels, numbers = source_of(generator, "binomial", place_of(trials))
    array = kernels.binomial(numbers, array_of(trials), array_of(chance), shape)
    return _recorded(BINOMIAL, array, (trials, chance), None, (generator,))


@rule("bernoulli normal poisson binomial")
def drawn(call):
    """Draw for all samples at once."""
    *args, generator = call.needed_args()
    if call.step.writes:
        return _overwritten(call, args, generator)
    params = args if call.op.name == "normal" else call.inputs
    found = _FUNCTIONS[call.op.name](*_parameters(call, params), generator=generator)
    return call.shaped(found, call.out.shape)


_FUNCTIONS: dict = {"bernoulli": bernoulli, "binomial": binomial, "normal": normal, "poisson": poisson}


def _overwritten(call, args, generator):
    """Overwrite the samples with random numbers: drawn consecutively for all samples, or shared by all."""
    params = _parameters(call, [*call.inputs[1:], *args])
    method = getattr(Tensor, f"{call.op.name}_")
    t = call.full(call.out)
    if call.batch.randomness == "different":
        return method(t.clone(), *params, generator=generator)
    return method(t.new_empty(call.out.shape), *params, generator=generator).unsqueeze(0).expand(t.shape)


def _parameters(call, params):
    """Return the aligned samples of distribution parameters, for a draw that covers all samples."""
    if call.batch.randomness == "error":
        raise NoBatchingRule(call.op.name)  # `vmap` answers it with an error about random numbers
    if call.batch.randomness == "same" and any(call.has(p) for p in params):
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with "
            "functorch\n  each sample draws its numbers with different parameters: use randomness='different'"
        )
    call.batch.draws_for_one -= 1
    take_back(call.batch)
    return operands(call, params)


def gammas(concentration, generator=None):
    """Return gamma-distributed samples in the dtype of `concentration`."""
    kernels, numbers = source_of(generator, "standard_gamma", place_of(concentration))
    return tensor_of(kernels.gamma(numbers, array_of(concentration)))


def log_gammas(concentration, generator=None):
    """Return logarithms, in float64, of gamma-distributed samples, which themselves may underflow."""
    kernels, numbers = source_of(generator, "standard_gamma", place_of(concentration))
    return tensor_of(kernels.log_gamma(numbers, array_of(concentration.detach().double())))


functions = publish(globals(), {"randperm": randperm, "randint_like": randint_like, "normal": normal})
