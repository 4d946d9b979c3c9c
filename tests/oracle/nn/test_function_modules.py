"""Modules that hold the settings of a function against PyTorch's: values, gradients, repr, state, signatures."""

import inspect

import numpy as np
import pytest

import cygrad
from function_modules import ACTIVATIONS, IN_PLACE, LOSSES, REDUCTIONS, arguments, tensors, with_reduction

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

ROWS = ACTIVATIONS + [
    (with_reduction(made, reduction), with_reduction(call, reduction))
    for made, call in LOSSES
    for reduction in REDUCTIONS
]
NAMES = sorted({made.partition("(")[0] for made, _ in ROWS})


def results(library, made, call):
    """A module's results, gradients, and repr."""
    names = tensors(library)
    module = eval(f"nn.{made}", {"nn": library.nn}, names).double()
    output = module(*(names[name] for name in arguments(call)))
    (output * output).sum().backward()
    leaves = [tensor for tensor in names.values() if getattr(tensor, "requires_grad", False)]
    gradients = [leaf.grad for leaf in leaves + list(module.parameters())]
    arrays = [None if tensor is None else tensor.detach().numpy() for tensor in (output, *gradients)]
    state = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    return arrays, repr(module), state


@pytest.mark.filterwarnings("ignore:reduction. .mean. divides")
@pytest.mark.parametrize(("made", "call"), ROWS)
def test_module(made, call):
    ours, our_repr, our_state = results(cygrad, made, call)
    theirs, their_repr, their_state = results(torch, made, call)
    assert our_repr == their_repr and our_state == their_state
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            # PyTorch stores the slope 1/6 of hardsigmoid in float32.
            np.testing.assert_allclose(a, b, 1e-7, 1e-12)


@pytest.mark.parametrize("made", IN_PLACE)
def test_look_of_what_works_in_place(made):
    text = f"nn.{made[:-1]}{'' if made.endswith('()') else ','} inplace=True)"
    assert repr(eval(text, {"nn": cygrad.nn})) == repr(eval(text, {"nn": torch.nn}))


@pytest.mark.parametrize("name", NAMES)
def test_signatures(name):
    ours, theirs = getattr(cygrad.nn, name), getattr(torch.nn, name)
    for method in ("__init__", "forward"):
        found, expected = (inspect.signature(getattr(c, method)) for c in (ours, theirs))
        if method == "__init__" and "args" in expected.parameters:
            continue  # Module's own, without arguments
        assert [(p.name, p.kind, p.default) for p in found.parameters.values()] == [
            (p.name, p.kind, p.default) for p in expected.parameters.values()
        ]


@pytest.mark.parametrize("old", [{"size_average": False}, {"reduce": False}])
def test_old_flags(old):
    for library in (cygrad, torch):
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
            loss = library.nn.SmoothL1Loss(**old)
        assert loss.reduction == ("sum" if "size_average" in old else "none")
