"""Connectionist temporal classification (CTC): the loss of a symbol sequence that is aligned with a longer sequence."""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import ELSEWHERE, IN0, IN1, PRIVATE, declare, named, publish
from cygrad._core.graph.record import record_n
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.loss import ctc as kernels
from cygrad._kernels.device.cupy_library import beside, is_array
from cygrad._kernels.gpu.base.arrays import move
from cygrad._kernels.tape.calls import noted
from cygrad._kernels.tape.tape import is_open, noted_data
from cygrad._ops.base.arguments import each_integer, is_integer, require
from cygrad._ops.base.arithmetic import div
from cygrad._ops.base.batching.rules import regroup, rule
from cygrad._ops.base.checks.common import check_unbatched
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import squeeze, unsqueeze
from cygrad._ops.elementwise.selection import where
from cygrad._ops.loss.reductions import MEAN, NONE, reduced, reduction_of

WHILE = "(while checking arguments for ctc_loss_allocate_outputs)"


def ctc_rule(n, g):
    return ctc_loss_backward(g, n.saved(0), *n.args)


CTC = declare(
    "ctc_loss",
    ctc_rule,
    saves=IN0,
    flags=ELSEWHERE,
    inputs="log_probs",
    attributes="_ _ _ blank _ _ zero_infinity",
    devices="together",
    autocast="float32",
    on_cpu=(2, 3, "input_lengths", "target_lengths"),
    derived={
        "input_lengths": lambda n: tuple(n.args[1].tolist()),
        "target_lengths": lambda n: tuple(n.args[2].tolist()),
    },
)


def ctc_backward_rule(n, g):
    if n.needs(1):
        raise NotImplementedError(
            "the derivative for '_ctc_loss_backward' is not implemented.\n  as in PyTorch, ctc_loss can be "
            "differentiated only once"
        )
    slopes = tensor_of(kernels.backward(np.ones_like(n.args[4]), array_of(n.saved(1)), *n.args))
    return total(g * slopes, (0, 2)), None


CTC_BACKWARD = declare("ctc_loss_backward", ctc_backward_rule, saves=IN1, flags=PRIVATE, inputs="grad_output log_probs")


def ctc_loss_backward(grad_output, log_probs, *args):
    """Return the gradient of `ctc_loss` with respect to the logits whose log-softmax is `log_probs`."""
    args = tuple(array_of(value) if isinstance(value, Tensor) else value for value in args)
    array = kernels.backward(array_of(grad_output), array_of(log_probs), *args)
    return record_n(CTC_BACKWARD, array, (grad_output, log_probs), args)


@rule("ctc_loss_backward")
def _ctc_backward(call):
    g, log_probs = call.inputs
    rows, *targets = _ctc_arguments(call, log_probs)
    forward = kernels.forward(array_of(rows), *targets)
    found = ctc_loss_backward(call.full(g).flatten(), rows, *targets, *forward, call.args[-1])
    return regroup(found, (len(rows), call.size, *log_probs.shape[1:])).transpose(0, 1)


def _ctc_arguments(call, log_probs):
    """Return the arguments of `losses_of_states`, with outputs and targets of all samples side by side."""
    steps, n, symbols = log_probs.shape
    states, inputs, lengths, blank, *_ = call.args
    rows = call.full(log_probs).transpose(0, 1).reshape(steps, call.size * n, symbols)
    return [rows, *[np.concatenate([each] * call.size) for each in (states, inputs, lengths)], blank]


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """CTC loss: negative log-likelihood of the targets, summed over all alignments with the outputs.

    The loss of a sample is -log(sum over alignments a of exp(sum over t of log_probs[t, a[t]])).

    Shapes: log_probs (T, N, C), the log-softmax of the outputs, or (T, C) for one sample; targets (N, S), or
    concatenated; lengths (N). The result is the mean, the sum, or the loss of each sample. An alignment has a `blank`
    between equal symbols and optionally anywhere else. The mean is that of the losses divided by the target lengths.
    With `zero_infinity`, targets too long for their input, which have no alignment, contribute 0. Saves log_probs and
    the probabilities of the states. As in PyTorch, the gradient is that with respect to the input of the log-softmax.
    Raises RuntimeError for invalid arguments.

    >>> import cygrad
    >>> log_probs = cygrad.zeros(2, 1, 3).log_softmax(2)
    >>> cygrad.nn.functional.ctc_loss(log_probs, cygrad.tensor([[1]]), (2,), (1,))
    tensor(1.0986)
    """
    how = reduction_of(reduction, None, None)
    return ctc_loss_of_package(log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity)


@rule("ctc_loss")
def _ctc(call):
    arguments = [*_ctc_arguments(call, call.inputs[0]), call.args[-1]]
    return call.shaped(losses_of_states(*arguments), call.out.shape)


def is_whole(value):
    return is_integer(value) and not isinstance(value, bool)


@named("ctc_loss")
def ctc_loss_of_package(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction=NONE, zero_infinity=False
):
    """Negative log-likelihood of the targets, summed over all alignments with the outputs; `reduction` is a code.

    `log_probs` has the shape (time, batch, classes). See nn.functional.ctc_loss.

    >>> import cygrad
    >>> log_probs = cygrad.full((2, 1, 2), 0.5).log()
    >>> cygrad.ctc_loss(log_probs, cygrad.tensor([[1]]), cygrad.tensor([2]), cygrad.tensor([1]))  # -log(3/4)
    tensor([0.2877])
    """
    x, y = require(log_probs, "ctc_loss", "log_probs"), require(targets, "ctc_loss", "targets", 2)
    is_batched = x.ndim != 2
    if not is_batched:
        x = unsqueeze(x, 1)
    given = input_lengths, target_lengths
    kinds = (Tensor, tuple, list)
    are_alike = len({isinstance(one, Tensor) for one in given}) == 1
    if not are_alike or not all(isinstance(one, kinds) for one in given) or not all(map(is_whole, (blank, reduction))):
        signatures = [
            f"Tensor log_probs, Tensor targets, {kind} input_lengths, {kind} target_lengths, int blank = 0, "
            "int reduction = 1, bool zero_infinity = False"
            for kind in ("Tensor", "tuple of ints")
        ]
        raise messages.no_such_call("ctc_loss", (log_probs, targets, *given, blank, reduction), {}, signatures)
    if x.dtype.name not in ("float32", "float64"):
        raise messages.not_implemented_for("ctc_loss_cpu", x.dtype)
    check_unbatched("ctc_loss", y, *given)
    inputs, lengths = _lengths(input_lengths, "input_lengths", 3), _lengths(target_lengths, "target_lengths", 4)
    _check(x, inputs, lengths, blank)
    padded = _padded(in_dtype(array_of(y), np.int64), lengths, x.shape[2])
    shown = y, inputs.tolist(), lengths.tolist()
    losses = losses_of_states(
        x, kernels.states_of(padded, lengths, blank), inputs, lengths, blank, zero_infinity, shown
    )
    if zero_infinity:
        losses = where(losses == float("inf"), 0.0, losses)
    if reduction == MEAN:
        losses = div(losses, tensor_of(beside(noted_data(lengths.clip(1).astype(array_of(x).dtype)), array_of(x))))
    losses = reduced(losses, reduction)
    return losses if is_batched or not losses.ndim else squeeze(losses, 0)


def losses_of_states(x, states, inputs, lengths, blank, zero_infinity, hint=None):
    """Compute the losses of all samples, given the state sequences of their targets. `hint`: targets and lengths."""
    losses, alpha = kernels.forward(array_of(x), states, inputs, lengths, blank)
    return record_n(CTC, losses, (x,), (states, inputs, lengths, blank, losses, alpha, zero_infinity), hint)


def _lengths(given, name, position):
    """Convert lengths, given as a sequence or a tensor, to an array."""
    if isinstance(given, Tensor):
        if given.dtype.is_floating_point or given.dtype.is_complex:
            raise RuntimeError(f"{name} must be integral")
        if is_open():  # a replay tests again whether the lengths are these
            return noted_data(np.array(given.reshape(-1).tolist(), np.int64))
        array = array_of(given)
        return (move(array, None) if is_array(array) else array).reshape(-1).astype(np.int64)
    if isinstance(given, int):
        given = (given,)
    if not isinstance(given, (list, tuple)):
        raise messages.wrong_type("ctc_loss", name, position, "tuple of ints", given)
    return noted_data(np.array(each_integer(tuple(given), "ctc_loss", name, position), np.int64))


def _check(x, inputs, lengths, blank):
    if x.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {x.ndim}-dimensional tensor for argument #1 'log_probs' {WHILE}"
        )
    steps, batch, symbols = x.shape
    if not 0 <= blank < symbols:
        raise RuntimeError("blank must be in label range")
    for given, name in ((inputs, "input_lengths"), (lengths, "target_lengths")):
        if len(given) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    for given, name in ((lengths, "target_lengths"), (inputs, "input_lengths")):
        if batch and given.min() < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {given.min()} {WHILE}")
    if batch and inputs.max() > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {inputs.max()} {WHILE}"
        )


@noted
def _padded(targets, lengths, symbols):
    """Return the targets as rows (N, S), padded with arbitrary values."""
    longest = int(lengths.max()) if len(lengths) else 0
    if targets.ndim == 1:
        if len(targets) != lengths.sum():
            raise RuntimeError(
                f"Expected tensor to have size {lengths.sum()} at dimension 0, but got size {len(targets)} for "
                f"argument #2 'targets' {WHILE}"
            )
        padded = kernels.in_rows(targets, lengths)
    elif targets.ndim == 2:
        if len(targets) != len(lengths):
            raise RuntimeError(
                f"Expected tensor to have size {len(lengths)} at dimension 0, but got size {len(targets)} for argument "
                f"#2 'targets' {WHILE}"
            )
        if targets.shape[1] < longest:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} for "
                f"argument #2 'targets' {WHILE}"
            )
        padded = targets[:, :longest]
    else:
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument #2 'targets' {WHILE}"
        )
    if is_array(padded):
        return padded
    named_symbols = padded[np.arange(longest) < lengths[:, None]]
    if named_symbols.size and not (named_symbols.min() >= 0 and named_symbols.max() < symbols):
        raise RuntimeError(f"a target is outside the {symbols} symbols of log_probs")
    return padded


functions = publish(globals(), {"ctc_loss": ctc_loss_of_package})
