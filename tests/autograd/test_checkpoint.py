"""Checkpointing: what is recomputed and when, what is kept, and the messages about functions that change."""

import contextlib
import gc
import re

import pytest

import cygrad as torch
from cygrad._core.graph.internals import array_of
from cygrad.autograd.graph import live_nodes
from cygrad.utils.checkpoint import (
    CheckpointError,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from helpers import fails, first_line, in_threads, leaf, line_marked

BOTH = pytest.mark.parametrize("reentrant", [True, False])


def net(x):
    return (x * x).sin().exp()


def gradient_of(function, *values):
    x = leaf(*values)
    function(x).sum().backward()
    return x.grad.tolist()


def bytes_alive():
    """The total size of all tensors, counting shared memory once."""
    gc.collect()
    arrays = [array_of(value) for value in gc.get_objects() if isinstance(value, torch.Tensor)]
    owners = {id(a if a.base is None else a.base): a.nbytes for a in arrays}
    return sum(owners.values())


# ------------------------------------------------------------------ values and gradients


def test_the_kind_of_device_of_arguments():
    from cygrad.utils.checkpoint import DefaultDeviceType, _get_device_module, _infer_device_type

    x = torch.ones(2)
    assert _infer_device_type(x, {"y": [x.to("meta")]}) == "meta" and _get_device_module("meta").type == "meta"
    assert _infer_device_type(x, 3) == DefaultDeviceType.get_device_type() and _get_device_module("cpu") is torch.cpu


@BOTH
def test_same_result_and_gradient(reentrant):
    x = leaf(0.5, 1.0)
    assert checkpoint(net, x, use_reentrant=reentrant).tolist() == net(x).tolist()
    found = gradient_of(lambda x: checkpoint(net, x, use_reentrant=reentrant), 0.5, 1.0)
    assert found == gradient_of(net, 0.5, 1.0)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")  # in PyTorch, too
@BOTH
def test_nested(reentrant):
    def outer(x):
        return checkpoint(net, checkpoint(net, x, use_reentrant=reentrant).cos(), use_reentrant=reentrant) * x

    def plain(x):
        return net(net(x).cos()) * x

    found = gradient_of(lambda x: checkpoint(outer, x, use_reentrant=reentrant), 0.3, 0.4)
    assert found == pytest.approx(gradient_of(plain, 0.3, 0.4))


def test_three_levels_and_another_tensor():
    w = leaf(2.0)

    def level(n, x):
        return (x * w).sin() if n == 0 else checkpoint(level, n - 1, x, use_reentrant=False).exp()

    x = leaf(0.1)
    level(3, x).backward()
    found = x.grad.tolist(), w.grad.tolist()
    x.grad = w.grad = None
    (x * w).sin().exp().exp().exp().backward()
    assert found == (x.grad.tolist(), w.grad.tolist())


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
@BOTH
def test_sequential(segments, reentrant):
    chain = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(5)])
    x = torch.ones(2, 3, requires_grad=True)
    checkpoint_sequential(chain, segments, x, use_reentrant=reentrant).sum().backward()
    found = [x.grad, *[p.grad for p in chain.parameters()]]
    x.grad = None
    chain.zero_grad()
    chain(x).sum().backward()
    for ours, plain in zip(found, [x.grad, *[p.grad for p in chain.parameters()]]):
        assert ours.tolist() == plain.tolist()


def test_second_derivatives_and_grad():
    x = leaf(0.7)
    (g,) = torch.autograd.grad(checkpoint(net, x, use_reentrant=False), x, create_graph=True)
    (second,) = torch.autograd.grad(g, x)
    (plain,) = torch.autograd.grad(net(x), x, create_graph=True)
    assert g.tolist() == plain.tolist()
    assert second.tolist() == torch.autograd.grad(plain, x)[0].tolist()


def test_a_function_that_runs_backward_itself():
    def slope(x):
        (g,) = torch.autograd.grad((x * x).sin().sum(), x, create_graph=True)
        return g.exp()

    assert gradient_of(lambda x: checkpoint(slope, x, use_reentrant=False), 0.4) == gradient_of(slope, 0.4)


def test_keyword_arguments_and_any_results():
    def function(x, scale=1, *, shift):
        return {"a": (x * scale).exp(), "b": [shift.sin(), 3]}

    x, shift = leaf(0.5), leaf(0.2)
    out = checkpoint(function, x, use_reentrant=False, scale=3, shift=shift)
    assert out["b"][1] == 3
    (out["a"] + out["b"][0]).backward()
    assert x.grad.item() == pytest.approx(3 * torch.tensor(1.5).exp().item())
    assert shift.grad.item() == pytest.approx(torch.tensor(0.2).cos().item())


@BOTH
def test_backward_twice(reentrant):
    x = leaf(0.5)
    y = checkpoint(net, x, use_reentrant=reentrant)
    y.backward(retain_graph=True)
    once = x.grad.tolist()
    y.backward()
    assert x.grad.tolist() == [2 * once[0]]
    with fails(RuntimeError, "Trying to backward through the graph a second time ..."):
        y.backward()


def test_without_grad_nothing_is_kept():
    x = leaf(1.0)
    with torch.no_grad():
        assert not checkpoint(net, x, use_reentrant=False).requires_grad


def test_integers_and_inputs_without_gradient():
    x = leaf(1.0, 2.0, 3.0)

    def pick(x, index, name):
        assert name == "name"
        return x[index].exp()

    for reentrant in (True, False):
        x.grad = None
        checkpoint(pick, x, torch.tensor([0, 2]), "name", use_reentrant=reentrant).sum().backward()
        assert x.grad[1].item() == 0


# ------------------------------------------------------------------ order of calls


def calls(early, **options):
    """The calls in the second run of a function of three ops, of which two save tensors."""
    seen = []

    def function(x):
        seen.append("begin")
        y = x.sin()
        seen.append("sin")
        y = y.exp()
        seen.append("exp")
        return y + 1

    context = contextlib.nullcontext() if early is None else set_checkpoint_early_stop(early)
    with context:
        y = checkpoint(function, leaf(1.0), use_reentrant=False, **options)
    del seen[:]
    y.backward()
    return seen


def test_early_stop():
    early, late = ["begin", "sin"], ["begin", "sin", "exp"]
    assert calls(None) == early
    assert calls(False) == late
    assert calls(None, early_stop=False) == late
    assert calls(True, early_stop=False) == early
    assert calls(False, early_stop=True) == late


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_early_stop_of_nested_checkpoints(outer, inner):
    """Each checkpoint stops by its own setting; the last statements of one that does not stop run again."""
    calls = []

    def noted(x, name):
        calls.append(name)
        return x * 1

    def within(x):
        x = noted(noted(x, "c").sin(), "d").cos()
        calls.append("f")
        return x

    def around(x):
        x = checkpoint(within, noted(x, "a").exp(), use_reentrant=False, early_stop=inner)
        x = noted(x, "b").sin()
        calls.append("e")
        return x

    x = leaf(0.5)
    y = checkpoint(around, x, use_reentrant=False, early_stop=outer)
    assert "".join(calls) == "acdfbe"
    calls.clear()
    y.sum().backward()
    again = "acdfb" + "e" * (not outer) + "cd" + "f" * (not inner)
    assert "".join(calls) == again
    z = leaf(0.5)
    z.exp().sin().cos().sin().sum().backward()
    assert x.grad.tolist() == pytest.approx(z.grad.tolist(), rel=1e-6)


def test_grad_mode_and_arguments_of_the_runs():
    x, seen = leaf(1.0), []

    def function(a):
        seen.append((torch.is_grad_enabled(), a.requires_grad, a is x))
        return a.exp()

    checkpoint(function, x, use_reentrant=True).backward()
    checkpoint(function, x, use_reentrant=False).backward()
    assert seen == [(False, True, True), (True, True, False), (True, True, True), (True, True, True)]


@pytest.mark.parametrize("keep", [True, False])
@BOTH
def test_random_numbers(reentrant, keep):
    noise = []

    def function(x):
        noise.append(torch.rand(3))
        return (x * noise[-1]).exp()

    y = checkpoint(function, leaf(1.0, 2.0, 3.0), use_reentrant=reentrant, preserve_rng_state=keep)
    before = torch.get_rng_state()
    y.sum().backward()
    assert (noise[0].tolist() == noise[1].tolist()) == keep
    assert (before.tolist() == torch.get_rng_state().tolist()) == keep


def test_dropout_is_the_same():
    x = torch.ones(1000, requires_grad=True)
    y = checkpoint(lambda t: torch.nn.functional.dropout(t * 2, 0.5), x, use_reentrant=False)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_contexts():
    log = []

    @contextlib.contextmanager
    def context(name):
        log.append(f"begin {name}")
        try:
            yield
        finally:
            log.append(f"end {name}")

    y = checkpoint(net, leaf(1.0), use_reentrant=False, context_fn=lambda: (context("one"), context("two")))
    assert log == ["begin one", "end one"]
    y.backward()
    assert log[2:] == ["begin two", "end two"]


def test_hooks_on_saved_tensors_around_and_inside():
    log = []

    def hooks(name):
        def pack(tensor):
            log.append(f"pack {name}")
            return tensor

        def unpack(tensor):
            log.append(f"unpack {name}")
            return tensor

        return torch.autograd.graph.saved_tensors_hooks(pack, unpack)

    def function(x):
        with hooks("inside"):
            y = x * x
        return y.sin()

    with hooks("around"):
        y = checkpoint(function, leaf(1.0), use_reentrant=False)
    assert log == ["pack around", "pack inside", "pack inside"]
    y.backward()
    assert log[3:] == ["unpack around", "pack inside", "pack inside", "unpack inside", "unpack inside"]


def test_a_group_of_passes_computes_once():
    count = []

    def function(x):
        count.append(1)
        return x.exp(), x.sin()

    for group, runs in [(contextlib.nullcontext(), 2), (GraphExecGroup(), 1)]:
        a, b = checkpoint(function, leaf(1.0), use_reentrant=False)
        del count[:]
        with group:
            a.backward(retain_graph=True)
            b.backward()
        assert len(count) == runs


def test_looking_at_saved_values():
    y = checkpoint(net, leaf(0.5), use_reentrant=False)
    first, second = y.grad_fn._saved_result, y.grad_fn._saved_result
    assert first.tolist() == second.tolist() == y.tolist()
    y.backward()


def test_threads():
    def work():
        return gradient_of(lambda x: checkpoint(net, x, use_reentrant=False, preserve_rng_state=False), 0.5, 0.6)

    assert in_threads([work] * 8) == [gradient_of(net, 0.5, 0.6)] * 8


# ------------------------------------------------------------------ memory


@BOTH
def test_memory_falls(reentrant):
    size, depth = 50_000, 16
    chain = [torch.exp, torch.sin] * (depth // 2)

    def plain(x):
        for function in chain:
            x = function(x)
        return x

    x = (torch.ones(size) / 10).requires_grad_()
    before = bytes_alive()
    y = plain(x)
    held = bytes_alive() - before
    assert held >= depth / 2 * size * 4
    del y
    y = checkpoint(plain, x, use_reentrant=reentrant)
    assert bytes_alive() - before <= 1.1 * size * 4  # only the result
    y.sum().backward()
    del y
    x.grad = None
    assert bytes_alive() - before <= 100
    y = checkpoint_sequential(chain, 4, x, use_reentrant=reentrant)
    assert bytes_alive() - before <= 0.6 * held
    y.sum().backward()


def test_what_is_not_used_is_let_go_after_the_pass():
    x = torch.ones(100_000, requires_grad=True)
    a, b = checkpoint(lambda t: (t.exp().sin(), t.cos().exp()), x, use_reentrant=False)
    before = bytes_alive()
    torch.autograd.grad(a.sum(), x, retain_graph=True)
    assert bytes_alive() - before < 1000
    b.sum().backward()


@BOTH
def test_no_node_stays_after_an_error(reentrant):
    def function(x):
        if torch.is_grad_enabled() and runs:
            raise ValueError("second run")
        runs.append(1)
        return net(x)

    gc.collect()
    runs, before = [], live_nodes()
    y = checkpoint(function, leaf(1.0), use_reentrant=reentrant)
    with pytest.raises(ValueError, match="second run"):
        y.backward()
    del y
    gc.collect()
    assert live_nodes() == before
    assert gradient_of(net, 0.5)  # no hook is left behind


# ------------------------------------------------------------------ errors


def changing(first, second):
    """A function that behaves like `first` on the first call and like `second` afterwards."""
    todo = [first, second]
    return lambda x: todo.pop(0)(x)


def message(function, **options):
    with pytest.raises(CheckpointError) as caught:
        checkpoint(function, leaf(1.0, 2.0, 3.0), use_reentrant=False, **options).sum().backward()
    return str(caught.value)


def test_fewer_tensors_the_second_time():
    text = message(changing(lambda x: (x * x).sin().exp(), lambda x: (x * x).sin()))
    head = "torch.utils.checkpoint: A different number of tensors was saved"
    assert text.splitlines()[:3] == [
        f"{head} during the original forward and recomputation.",
        "Number of tensors saved during forward: 4",
        "Number of tensors saved during recomputation: 3.",
    ]


def test_more_tensors_the_second_time():
    def grown():
        return changing(lambda x: (x * x).sin(), lambda x: (x * x).sin().exp())

    line = "trying to save more tensors during recomputation than during the original forward pass."
    assert first_line(message(grown(), early_stop=False)) == f"torch.utils.checkpoint: {line}"
    assert gradient_of(lambda x: checkpoint(grown(), x, use_reentrant=False), 0.5)  # early stop ends before them


def test_another_dtype_names_both_lines():
    def first(x):
        return (x * x).sin()  # first

    def second(x):
        return (x * x.double()).sin()  # second

    text = message(changing(first, second))
    assert first_line(text) == (
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
        "forward pass."
    )
    assert "saved metadata: {'shape': torch.Size([3]), 'dtype': torch.float32, 'device': device(type='cpu')}" in text
    lines = text.splitlines()
    (forward,) = [line for line in lines if line.startswith("    in forward:")]
    (again,) = [line for line in lines if line.startswith("    computed again:")]
    assert re.search(line_marked("first"), forward)
    assert re.search(line_marked("second"), again)


def test_debug_lists_what_was_saved():
    def change():
        return changing(lambda x: (x * x).sin(), lambda x: (x * x.double()).sin())

    for text in (message(change(), debug=True), debug_text(change())):
        assert first_line(text) == " An error happened while unpacking tensors; dumping logs of latest computation"
        assert text.count("torch.float64 (3,)") >= 2
    with set_checkpoint_debug_enabled(False):
        assert "dumping logs" not in message(change(), debug=True)


def debug_text(function):
    with set_checkpoint_debug_enabled(True):
        return message(function)


def test_determinism_check_may_be_off():
    change = changing(lambda x: (x * x).sin(), lambda x: (x * x.double()).sin())
    assert gradient_of(lambda x: checkpoint(change, x, use_reentrant=False, determinism_check="none"), 0.5)
    with fails(ValueError, "determinism_check should be one of ['default', 'none'], but got foo"):
        checkpoint(net, leaf(1.0), use_reentrant=False, determinism_check="foo")


def test_saved_tensors_are_opened_once_in_a_pass():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x * 2)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0] * ctx.saved_tensors[0]

    y = checkpoint(lambda x: Twice.apply(x.exp()), leaf(1.0), use_reentrant=False)
    with fails(CheckpointError, "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already ..."):
        y.backward()


def test_an_input_that_was_changed():
    x = leaf(1.0) * 1
    y = checkpoint(net, x, use_reentrant=False)
    x.mul_(2)
    with fails(RuntimeError, "one of the variables needed for gradient computation has been modified by ..."):
        y.backward()


def test_reentrant_needs_the_whole_backward():
    line = "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` ..."
    x = leaf(1.0)
    with fails(RuntimeError, line):
        torch.autograd.grad(checkpoint(net, x, use_reentrant=True), x)
    with fails(RuntimeError, line):
        checkpoint(net, x, use_reentrant=True).backward(inputs=[x])
    with fails(RuntimeError, "none of output has requires_grad=True, this checkpoint() is not necessary"):
        checkpoint(lambda a: a.detach(), x, use_reentrant=True).backward()
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        checkpoint(net, torch.ones(1), use_reentrant=True)


@BOTH
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")  # the inner one
@pytest.mark.parametrize("inner", [{}, {"enabled": False}], ids=["on", "off"])
def test_the_second_run_has_the_precision_of_the_first(reentrant, inner):
    """Backward runs outside autocast, but recomputation uses the autocast state of the first run."""
    kinds = []

    def product(x):
        kinds.append((x @ x).dtype)
        return checkpoint(net, x @ x, use_reentrant=reentrant)  # checkpoints nest

    gradients = []
    for function in (product, lambda x: checkpoint(product, x, use_reentrant=reentrant)):
        x = torch.tensor([[0.3, 0.7], [0.1, 0.4]], requires_grad=True)
        with torch.autocast("cpu", dtype=torch.float16), torch.autocast("cpu", dtype=torch.float16, **inner):
            y = function(x)
        assert not torch.is_autocast_enabled("cpu")
        y.sum().backward()
        assert not torch.is_autocast_enabled("cpu")
        gradients.append(x.grad)
    assert kinds == [torch.float32 if inner else torch.float16] * 3
    assert torch.equal(*gradients)


def test_bad_arguments():
    x = leaf(1.0)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(net, x)
    with pytest.warns(UserWarning, match="checkpoint_sequential: the use_reentrant parameter should be passed"):
        checkpoint_sequential([net], 1, x)
    with fails(ValueError, "Unexpected keyword arguments: foo,bar"):
        checkpoint(net, x, use_reentrant=True, foo=1, bar=2)
    with fails(ValueError, "Passing `context_fn` or `debug` is only supported when use_reentrant=False."):
        checkpoint(net, x, use_reentrant=True, debug=True)
    with fails(ValueError, "debug=True is incompatible with non-default context_fn"):
        checkpoint(net, x, use_reentrant=False, debug=True, context_fn=lambda: (1, 2))
    with fails(ValueError, "Unexpected keyword arguments: foo"):
        checkpoint_sequential([net], 1, x, use_reentrant=False, foo=2)
    with pytest.raises(ZeroDivisionError):
        checkpoint_sequential([net], 0, x, use_reentrant=False)


def test_forward_mode_goes_through_a_checkpoint():
    w = leaf(1.0, 2.0, 3.0)

    def plain(y):
        return y.sin() * y * w

    def function(y):
        return checkpoint(plain, y, use_reentrant=False)

    x, v = torch.tensor([0.5, -1.25, 0.75]), torch.tensor([1.0, 0.5, 2.0])

    def uses(f):
        with torch.autograd.forward_ad.dual_level():
            z = x.clone().requires_grad_()
            y = f(torch.autograd.forward_ad.make_dual(z, v))
            tangent = torch.autograd.forward_ad.unpack_dual(y).tangent
            yield tangent
            yield from torch.autograd.grad(tangent.sum(), [z, w], retain_graph=True)
            yield from torch.autograd.grad(y.sum(), [z, w])
        yield from torch.func.jvp(f, (x,), (v,))
        yield from torch.func.jvp(torch.func.grad(lambda z: f(z).sum()), (x,), (v,))
        yield torch.func.jacfwd(f)(x)
        yield torch.func.hessian(lambda z: f(z).sum())(x)

    for found, expected in zip(list(uses(function)), list(uses(plain)), strict=True):
        torch.testing.assert_close(found, expected)
    double = x.double().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda y: checkpoint(lambda z: z.sin() * z, y, use_reentrant=False), double, check_forward_ad=True
    )


def test_saved_tensors_without_history_are_the_same_objects():
    class Saves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, other):
            ctx.save_for_backward(other)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(id(ctx.saved_tensors[0]))  # no tensor: without the GIL, 3.13 never frees classes
            return grad, None

    seen, other = [], torch.ones(2)
    checkpoint(Saves.apply, leaf(1.0, 2.0), other, use_reentrant=False).sum().backward()
    assert seen == [id(other)]
