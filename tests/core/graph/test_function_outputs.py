"""How `apply` treats the tensors that forward returns, saves and marks, and keyword arguments."""

import weakref

import pytest

import cygrad as torch
from cygrad._core.graph.function import apply_function
from cygrad.autograd import Function
from helpers import fails, kind, leaf


def function(forward, backward=lambda ctx, *grads: grads[0], setup_context=None):
    """Make a Function class from these functions."""
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    if setup_context:
        body["setup_context"] = staticmethod(setup_context)
    return type("Made", (torch.autograd.Function,), body)


def double_in_place(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


def as_constant(ctx, x):
    ctx.mark_non_differentiable(x)
    return x


Identity = function(lambda ctx, x: x)
Doubled = function(double_in_place, lambda ctx, g: g * 2)
First = function(lambda ctx, x: x[:1], lambda ctx, g: torch.cat([g, torch.zeros(1)]))

# ------------------------------------------------------------------ outputs without history


@pytest.mark.parametrize("forward", [lambda ctx, x: x, as_constant])
def test_an_input_without_gradient_comes_back_as_a_view(forward):
    x = torch.ones(2)
    y = function(forward).apply(x)
    assert y is not x and y._base is x and not y.requires_grad


def test_an_input_returned_in_no_grad_mode_is_detached():
    x = leaf(1.0, 2.0)
    with torch.no_grad():
        y = Identity.apply(x)
    assert y is not x and not y.requires_grad and not y._is_view() and y.data_ptr() == x.data_ptr()


def test_a_changed_input_that_gets_no_history_is_detached():
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return double_in_place(ctx, x)

    x = leaf(1.0, 2.0)
    changed = x * 1
    y = function(forward).apply(changed)
    assert y is not changed and not y.requires_grad and kind(changed.grad_fn) == "MulBackward0"
    with torch.no_grad():
        y = Doubled.apply(x)
    assert y is not x and not y.requires_grad and x.requires_grad
    assert y.tolist() == x.tolist() == [2.0, 4.0]


def test_a_view_of_an_input_stays_one_in_no_grad_mode():
    x = leaf(1.0, 2.0)
    with torch.no_grad():
        y = First.apply(x)
    assert y._base is x and y.requires_grad and y.grad_fn is None


# ------------------------------------------------------------------ views and in-place


def test_two_views_are_views_of_a_multi_output_function():
    halves = function(lambda ctx, x: (x[:1], x[1:]), lambda ctx, g, h: torch.cat([g, h]))
    a, _ = halves.apply(leaf(1.0, 2.0) * 1)
    with fails(
        RuntimeError, "Output 0 of Made is a view and is being modified inplace. This view is the output of a ..."
    ):
        a.add_(1)


def test_a_view_of_a_tensor_without_gradient_has_the_functions_history():
    bases = [torch.ones(3)]
    y = function(lambda ctx, x: bases[0][:2]).apply(leaf(1.0, 2.0))
    assert kind(y.grad_fn) == "MadeBackward"
    bases[0].add_(1)
    with fails(RuntimeError, "Output 0 of Made is a view and its base or another view of its base has been ..."):
        _ = y.grad_fn
    # Once a thread has been started, free-threaded CPython 3.13 never frees classes, nor what their functions close
    # over.
    bases.clear()


def test_changing_a_view_that_was_made_in_no_grad_mode():
    base = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        view = base[:1]
    with fails(RuntimeError, "a leaf Variable that requires grad has been used in an in-place operation."):
        Doubled.apply(view)
    part = base.split(1)[0]
    with fails(RuntimeError, "Output 0 of Split is a view and is being modified inplace. This view is the output ..."):
        Doubled.apply(part)


# ------------------------------------------------------------------ marks


@pytest.mark.parametrize(
    ("mark", "exception", "line"),
    [
        ("mark_dirty", RuntimeError, "mark_dirty can only accept variables, but argument ..."),
        (
            "mark_non_differentiable",
            RuntimeError,
            "mark_non_differentiable only accepts variable arguments, ...",
        ),
        ("save_for_backward", TypeError, "save_for_backward can only save variables, but argument 0 is of type int"),
        (
            "set_materialize_grads",
            TypeError,
            "set_materialize_grads received an invalid combination of arguments - got (...), but expected (bool)",
        ),
    ],
)
def test_marks_that_are_given_a_number(mark, exception, line):
    def forward(ctx, x):
        getattr(ctx, mark)(5)
        return x * 1

    with fails(exception, line):
        function(forward).apply(leaf(1.0))


def test_attributes_behind_the_marks_are_checked_as_well():
    def forward(ctx, x):
        ctx.to_save = (5,)
        return x * 1

    with fails(TypeError, "save_for_backward can only save variables, but argument 0 is of type int"):
        function(forward).apply(leaf(1.0))


# ------------------------------------------------------------------ saved tensors


def test_saved_tensors_are_there_when_forward_is_done():
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        seen.append(ctx.saved_tensors)
        return x * 1

    y = function(forward).apply(leaf(1.0))
    assert seen == [()] and len(y.grad_fn.saved_tensors) == 1


def test_saved_tensors_after_the_pass_even_if_nothing_was_saved():
    y = function(lambda ctx, x: x * 1).apply(leaf(1.0))
    assert y.grad_fn.saved_tensors == ()
    y.backward()
    with fails(RuntimeError, "Trying to backward through the graph a second time ..."):
        _ = y.grad_fn.saved_tensors
    y.backward()  # this backward does not read them


def test_inference_tensors_can_not_be_saved():
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * y

    with torch.inference_mode():
        made_there = torch.ones(1)
    with fails(RuntimeError, "Inference tensors cannot be saved for backward. ..."):
        function(forward).apply(leaf(1.0), made_there)


def test_an_input_returned_as_it_is_can_not_be_saved_by_setup_context():
    kept = function(lambda x: x, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))
    with fails(RuntimeError, "An input that has been returned as-is as output is being saved for backward. ..."):
        kept.apply(leaf(1.0))


# ------------------------------------------------------------------ keyword arguments


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=2.0, shift=0.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * scale + shift

    @staticmethod
    def backward(ctx, grad):
        grads = (grad * ctx.scale, (grad * ctx.saved_tensors[0]).sum(), grad.sum())
        return grads[: len(ctx.needs_input_grad)]


def test_an_argument_given_by_name_gets_its_gradient():
    x, scale = leaf(1.0, 2.0), torch.tensor(3.0, requires_grad=True)
    y = Scaled.apply(x, scale=scale)
    assert y.grad_fn.needs_input_grad == (True, True)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and scale.grad.item() == 3.0


@pytest.mark.parametrize(
    ("names", "line"),
    [
        ({"shift": 1.0}, "forward() missing required argument: 'scale' (position 1)"),
        ({"x": 1.0}, "forward() got multiple values for argument 'x'"),
        ({"slope": 1.0}, "forward() got an unexpected keyword argument 'slope'"),
    ],
)
def test_names_that_leave_gaps_or_do_not_fit(names, line):
    with fails(TypeError, line):
        Scaled.apply(leaf(1.0), **names)


def test_setup_context_gets_the_defaults():
    seen = []
    plain = function(
        lambda x, scale=2.0: x * scale,
        lambda ctx, g: (g, None),
        lambda ctx, inputs, output: seen.append((inputs[1:], ctx.needs_input_grad)),
    )
    plain.apply(leaf(1.0))
    plain.apply(leaf(1.0), scale=5.0)
    assert seen == [((2.0,), (True, False)), ((5.0,), (True, False))]
    named_only = function(lambda x, *, k=1: x, setup_context=lambda ctx, inputs, output: None)
    with fails(TypeError, "forward() got an unexpected keyword argument 'k'"):
        named_only.apply(leaf(1.0))


def test_names_of_nodes():
    y = Identity.apply(leaf(1.0))
    assert repr(y.grad_fn).startswith("<torch.autograd.function.MadeBackward object at 0x")
    assert repr(y) == "tensor([1.], grad_fn=<MadeBackward>)"


def test_needs_input_grad_and_the_edge_of_a_view_without_history():
    x = leaf(1.0, 2.0)
    with torch.no_grad():
        view = x[:1]
    y = Scaled.apply(view)
    assert y.grad_fn.needs_input_grad == (True,) and y.grad_fn.next_functions == ((None, 0),)


def test_the_same_tensor_twice_is_the_later_output():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, first, second):
            return first * 10 + second

    x = torch.ones(1, requires_grad=True)
    p, q = Twice.apply(x)
    assert p is q
    assert p.output_nr == 1
    (p + q).backward()
    assert x.grad.tolist() == [2]


def test_a_node_is_applied_once():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(1, requires_grad=True)
    y = Double.apply(x)
    with pytest.raises(RuntimeError, match="^DoubleBackward has been applied before"):
        apply_function(y.grad_fn, lambda a, b: (a, b), (x, y))
    y.backward()
    assert x.grad.tolist() == [2]


def test_instances_of_functions_warn():
    class Double(torch.autograd.Function):
        pass

    for make in (Double, torch.autograd.Function):
        with pytest.warns(
            DeprecationWarning, match="should not be instantiated. Methods on autograd functions are all"
        ):
            make()


def test_a_complex_gradient_is_none_of_a_real_input():
    class Turned(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 1j

    x = torch.ones(2, requires_grad=True)
    with fails(RuntimeError, "Expected isFloatingType(grad.scalar_type()) ||..."):
        Turned.apply(x).sum().backward()
    assert x.grad is None
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    Turned.apply(z).real.sum().backward()
    assert z.grad.tolist() == [1j, 1j]


def test_saved_tensors_may_go_once_they_are_read():
    class Product(torch.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x, y):
            x = x * 1
            ctx.save_for_backward(x, y)
            ctx.kept = weakref.ref(x)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            assert ctx.kept() is x
            grads = grad * y, grad * x
            del x
            assert ctx.kept() is None
            return grads

    class Derived(Product):
        pass

    line = "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set..."
    for made in (Product, Derived):
        x, y = leaf(2.0), leaf(3.0)
        z = made.apply(x, y)
        z.backward(retain_graph=True)
        assert x.grad.item() == 3 and y.grad.item() == 2
        with fails(RuntimeError, line):
            z.backward()
    node = Product.apply(x, y).grad_fn
    assert len(node.saved_tensors) == 2
    with fails(RuntimeError, line):
        assert node.saved_tensors


def test_gradients_in_a_box():
    class Both(torch.autograd.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grads):
            assert type(grads) is list
            first, second = grads
            grads.clear()
            return first * 2 + second * 3

    x = leaf(1.0)
    first, second = Both.apply(x)
    (first + second * 10).backward()
    assert x.grad.item() == 32
    first, _ = Both.apply(x)
    (g,) = torch.autograd.grad(first, x, create_graph=True)
    assert g.item() == 2


@pytest.mark.parametrize("flag", [True, False])
def test_gradients_of_non_differentiable_outputs_may_stay_none(flag):
    seen = []

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            assert ctx._materialize_non_diff_grads is True
            ctx._materialize_non_diff_grads = flag
            marked, kept = x.clone(), x.clone()
            ctx.mark_non_differentiable(marked)
            return kept, marked, x.clone()

        @staticmethod
        def backward(ctx, *grads):
            seen.extend(None if g is None else g.tolist() for g in grads)
            return grads[0]

    Function.apply(torch.ones(2, requires_grad=True))[0].sum().backward()
    assert seen == [[1, 1], [0, 0] if flag else None, [0, 0]]


def test_names_of_nodes_of_the_engine():
    x = torch.ones(2, requires_grad=True)
    copied, view = torch.zeros(2).copy_(x).grad_fn, torch.zeros(2)
    view[:1].copy_(x[:1])
    nodes = copied, view.grad_fn, copied.next_functions[1][0]
    assert [type(node).__name__ for node in nodes] == ["CopyBackwards", "CopySlices", "AccumulateGrad"]
    assert [node.name() for node in nodes] == [f"torch::autograd::{type(node).__name__}" for node in nodes]


def test_the_node_that_refuses_a_second_derivative():
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, factor, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad * b, None, grad * a

    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    given = torch.ones(2, requires_grad=True)
    node = torch.autograd.grad(Product.apply(a, 2, b), a, given, create_graph=True)[0].grad_fn
    assert (type(node).__name__, node.name()) == ("Error", "torch::autograd::Error")
    assert [type(each).__name__ for each, _ in node.next_functions] == ["AccumulateGrad", "NoneType", "AccumulateGrad"]


def test_a_class_answers_for_an_input_returned_unchanged():
    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            args = [each.as_subclass(torch.Tensor) if isinstance(each, cls) else each for each in args]
            result = func(*args, **(kwargs or {}))
            return result.as_subclass(cls) if isinstance(result, torch.Tensor) else result

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    assert type(Same.apply(torch.ones(2).as_subclass(Own))) is Own
    assert type(Same.apply(torch.nn.Parameter(torch.ones(2)))) is torch.Tensor
