"""Selective checkpoints: kept results are not recomputed, and gradients equal those without a checkpoint."""

import functools
import gc

import pytest

import cygrad as torch
from cygrad import ops
from cygrad._core.graph.internals import live_tensors
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.autograd.profiler import profile
from cygrad.nn import functional as F
from cygrad.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from helpers import fails, in_threads

SAVE, AGAIN = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE


def values(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


# A function, and its arguments.
PROGRAMS = {
    "products": (lambda x, w: ((x @ w).sin() @ w.t()).exp() @ w, lambda: (values(3, 4), values(4, 4))),
    "stacks": (lambda a, b: torch.bmm(a, b).tanh() @ b.mT, lambda: (values(2, 3, 4), values(2, 4, 5))),
    "vectors": (lambda m, v: (m @ v).sin() @ m @ v, lambda: (values(4, 4), values(4))),
    "linear": (lambda x, w, b: F.linear(F.linear(x, w, b).relu(), w), lambda: (values(3, 4), values(4, 4), values(4))),
    "one factor twice": (lambda x: (x @ x).sin() @ x, lambda: (values(3, 3),)),
    "convolution": (
        lambda x, w, b: F.conv2d(F.conv2d(x, w, b, padding=1).sigmoid(), w, stride=2),
        lambda: (values(2, 3, 6, 6), values(3, 3, 3, 3), values(3)),
    ),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q.sin(), k, v).square(),
        lambda: tuple(values(2, 2, 5, 4) for _ in range(3)),
    ),
    "loss": (lambda x, y: F.mse_loss(x.sin(), y) * x.exp(), lambda: (values(3, 4), values(3, 4))),
    "several results": (
        lambda x: torch.linalg.svd(x.sin(), full_matrices=False)[1].exp(),
        lambda: (values(4, 3),),
    ),
    "parameters without gradient": (
        lambda x, w: (x.sin() @ w.detach()).exp() @ w,
        lambda: (values(3, 4), values(4, 4)),
    ),
    "a product that needs no gradient": (
        lambda x, w: x.sin() * (w.detach() @ w.detach()).exp().sum(),
        lambda: (values(3, 4), values(4, 4)),
    ),
}
CHOICES = {
    "all": lambda ctx, op, *args, **kwargs: SAVE,
    "none": lambda ctx, op, *args, **kwargs: CheckpointPolicy.MUST_RECOMPUTE,
    "every other": None,  # stands for a policy that counts
}


def every_other():
    count = iter(range(1000))
    return lambda ctx, op, *args, **kwargs: next(count) % 2 == 0


def selective(policy, **how):
    return {
        "use_reentrant": False,
        "context_fn": functools.partial(create_selective_checkpoint_contexts, policy, **how),
    }


def gradients(function, arguments):
    for t in arguments:
        t.grad = None
    result = function(*arguments)
    result.sum().backward()
    return [result.tolist(), *[None if t.grad is None else t.grad.tolist() for t in arguments]]


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_the_same(name, choice, early_stop):
    function, make = PROGRAMS[name]
    arguments = make()
    expected = gradients(function, arguments)
    kept = selective(CHOICES[choice] or every_other(), allow_cache_entry_mutation=False)
    assert gradients(lambda *a: checkpoint(function, *a, early_stop=early_stop, **kept), arguments) == expected


# ------------------------------------------------------------------ what is kept, and calls of the policy


def net(x, w):
    return ((x @ w).sin() @ w).exp() @ w


def products_in_backward(policy):
    """The number of products computed in the second run. (Gradients are products, too, but are not recorded.)"""
    out = checkpoint(net, values(3, 4), values(4, 4), early_stop=False, **selective(policy)).sum()
    with profile() as prof:
        out.backward()
    return [event.name for event in prof.function_events].count("aten::mm")


def test_what_is_kept_is_not_computed_again():
    assert products_in_backward([]) == 3
    assert products_in_backward([ops.aten.bmm.default]) == 3
    assert products_in_backward([ops.aten.mm.default]) == 0
    assert products_in_backward(every_other()) == 1


def test_the_policy_sees_each_heavy_op_once():
    x, w = values(3, 4), values(4, 4)
    seen = []

    def policy(ctx, op, *args, **kwargs):
        seen.append((str(op), ctx.op_output.tolist(), ctx.is_recompute, args, kwargs))
        return SAVE

    out = checkpoint(lambda x, w: F.linear(x, w).sin() @ w, x, w, **selective(policy))
    first = F.linear(x, w)
    out.sum().backward()
    assert [(name, result) for name, result, *_ in seen] == [
        ("aten.mm.default", first.tolist()),
        ("aten.mm.default", (first.sin() @ w).tolist()),
    ]
    assert not any(again for _, _, again, _, _ in seen)
    assert seen[0][3] == (x, w)
    assert seen[0][4] == {}


def test_what_a_policy_computes_is_not_asked_about():
    def policy(ctx, op, *args):
        return bool((args[0] @ args[1]).sum() < 1e9)

    x, w = values(3, 4), values(4, 4)
    expected = gradients(net, (x, w))
    assert gradients(lambda *a: checkpoint(net, *a, **selective(policy)), (x, w)) == expected


def test_names_of_ops():
    assert str(ops.aten.mm.default) == "aten.mm.default"
    assert str(ops.aten.mm) == "aten.mm"
    assert repr(ops.aten.mm.default) == "<OpOverload(op='aten.mm', overload='default')>"
    assert ops.aten.mm.default.name() == "aten::mm"
    assert ops.aten.masked_fill.Tensor != ops.aten.masked_fill.default
    assert ops.aten.convolution.default == ops.aten.conv2d.default
    assert ops.aten.mm.default != ops.aten.bmm.default
    assert ops.aten.mm.default in {ops.aten.mm.default}
    flash = ops.aten._scaled_dot_product_flash_attention.default
    assert flash == ops.aten._scaled_dot_product_efficient_attention.default
    x = values(2, 2)
    assert ops.aten.mm.default(x, x).tolist() == ops.aten.mm(x, x).tolist() == (x @ x).tolist()
    with fails(AttributeError, "'_OpNamespace' 'aten' object has no attribute 'no_such_op'"):
        _ = ops.aten.no_such_op
    with fails(AttributeError, "The underlying op of 'aten.mm' has no overload name 'no_such'"):
        _ = ops.aten.mm.no_such


# ------------------------------------------------------------------ combined with other features


def test_random_numbers_go_on_where_they_were():
    def function(q):
        q = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
        return F.dropout(q, 0.5) @ q.mT

    q = values(1, 2, 5, 4)
    torch.manual_seed(1)
    expected = gradients(function, (q,))
    for policy in CHOICES["all"], CHOICES["none"], every_other():
        torch.manual_seed(1)
        kept = selective(policy)
        assert gradients(functools.partial(checkpoint, function, **kept), (q,)) == expected


def test_nested_in_checkpoints():
    x, w = values(3, 4), values(4, 4)
    expected = gradients(lambda x, w: net(net(x, w).sin(), w), (x, w))
    kept, plain = selective([ops.aten.mm.default]), {"use_reentrant": False}

    def outer(inner, around):
        return lambda x, w: checkpoint(lambda x, w: net(checkpoint(net, x, w, **inner).sin(), w), x, w, **around)

    assert gradients(outer(plain, kept), (x, w)) == expected
    assert gradients(lambda x, w: checkpoint(net, checkpoint(net, x, w, **kept).sin(), w, **kept), (x, w)) == expected


def test_hooks_on_saved_tensors_inside():
    packed = []

    def function(x, w):
        with saved_tensors_hooks(lambda t: packed.append(t) or t * 2, lambda t: t / 2):
            return (x @ w).sin() @ w

    x, w = values(3, 4), values(4, 4)
    expected = gradients(function, (x, w))
    before = len(packed)
    assert gradients(lambda *a: checkpoint(function, *a, **selective([ops.aten.mm.default])), (x, w)) == expected
    assert len(packed) == 2 * before  # packed only in the first run: kept tensors need no placeholder


def test_autocast_inside():
    pytest.importorskip("ml_dtypes")
    x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = gradients(net, (x, w))
        assert gradients(lambda *a: checkpoint(net, *a, **selective([ops.aten.mm.default])), (x, w)) == expected


def test_writing_into_a_tensor_is_not_kept():
    def function(x, w):
        out = torch.empty(3, 4, dtype=torch.float64)
        torch.mm(x.detach(), w.detach(), out=out)
        return out * x.sin() @ w

    x, w = values(3, 4), values(4, 4)
    expected = gradients(function, (x, w))
    assert gradients(lambda *a: checkpoint(function, *a, **selective(CHOICES["all"])), (x, w)) == expected


def test_threads():
    def work(i):
        torch.manual_seed(i)
        x, w = values(3, 4), values(4, 4)
        expected = gradients(net, (x, w))
        for _ in range(5):
            assert gradients(lambda *a: checkpoint(net, *a, **selective([ops.aten.mm.default])), (x, w)) == expected
        return True

    assert in_threads([lambda i=i: work(i) for i in range(6)]) == [True] * 6


def test_without_grad():
    x, w = values(3, 4), values(4, 4)
    with torch.no_grad():
        assert checkpoint(net, x, w, **selective(CHOICES["all"])).tolist() == net(x, w).tolist()


def test_nothing_is_kept_after_the_pass():
    x, w = values(3, 4), values(4, 4)
    gradients(lambda *a: checkpoint(net, *a, **selective(CHOICES["all"])), (x, w))
    gc.collect()
    before = live_tensors()
    for _ in range(3):
        gradients(lambda *a: checkpoint(net, *a, **selective(CHOICES["all"])), (x, w))
    gc.collect()
    assert live_tensors() == before


# ------------------------------------------------------------------ errors


def test_backward_once():
    out = checkpoint(net, values(3, 4), values(4, 4), **selective([ops.aten.mm.default])).sum()
    out.backward(retain_graph=True)
    with fails(RuntimeError, "Trying to backward an extra time. You are only allowed to backward once on any ..."):
        out.backward()


def test_backward_twice_where_nothing_was_kept():
    x, w = values(3, 4), values(4, 4)
    out = checkpoint(net, x, w, **selective([])).sum()
    out.backward(retain_graph=True)
    out.backward()
    twice = x.grad
    x.grad = None
    net(x, w).sum().backward()
    assert twice.tolist() == (2 * x.grad).tolist()


def kept_and_changed(**how):
    def function(x, w):
        y = x @ w
        z = y.exp()
        y.add_(1)
        return z * y.sin()

    return checkpoint(function, values(3, 4), values(4, 4), **selective([ops.aten.mm.default], **how)).sum()


def test_what_is_kept_may_not_be_changed():
    out = kept_and_changed()
    with fails(RuntimeError, "Tensor cached during selective activation checkpoint has been mutated"):
        out.backward()
    kept_and_changed(allow_cache_entry_mutation=True).backward()


@pytest.mark.parametrize(
    ("second", "text"),
    [
        (lambda x, w: torch.bmm(x[None], w[None]), "aten.bmm.default encountered during backward but not found in ..."),
        (
            lambda x, w: x @ w @ w @ w,
            "aten.mm.default invocation index 2 encountered during backward but not ...",
        ),
    ],
)
def test_another_op_the_second_time(second, text):
    runs = iter([lambda x, w: (x @ w).sin() @ w, second])
    out = checkpoint(
        lambda x, w: next(runs)(x, w), values(4, 4), values(4, 4), **selective([ops.aten.mm.default])
    ).sum()
    with fails(RuntimeError, text):
        out.backward()


def test_wrong_policies():
    with fails(TypeError, "policy_fn_or_list must be either a function or a list of ops."):
        create_selective_checkpoint_contexts(3)
    with fails(ValueError, "Expected op in `op_list` to be an OpOverload but got: aten.mm of type ..."):
        create_selective_checkpoint_contexts([ops.aten.mm])
    with fails(ValueError, "Expected op in `op_list` to be an OpOverload but got: 3 of type <class 'int'>. "):
        create_selective_checkpoint_contexts([3])


def test_an_error_in_a_policy_leaves_nothing_behind():
    def policy(ctx, op, *args):
        raise ZeroDivisionError

    x, w = values(3, 4), values(4, 4)
    with pytest.raises(ZeroDivisionError):
        checkpoint(net, x, w, **selective(policy))
    expected = gradients(net, (x, w))
    assert gradients(lambda *a: checkpoint(net, *a, **selective(CHOICES["all"])), (x, w)) == expected
