"""Forward mode of every op on its samples: tangents against central differences along a direction."""

import numpy as np
import pytest
from ops.calls import DIFFERENTIABLE, Call, Cygrad
from ops.test_generic import STEP, WITH_INPLACE, assert_near, each_sample, inplace_form

import cygrad
from cygrad._core.graph.internals import array_of
from cygrad.autograd import forward_ad

SMOOTH = {"grad": True, "smooth": True}


def along(f, leaves, directions):
    """The derivative of the arrays returned by `f()` as all leaves move along their directions."""
    arrays = [array_of(leaf) for leaf in leaves]
    start = [array.copy() for array in arrays]
    ends = []
    for step in (STEP, -STEP):
        for array, at, direction in zip(arrays, start, directions, strict=True):
            array[...] = at + step * array_of(direction)
        ends.append([np.array(value) for value in f()])
    for array, at in zip(arrays, start, strict=True):
        array[...] = at
    with np.errstate(invalid="ignore"):
        return [(above - below) / (2 * STEP) for above, below in zip(*ends, strict=True)]


class DualCall(Call):
    """A sample with dual tensors as leaves."""

    def __init__(self, name, sample, requires_grad=False, on=Cygrad):
        super().__init__(name, sample, on=on)
        self.directions = self.weights(self.leaves, seed=2)
        self.requires_grad = requires_grad
        for leaf in self.leaves:
            leaf.requires_grad_(requires_grad)

    def make_dual(self):
        pairs = zip(self.leaves, self.directions, strict=True)
        duals = {id(leaf): forward_ad.make_dual(leaf, direction) for leaf, direction in pairs}
        self.leaves = list(duals.values())

        def replaced(value):
            if isinstance(value, (list, tuple)):
                return type(value)(map(replaced, value))
            return duals.get(id(value), value)

        self.args = [replaced(value) for value in self.args]
        self.kwargs = {key: replaced(value) for key, value in self.kwargs.items()}


def is_real_or_complex(value):
    return isinstance(value, cygrad.Tensor) and (value.is_floating_point() or value.is_complex())


def tangents_of(tensors):
    found = []
    for t in tensors:
        tangent = forward_ad.unpack_dual(t).tangent
        assert tangent is None or (tangent.shape == t.shape and tangent.dtype is t.dtype)
        found.append(cygrad.zeros_like(t) if tangent is None else tangent)
    return found


def check_tangents(name, sample, on):
    plain, call = DualCall(name, sample), DualCall(name, sample, on=on)
    if not plain.leaves:
        return
    recorded = [out.requires_grad for out in Call(name, sample).run() if is_real_or_complex(out)]

    def results():
        outs = [out for out in plain.run() if is_real_or_complex(out)]
        return [array_of(out) for out, counts in zip(outs, recorded, strict=True) if counts]

    def tangents(call):
        with forward_ad.dual_level():
            call.make_dual()
            outs = [out for out in call.run() if is_real_or_complex(out)]
            assert not any(out.requires_grad for out in outs), sample
            return tangents_of(out for out, counts in zip(outs, recorded, strict=True) if counts)

    expected = along(results, plain.leaves, plain.directions) if on is Cygrad else tangents(plain)
    found = tangents(call)
    if all(leaf.numel() for leaf in plain.leaves):  # the mean of an empty tensor is NaN, as is its difference
        assert_near(found, expected, f"{sample}: tangent")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_tangent(name, on):
    for sample in each_sample(name, on, **SMOOTH):
        check_tangents(name, sample, on)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_tangent_of_gradient(name, on):
    """Forward over reverse."""
    for sample in each_sample(name, on, **SMOOTH):
        plain, call = DualCall(name, sample, True), DualCall(name, sample, True, on)
        weights = plain.weights(plain.outputs())
        if not weights:
            continue

        def gradients(plain=plain, weights=weights):
            return map(array_of, plain.gradients(weights))

        def tangents(call):
            weights = call.weights(call.outputs())
            with forward_ad.dual_level():
                call.make_dual()
                return tangents_of(call.gradients(weights))

        expected = along(gradients, plain.leaves, plain.directions) if on is Cygrad else tangents(plain)
        found = tangents(call)
        assert_near(found, expected, f"{sample}: tangent of gradient", 1e-4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_of_tangent(name, on):
    """Reverse over forward: the gradient of <J v, w> for x equals the tangent of J^T w, which forward over reverse
    gives.
    """
    for sample in each_sample(name, on, **SMOOTH):
        found, call = [], DualCall(name, sample, True, on)
        weights = call.weights(call.outputs())
        if not weights:
            continue
        leaves = call.leaves
        with forward_ad.dual_level():
            call.make_dual()
            outs = call.outputs()
            expected = tangents_of(call.gradients(weights, outs, retain_graph=True))
            pairs = zip(tangents_of(outs), weights, strict=True)
            pairs = [(tangent, w) for tangent, w in pairs if tangent.requires_grad]
            if pairs:
                found = Call.derive(call, [t for t, _ in pairs], leaves, [w for _, w in pairs])
        assert_near(found or [cygrad.zeros_like(x) for x in leaves], expected, f"{sample}: gradient of tangent", 1e-7)


@pytest.mark.parametrize("name", [name for name in WITH_INPLACE if name in DIFFERENTIABLE])
def test_tangent_of_inplace(name, on):
    """In-place forms produce the function's tangent; in a view, it becomes part of the base's tangent."""
    for sample in each_sample(name, on, **SMOOTH):
        apart, call, view = (DualCall(name, sample, on=on) for _ in range(3))
        first = call.args[0] if call.args else None
        if not isinstance(first, cygrad.Tensor) or not call.leaves or first is not call.leaves[0]:
            continue
        with forward_ad.dual_level():
            for each in (apart, call, view):
                each.make_dual()
            expected = apart.run()[0]
            if expected.shape != first.shape or expected.dtype is not first.dtype:
                continue
            changed = call.args[0].clone()
            inplace_form(name)(changed, *call.args[1:], **call.kwargs)
            base = cygrad.stack([view.args[0], view.args[0]])
            inplace_form(name)(base[1], *view.args[1:], **view.kwargs)
            wanted = tangents_of([expected])
            assert_near(tangents_of([changed]), wanted, f"{sample}: in place")
            assert_near(tangents_of([base[1]]), wanted, f"{sample}: in a view")
            assert_near(tangents_of([base[0]]), tangents_of([view.args[0]]), f"{sample}: beside it")
