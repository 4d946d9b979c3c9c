"""`autograd.graph`: what it promises beyond PyTorch, and that errors leave all state unchanged."""

import weakref

import pytest

import cygrad as torch
from helpers import fails, in_thread, leaf

graph = torch.autograd.graph


def test_hook_order_lists_what_happens(capsys):
    x = leaf(1.0, 2.0)
    y = x * 2
    called = []

    def named(name):
        def hook(*args):
            called.append(name)

        return hook

    hooks = {name: named(name) for name in ("pre", "tensor", "post", "second")}
    y.grad_fn.register_prehook(hooks["pre"])
    y.grad_fn.register_hook(hooks["post"])
    y.register_hook(hooks["tensor"])
    y.retain_grad()
    y.register_hook(hooks["second"])
    steps = graph.hook_order(y)
    assert [what for what, _ in steps] == [
        "tensor hook",
        "tensor hook",
        "retain_grad",
        "node pre-hook",
        "node",
        "node post-hook",
    ]
    y.sum().backward()
    by_hook = {hook: name for name, hook in hooks.items()}
    assert called == [by_hook[hook] for _, hook in steps if hook in by_hook]
    graph.print_hook_order(y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[4] == "5. node MulBackward0"
    assert "test_graph.py" in lines[0]


def test_hook_order_where_no_gradient_arrives():
    assert graph.hook_order(torch.ones(1)) == []
    with fails(TypeError, "hook_order(): argument 'tensor' (position 1) must be Tensor, not int"):
        graph.print_hook_order(3)


def test_hook_order_of_a_leaf():
    x = leaf(1.0)
    called = []
    x.register_post_accumulate_grad_hook(lambda t: called.append("post-accumulate hook"))
    graph.get_gradient_edge(x).node.register_hook(lambda *grads: called.append("node post-hook"))
    x.register_hook(lambda grad: called.append("tensor hook"))
    (x * 2).sum().backward()
    assert called == [what for what, _ in graph.hook_order(x) if what != "node"]


def test_hooks_on_saved_tensors_belong_to_their_thread():
    packed = []
    with graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t, lambda t: t):
        in_thread(lambda: leaf(1.0).sin())
        assert packed == []
        leaf(1.0).sin()
    assert packed == [(1,)]


def test_disabling_hooks_belongs_to_its_thread():
    def work():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            leaf(1.0).sin()

    with graph.disable_saved_tensors_hooks("not here"):
        in_thread(work)


def test_mutation_context_belongs_to_its_thread():
    def work():
        y = leaf(1.0) * 1
        z = y.sin()
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()

    with graph.allow_mutation_on_saved_tensors():
        in_thread(work)


def test_an_error_in_a_block_ends_its_hooks():
    with pytest.raises(ZeroDivisionError), graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        leaf(1.0).sin()
    x = leaf(1.0)
    x.sin().backward()
    with pytest.raises(ZeroDivisionError), graph.allow_mutation_on_saved_tensors():
        raise ZeroDivisionError
    with graph.allow_mutation_on_saved_tensors():
        pass
    assert torch.is_grad_enabled()


def hooks_are_active():
    y = leaf(1.0).exp()
    return y.grad_fn._raw_saved_result.unpack_hook is not None


def test_hooks_that_a_pass_enters_or_ends_do_not_outlast_it():
    other = graph.saved_tensors_hooks(lambda x: x, lambda x: x)

    def entering(x):
        other.__enter__()
        return x

    with graph.saved_tensors_hooks(lambda x: x, entering):
        y = leaf(1.0).exp()
    y.backward()
    assert not hooks_are_active()

    def ending(x):
        other.__exit__()
        return x

    with other:
        with graph.saved_tensors_hooks(lambda x: x, ending):
            y = leaf(1.0).exp()
        y.backward()
        assert hooks_are_active()
    assert not hooks_are_active()


def test_the_end_of_a_block_ends_the_innermost_hooks():
    first, second = (graph.saved_tensors_hooks(lambda x: x, lambda x: x) for _ in range(2))
    with first:
        second.__enter__()
    assert hooks_are_active()
    first.__exit__()
    assert not hooks_are_active()
    with fails(RuntimeError, "saved_tensors_hooks: there are no hooks in this thread that could end"):
        second.__exit__()


def product_of_function(x, y):
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    return Product.apply(x, y)


@pytest.mark.parametrize("product", [torch.mul, product_of_function])
def test_a_pack_hook_may_free_what_it_packs(product):
    x = leaf(2.0)
    y = product(x, leaf(3.0))
    raw = y.grad_fn._raw_saved_self if product is torch.mul else y.grad_fn._raw_saved_tensors[0]
    raw.register_hooks(lambda t: torch.autograd.grad(y, x), lambda packed: packed)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_hooks_on_saved_tensors_see_every_kind_of_op():
    w = leaf(1.0, 2.0)

    def count(action):
        seen = []
        with graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
            result = action()
        (g,) = torch.autograd.grad(result.sum(), w)
        n = len(seen)
        del seen[:]
        return n, g.tolist()

    assert count(w.exp) == (1, w.exp().tolist())  # saves its result
    assert count(lambda: w * w)[0] == 2
    assert count(lambda: torch.nn.functional.softmax(w, 0))[0] >= 1
    assert count(lambda: torch.maximum(w, w + 1))[0] == 2
    assert count(lambda: (w * 1).pow_(2)) == (1, [2.0, 4.0])  # in place: the old value
    assert count(lambda: w + 1) == (0, [1.0, 1.0])


@pytest.mark.parametrize("unpack", [lambda t: t[:1], lambda t: t.double(), lambda t: t.reshape(2, 1)])
@pytest.mark.parametrize("op", [torch.sin, torch.nn.functional.gelu, lambda t: torch.softmax(t, 0)])
def test_what_is_unpacked_must_be_like_what_was_packed(unpack, op):
    x = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(lambda t: t, unpack):
        y = op(x)
    with pytest.raises(RuntimeError, match="the unpack hook of a saved tensor returned shape"):
        y.sum().backward()


def test_places_of_nodes_are_numbered():
    node = leaf(1.0).sin().grad_fn
    for place in (-1, 4, 7):
        with pytest.raises(IndexError):
            node._place(place)


def test_places_of_functions_are_numbered():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    node = Twice.apply(leaf(1.0)).grad_fn
    for place in (-1, 1, 7):
        with pytest.raises(IndexError):
            node._place(place)
    with pytest.raises(IndexError):
        type(node)()._place(0)


def test_save_on_cpu_protects_from_changes_in_place():
    x = leaf(1.0, 2.0)
    with graph.save_on_cpu():
        y = x * 1
        z = (y * y).sum()
    y.zero_()
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_third_derivative_through_hooks():
    x = leaf(2.0)
    with graph.saved_tensors_hooks(lambda t: t.tolist(), lambda values: torch.tensor(values)):
        g = (x**4).sum()
        for _ in range(3):
            (g,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    assert g.tolist() == [48.0]


@pytest.mark.parametrize("number", [-1, 1, 7])
def test_an_edge_to_no_output_is_refused(number):
    y = leaf(1.0) * 2
    edge = graph.GradientEdge(y.grad_fn, number)
    with pytest.raises(IndexError, match="tuple index out of range\n  .* has 1 outputs"):
        torch.autograd.grad(y, edge)
    with pytest.raises(TypeError, match="must be a Node, not int"):
        torch.autograd.grad(y, graph.GradientEdge(3, 0))
    with fails(TypeError, "tuple indices must be integers or slices, not float"):
        torch.autograd.grad(y, graph.GradientEdge(y.grad_fn, 0.5))


def test_an_edge_keeps_the_graph_but_not_the_tensor():
    x = leaf(3.0)
    y = x * x
    edge = graph.get_gradient_edge(y)
    del y
    (g,) = torch.autograd.grad(edge, x, torch.ones(1))
    assert g.tolist() == [6.0]


def test_multi_grad_hook_state_ends_with_the_pass():
    a, b = leaf(1.0), leaf(1.0)
    seen = []
    handle = graph.register_multi_grad_hook((a, b), seen.append)

    def fail(grad):
        raise ZeroDivisionError

    y = a * b
    stop = y.register_hook(fail)
    with pytest.raises(ZeroDivisionError):
        y.backward(retain_graph=True)
    stop.remove()
    y.backward()
    handle.remove()
    assert len(seen) == 1
    seen.clear()


def test_hooks_on_saved_tensors_are_functions():
    line = "_push_saved_tensors_default_hooks(): incompatible function arguments. The following argument types are ..."
    with fails(TypeError, line), torch.autograd.graph.saved_tensors_hooks(3, 4):
        pass
    assert leaf(1.0).exp().requires_grad  # no hook is left behind


def test_what_a_hook_packed_can_be_looked_at():
    x = leaf(1.0, 2.0)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    assert raw.data.tolist() == [1.0, 2.0] and raw.unpack_hook is None

    def unpack(packed):
        return torch.tensor(packed)

    raw.register_hooks(lambda t: t.tolist(), unpack)
    assert raw.data == [1.0, 2.0] and raw.unpack_hook is unpack
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_handle_of_a_saved_tensor_is_one_object_while_it_is_kept():
    x = torch.ones(2, requires_grad=True)
    y, z = x.exp(), x.exp()
    handle = y.grad_fn._raw_saved_result
    assert y.grad_fn._raw_saved_result is handle
    assert z.grad_fn._raw_saved_result is not handle
    product = (x * 2) * (x * 3)
    assert product.grad_fn._raw_saved_self is not product.grad_fn._raw_saved_other
    known = weakref.ref(handle)
    del handle
    assert known() is None


def test_indices_have_a_handle_each():
    x, index = leaf([1.0, 2.0], [3.0, 4.0]), torch.tensor([1, 0])
    y = x[:, index]
    none, handle = y.grad_fn._raw_saved_indices
    assert none.data is None and none.unpack() is None and handle.data is handle.unpack() is index
    assert y.grad_fn._raw_saved_indices[1] is handle
    with fails(RuntimeError, "Calling register_hooks on a saved tensor with value None is forbidden"):
        none.register_hooks(lambda t: t, lambda t: t)
    handle.register_hooks(lambda t: t.tolist(), lambda packed: torch.tensor(packed[::-1]))
    (y * torch.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [[1.0, 10.0], [1.0, 10.0]]  # by the indices that the hook has put in reverse
    with fails(RuntimeError, "Calling register_hooks on a saved tensor after it has been freed..."):
        handle.register_hooks(lambda t: t, lambda t: t)


def test_only_unused_edges_cannot_be_materialized():
    x, y = leaf(1.0), leaf(2.0)
    used, unused = graph.get_gradient_edge(x), graph.get_gradient_edge(y)
    assert [g.item() for g in torch.autograd.grad(x * 3, (used, y), materialize_grads=True)] == [3, 0]
    with fails(RuntimeError, "materialize_grads cannot be used when the given input is a GradientEdge"):
        torch.autograd.grad(x * 3, (x, unused), materialize_grads=True)


def test_hooks_of_a_saved_tensor_are_two():
    raw = leaf(1.0).exp().grad_fn._raw_saved_result
    line = "register_hooks(): incompatible function arguments. The following argument types are supported:"
    for arguments in ((), (lambda x: x,)):
        with fails(TypeError, line):
            raw.register_hooks(*arguments)
