"""Bugs found by running random programs in cygrad and in PyTorch: one test for each that was fixed."""

import sys

import pytest

import cygrad as torch
from cygrad._core.engine.backward import current_run
from cygrad._core.graph.dual import is_forward
from cygrad._core.transforms import forward_mode
from cygrad.autograd import forward_ad
from cygrad.utils.checkpoint import checkpoint
from helpers import fails, leaf

F = torch.nn.functional


@pytest.mark.parametrize("function", [lambda x, w: x.sin() * w, lambda x, w: x.sin() * x, lambda x, w: x.exp() / w])
def test_gradient_through_a_checkpoint_has_no_history(function):
    # the saved tensor returned by the checkpoint was reused for the gradient, including its history
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    checkpoint(function, x, w, use_reentrant=False).sum().backward()
    for gradient in (x.grad, w.grad):
        assert gradient is None or not gradient.requires_grad
    (gradient,) = torch.autograd.grad(checkpoint(function, x, w, use_reentrant=False).sum(), x)
    assert not gradient.requires_grad


def test_gradient_of_mean_can_be_changed_in_place():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    (gradient,) = torch.autograd.grad(x.mean(), x)
    gradient.mul_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert gradient.tolist() == [0.25, 0.5, 0.75, 1.0]


def test_second_derivative_of_relu_is_zero_and_not_unused():
    x = leaf(1.0, -2.0)
    (gradient,) = torch.autograd.grad(F.relu(x * 3).sum(), x, create_graph=True)
    assert gradient.requires_grad
    (second,) = torch.autograd.grad(gradient.sum(), x)
    assert second.tolist() == [0.0, 0.0]


def test_hook_after_accumulation_may_return_the_leaf_only():
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda parameter: parameter)
    x.sum().backward()
    x.register_post_accumulate_grad_hook(lambda parameter: parameter.grad)
    with fails(RuntimeError, "Tensor post accumulate grad hooks should return None."):
        x.sum().backward()


@pytest.mark.parametrize("function", [torch.addcmul, torch.addcdiv])
def test_changed_in_place_with_factors_of_a_wider_type(function):
    name = function.__name__ + "_"
    w = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    t = torch.ones(2)
    assert getattr(t, name)(w, w) is t
    assert t.dtype is torch.float32
    t.sum().backward()
    x = torch.ones(2, dtype=torch.float64)
    (expected,) = torch.autograd.grad(function(x, w, w).sum(), w)
    assert w.grad.tolist() == expected.tolist()
    with torch.no_grad(), fails(RuntimeError, "output with shape [1] doesn't match the broadcast shape [2]"):
        getattr(torch.ones(1), name)(w, w)
    with fails(RuntimeError, "result type Double can't be cast to the desired output type Int"):
        getattr(torch.ones(2, dtype=torch.int32), name)(w, w)


@pytest.mark.parametrize("function", [torch.logaddexp, torch.ldexp])
@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        (torch.ones(2), torch.ones((), dtype=torch.float64), torch.float32),
        (torch.ones((), dtype=torch.float64), torch.ones(2), torch.float32),
        (torch.ones(2, dtype=torch.float16), torch.ones(2), torch.float32),
        (torch.ones(2), torch.ones(2, dtype=torch.int32), torch.float32),
    ],
)
def test_type_of_result_of_two_types(function, first, second, result):
    found = function(first, second)
    assert found.dtype is result
    torch.testing.assert_close(found, function(first.double(), second.double()).to(result))


def test_ldexp_in_place_of_a_wider_type():
    t = torch.ones(2, dtype=torch.float16)
    assert t.ldexp_(torch.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert t.dtype is torch.float16


def test_lerp_takes_a_weight_without_dimensions_of_another_type():
    weight = torch.tensor(0.25, dtype=torch.float64, requires_grad=True)
    result = torch.lerp(torch.zeros(2), torch.ones(2), weight)
    assert result.dtype is torch.float32
    result.sum().backward()
    assert weight.grad.dtype is torch.float64
    assert weight.grad.item() == 2


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32])
def test_einsum_adds_up_integers_of_one_operand_in_int64(dtype):
    """As in PyTorch, which then multiplies elementwise, or rejects a matrix product of two dtypes."""
    a, b = torch.full((2, 3), 100, dtype=dtype), torch.ones(3, 4, dtype=dtype)
    assert torch.einsum("ab,bz->az", a[:, :1], b[:1]).dtype is dtype
    result = torch.einsum("ab,bz->zb", a, b)
    assert result.dtype is torch.int64
    assert result.tolist() == [[200] * 3] * 4
    with pytest.raises(RuntimeError, match="expected scalar type .* but found Long"):
        torch.einsum("ab,bz->a", a, b)


def test_covariance_of_one_row_has_no_dimensions():
    assert torch.cov(torch.tensor([[1.0, 3.0]])).item() == 2
    assert torch.cov(torch.tensor([[1.0, 3.0]])).shape == ()


def test_attention_without_features():
    query = torch.ones(3, 0)
    assert F.scaled_dot_product_attention(query, query, query).shape == (3, 0)


def test_negative_fractions_do_not_fit_into_uint8():
    line = "value cannot be converted to type uint8_t without overflow"
    with fails(RuntimeError, line):
        torch.zeros(2, dtype=torch.uint8).fill_(-0.5)
    assert torch.zeros(1, dtype=torch.uint8).fill_(-1).item() == 255


def test_batch_norm_wants_both_running_statistics_or_none():
    with fails(ValueError, "running_mean and running_var must either both be None or neither be None"):
        F.batch_norm(torch.ones(2, 3), None, torch.ones(3), training=True)


def changed(write):
    """A function that modifies a copy of its argument in place."""

    def function(x):
        y = x * 1
        write(y, x)
        return y

    return function


@pytest.mark.parametrize(
    "write",
    [
        lambda y, x: y.sin_(),
        lambda y, x: y[0].square_(),
        lambda y, x: y.t()[0].pow_(3),
        lambda y, x: y[0].mul_(x[1]),
        lambda y, x: y.div_(y.sum()),
    ],
)
@pytest.mark.parametrize("transform", ["grad", "jacrev", "jacfwd", "jvp"])
def test_derivatives_for_each_sample_of_what_is_changed_in_place(write, transform):
    # the old value, which the gradient needs, was that of the first sample for all samples
    function, func = changed(write), torch.func
    derivative = {
        "grad": func.grad(lambda x: (function(x) ** 2).sum()),
        "jacrev": func.jacrev(function),
        "jacfwd": func.jacfwd(function),
        "jvp": lambda x: func.jvp(function, (x,), (torch.full_like(x, 0.5),))[1],
    }[transform]
    batch = torch.rand(4, 2, 3, dtype=torch.float64) + 0.5
    torch.testing.assert_close(func.vmap(derivative)(batch), torch.stack([derivative(x) for x in batch]))


@pytest.mark.parametrize(
    "made",
    [
        torch.zeros_like,
        torch.empty_like,
        lambda x: x.new_zeros(2, 3),
        lambda x: torch.ones_like(x, dtype=torch.float32),
    ],
)
def test_tensors_made_like_one_that_has_samples_can_be_changed(made):
    def function(x):
        y = made(x)
        y[0] = x[1] * 2
        y[1].copy_(x[0])
        return y

    batch = torch.rand(5, 4, 2, 3)
    torch.testing.assert_close(
        torch.func.vmap(torch.func.vmap(function))(batch), torch.stack([batch[:, :, 1] * 2, batch[:, :, 0]], 2)
    )
    (gradient,) = torch.func.vmap(torch.func.vmap(torch.func.grad(lambda x: function(x).sum())))(batch)[:1].unbind()
    assert gradient.tolist() == [[[1.0] * 3, [2.0] * 3]] * 4


@pytest.mark.parametrize("transform", ["jvp", "vmap", "jacfwd", "jacrev"])
def test_interrupt_at_any_call_leaves_no_level_open(transform):
    # like Ctrl-C, which CPython raises on entry to a function written in Python
    func, x = torch.func, torch.rand(2, 3)
    run = {
        "jvp": lambda: func.jvp(lambda x: x.sin() * x, (x,), (x,)),
        "vmap": lambda: func.vmap(lambda x: x.sin().sum() * x)(x),
        "jacfwd": lambda: func.jacfwd(lambda x: x * 2)(x),
        "jacrev": lambda: func.vmap(func.jacrev(lambda x: x.sin()))(x),
    }[transform]
    run()

    def interrupt(frame, event, arg):
        nonlocal left
        if event == "call" and frame.f_code.co_name not in ("<genexpr>", "<lambda>"):  # finalizers swallow it
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

    total, ended = 0, False
    while not ended:
        total += 1
        left = total
        sys.setprofile(interrupt)
        try:
            run()
            ended = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        assert current_run() == (0, [])
        assert forward_mode.levels() == ()
        assert not is_forward()
        assert torch.is_grad_enabled()
    assert total > 10


def test_large_attention_keeps_the_tangent_of_its_mask():
    query = torch.linspace(-1, 1, 8 * 1100 * 64, dtype=torch.float64).reshape(8, 1100, 64)  # large enough for blocks
    mask, tangent = (
        torch.linspace(-1, 1, 1100 * 1100, dtype=torch.float64).reshape(1100, 1100),
        torch.eye(1100).double(),
    )
    attend = F.scaled_dot_product_attention
    with forward_ad.dual_level():
        out = attend(query, query, query.sin(), attn_mask=forward_ad.make_dual(mask, tangent))
        found = forward_ad.unpack_dual(out).tangent
    step = 1e-6 * tangent
    above, below = (attend(query, query, query.sin(), attn_mask=m) for m in (mask + step, mask - step))
    torch.testing.assert_close(found, (above - below) / 2e-6, rtol=1e-5, atol=1e-7)


def test_an_input_without_gradient_is_told_before_one_that_is_not_used():
    x, unused, constant = leaf(1.0), leaf(2.0), torch.ones(1)
    with fails(RuntimeError, "One of the differentiated Tensors does not require grad"):
        torch.autograd.grad(x * 2, [unused, constant])


@pytest.mark.parametrize("of_leaf", [False, True])
def test_hooks_on_a_single_root_are_called_though_it_leads_to_no_input(of_leaf):
    x, other, seen = leaf(1.0), leaf(2.0), []
    root = x if of_leaf else (x * 2).unbind()[0]
    root.register_hook(lambda gradient: seen.append(gradient.item()))
    for i in range(2):
        root.backward(torch.full_like(root, 3.0), inputs=[other], retain_graph=True)
        assert seen == [3.0] * (2 * i + 1)
        assert torch.autograd.grad(root, other, torch.full_like(root, 3.0), True, allow_unused=True) == (None,)
        assert seen == [3.0] * (2 * i + 2) and x.grad is None
    torch.autograd.backward([root, x + 1], [None, None] if not of_leaf else None, inputs=[other])
    assert seen == [3.0] * 4  # roots that lead to no input are left out
    root.register_hook(lambda gradient: "nothing")
    with fails(TypeError, "expected Variable, but hook returned 'str'"):
        root.backward(inputs=[other])


def test_what_a_hook_after_accumulation_may_not_return():
    for value, line in {
        "small": (lambda p: p.detach()[:1], "hook 'hook' has changed the size of value"),
        "double": (
            lambda p: p.detach().double(),
            "hook 'hook' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)",
        ),
        "other": (lambda p: p.grad, "Tensor post accumulate grad hooks should return None."),
    }.values():
        x = leaf(1.0, 2.0)

        def hook(p, value=value):
            return value(p)

        x.register_post_accumulate_grad_hook(hook)
        with fails(RuntimeError, line):
            x.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]


def test_a_tangent_is_recorded_as_the_op_was_that_made_it():
    # it was computed when the next op was called, and recorded according to the grad mode at that time
    x, v = leaf(0.5, -1.25, 0.75), torch.ones(3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        with torch.no_grad():
            y = dual.sin()
        assert not forward_ad.unpack_dual(y).tangent.requires_grad
        y = dual.sin()
        with torch.no_grad():
            tangent = forward_ad.unpack_dual(y).tangent
        (gradient,) = torch.autograd.grad(tangent.sum(), x)
    assert torch.allclose(gradient, -x.detach().sin())


def test_what_is_constant_by_no_grad_is_so_in_its_tangent_too():
    def function(z):
        with torch.no_grad():
            y = z.sin()
        return y * z  # the tangent is cos(z) * v * z + y * v, in which cos(z) and y are constant

    x, v = torch.tensor([0.5, -1.25, 0.75]), torch.ones(3)
    for derivative in (
        lambda z: torch.func.jvp(function, (z,), (v,))[1],
        lambda z: torch.func.jacfwd(function)(z).sum(0),
    ):
        _, gradient = torch.autograd.functional.vjp(derivative, x, v)
        assert torch.allclose(gradient, x.cos())


def test_what_follows_no_grad_in_a_batch_has_its_gradient():
    def function(z):
        with torch.no_grad():
            y = z.sin()
        return y + z.exp()

    x, v = leaf(0.5, -1.25, 0.75), torch.ones(3)
    torch.func.vmap(lambda z: torch.func.vjp(function, z)[1](v)[0])(torch.stack([x, x * 2]))[1].sum().backward()
    assert torch.allclose(x.grad, 2 * (2 * x).exp())
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    "constant",
    [
        lambda z: torch.func.jvp(torch.sin, (z,), (torch.ones(3),))[1],
        lambda z: forward_ad.make_dual(z, torch.ones(3)).detach(),
    ],
)
def test_a_dual_made_without_recording_leaves_the_samples_of_its_tensor_alone(constant):
    def function(z):
        with torch.no_grad(), forward_ad.dual_level() if "make_dual" in constant.__code__.co_names else torch.no_grad():
            constant(z)
        return z.sin()

    x = leaf(0.5, -1.25, 0.75)
    torch.func.vmap(function)(torch.stack([x, x * 2]))[1].sum().backward()
    assert torch.allclose(x.grad, 2 * (2 * x).cos())
