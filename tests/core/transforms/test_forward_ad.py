"""Forward mode: levels, dual tensors, and which ops propagate tangents."""

import re
import warnings

import pytest

import cygrad as torch
from cygrad._core.transforms import forward_mode
from cygrad.autograd import forward_ad
from cygrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from helpers import fails, in_thread, leaf

X, V = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, -1.0, 0.5])


def tangent(t):
    return unpack_dual(t).tangent


def test_a_function():
    with dual_level():
        x = make_dual(X, V)
        assert torch.allclose(tangent((torch.sin(x) * x).sum()), ((torch.cos(X) * X + torch.sin(X)) * V).sum())
        primal, found = unpack_dual(x)
        assert found is V and tangent(primal) is None and torch.equal(primal, X) and tangent(X) is None


def test_after_the_level_nothing_is_left():
    with dual_level():
        x = make_dual(X, V)
        y = x * 2
        assert tangent(y) is not None
    assert unpack_dual(y) == (y, None) and not torch.autograd.grad_mode.is_inference_mode_enabled()
    with dual_level():
        assert tangent(x) is None and tangent(y) is None


@pytest.mark.parametrize("recorded", [False, True])
def test_no_graph_unless_something_requires_grad(recorded):
    with dual_level():
        y = torch.exp(make_dual(X.clone().requires_grad_(recorded), V))
        assert (y.requires_grad, tangent(y).requires_grad) == (recorded, recorded)
        with torch.no_grad():
            y = torch.exp(make_dual(X.clone().requires_grad_(recorded), V)).sum()
            assert not y.requires_grad and not tangent(y).requires_grad
            assert torch.allclose(tangent(y), (torch.exp(X) * V).sum())


def test_detach_and_integers_have_none():
    with dual_level():
        x = make_dual(X, V)
        for cut in (x.detach(), x.data, x.long(), x > 1, x.argmax(), x.clone().detach_()):
            assert tangent(cut) is None
        assert not tangent(torch.floor(x)).any()


def test_views_show_parts_of_their_base():
    with dual_level():
        x = make_dual(X, V).clone()
        first, rest = x[0], x[1:]
        rest.mul_(x[0])
        assert torch.equal(tangent(rest), V[1:] * X[0] + X[1:] * V[0])
        assert torch.equal(tangent(x)[1:], tangent(rest)) and tangent(first) == V[0]
        base = torch.zeros(2, 3)
        base.t()[:, 1].copy_(x)
        assert torch.equal(tangent(base), torch.stack([torch.zeros(3), tangent(x)]))
        z = torch.view_as_complex(torch.stack([x, x], -1))
        assert torch.equal(tangent(z.imag), tangent(x))


def test_in_place_ops_without_a_derivative_leave_zeros():
    with dual_level():
        for change in (torch.Tensor.zero_, lambda t: t.fill_(2), lambda t: t.eq_(1), torch.Tensor.uniform_):
            x = make_dual(X, V).clone()
            change(x)
            assert not tangent(x).any()


def test_a_write_of_the_tensor_itself():
    with dual_level():
        x = make_dual(X, V).clone()
        assert torch.equal(tangent(x.mul_(x)), 2 * X * V)


def test_in_place_changes_of_shape():
    with dual_level():
        x = make_dual(torch.ones(1, 3), V[None]).clone()
        assert torch.equal(tangent(x.squeeze_(0)), V) and torch.equal(tangent(x.unsqueeze_(1)), V[:, None])
        assert torch.equal(tangent(x.t_()), V[None])


def test_what_was_saved_may_change_afterwards():
    with dual_level():
        x = make_dual(X, V).clone()
        y = x * x
        x.zero_()
        assert torch.equal(tangent(y), 2 * X * V)


def test_a_write_that_failed_is_forgotten():
    t = torch.zeros(3, dtype=torch.float64)
    with dual_level():
        x = make_dual(torch.complex(X, X), torch.complex(V, V))
        with warnings.catch_warnings(), pytest.raises(UserWarning):
            warnings.simplefilter("error")
            t.copy_(x)  # the warning is raised after the write has begun
        t.add_(1)
        assert tangent(t) is None


def test_forward_over_reverse_and_reverse_over_forward():
    w = leaf(1.0, 2.0, 3.0)
    with dual_level():
        x = make_dual(w, V)
        (gradient,) = torch.autograd.grad((x**3).sum(), w)
        assert torch.equal(tangent(gradient), 6 * X * V) and not tangent(gradient).requires_grad
        (gradient,) = torch.autograd.grad(tangent((x**3).sum()), w)
        assert torch.equal(gradient, 6 * X * V)
        (x**2).sum().backward()
    assert torch.equal(w.grad, 2 * X) and not w.grad.requires_grad


def test_nested_levels():
    """The building blocks of nested `func.jvp`."""
    outer, inner = forward_mode.enter(), forward_mode.enter()
    try:
        x = forward_mode.dual(forward_mode.dual(X, V, outer), V, inner)
        y = torch.exp(x * x).sum()
        second = forward_mode.tangent_of(forward_mode.tangent_of(y, inner), outer)
    finally:
        forward_mode.leave(inner)
        forward_mode.leave(outer)
    assert torch.allclose(second, (torch.exp(X * X) * (4 * X * X + 2) * V * V).sum())


def test_custom_function():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, w):
            ctx.save_for_forward(x, w)
            ctx.factor = factor
            return x * w * factor, w.long()

        @staticmethod
        def jvp(ctx, tx, tfactor, tw):
            x, w = ctx.saved_tensors
            assert tfactor is None
            return (tx * w + x * tw) * ctx.factor, None

    with dual_level():
        x = make_dual(X, V)
        out, integers = Scale.apply(x, 3, X)
        assert torch.equal(tangent(out), 3 * V * X) and tangent(integers) is None
        assert torch.equal(tangent(Scale.apply(x, 3, x)[0]), 6 * V * X)


def test_only_the_thread_that_opened_a_level():
    with dual_level():
        x = make_dual(X, V)
        assert in_thread(lambda: unpack_dual(x * 2)).tangent is None


def test_an_error_leaves_no_level_open():
    with pytest.raises(ZeroDivisionError), dual_level():
        raise ZeroDivisionError
    with dual_level(), fails(RuntimeError, "Nested forward mode AD is not supported at the moment"):
        with dual_level():
            pass
    assert not forward_mode.levels()


def test_levels():
    assert forward_ad.enter_dual_level() == 0
    with fails(RuntimeError, "Trying to exit a forward AD level that was not the last one that was created..."):
        forward_ad.exit_dual_level(level=2)
    forward_ad.exit_dual_level(level=0)
    with fails(RuntimeError, "Dual level must be a positive number."):
        forward_ad.exit_dual_level()


def test_decorator():
    @dual_level()
    def derivative(f):
        return tangent(f(make_dual(X, V)))

    assert torch.equal(derivative(lambda x: x * 3), V * 3)


def test_memory_of_a_dual_tensor_stays():
    with dual_level():
        x = make_dual(torch.ones(4), torch.ones(4))
        with fails(RuntimeError, "cannot resize variables that has a forward grad"):
            x.resize_(2)
        with fails(NotImplementedError, "Trying to use forward AD with set_ that does not support it..."):
            torch.zeros(0).set_(x)
        assert x.shape == (4,) and unpack_dual(x).tangent.tolist() == [1.0] * 4


def test_jvp_gives_no_tangent_of_what_has_no_derivative():
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            constant = x * 3
            ctx.mark_non_differentiable(constant)
            return x * 2, constant

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 2, tangent * 3

    with (
        dual_level(),
        fails(RuntimeError, "Function's jvp returned a gradient at position 1, but  the corresponding..."),
    ):
        Two.apply(make_dual(torch.ones(2), torch.ones(2)))
    with dual_level():  # still works after the error
        assert unpack_dual(make_dual(torch.ones(2), torch.ones(2)) * 2).tangent.tolist() == [2.0, 2.0]


def custom(forward, jvp):
    """A custom Function with these two."""
    return type("Custom", (torch.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


NOT_A_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."


@pytest.mark.parametrize(
    ("jvp", "takes_view", "error"),
    [
        (lambda ctx, v: v[:2], False, None),
        (lambda ctx, v: v[:2], True, None),
        (lambda ctx, v: v[:2].clone(), False, NOT_A_VIEW),
        (lambda ctx, v: None, False, NOT_A_VIEW),
        (lambda ctx, v: v.clone()[:2], False, "jvp is not returning a view of the given grad input."),
        (lambda ctx, v: v.clone()[:2], True, "jvp is not returning a view of the same base as the given grad input."),
    ],
)
def test_tangents_of_views_made_by_functions_are_views(jvp, takes_view, error):
    function = custom(lambda ctx, x: x[:2], jvp)
    with dual_level():
        x = make_dual(torch.ones(4), torch.ones(4))
        x = x.view_as(x) if takes_view else x
        if error is None:
            assert tangent(function.apply(x)).tolist() == [1, 1]
        else:
            with pytest.raises(RuntimeError, match=re.escape(error)):
                function.apply(x)


def test_inputs_returned_as_is_have_tangents_that_are_views():
    with dual_level():
        x = make_dual(torch.ones(2), torch.ones(2))
        kept = custom(lambda ctx, x: x, lambda ctx, v: v.view_as(v)).apply(x)
        assert tangent(kept).tolist() == [1, 1]
        with pytest.raises(RuntimeError, match=re.escape(NOT_A_VIEW)):
            custom(lambda ctx, x: x, lambda ctx, v: v * 2).apply(x)


@pytest.mark.parametrize(
    ("jvp", "error"),
    [
        (lambda ctx, v: v.mul_(2), None),
        (lambda ctx, v: v * 2, "An inplace custom Function is not modifying the forward mode gradients inplace."),
        (lambda ctx, v: None, "An inplace custom Function is not modifying the forward mode gradients inplace."),
        (lambda ctx, v: v.mul_(2).view_as(v), "not returning the forward mode gradients as-is."),
    ],
)
def test_tangents_of_inputs_changed_by_functions_are_changed(jvp, error):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    v = torch.ones(2)
    with dual_level():
        x = make_dual(torch.ones(2), v)
        if error is None:
            assert tangent(custom(forward, jvp).apply(x)) is v and v.tolist() == [2, 2]
        else:
            with pytest.raises(RuntimeError, match=error):
                custom(forward, jvp).apply(x)


def test_functions_give_integers_no_tangent():
    seen = []

    def jvp(ctx, *tangents):
        seen.append(tangents[1])
        return tangents[0], tangents[0].clone() if len(seen) == 2 else None, tangents[0]

    function = custom(lambda ctx, x, n: (x.clone(), n.clone(), object()), jvp)
    with dual_level():
        x, n = make_dual(torch.ones(2), torch.ones(2)), torch.ones(2, dtype=torch.int64)
        _, number, _ = function.apply(x, n)  # a tangent for what is no tensor is ignored
        assert tangent(number) is None and seen == [None]
        with pytest.raises(RuntimeError, match="You should return None at that position instead."):
            function.apply(x, n)


@pytest.mark.parametrize("which", [1, 2])
def test_running_statistics_have_no_tangents_beside_the_input(which):
    given = [torch.randn(3, 2), torch.randn(2), torch.rand(2)]
    with forward_ad.dual_level():
        given[which] = forward_ad.make_dual(given[which], torch.ones(2))
        assert forward_ad.unpack_dual(torch.nn.functional.batch_norm(*given)).tangent is None
        given[0] = forward_ad.make_dual(given[0], torch.ones(3, 2))
        with fails(RuntimeError, "batch_norm is not differentiable wrt running_mean and running_var, ..."):
            torch.nn.functional.batch_norm(*given)
