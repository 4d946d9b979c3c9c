"""Computes the tangents of an op's results, J v, from its rule for J^T u: Note [Forward mode] in forward_mode.py."""

from cygrad._core.engine.backward import gradients_since
from cygrad._core.engine.run import run_alone, unfitted
from cygrad._core.graph import internals
from cygrad._core.graph.opdef import ELEMENTWISE, registry
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes, next_sequence_nr, set_modes
from cygrad._kernels.device.cupy_library import filled_like


def zeros_like(t, requires_grad=False):
    """Return zeros with the shape and dtype of `t`, without recording an op."""
    array = internals.memory_of(t)
    return internals.tensor_of(filled_like(array, array.shape, 0, array.dtype), requires_grad)


def apply(name, *args):
    """Call the op whose row has this name."""
    return registry[name].entry(*args)


def derivative(node, flags, inputs, tangents, results, recorded, is_inner):
    """Return (the tangents of an op's results, whether they have an unwanted history).

    `recorded`: a history is wanted; `is_inner`: the tangents may have tangents themselves.
    """
    if flags & ELEMENTWISE and len(results) == 1:
        found = _diagonal(node, inputs, tangents, results[0], recorded or is_inner)
        if found is not None:
            return (found,), not recorded and (is_inner or found.requires_grad)
    return _transposed(node, tangents, results, recorded), False


def _unwanted(tangents):
    """Return a mask in which bit i is set if input i has no tangent."""
    return sum(1 << i for i, tangent in enumerate(tangents[:64]) if tangent is None)


def _diagonal(node, inputs, tangents, result, recorded):
    """Compute J v of a real elementwise op by applying the rule to each input's tangent. None if J is not diagonal."""
    pairs = [(i, tangent) for i, tangent in enumerate(tangents) if tangent is not None]
    if result.is_complex() or any(inputs[i].is_complex() or v.is_complex() for i, v in pairs):
        return None
    dtype, shape, total = result.dtype, result.shape, None
    former = get_modes()
    try:
        set_modes(0 if recorded else NO_GRAD)  # tangents of tangents need the recorded form
        for i, v in pairs:
            v = v if v.dtype is dtype else v.to(dtype)
            v = v if v.shape == shape else apply("expand", v, shape)
            found = unfitted(node, v, (1 << len(inputs)) - 1 - (1 << i))[i]
            if found is not None:
                if found.shape != shape:
                    return None
                total = found if total is None else apply("add", total, found)
        return zeros_like(result) if total is None else total if total.dtype is dtype else total.to(dtype)
    finally:
        set_modes(former)


def _transposed(node, tangents, results, recorded):
    """Compute J v as the gradient of J^T u with respect to u."""
    oldest = next_sequence_nr()
    u = tuple(zeros_like(result, True) for result in results)
    former = get_modes()
    try:
        set_modes(0)
        products = run_alone(node, u if len(u) > 1 else u[0], _unwanted(tangents))
    finally:
        set_modes(former)
    pairs = [
        (p, v if v.dtype is p.dtype else v.to(p.dtype))
        for p, v in zip(products, tangents, strict=True)
        if p is not None and v is not None and p.requires_grad
    ]
    found = (None,) * len(u)
    if pairs:
        products, vectors = zip(*pairs, strict=True)
        found = gradients_since(oldest, products, u, vectors, recorded)
    return tuple(zeros_like(result) if f is None else f for f, result in zip(found, results, strict=True))
