"""`make_fx`: the ops that run in a function, as a graph."""

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad.fx.experimental.proxy_tensor import get_proxy_mode, make_fx


def data(*size):
    return torch.arange(1.0, 1 + torch.Size(size).numel()).reshape(size) / 7


def targets(graph):
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


def gradient(x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad((x * x).exp().sum(), x)[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.sin(x).cos() + 1,
        lambda x: x.clone().add_(1).mul_(x),
        lambda x: (x @ x.t()).softmax(1).max(1)[0],
        torch.func.grad(lambda x: torch.sin(x).sum()),
        gradient,
        torch.func.vmap(lambda a: (a * 2).sum()),
        torch.func.grad(lambda x: F.cross_entropy(x, torch.tensor([0, 1]))),
        lambda x: torch.func.jacrev(torch.sin)(x[0]),
        lambda x: torch.func.hessian(lambda a: (a**3).sum())(x[0]),
        lambda x: torch.func.jvp(torch.tanh, (x,), (x * 2,))[1],
        lambda x: F.layer_norm(F.linear(x, data(4, 3)), (4,)),
        lambda x: x[:, 1:].reshape(-1).flip(0).cumsum(0),
        lambda x: torch.arange(3.0) + torch.full((3,), 2.0) + x,
        lambda x: F.avg_pool2d(x.reshape(1, 2, 3), 1),
    ],
)
def test_the_graph_computes_what_the_function_does(function):
    x = data(2, 3)
    graph = make_fx(function)(x)
    for other in (x, x + 0.5, x * 3):
        torch.testing.assert_close(graph(other), function(other))


def test_code():
    graph = make_fx(lambda x: torch.sin(x) * 2)(data(2))
    assert "sin = torch.ops.aten.sin.default(x_1)" in graph.code
    assert "torch.ops.aten.mul.Tensor(sin, 2)" in graph.code
    assert [node.name for node in graph.graph.nodes] == ["x_1", "sin", "mul", "output"]
    assert next(iter(graph.graph.nodes)).meta["tensor_meta"].shape == (2,)


def test_code_keeps_the_annotation_of_the_result():
    def f(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x.sin(), 3

    for function in (f, torch.func.functionalize(f)):
        module = make_fx(function)(torch.ones(2))
        assert "def forward(self, x_1) -> tuple[torch.Tensor,int]:" in module.code
        assert module(torch.zeros(2))[0].tolist() == [0, 0]
    assert "def forward(self, x_1):" in make_fx(lambda x: x.sin())(torch.ones(2)).code


def test_gradients_of_a_training_step():
    weight = data(4, 3).requires_grad_()

    def step(w, x):
        loss = F.mse_loss(F.linear(x, w).relu(), torch.ones(2, 4))
        (grad,) = torch.autograd.grad(loss, w)
        return w - 0.1 * grad

    graph = make_fx(step)(weight, data(2, 3))
    assert "aten.mse_loss_backward.default" in targets(graph)
    torch.testing.assert_close(graph(weight, data(2, 3) + 1), step(weight, data(2, 3) + 1))


def test_containers_and_numbers():
    graph = make_fx(lambda pair, k: {"sum": pair[0] + pair[1], "double": pair[0] * k})([data(2), data(2)], 2)
    found = graph([data(2) + 1, data(2)], 2)
    assert found["double"].tolist() == ((data(2) + 1) * 2).tolist()


def test_tensors_that_are_no_arguments_become_attributes():
    module = torch.nn.Linear(3, 2)
    other = data(2)
    graph = make_fx(lambda x: module(x) + other)(data(1, 3))
    names = [node.target for node in graph.graph.nodes if node.op == "get_attr"]
    assert names == ["_param_constant0", "_param_constant1", "_tensor_constant0"]
    assert graph._param_constant0 is module.weight
    graph = make_fx(module)(data(1, 3))
    assert [node.target for node in graph.graph.nodes if node.op == "get_attr"] == ["weight", "bias"]


def test_values_are_not_read():
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(data(2))
    assert get_proxy_mode() is None


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_modes_of_tracing(mode):
    big = torch.empty(10**4, device="meta") if mode != "real" else data(2)
    graph = make_fx(lambda x: torch.sin(x).sum(), tracing_mode=mode)(big)
    assert targets(graph) == ["aten.sin.default", "aten.sum.default"]
    assert graph(data(3)).item() == pytest.approx(data(3).sin().sum().item())


def test_wrong_options():
    with pytest.raises(AssertionError, match="tracing_mode must be real/fake/symbolic, got other"):
        make_fx(torch.sin, tracing_mode="other")(data(2))
    with pytest.raises(RuntimeError, match="pre_dispatch"):
        make_fx(torch.sin, pre_dispatch=True)
    with pytest.raises(NotImplementedError, match="an op that PyTorch does not have"):
        make_fx(lambda x: F.local_response_norm(x, 2))(data(1, 3, 4))


def test_functions_in_place_of_ops():
    table = {torch.ops.aten.silu.default: lambda x: x * torch.sigmoid(x)}
    graph = make_fx(F.silu, decomposition_table=table)(data(2))
    assert targets(graph) == ["aten.sigmoid.default", "aten.mul.Tensor"]


def test_custom_ops():
    @torch.library.custom_op("test::traced", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    graph = make_fx(lambda x: op(x) * 2)(data(2))
    assert targets(graph) == ["test.traced.default", "aten.mul.Tensor"]
    torch.testing.assert_close(graph(data(2)), (data(2) + 1) * 2)


def test_tensors_made_of_numbers_are_new_in_each_call():
    def f(x):
        y = torch.tensor([3.0, 4.0])
        y.add_(x)
        return y * 2

    traced = make_fx(f)(torch.ones(2))
    for _ in range(2):
        assert traced(torch.ones(2)).tolist() == [8, 10]
    outer = torch.zeros(2)  # which is the function's own business
    shared = make_fx(lambda x: outer.add_(x))(torch.ones(2))
    shared(torch.ones(2))
    assert outer.tolist() == [2, 2]
