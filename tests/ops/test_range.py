"""Every differentiable op on operands near the ends of their dtype's range: what is representable is right.

Each operand of a sample is multiplied by a scale, alone and together with the others, and rounded. The op runs on
them, and again in float64 on the same numbers. Wherever the float64 result or gradient is a normal number of the narrow
dtype, the narrow one must be near it; gradients only where all results are such numbers.

How near tells the float64 run, too: it is repeated with each operand and each incoming gradient changed by one unit in
the last place of the narrow dtype, and a result may differ by as much as a hundred such changes move it, besides a few
units in its own last place. Squares and other intermediate values that leave the range move by nothing like that.
"""

import functools
import warnings

import numpy as np
import pytest
from ops.calls import DIFFERENTIABLE, SAMPLES, Call, in_memory, is_inexact, replace
from ops.test_half import REFUSED

import cygrad

SCALES = {"float32": (1e20, 1e-30, 1e30, 1e-20), "float16": (1e4, 1e-4)}
TYPES = {"float32": (np.float32, np.complex64), "float16": (np.float16, None)}
UNITS = 64  # in the last place of a result
CHANGES = 2  # random ones of the operands, each by a unit
OF_CHANGES = 150
INVALID = (
    RuntimeError,
    ValueError,
    IndexError,
    OverflowError,
    TypeError,
)  # the scaled operands are none that the op takes
FEW, FEW_SCALES = 1, 2  # samples and scales that always run

# By the reason for which they are not tested: ops, or ops in one dtype.
EXCEPTIONS = {
    "a product of two operands by which the op is defined (scores, gates, matrices) is not representable itself": """
        attention_by_blocks chain_matmul:float16 cov gru gru_cell linalg_multi_dot:float16 linear_cross_entropy:float16
        lstm lstm_cell multi_head_attention_forward recurrent_layer rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
        scaled_dot_product_attention""",
    "terms of the sum that it is are not representable, or only their sum in another order is": """
        conv1d:float32 conv2d:float32 conv_transpose2d:float32 conv_transpose3d:float32 cross_entropy.smoothed
        cumulative_trapezoid:float16 einsum:float32 linalg_householder_product:float32 trapezoid:float16
        trapz:float16""",
    "rounding decides: the value jumps, or is the difference of nearly equal numbers": """
        binary_cross_entropy_with_logits:float32 cross_entropy.soft:float32 grid_sampler:float16 grid_sampler_2d
        grid_sampler_3d group_norm:float32 hinge_embedding_loss:float16 linalg_qr:float32
        poisson_nll_loss qr:float32 triplet_margin_loss triplet_margin_with_distance_loss""",
    "its eps is that of the dtype": "rms_norm",
    "LAPACK and BLAS form numbers near the largest one, or the factors given are no factors after scaling": """
        linalg_ldl_solve:float32
        linalg_lu_solve linalg_solve_triangular:float32 lu_solve
        ormqr:float32 triangular_solve:float32""",
}
REASONS = {name: reason for reason, names in EXCEPTIONS.items() for name in names.split()}


class Scaled:
    """Multiplies arrays by a scale (only the one numbered `only`, unless it is None) and rounds them to a type.

    With `is_wide` they are float64 then and, with a seed, differ by a unit in the last place of that type.
    """

    def __init__(self, kind, scale, only, is_wide, seed=None):
        self.types, self.scale, self.only, self.is_wide, self.seed = TYPES[kind], scale, only, is_wide, seed
        self.count = -1

    def __call__(self, array):
        self.count += 1
        if array.dtype.kind not in "fc":
            return array
        is_complex = array.dtype.kind == "c"
        with np.errstate(all="ignore"):
            array = (array * (self.scale if self.only in (None, self.count) else 1)).astype(self.types[is_complex])
        if not self.is_wide:
            return array
        array = array.astype(np.complex128 if is_complex else np.float64)
        return array if self.seed is None else changed(array, self.types[0], self.seed)


def changed(array, dtype, seed):
    return array * (1 + np.finfo(dtype).eps * np.random.default_rng(seed).choice([-1.0, 1.0], array.shape))


def values_of(call, change=None):
    """{what it is: array} of results and gradients; incoming gradients pass through `change`."""
    results = call.run()
    found = {f"result {i}": in_memory(r) for i, r in enumerate(results) if isinstance(r, cygrad.Tensor)}
    recorded = [r for r in results if getattr(r, "requires_grad", False)]
    if recorded and call.leaves:
        weights = call.weights(recorded)
        if change is not None:
            weights = [call.on.tensor(change(in_memory(w))) for w in weights]
        grads = call.gradients(weights, recorded)
        found |= {f"gradient {i}": in_memory(g) for i, g in enumerate(grads)}
    return {what: array for what, array in found.items() if array.dtype.kind in "fc"}


def expected_of(name, sample, kind, scale, only):
    """Return the values in float64 and how much they may differ, or None if the op does not take the operands."""
    try:
        expected = values_of(Call(name, sample, Scaled(kind, scale, only, True)))
        others = []
        for seed in range(CHANGES):
            nudge = functools.partial(changed, dtype=TYPES[kind][0], seed=seed)
            others.append(values_of(Call(name, sample, Scaled(kind, scale, only, True, seed)), nudge))
    except INVALID:
        return None
    info = np.finfo(TYPES[kind][0])
    slack = {}
    for what, value in expected.items():
        if any(what not in other or other[what].shape != value.shape for other in others):
            continue
        moved = sum(np.abs(other[what] - value) for other in others)
        slack[what] = OF_CHANGES * moved + UNITS * info.eps * np.abs(value) + float(info.tiny)
    return expected, slack


def fault_of(name, sample, kind, scale, only):
    """What is wrong with the results for scaled operands, or None."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wide = expected_of(name, sample, kind, scale, only)
        if wide is None:
            return None
        try:
            found = values_of(Call(name, sample, Scaled(kind, scale, only, False)))
        except (RuntimeError, NotImplementedError) as error:
            return None if kind == "float16" and REFUSED.search(str(error)) else f"{type(error).__name__}: {error}"
        info = np.finfo(TYPES[kind][0])
        most = float(info.max) / 2
        sizes = [np.abs(array) for what, array in wide[0].items() if what.startswith("result")]
        has_results = all(((size == 0) | (size >= info.tiny) & (size < most)).all() for size in sizes)
        for what, allowed in wide[1].items():
            if what.startswith("gradient") and not has_results:  # on which gradients are based
                continue
            value, expected = found[what].astype(wide[0][what].dtype), wide[0][what]
            judged = np.isfinite(expected) & (np.abs(expected) < most) & np.isfinite(allowed)
            near = np.abs(value - expected) <= allowed
            if what.startswith("gradient") and not sample.smooth:  # rounding decides on which side of a kink it is
                near = np.isfinite(value)
            wrong = judged & ~near
            if wrong.any():
                at = np.unravel_index(np.argmax(wrong), wrong.shape)
                return f"{what}{list(map(int, at))} is {value[at]}, expected {expected[at]}"
    return None


def faults(name, kind, samples, count=None):
    """Yield what is wrong, for all scales or the first `count`."""
    for sample in samples:
        operands = []
        for value in (*sample.args, *sample.kwargs.values()):
            replace(value, operands.append)
        numbers = [i for i, operand in enumerate(operands) if is_inexact(operand)]
        if not numbers or (kind == "float16" and any(operand.dtype.kind == "c" for operand in operands)):
            continue
        for scale in SCALES[kind][:count]:
            for only in (None, *numbers) if len(numbers) > 1 else (None,):
                fault = fault_of(name, sample, kind, scale, only)
                if fault:
                    which = "all operands" if only is None else f"operand {only}"
                    yield f"{sample}\n{which} times {scale}: {fault}"


def is_excepted(name, kind):
    return name in REASONS or f"{name}:{kind}" in REASONS


def samples_of(name):
    return [s for s in SAMPLES[name] if s.single and s.unique and "dtype" not in s.kwargs]


@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_what_is_representable_is_right(name, kind):
    for fault in () if is_excepted(name, kind) else faults(name, kind, samples_of(name)[:FEW], FEW_SCALES):
        raise AssertionError(fault)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_what_is_representable_is_right_for_every_sample(name, kind):
    for fault in () if is_excepted(name, kind) else every_fault(name, kind):
        raise AssertionError(fault)


def every_fault(name, kind):
    yield from faults(name, kind, samples_of(name), FEW_SCALES)
    yield from faults(name, kind, samples_of(name)[:FEW])


@pytest.mark.exhaustive
@pytest.mark.parametrize("excepted", REASONS)
def test_exceptions_are_needed(excepted):
    name, _, kind = excepted.partition(":")
    assert any(True for each in ([kind] if kind else SCALES) for _ in every_fault(name, each))
