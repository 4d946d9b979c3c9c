"""Private names of autograd that programs use: what they do."""

import collections
import types

import pytest

import cygrad as torch
from cygrad.autograd import Function
from cygrad.autograd import forward_ad as fwd
from helpers import fails

C = torch._C


# ------------------------------------------------------------------ the running pass


def test_the_number_of_the_pass_and_whether_it_keeps_the_graph():
    seen = []
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(
        lambda g: seen.append((C._current_graph_task_id(), C._autograd._get_current_graph_task_keep_graph()))
    )
    y.backward(retain_graph=True)
    y.backward()
    (first, kept), (second, kept_then) = seen
    assert second > first >= 0 and kept is True and kept_then is False
    assert C._current_graph_task_id() == -1 and C._autograd._get_current_graph_task_keep_graph() is True


def test_the_number_of_a_pass_within_a_pass():
    seen = []

    def hook(grad):
        seen.append(C._current_graph_task_id())
        inner = (x.detach().requires_grad_() * 3).sum()
        inner.register_hook(lambda g: seen.append(C._current_graph_task_id()))
        with torch.enable_grad():
            (torch.ones(1, requires_grad=True) * 3).backward()
        inner.backward()
        seen.append(C._current_graph_task_id())

    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    with torch.enable_grad():
        y.backward(create_graph=True)
    outer, inner, after = seen
    assert outer == after < inner


def test_the_order_of_nodes():
    found, ran = [], []
    a, b = (torch.tensor(n, requires_grad=True) for n in (1.0, 2.0))
    c, d = b.sin(), a.cos()
    out = (c * d) + a
    for x in (a, b, c, d, out):
        node = torch.autograd.graph.get_gradient_edge(x).node
        x.register_hook(lambda g, node=node: ran.append(node))
    out.register_hook(lambda g: found.append(C._current_graph_task_execution_order()))
    out.backward(retain_graph=True)
    (order,) = found
    b_node = torch.autograd.graph.get_gradient_edge(b).node
    assert [node for node in order if node in ran] == ran and len(order) == len(set(order)) == 6
    torch.autograd.grad(out, (c, a), retain_graph=True)
    assert found[1][0] is out.grad_fn and set(found[1]) == set(order) - {b_node}
    with fails(RuntimeError, "_current_graph_task_execution_order should only be called during the backward pass"):
        C._current_graph_task_execution_order()


def test_whether_a_node_runs():
    x, z = (torch.ones(2, requires_grad=True) for _ in range(2))
    y = x * z
    other, out = y.cos(), y * 3
    leaf, leaf_z = (edge[0] for edge in y.grad_fn.next_functions)
    seen = []

    def hook(grad):
        seen.append([C._will_engine_execute_node(node) for node in (leaf, leaf_z, y.grad_fn, other.grad_fn)])

    y.register_hook(hook)
    out.sum().backward(retain_graph=True)
    out.sum().backward(inputs=(x, y), retain_graph=True)
    assert seen == [[True, True, True, False], [True, False, True, False]]
    with fails(RuntimeError, "A leaf node was passed to _will_engine_execute_node but we are currently running ..."):
        torch.autograd.grad(out.sum(), (x,), retain_graph=True)
    with fails(RuntimeError, "_get_should_execute_nodes should only be called during the backward pass"):
        C._will_engine_execute_node(y.grad_fn)
    for wrong, name in ((y, "Tensor"), (None, "NoneType")):
        with fails(RuntimeError, f"_will_engine_execute_node expects an grad_fn, but got {name}"):
            C._will_engine_execute_node(wrong)


# ------------------------------------------------------------------ nodes


def test_errors_that_wait_for_backward():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    found = C._functions.DelayedError("too late", 1)(x)
    assert found.equal(x) and found.requires_grad and found.data_ptr() == x.data_ptr()
    with fails(RuntimeError, "too late"):
        (found * 2).sum().backward()
    assert x.grad is None
    first, second = C._functions.DelayedError("too late", 2)(x, y)
    assert first.requires_grad and second.requires_grad
    assert not C._functions.DelayedError("too late", 1)(y).requires_grad
    with fails(RuntimeError, "argument 'msg' must be a string"):
        C._functions.DelayedError(1, 2)
    with fails(TypeError, "expected 1 arguments, got 0 instead"):
        C._functions.DelayedError("a", 1)()
    with fails(TypeError, "argument 0 is not a Variable"):
        C._functions.DelayedError("a", 1)(3)


@pytest.mark.parametrize("is_filled", [False, True])
def test_gradients_that_are_missing(is_filled):
    seen = []

    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(is_filled)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.append(g if g is None else g.tolist())  # no tensor: without the GIL, 3.13 never frees classes
            return g

    x = torch.ones(1, requires_grad=True)
    found = C._functions.UndefinedGrad()(Same.apply(x))
    assert found.equal(x) and found.requires_grad
    found.backward()
    assert seen == ([[0]] if is_filled else [None])
    with fails(TypeError, "expected 1 arguments, got 2 instead"):
        C._functions.UndefinedGrad()(x, x)


def test_classes_of_nodes():
    x = torch.ones(1, requires_grad=True)
    assert isinstance((x * 2).grad_fn.next_functions[0][0], C._functions.AccumulateGrad)
    assert isinstance((x * x).grad_fn._raw_saved_self, C._autograd.SavedTensor)
    with fails(RuntimeError, "Trying to create a SavedTensor object from Python is forbidden."):
        torch.autograd.SavedTensor()


# ------------------------------------------------------------------ modes and counters


def test_hidden_changes():
    x = torch.ones(2, requires_grad=True).clone()
    y = x * x
    with torch.autograd._unsafe_preserve_version_counter(x):
        x.detach().mul_(2)
        assert x._version == 1
    assert x._version == 0
    y.sum().backward()  # which does not notice
    assert y.equal(torch.ones(2))
    C._autograd._unsafe_set_version_counter((x, y), (5, 3))
    assert (x._version, y._version) == (5, 3)
    with fails(RuntimeError, "Cannot set a version_counter to a value below 0: -1"):
        C._autograd._unsafe_set_version_counter((y, x), (1, -1))
    assert (x._version, y._version) == (5, 3)


def test_modes():
    assert C._is_fwd_grad_enabled()
    try:
        C._set_fwd_grad_enabled(False)
        assert not fwd._is_fwd_grad_enabled()
        with fwd._set_fwd_grad_enabled(True):
            assert C._is_fwd_grad_enabled()
        assert not C._is_fwd_grad_enabled()
    finally:
        C._set_fwd_grad_enabled(True)
    with fails(TypeError, "enabled must be a bool (got int)"):
        C._set_fwd_grad_enabled(1)
    with torch.no_grad():
        assert not C.is_grad_enabled()
    assert C._autograd._saved_tensors_hooks_is_enabled()
    with torch.autograd.graph.disable_saved_tensors_hooks("none here"):
        assert not C._autograd._saved_tensors_hooks_is_enabled()
    assert C._autograd._saved_tensors_hooks_is_enabled()


def test_weak_references():
    x = torch.ones(1)
    reference = C._WeakTensorRef(x)
    assert not reference.expired()
    del x
    assert reference.expired()
    with fails(TypeError, "_WeakTensorRef(): argument must be a Tensor, not int"):
        C._WeakTensorRef(1)


# ------------------------------------------------------------------ helpers


def test_shapes_and_bases():
    x = torch.ones(2, 3, requires_grad=True) * 2
    shapes = torch.autograd._calculate_shape
    assert shapes(x, torch.ones(5, 2, 3), True) == ((2, 3), (2, 3)) and shapes(x, torch.ones(4), False) == (
        (2, 3),
        (4,),
    )
    edge = torch.autograd.graph.get_gradient_edge(x)
    assert shapes(edge, torch.ones(4), False) == ((2, 3), (4,))
    with fails(RuntimeError, "Batched grads are not supported with GradientEdge"):
        shapes(edge, torch.ones(4), True)
    assert torch.autograd.kineto_available()
    basis = torch.autograd.functional._construct_standard_basis_for
    first, second = basis((torch.zeros(2), torch.zeros(1, dtype=torch.double)), (2, 1))
    assert first.tolist() == [[1, 0], [0, 1], [0, 0]] and second.tolist() == [[0], [0], [1]]
    assert second.dtype == torch.double


def test_nested_values():
    Pair = collections.namedtuple("Pair", "a b")
    mapped = torch.autograd.function._nested_map(lambda x: isinstance(x, int), lambda x: x + 1, "numbers")
    assert mapped([1, (2, None), {"a": 3}, Pair(4, 5)]) == [2, (3, None), {"a": 4}, Pair(5, 6)]
    assert type(mapped(Pair(1, 2))) is Pair
    with fails(
        ValueError,
        "Auto nesting doesn't know how to process an input object of type str. Accepted types: numbers, or "
        "lists/tuples of them",
    ):
        mapped(["a"])


def test_names_of_other_modules():
    with torch.library._scoped_library("tests_scoped", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        assert torch.ops.tests_scoped.twice(torch.ones(1)).tolist() == [2]
    with pytest.raises(AttributeError):
        torch.ops.tests_scoped.twice(torch.ones(1))
    values, inverse, counts = torch._VF.unique_dim(torch.tensor([[2], [1], [2]]), 0, True, True)
    assert (values.tolist(), inverse.tolist(), counts.shape) == ([[1], [2]], [1, 0, 1], (0,))
    assert torch.onnx.producer_version == torch.__version__ and C.has_lapack
    assert torch.utils._import_utils._check_module_exists("json")
    assert not torch.utils._import_utils._check_module_exists("no_such_module_here")
    assert torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL == 5.0
    gamma = torch.distributions.Gamma(torch.tensor(2.0), torch.tensor(3.0))
    other = torch.distributions.Gamma(torch.tensor(1.0), torch.tensor(2.0))
    found = torch.distributions.kl._kl_expfamily_expfamily(gamma, other)
    assert torch.allclose(found, torch.distributions.kl_divergence(gamma, other))


def test_versions_of_modules():
    check = torch.serialization.check_module_version_greater_or_equal
    module = types.ModuleType("m")
    module.__version__ = "1.2.x"
    assert check(module, (1, 2)) and not check(module, (1, 3))
    line = "'m' module version string is malformed '1.2.x' and cannot be compared with tuple (1, 2, 3)"
    with fails(RuntimeError, line):
        check(module, (1, 2, 3))
    with pytest.warns(UserWarning, match="continuing assuming that requirement is met"):
        assert check(module, (1, 2, 3), error_if_malformed=False)
    assert issubclass(torch.serialization.SourceChangeWarning, Warning)
