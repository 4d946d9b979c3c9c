"""What `gradcheck` checks besides the entries of Jacobians."""

from __future__ import annotations

import numpy as np

from cygrad._core.engine.backward import grad
from cygrad._core.errors.sites import warn
from cygrad._ops.random.random import randn, randn_like
from cygrad.autograd import _jacobians as jacobians
from cygrad.autograd import forward_ad
from cygrad.autograd._gradcheck_report import GradcheckError
from cygrad.autograd._jacobians import values_of
from cygrad.autograd._movable import is_dense

_UNDEFINED = (
    'Expected backward function to handle undefined output grads. Please look at "Notes about undefined output '
    'gradients" in "tools/autograd/derivatives.yaml"'
)
_NOT_ZERO = (
    "Expected all input grads to be undefined or zero when all output grads are undefined or zero. Please look at "
    '"Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)
_NEW_CHECK = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
    "existing callers of this function. If this is true for you, you can call this function with "
    '"check_undefined_grad=False" to disable the feature'
)
_BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation"
_BATCHED_FORWARD = "gradcheck or gradgradcheck failed while testing batched forward-mode gradient computation"


# -- of backward --


def check_linear(case, outputs):
    """Check that gradients of zero are zero."""
    incoming = [out.detach() * 0 for out in outputs]
    for i, g in enumerate(grad(outputs, case.variables, incoming, retain_graph=True, allow_unused=True)):
        if g is None:
            continue
        _check_layout(g, case.variables[i])
        if np.any(values_of(g) != 0):
            raise GradcheckError(
                "backward not multiplied by grad_output\n"
                f"  with incoming gradients of zero, the gradient of input {i} is not zero: backward adds something, "
                "or ignores the incoming gradient"
            )


def _check_layout(g, x):
    """Check that a sparse gradient has the layout of its tensor."""
    if is_dense(g):
        return
    if g.layout is not x.layout:
        raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout})")
    kind = str(g.layout).replace("torch.", "").replace("_coo", "")
    for name in ("sparse_dim", "dense_dim"):
        found, expected = getattr(g, name)(), getattr(x, name)()
        if found != expected:
            raise GradcheckError(f"grad is {kind} tensor, but has incorrect {name} {found}, expected {expected}")


def check_dtypes(case, outputs):
    """Check that gradients have the dtype of their tensors."""
    incoming = [randn_like(out) for out in outputs]
    grads = grad(outputs, case.variables, incoming, retain_graph=True, allow_unused=True)
    for x, g in zip(case.variables, grads, strict=True):
        if g is not None and g.dtype != x.dtype:
            raise GradcheckError(f"Gradient has dtype mismatch\n  {g.dtype} for a tensor of {x.dtype}")


def check_undefined(case):
    """Check that missing gradients count as zero: for all outputs at once, and for each one."""
    outputs = case.outputs()
    missing = [range(len(outputs))] + ([[i] for i in range(len(outputs))] if len(outputs) > 1 else [])
    for chosen in missing:
        outputs = case.outputs()
        stopped = [jacobians.Stop.apply(out) if i in chosen else out for i, out in enumerate(outputs)]
        incoming = [out.detach() * 0 for out in outputs]
        try:
            found = grad(stopped, case.variables, incoming, allow_unused=True)
        except RuntimeError as error:
            warn(_NEW_CHECK)
            text = f"{_UNDEFINED}\n  backward without a gradient for outputs {list(chosen)}: {error}"
            raise GradcheckError(text) from error
        if any(g is not None and np.any(values_of(g) != 0) for g in found):
            warn(_NEW_CHECK)
            raise GradcheckError(f"{_NOT_ZERO}\n  it is not zero without a gradient for outputs {list(chosen)}")


def check_batched(case, outputs):
    """Check that several incoming gradients at once give the same results as separate ones."""
    for out in outputs:
        rows = randn((2, *out.shape), dtype=out.dtype, device=out.device)
        keep = {"retain_graph": True, "allow_unused": True}
        one_by_one = [grad(out, case.variables, row, **keep) for row in rows]
        try:
            at_once = grad(out, case.variables, rows, is_grads_batched=True, **keep)
        except RuntimeError as error:
            raise _not_batched(error, _BATCHED) from error
        for i, together in enumerate(at_once):
            if together is not None and not _same_rows(together, [row[i] for row in one_by_one]):
                raise GradcheckError(f"{_BATCHED} of input {i}")


def _same_rows(together, one_by_one):
    return all(np.allclose(values_of(a), values_of(b)) for a, b in zip(together, one_by_one, strict=True))


def _not_batched(error, what):
    """Return the error for a function that `vmap` does not run."""
    return GradcheckError(f"While computing batched gradients, got: {error}\n\n{what}")


# -- of forward mode --


def _outputs_along(case, tangents):
    """Return the tangents of the outputs that are floating point or complex, for tangents by position or none."""
    inputs = [x.detach() if k in case.positions else x for k, x in enumerate(case.inputs)]
    for position, tangent in tangents.items():
        inputs[position] = forward_ad.make_dual(inputs[position], tangent)
    outputs = [out for out in case.all_outputs(inputs) if out.dtype.is_floating_point or out.dtype.is_complex]
    return outputs, [forward_ad.unpack_dual(out).tangent for out in outputs]


def check_undefined_forward(case):
    """Check that an input without a tangent counts as one whose tangent is zero."""
    tangents = {k: randn_like(x.detach()) for k, x in zip(case.positions, case.variables, strict=True)}
    for i, position in enumerate(case.positions):
        others = {k: tangent for k, tangent in tangents.items() if k != position}
        with forward_ad.dual_level():
            _, with_zero = _outputs_along(case, {**others, position: tangents[position] * 0})
            _, without = _outputs_along(case, others)
            for o, (expected, found) in enumerate(zip(with_zero, without, strict=True)):
                if found is None or expected is None:
                    continue
                if not np.allclose(values_of(found), values_of(expected)):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output with index: {o} when input: {i} has an undefined "
                        f"tangent value.\n  got {found}, but expected {expected}"
                    )


def check_batched_forward(case):
    """Check that `vmap` over the tangents of an input gives the same results as separate tangents."""
    from cygrad._vmap_internals import _vmap  # deferred: built on `autograd`

    for i, (x, position) in enumerate(zip(case.variables, case.positions, strict=True)):

        def along(tangent, position=position):
            with forward_ad.dual_level():
                outputs, found = _outputs_along(case, {position: tangent})
                pairs = zip(outputs, found, strict=True)
                return tuple(out.new_zeros(out.shape) if each is None else each for out, each in pairs)

        rows = randn((2, *x.shape), dtype=x.dtype, device=x.device)
        one_by_one = [along(row) for row in rows]
        try:
            together = _vmap(along)(rows)
        except RuntimeError as error:
            raise _not_batched(error, _BATCHED_FORWARD) from error
        for o, at_once in enumerate(together):
            if not _same_rows(at_once, [row[o] for row in one_by_one]):
                raise GradcheckError(f"{_BATCHED_FORWARD} of input {i}")
