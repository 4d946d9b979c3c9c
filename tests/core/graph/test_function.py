"""Custom Function: contexts, saved tensors, needs_input_grad, all kinds of outputs, invalid results."""

import gc
import weakref

import pytest

import cygrad as torch
from cygrad.autograd import Function
from cygrad.autograd.function import once_differentiable
from helpers import fails, kinds, leaf


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


def function(forward, backward=None):
    """Make a Function class from two plain functions."""
    members = {"forward": staticmethod(forward)}
    if backward is not None:
        members["backward"] = staticmethod(backward)
    return type("Made", (Function,), members)


# ------------------------------------------------------------------ the basic case


def test_forward_and_backward():
    x = leaf(3.0)
    y = Square.apply(x)
    assert y.tolist() == [9.0]
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_composes_with_built_in_ops():
    x = leaf(3.0)
    (Square.apply(x * 2) + Square.apply(x)).backward()
    assert x.grad.tolist() == [2 * 6 * 2 + 6]


def test_grad_fn_is_the_context_and_is_named_after_the_class():
    y = Square.apply(leaf(1.0))
    assert type(y.grad_fn).__name__ == "SquareBackward"
    assert y.grad_fn.name() == "SquareBackward"
    assert kinds(y.grad_fn) == ["AccumulateGrad"]
    assert "grad_fn=<SquareBackward>" in repr(y)


def test_forward_runs_without_grad_mode_and_sees_requires_grad():
    seen = []

    def forward(ctx, x):
        seen.append((torch.is_grad_enabled(), x.requires_grad, (x * 2).requires_grad))
        return x * 2

    function(forward).apply(leaf(1.0))
    assert seen == [(False, True, False)]
    assert torch.is_grad_enabled()


def test_backward_runs_without_grad_mode_unless_the_graph_is_created():
    seen = []

    def backward(ctx, grad):
        seen.append(torch.is_grad_enabled())
        return grad

    made = function(lambda ctx, x: x * 1, backward)
    x = leaf(1.0)
    torch.autograd.grad(made.apply(x), x)
    torch.autograd.grad(made.apply(x), x, create_graph=True)
    assert seen == [False, True]


def test_not_recorded_under_no_grad_or_without_inputs_that_require_grad():
    with torch.no_grad():
        assert not Square.apply(leaf(1.0)).requires_grad
    assert not Square.apply(torch.ones(1)).requires_grad
    with torch.inference_mode():
        y = Square.apply(leaf(1.0))
        assert y.is_inference() and not y.requires_grad


def test_second_derivative_of_a_backward_made_of_ops():
    x = leaf(3.0)
    (first,) = torch.autograd.grad(Square.apply(Square.apply(x)), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x)
    assert [first.item(), second.item(), third.item()] == [4 * 27.0, 12 * 9.0, 24 * 3.0]


def test_inheritance_and_class_methods():
    class Scale(Function):
        factor = 2

        @classmethod
        def forward(cls, ctx, x):
            return x * cls.factor

        @classmethod
        def backward(cls, ctx, grad):
            return grad * cls.factor

    class Triple(Scale):
        factor = 3

    x = leaf(1.0)
    y = Triple.apply(x)
    y.backward()
    assert y.grad_fn.name() == "TripleBackward"
    assert x.grad.tolist() == [3.0]


# ------------------------------------------------------------------ the context


def test_attributes_put_on_ctx_are_there_in_backward_and_on_grad_fn():
    def forward(ctx, x):
        ctx.factor = 7
        return x * 7

    made = function(forward, lambda ctx, grad: grad * ctx.factor)
    x = leaf(1.0)
    y = made.apply(x)
    assert y.grad_fn.factor == 7
    y.grad_fn.factor = 8
    y.backward()
    assert x.grad.tolist() == [8.0]


def test_needs_input_grad_tells_each_argument():
    seen = []

    def forward(ctx, a, b, number, text):
        seen.append(ctx.needs_input_grad)
        return a * b

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return grad, grad, None, None

    function(forward, backward).apply(leaf(1.0), torch.ones(1), 3, "text").backward()
    assert seen == [(True, False, False, False)] * 2


def test_none_can_be_saved():
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(None, x)
        return x * 1

    def backward(ctx, grad):
        seen.append([None if t is None else t.tolist() for t in ctx.saved_tensors])
        return grad

    function(forward, backward).apply(leaf(1.0)).backward()
    assert seen == [[None, [1.0]]]


def test_only_tensors_can_be_saved():
    def forward(ctx, x):
        ctx.save_for_backward(x, 5)
        return x * 1

    with fails(TypeError, "save_for_backward can only save variables, but argument 1 is of type int"):
        function(forward).apply(leaf(1.0))


def test_saved_input_is_the_input_with_its_history():
    seen = []

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        seen.append((x.requires_grad, x.is_leaf))
        return grad

    made = function(lambda ctx, x: ctx.save_for_backward(x) or x * 1, backward)
    made.apply(leaf(1.0)).backward()
    made.apply(leaf(1.0) * 2).backward()
    assert seen == [(True, True), (True, False)]


def test_saved_output_leads_back_into_the_graph():
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        assert result.grad_fn is ctx
        return grad * result

    x = leaf(0.0)
    y = function(forward, backward).apply(x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert second.tolist() == [1.0]


def test_saved_tensor_changed_in_place_is_found():
    y = leaf(1.0) * 1
    z = Square.apply(y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation: "):
        z.backward()


def test_saved_tensors_are_freed_by_backward():
    x = leaf(1.0)
    y = Square.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have"):
        y.grad_fn.saved_tensors  # noqa: B018


def test_memory_of_saved_tensors_is_freed_by_backward():
    saved = []

    def forward(ctx, x):
        ctx.save_for_backward(x * 2)
        saved.append(weakref.ref(ctx.to_save[0]))
        return x * 1

    y = function(forward, lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(leaf(3.0))
    assert saved[0]() is not None
    y.backward()
    assert saved[0]() is None


def test_saved_tensors_can_be_read_before_backward():
    x = leaf(1.0)
    (saved,) = Square.apply(x).grad_fn.saved_tensors
    assert saved.tolist() == [1.0]


def test_saved_variables_is_the_old_name():
    def backward(ctx, grad):
        with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
            (x,) = ctx.saved_variables
        return grad * x

    x = leaf(3.0)
    function(lambda ctx, x: ctx.save_for_backward(x) or x * 1, backward).apply(x).backward()
    assert x.grad.tolist() == [3.0]


def test_retained_graph_runs_backward_again():
    x = leaf(3.0)
    y = Square.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12.0]


def test_setup_context_gets_inputs_and_output():
    class Exp(Function):
        @staticmethod
        def forward(x, scale):
            return (x * scale).exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, scale = inputs
            assert x.requires_grad
            ctx.scale = scale
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, grad):
            (result,) = ctx.saved_tensors
            return grad * result * ctx.scale, None

    x = leaf(0.0)
    y = Exp.apply(x, 3.0)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (3.0, 9.0)


def test_cycle_through_ctx_is_collected():
    class Thing:
        pass

    thing = Thing()
    gone = weakref.ref(thing)
    y = function(lambda ctx, x: x * 2, lambda ctx, grad: grad).apply(leaf(1.0))
    y.grad_fn.loop = y.grad_fn
    y.grad_fn.thing = thing
    del y, thing
    gc.collect()
    assert gone() is None


# ------------------------------------------------------------------ arguments and outputs


def test_non_tensor_arguments_get_no_gradient():
    def backward(ctx, grad):
        return grad * 2, None, None

    x = leaf(1.0)
    function(lambda ctx, x, k, name: x * k, backward).apply(x, 2, "name").backward()
    assert x.grad.tolist() == [2.0]


def test_tensor_inside_a_list_is_not_seen():
    assert not function(lambda ctx, xs: xs[0] * 2).apply([leaf(1.0)]).requires_grad


def test_keyword_arguments_follow_the_signature_of_forward():
    def forward(ctx, x, k=1):
        return x * k

    y = function(forward, lambda ctx, grad: (grad * 3, None)).apply(leaf(1.0), k=3)
    assert y.tolist() == [3.0] and y.requires_grad


def test_several_outputs():
    x = leaf(1.0, 2.0)
    made = function(lambda ctx, x: (x * 2, x * 3), lambda ctx, first, second: first * 2 + second * 3)
    first, second = made.apply(x)
    assert first.grad_fn is second.grad_fn
    assert (first.output_nr, second.output_nr) == (0, 1)
    (first.sum() + second.sum() * 10).backward()
    assert x.grad.tolist() == [32.0, 32.0]


def test_non_tensor_outputs_are_handed_through():
    seen = []

    def backward(ctx, *grads):
        seen.append([None if g is None else g.tolist() for g in grads])
        return grads[1]

    made = function(lambda ctx, x: ("text", x * 2, None), backward)
    text, y, nothing = made.apply(leaf(1.0))
    assert text == "text" and nothing is None
    y.backward()
    assert seen == [[None, [1.0], None]]


def test_result_that_is_no_tensor_at_all():
    assert function(lambda ctx, x: 5).apply(leaf(1.0)) == 5
    assert function(lambda ctx, x: ()).apply(leaf(1.0)) == ()


def test_list_of_tensors_is_one_opaque_output():
    result = function(lambda ctx, x: [x * 2]).apply(leaf(1.0))
    assert isinstance(result, list)
    assert not result[0].requires_grad


def test_integer_output_is_not_differentiable():
    def backward(ctx, grad, index_grad):
        return grad

    x = leaf(1.0, 5.0)
    value, index = function(lambda ctx, x: (x * 2, x.argmax()), backward).apply(x)
    assert value.requires_grad and not index.requires_grad
    value.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_unused_output_gives_zeros_by_default():
    seen = []

    def backward(ctx, first, second):
        seen.append((first.tolist(), second.tolist()))
        return second

    function(lambda ctx, x: (x * 2, x * 3), backward).apply(leaf(1.0))[1].backward()
    assert seen == [([0.0], [1.0])]


def test_unused_output_gives_none_without_materializing():
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx, first, second):
        seen.append((first, second.tolist()))
        return second

    function(forward, backward).apply(leaf(1.0))[1].backward()
    assert seen == [(None, [1.0])]


def test_mark_non_differentiable():
    seen = []

    def forward(ctx, x):
        sign = (x > 0).float()
        ctx.mark_non_differentiable(sign)
        return sign, x * 3

    def backward(ctx, sign_grad, grad):
        seen.append(sign_grad.tolist())
        return grad * 3

    x = leaf(1.0)
    sign, y = function(forward, backward).apply(x)
    assert not sign.requires_grad and y.requires_grad
    y.backward()
    assert seen == [[0.0]]
    assert x.grad.tolist() == [3.0]


# ------------------------------------------------------------------ the result of backward


def test_none_from_backward_gives_no_gradient():
    x = leaf(1.0)
    function(lambda ctx, x: x * 2, lambda ctx, grad: None).apply(x).backward()
    assert x.grad is None


def test_gradient_is_summed_to_the_shape_of_the_input():
    x = leaf(1.0, 2.0, 3.0)
    made = function(lambda ctx, x: x * 2, lambda ctx, grad: torch.ones(4, 3))
    made.apply(x).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_gradient_is_converted_to_the_dtype_of_the_input():
    x = leaf(1.0)
    made = function(lambda ctx, x: x * 2, lambda ctx, grad: grad.double())
    made.apply(x).backward()
    assert x.grad.dtype == torch.float32


def test_trailing_nones_too_many_are_ignored():
    x = leaf(1.0)
    function(lambda ctx, x: x * 2, lambda ctx, grad: (grad, None, None)).apply(x).backward()
    assert x.grad.tolist() == [1.0]


def test_too_few_gradients():
    made = function(lambda ctx, x, k: x * k, lambda ctx, grad: grad)
    with fails(
        RuntimeError,
        "function MadeBackward returned an incorrect number of gradients (expected 2, got 1)",
    ):
        made.apply(leaf(1.0), 2).backward()


def test_too_many_gradients():
    made = function(lambda ctx, x: x * 2, lambda ctx, grad: (grad, grad))
    with fails(
        RuntimeError,
        "function MadeBackward returned an incorrect number of gradients (expected 1, got 2)",
    ):
        made.apply(leaf(1.0)).backward()


def test_gradient_of_a_wrong_shape():
    made = function(lambda ctx, x: x * 2, lambda ctx, grad: torch.ones(7))
    x = leaf(1.0, 2.0)
    with fails(
        RuntimeError,
        "Function MadeBackward returned an invalid gradient at index 0 - got [7] but expected "
        "shape compatible with [2]",
    ):
        made.apply(x).sum().backward()
    assert x.grad is None


@pytest.mark.parametrize(("value", "name"), [(5, "int"), ([1.0], "list"), ("text", "str")])
def test_gradient_that_is_no_tensor(value, name):
    made = function(lambda ctx, x: x * 2, lambda ctx, grad: value)
    with fails(RuntimeError, f"expected Variable or None (got {name})"):
        made.apply(leaf(1.0)).backward()


def test_errors_from_forward_and_backward_come_out_as_they_are():
    def broken(ctx, *args):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        function(broken).apply(leaf(1.0))
    assert torch.is_grad_enabled()
    with pytest.raises(KeyError, match="mine"):
        function(lambda ctx, x: x * 1, broken).apply(leaf(1.0)).backward()


def test_missing_forward_and_missing_backward():
    with fails(
        NotImplementedError,
        "You must implement the forward function for custom autograd.Function.",
    ):
        Function.apply(leaf(1.0))
    y = function(lambda ctx, x: x * 2).apply(leaf(1.0))
    with fails(
        NotImplementedError,
        "You must implement either the backward or vjp method for your custom autograd.Function "
        "to use it with backward mode AD.",
    ):
        y.backward()


def test_vjp_is_another_name_for_backward_but_not_both():
    members = {"forward": staticmethod(lambda ctx, x: x * 2)}
    members["vjp"] = staticmethod(lambda ctx, grad: grad * 9)
    x = leaf(1.0)
    type("WithVjp", (Function,), members).apply(x).backward()
    assert x.grad.tolist() == [9.0]
    both = type("Both", (Function,), {**members, "backward": members["vjp"]})
    with fails(
        RuntimeError,
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should "
        "only implement one of them.",
    ):
        both.apply(x).backward()


def test_once_differentiable_runs_without_grad_mode_and_refuses_a_second_derivative():
    seen = []

    @once_differentiable
    def backward(ctx, grad):
        seen.append(torch.is_grad_enabled())
        return grad * 2

    x = leaf(1.0)
    seed = leaf(1.0)
    y = function(lambda ctx, x: x * 2, backward).apply(x)
    (first,) = torch.autograd.grad(y, x, seed, create_graph=True)
    assert first.tolist() == [2.0] and first.requires_grad
    assert seen == [False]
    with fails(
        RuntimeError,
        "trying to differentiate twice a function that was marked with @once_differentiable",
    ):
        first.backward()


def test_node_and_tensor_hooks_on_a_function():
    order = []
    x = leaf(1.0)
    y = Square.apply(x)
    y.register_hook(lambda g: order.append("tensor"))
    y.grad_fn.register_prehook(lambda go: order.append("pre"))
    y.grad_fn.register_hook(lambda gi, go: order.append("post"))
    y.backward()
    assert order == ["tensor", "pre", "post"]
