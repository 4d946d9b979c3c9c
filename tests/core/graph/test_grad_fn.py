"""The public interface of graph nodes: names, edges, metadata, saved tensors, sequence numbers."""

import copy
import pickle
import weakref

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from helpers import fails, kinds, leaf


def vector():
    return torch.tensor([0.25, 0.5, 0.75], requires_grad=True)


def matrix():
    return torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)


NAMES = [
    ("AddBackward0", lambda x, m: x + 1),
    ("AddBackward0", lambda x, m: 1 + x),
    ("SubBackward0", lambda x, m: x - 1),
    ("RsubBackward1", lambda x, m: 1 - x),
    ("MulBackward0", lambda x, m: x * 2),
    ("DivBackward0", lambda x, m: x / 2),
    ("MulBackward0", lambda x, m: 1 / x),
    ("NegBackward0", lambda x, m: -x),
    ("PowBackward0", lambda x, m: x**2),
    ("PowBackward1", lambda x, m: x**x),
    ("PowBackward2", lambda x, m: 2**x),
    ("ExpBackward0", lambda x, m: x.exp()),
    ("LogBackward0", lambda x, m: x.log()),
    ("SqrtBackward0", lambda x, m: x.sqrt()),
    ("AbsBackward0", lambda x, m: abs(x)),
    ("SinBackward0", lambda x, m: x.sin()),
    ("CosBackward0", lambda x, m: x.cos()),
    ("TanhBackward0", lambda x, m: x.tanh()),
    ("SigmoidBackward0", lambda x, m: x.sigmoid()),
    ("ReluBackward0", lambda x, m: F.relu(x)),
    ("MaximumBackward0", lambda x, m: torch.maximum(x, m)),
    ("MinimumBackward0", lambda x, m: torch.minimum(x, m)),
    ("ClampBackward1", lambda x, m: x.clamp(0, 1)),
    ("ClampBackward1", lambda x, m: x.clamp(min=0)),
    ("WhereBackward0", lambda x, m: torch.where(x > 0, x, m)),
    ("SumBackward0", lambda x, m: x.sum()),
    ("SumBackward1", lambda x, m: m.sum(0)),
    ("MeanBackward0", lambda x, m: x.mean()),
    ("MeanBackward1", lambda x, m: m.mean(0)),
    ("MaxBackward1", lambda x, m: x.max()),
    ("MaxBackward0", lambda x, m: m.max(0)[0]),
    ("MinBackward1", lambda x, m: x.min()),
    ("MinBackward0", lambda x, m: m.min(0).values),
    ("ProdBackward0", lambda x, m: x.prod()),
    ("ProdBackward1", lambda x, m: m.prod(0)),
    ("LinalgVectorNormBackward0", lambda x, m: x.norm()),
    ("VarBackward0", lambda x, m: x.var()),
    ("StdBackward0", lambda x, m: x.std()),
    ("ViewBackward0", lambda x, m: m.view(6)),
    ("ViewBackward0", lambda x, m: m.reshape(3, 2)),
    ("ViewBackward0", lambda x, m: m.flatten()),
    ("TransposeBackward0", lambda x, m: m.transpose(0, 1)),
    ("PermuteBackward0", lambda x, m: m.permute(1, 0)),
    ("TBackward0", lambda x, m: m.t()),
    ("ExpandBackward0", lambda x, m: m.expand(4, 2, 3)),
    ("SqueezeBackward0", lambda x, m: m.squeeze()),
    ("SqueezeBackward1", lambda x, m: m.squeeze(0)),
    ("UnsqueezeBackward0", lambda x, m: m.unsqueeze(0)),
    ("CatBackward0", lambda x, m: torch.cat([m, m])),
    ("StackBackward0", lambda x, m: torch.stack([m, m])),
    ("SplitBackward0", lambda x, m: m.split(1)[0]),
    ("SplitWithSizesBackward0", lambda x, m: m.split([1, 1])[0]),
    ("SplitBackward0", lambda x, m: m.chunk(2)[0]),
    ("UnbindBackward0", lambda x, m: list(m)[0]),
    ("SelectBackward0", lambda x, m: m.select(0, 1)),
    ("CloneBackward0", lambda x, m: m.clone()),
    ("ToCopyBackward0", lambda x, m: m.double()),
    ("MmBackward0", lambda x, m: m @ m.t()),
    ("MvBackward0", lambda x, m: m @ x),
    ("DotBackward0", lambda x, m: x @ x),
    ("BmmBackward0", lambda x, m: torch.bmm(m[None], m.t()[None])),
    ("SoftmaxBackward0", lambda x, m: m.softmax(1)),
    ("LogSoftmaxBackward0", lambda x, m: F.log_softmax(m, 1)),
    ("NllLossBackward0", lambda x, m: F.nll_loss(m, torch.tensor([0, 1]))),
    ("NllLossBackward0", lambda x, m: F.cross_entropy(m, torch.tensor([0, 1]))),
    ("MseLossBackward0", lambda x, m: F.mse_loss(x, x.detach())),
]


@pytest.mark.parametrize(("name", "op"), NAMES)
def test_names_are_those_of_pytorch(name, op):
    y = op(vector(), matrix())
    assert y.grad_fn.name() == name == type(y.grad_fn).__name__
    assert f"<{name} object at 0x" in repr(y.grad_fn)
    assert f"grad_fn=<{name}>" in repr(y)


def test_names_of_the_special_nodes():
    x = leaf(1.0, 2.0)
    y = x * 1
    y[0] = 5.0
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    assert repr(y.grad_fn).startswith("<CopySlices object at 0x")
    accumulate = (x * 1).grad_fn.next_functions[0][0]
    assert accumulate.name() == "torch::autograd::AccumulateGrad"
    assert repr(accumulate).startswith("<AccumulateGrad object at 0x")


def test_types_of_nodes():
    """Programs that draw graphs read `type(node).__name__`."""
    x = leaf(1.0, 2.0)
    y = (x * 2).exp()
    assert [type(node).__name__ for node in (y.grad_fn, y.grad_fn.next_functions[0][0])] == [
        "ExpBackward0",
        "MulBackward0",
    ]
    kind = type(y.grad_fn)
    assert kind is type(x.exp().grad_fn) is not type((x * 2).grad_fn)
    assert repr(kind) == "<class 'ExpBackward0'>"
    assert issubclass(kind, torch.autograd.graph.Node)
    written = x * 1
    written[0] = 5.0
    assert type(written.grad_fn).__name__ == "CopySlices"
    assert type(y.grad_fn.next_functions[0][0].next_functions[0][0]).__name__ == "AccumulateGrad"
    y.sum().backward()  # unaffected
    assert x.grad.tolist() == [2 * value for value in y.tolist()]


def test_chain_of_nodes_that_were_seen_is_freed_without_recursion():
    y = leaf(1.0)
    for _ in range(100_000):
        y = y * 1
        assert y.grad_fn is not None
    node = weakref.ref(y.grad_fn.next_functions[0][0])
    del y
    assert node() is None


def test_dir_lists_indices_masks_and_targets():
    x, index = torch.ones(3, 2, requires_grad=True), torch.zeros(1, 2, dtype=torch.long)
    for node, name in [
        (x.gather(0, index).grad_fn, "index"),
        (x.index_select(0, index[0]).grad_fn, "index"),
        (x.scatter(0, index, 2.0).grad_fn, "index"),
        (x.masked_fill(x > 1, 0.0).grad_fn, "mask"),
        (F.nll_loss(x, torch.tensor([0, 1, 1])).grad_fn, "target"),
        (F.embedding(index, x).grad_fn, "indices"),
    ]:
        assert {f"_saved_{name}", f"_raw_saved_{name}"} <= set(dir(node)), node
        assert isinstance(getattr(node, f"_saved_{name}"), torch.Tensor)
        assert type(getattr(node, f"_raw_saved_{name}")).__name__ == "SavedTensor"
    loss = F.smooth_l1_loss(x, torch.zeros(3, 2)).grad_fn  # it saves a value that has no name
    assert "_saved__" not in dir(loss)
    with pytest.raises(AttributeError):
        loss._saved__  # noqa: B018  raises AttributeError


def test_input_metadata(monkeypatch):
    # Where tensors on other devices exist, devices are not known.
    monkeypatch.setattr("cygrad._core.engine.arguments.is_elsewhere", lambda: False)
    x = torch.ones(2, 3, dtype=torch.double, requires_grad=True)
    (of_sum,) = x.sum(1).grad_fn._input_metadata
    assert (of_sum.shape, of_sum.dtype, of_sum.device) == ([2], torch.double, torch.device("cpu"))
    assert not of_sum.is_nested_tensor
    largest = x.max(1).values.grad_fn
    assert [meta.dtype for meta in largest._input_metadata] == [torch.double]
    (of_leaf,) = (x * 2).grad_fn.next_functions[0][0]._input_metadata
    assert of_leaf.shape == [2, 3]


def test_next_functions_lead_to_the_leaves():
    x, w = leaf(1.0), leaf(2.0)
    z = (x * w) + 1
    (product, number), (missing, zero) = z.grad_fn.next_functions
    assert product.name() == "MulBackward0"
    assert (number, missing, zero) == (0, None, 0)
    assert [node.variable for node, _ in product.next_functions] == [x, w]
    assert all(node.next_functions == () for node, _ in product.next_functions)


def test_next_functions_number_the_outputs():
    first, second = leaf(1.0, 2.0).split(1)
    assert (second * 2).grad_fn.next_functions[0][1] == 1
    assert (first * 2).grad_fn.next_functions[0][1] == 0


def test_operand_without_grad_has_no_edge():
    x, constant = leaf(1.0), torch.ones(1)
    assert kinds((x * constant).grad_fn) == ["AccumulateGrad", None]
    assert kinds((constant * x).grad_fn) == [None, "AccumulateGrad"]
    assert kinds(torch.stack([constant, x]).grad_fn) == [None, "AccumulateGrad"]


def test_one_accumulate_node_for_each_leaf():
    x = leaf(1.0)
    one, two = (x * 2).grad_fn, (x * 3).grad_fn
    assert one.next_functions[0][0] is two.next_functions[0][0]
    assert one.next_functions[0][0].variable is x


def test_grad_fn_is_one_and_the_same_object():
    y = leaf(1.0) * 2
    assert y.grad_fn is y.grad_fn
    assert hash(y.grad_fn) == hash(y.grad_fn)
    assert (y * 1).grad_fn.next_functions[0][0] is y.grad_fn


def test_node_is_kept_alive_by_the_graph_alone():
    x = leaf(1.0)
    z = (x * 2).exp()
    node = z.grad_fn.next_functions[0][0]
    assert node.name() == "MulBackward0"
    assert kinds(node)[0] == "AccumulateGrad"


def test_edges_stay_after_backward():
    x = leaf(1.0)
    y = x.exp().sum()
    y.backward()
    assert kinds(y.grad_fn) == ["ExpBackward0"]


def test_metadata_is_a_dict_of_the_users():
    y = leaf(1.0) * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["key"] = "value"
    assert y.grad_fn.metadata == {"key": "value"}
    assert (y * 1).grad_fn.next_functions[0][0].metadata == {"key": "value"}


def test_sequence_numbers_grow_by_one():
    x = leaf(1.0)
    numbers = [(x * i).grad_fn._sequence_nr() for i in range(5)]
    assert numbers == list(range(numbers[0], numbers[0] + 5))


def test_accumulate_grad_has_the_highest_sequence_number():
    accumulate = (leaf(1.0) * 2).grad_fn.next_functions[0][0]
    assert accumulate._sequence_nr() == 2**64 - 1


def test_nodes_take_no_new_attributes():
    node = (leaf(1.0) * 2).grad_fn
    with pytest.raises(AttributeError):
        node.note = 1
    with pytest.raises(AttributeError):
        node._saved_self = 1


def test_nodes_cannot_be_made_by_hand():
    y = leaf(1.0) * 2
    written = y * 1
    written[0] = 5.0
    for node in (y.grad_fn, y.grad_fn.next_functions[0][0], written.grad_fn):
        with fails(TypeError, f"cannot create '{type(node).__name__}' instances"):
            type(node)()
        with fails(TypeError, f"cannot create '{type(node).__name__}' instances"):
            type(node).__new__(type(node))
        with fails(TypeError, "object.__new__(...) is not safe, use ...__new__()"):
            object.__new__(type(node))


@pytest.mark.parametrize("act", [copy.copy, copy.deepcopy, pickle.dumps])
def test_nodes_are_not_copied(act):
    with fails(TypeError, "cannot pickle 'MulBackward0' object"):
        act((leaf(1.0) * 2).grad_fn)


# ------------------------------------------------------------------ calling a node


def test_called_node_gives_the_gradients_of_its_inputs():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    node = (x * w).grad_fn
    grads = node(torch.tensor([1.0, 10.0]))
    assert [grad.tolist() for grad in grads] == [[3.0, 40.0], [1.0, 20.0]]
    assert grads[0].requires_grad
    assert node(None) == (None, None)
    assert x.exp().grad_fn(torch.ones(2)).shape == (2,)
    assert x.grad is None and w.grad is None


def test_called_node_of_several_outputs():
    x = leaf(1.0, 2.0)
    node = x.unbind()[0].grad_fn
    assert node(torch.tensor(5.0), None).tolist() == [5.0, 0.0]
    with fails(TypeError, "expected 2 arguments, got 1 instead"):
        node(torch.tensor(5.0))


def test_called_accumulate_grad_accumulates():
    x = leaf(1.0, 2.0)
    accumulate = (x * 2).grad_fn.next_functions[0][0]
    assert accumulate(torch.ones(2)) == ()
    assert accumulate(torch.ones(2)) == ()
    assert x.grad.tolist() == [2.0, 2.0]


def test_called_node_checks_its_arguments():
    node = (leaf(1.0, 2.0) * 2).grad_fn
    with fails(TypeError, "expected 1 arguments, got 0 instead"):
        node()
    with fails(TypeError, "argument 0 is not a Variable"):
        node("a")
    with fails(
        RuntimeError,
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of ...",
    ):
        node(torch.ones(3))


def test_called_node_whose_values_are_freed():
    y = leaf(1.0).exp()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.grad_fn(torch.ones(1))


def test_called_node_of_a_custom_function():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    assert Double.apply(leaf(1.0)).grad_fn(torch.ones(1)).tolist() == [2.0]
    with fails(RuntimeError, "PyNode has not been applied to anything"):
        torch.autograd.function.FunctionCtx()(torch.ones(()))


def test_nodes_are_instances_of_node():
    x = leaf(1.0)
    y = x * 2
    assert isinstance(y.grad_fn, torch.autograd.graph.Node)
    assert isinstance(y.grad_fn.next_functions[0][0], torch.autograd.graph.Node)


# ------------------------------------------------------------------ saved tensors


SAVED = [
    ("self other", lambda x, w: x * w, lambda x, w: (x, w)),
    ("self other", lambda x, w: x / w, lambda x, w: (x, w)),
    ("self", lambda x, w: x.sin(), lambda x, w: (x,)),
    ("self", lambda x, w: x.log(), lambda x, w: (x,)),
    ("self", lambda x, w: abs(x), lambda x, w: (x,)),
    ("result", lambda x, w: x.exp(), lambda x, w: (x.exp(),)),
    ("result", lambda x, w: x.tanh(), lambda x, w: (x.tanh(),)),
    ("result", lambda x, w: x.sigmoid(), lambda x, w: (x.sigmoid(),)),
    ("result", lambda x, w: x.sqrt(), lambda x, w: (x.sqrt(),)),
    ("result", lambda x, w: F.relu(x), lambda x, w: (F.relu(x),)),
    ("self other", lambda x, w: torch.maximum(x, w), lambda x, w: (x, w)),
    ("condition", lambda x, w: torch.where(x > 0, x, w), lambda x, w: (x > 0,)),
    ("result", lambda x, w: x.softmax(0), lambda x, w: (x.softmax(0),)),
    ("self tensor", lambda x, w: x @ w, lambda x, w: (x, w)),
]


@pytest.mark.parametrize(("slots", "op", "expected"), SAVED)
def test_saved_tensors_by_name(slots, op, expected):
    x, w = vector(), torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
    node = op(x, w).grad_fn
    for slot, value in zip(slots.split(), expected(x, w), strict=True):
        assert getattr(node, f"_saved_{slot}").tolist() == value.tolist()


def test_saved_input_is_the_very_tensor():
    x, w = leaf(1.0), leaf(2.0)
    node = (x * w).grad_fn
    assert node._saved_self is x
    assert node._saved_other is w


def test_saved_result_leads_back_to_its_node():
    node = leaf(1.0).exp().grad_fn
    assert node._saved_result.grad_fn is node


def test_saved_numbers_by_name():
    x, m = vector(), matrix()
    assert (x * 2).grad_fn._saved_other == 2
    assert (x**3).grad_fn._saved_exponent == 3
    assert m.sum(1).grad_fn._saved_dim == (1,)
    assert m.sum(1, keepdim=True).grad_fn._saved_keepdim is True
    assert m.transpose(0, 1).grad_fn._saved_dim0 == 0


def test_saved_tensor_that_is_not_needed_is_none():
    assert (vector() * 2).grad_fn._saved_self is None


def test_unknown_saved_name():
    with fails(AttributeError, "'MulBackward0' object has no attribute '_saved_nothing'"):
        (leaf(1.0) * 2).grad_fn._saved_nothing  # noqa: B018


def test_reading_a_saved_tensor_that_was_changed():
    y = leaf(1.0) * 1
    node = y.sin().grad_fn
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        node._saved_self  # noqa: B018


def test_what_a_node_has_not_kept_is_not_listed():
    w = torch.ones(2, 2)  # requires no grad, so the product saves only w
    node = torch.mm(torch.ones(2, 2, requires_grad=True), w).grad_fn
    assert "_saved_mat2_sym_strides" in dir(node)
    assert "_saved_self_sym_sizes" in dir(node)
    assert "_saved_self_sym_strides" not in dir(node)
    with pytest.raises(AttributeError, match="has no attribute '_saved_self_sym_strides'"):
        node._saved_self_sym_strides  # noqa: B018  raises AttributeError


def test_shapes_are_told_after_backward():
    x = torch.ones(1, 3, requires_grad=True)
    y = x.expand(2, 3)
    y.sum().backward()
    assert y.grad_fn._saved_self_sym_sizes == (1, 3)
