"""The profiler against PyTorch's: schedules, and the functions and nodes of a training step, in order."""

import random
import warnings

import pytest

import cygrad
import cygrad.profiler

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("seed", range(30))
def test_schedules(seed):
    numbers = random.Random(seed)
    names = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
    options = {name: numbers.randrange(4) for name in names}
    options["active"] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about schedules without warmup
        ours = cygrad.profiler.schedule(**options)
        theirs = torch.profiler.schedule(**options)
    assert [ours(i).name for i in range(40)] == [theirs(i).name for i in range(40)]


def shown(library):
    class Cube(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x

    x = library.ones(3, 4, requires_grad=True)
    w = library.ones(4, 2, requires_grad=True)
    with library.autograd.profiler.profile(record_shapes=True) as prof:
        with library.autograd.profiler.record_function("forward"):
            y = Cube.apply((x @ w).sin())
            loss = y.mul_(0.5).exp().sum()
        loss.backward()
    ops = ("forward", "Cube", "aten::sin", "aten::exp", "aten::mul_", "aten::cos")
    kept = [
        (event.name, event.input_shapes[:1] if event.name.startswith("aten::") else None, event.scope)
        for event in prof.function_events
        if event.name in ops or event.name.endswith("Backward0") or event.name.endswith("Backward")
    ]
    numbers = {}
    for event in prof.function_events:
        if event.sequence_nr >= 0 and not event.name.startswith("autograd::engine"):
            numbers.setdefault(event.sequence_nr, []).append(event.name)
    return [(n, s, c) for n, s, c in kept if not n.startswith("autograd::engine")], sorted(numbers.values())


def test_a_training_step():
    (ours, our_links), (theirs, their_links) = shown(cygrad), shown(torch)
    assert [name for name, _, _ in ours] == [name for name, _, _ in theirs]
    assert [shapes for _, shapes, _ in ours] == [shapes for _, shapes, _ in theirs]
    for pair in (["Cube", "CubeBackward"], ["aten::sin", "SinBackward0"], ["aten::exp", "ExpBackward0"]):
        assert pair in our_links
        assert pair in their_links


def fields(library):
    """The public attributes of an event, and of an average."""
    with library.autograd.profiler.profile() as prof:
        library.ones(2).sum()
    return [{name for name in dir(thing[0]) if name[0] != "_"} for thing in (prof.function_events, prof.key_averages())]


def test_events_have_the_fields_of_pytorch():
    for ours, theirs in zip(fields(cygrad), fields(torch)):
        assert theirs - ours == set()
