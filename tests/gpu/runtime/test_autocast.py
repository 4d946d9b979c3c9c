"""Autocast on GPUs: the dtypes prescribed by PyTorch's lists, on a GPU or the stand-in."""

import gc
import weakref

import cupy_standin
import pytest
from ops.calls import SAMPLES, Call, Cygrad

import cygrad as torch
import cygrad.nn.functional as F
from cygrad._core.graph.internals import tensor_of
from cygrad._core.registry import autocast as core
from cygrad._kernels.device.cupy_library import switches
from cygrad.amp import op_lists


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


LISTED = {name for policy in ("lower", "float32", "widest") for name in op_lists("cuda")[policy]}
INTERNAL = {"rnn_relu", "rnn_tanh", "gru", "lstm"}  # return lists of tensors; tested below


def in_type(cupy, dtype):
    """How samples are run: on the GPU, with all floats in one dtype."""

    class In(Cygrad):
        @staticmethod
        def tensor(array):
            tensor = tensor_of(cupy.array(array))
            return tensor.to(dtype) if tensor.is_floating_point() else tensor

    return In


def names_a_type(sample):
    return "dtype" in sample.kwargs or any(isinstance(value, torch.dtype) for value in sample.args)


@pytest.mark.parametrize("given", [torch.float16, torch.float32])
@pytest.mark.parametrize("name", sorted(LISTED & SAMPLES.keys() - INTERNAL))
def test_types_are_those_of_the_lists(name, given, cupy):
    wanted = {"lower": torch.float16, "float32": torch.float32, "widest": given}[core.GPU_POLICY_OF[name]]
    seen = 0
    for sample in SAMPLES[name]:
        call = Call(name, sample, requires_grad=False, on=in_type(cupy, given))
        tensors = [x for value in (*call.args, *call.kwargs.values()) for x in core_tensors(value)]
        if names_a_type(sample) or not any(x.is_floating_point() for x in tensors):
            continue
        if any(x.is_complex() for x in tensors) or sample.kwargs.get("mode") == "area":
            continue
        with torch.autocast("cuda"):
            found = call.run()[0]
        assert found.dtype == wanted
        seen += 1
    assert seen


def core_tensors(value):
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in core_tensors(item)]
    return [value] if isinstance(value, torch.Tensor) else []


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers(name):
    layer, x = getattr(torch.nn, name)(3, 2).cuda(), torch.ones(5, 4, 3, device="cuda")
    with torch.autocast("cuda"):
        assert layer(x)[0].dtype == torch.float16
    assert layer(x)[0].dtype == torch.float32


def test_what_is_not_listed_takes_what_it_gets():
    x = torch.ones(2, 3, device="cuda", dtype=torch.float16)
    with torch.autocast("cuda"):
        for call in (torch.relu, torch.sqrt, torch.sigmoid, torch.tanh, torch.mean, torch.neg, F.gelu):
            assert call(x).dtype == torch.float16
        assert x.sum(dtype=torch.float16).dtype == torch.float16  # the user's dtype wins
        assert F.softmax(x, -1, dtype=torch.float16).dtype == torch.float16
        assert (x**2).dtype == torch.float32
        assert (2**x).dtype == torch.float32
        assert (2 / x).dtype == torch.float32  # computed as a reciprocal
        assert x.clone().exp_().dtype == torch.float16  # in-place ops keep the dtype
        assert x.double().exp().dtype == torch.float64
        assert torch.exp(x.cpu()).dtype == torch.float16  # the CPU's lists differ
        assert F.interpolate(x[None], scale_factor=2.0, mode="area").dtype == torch.float16
        with torch.autocast("cuda", enabled=False):
            assert torch.exp(x).dtype == torch.float16
    assert torch.exp(x).dtype == torch.float16


def test_gradients_come_back_in_the_type_of_the_leaf():
    x = torch.full((3,), 0.5, device="cuda", dtype=torch.float16, requires_grad=True)
    with torch.autocast("cuda"):
        found = F.softmax(x.exp() + x**2 + x.log(), -1).prod()
    found.backward()
    assert found.dtype == torch.float32
    assert x.grad.dtype == torch.float16


def test_binary_cross_entropy_is_refused():
    x, y = torch.full((3,), 0.5, device="cuda"), torch.ones(3, device="cuda")
    with torch.autocast("cuda"), pytest.raises(RuntimeError) as caught:
        F.binary_cross_entropy(x, y)
    assert str(caught.value).startswith(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    )
    with torch.autocast("cuda", enabled=False):
        F.binary_cross_entropy(x, y)
    with torch.autocast("cuda"):
        F.binary_cross_entropy(x.cpu(), y.cpu())


def test_lists_name_functions():
    for policy, names in op_lists("cuda").items():
        for name in names:
            assert Cygrad.function(name) is not None, (policy, name)
    assert op_lists()["widest"] == op_lists("cpu")["widest"]


# --- Casts of parameters -----------------------------------------------------------------------


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3), torch.nn.Linear(3, 2)
    ).cuda()


def step(model, x, **how):
    """Run a step; return the launches, the result, and the gradients."""
    model.zero_grad()
    with cupy_standin.watch() as seen:
        with torch.autocast("cuda", **how):
            out = model(x)
        out.float().sum().backward()
    return seen.launches, out.tolist(), [p.grad.tolist() for p in model.parameters()]


def needs_launches():
    if not cupy_standin.is_installed() or not switches.own_launches:
        pytest.skip("only the stand-in tells of launches")


def test_the_parameters_of_the_last_step_are_cast_in_one_launch():
    model, x = network(), torch.randn(5, 4, device="cuda")
    first, second = step(model, x), step(model, x)
    assert first[1:] == second[1:]
    needs_launches()
    assert first[0].count("convert_each") == 0 and second[0].count("convert_each") == 1
    assert first[0].count("convert_array") - second[0].count("convert_array") == 6


def test_a_parameter_that_changes_is_cast_again():
    model, x = network(), torch.randn(5, 4, device="cuda")
    step(model, x)
    with torch.autocast("cuda"):
        model[0](x)
        with torch.no_grad():
            model[2].weight.zero_()
            model[3].bias.data = torch.full((2,), 7.0, device="cuda")
        assert model[2](torch.ones(1, 8, device="cuda")).tolist() == [model[2].bias.half().tolist()]
        assert model[3](torch.zeros(1, 3, device="cuda")).tolist() == [[7.0, 7.0]]


def test_casts_ahead_are_those_of_one_type_and_are_recorded_where_they_are_needed():
    model, x = network(), torch.randn(5, 4, device="cuda")
    step(model, x)
    model[2].double()
    model[3].requires_grad_(False)
    order = []
    for i in (0, 3):
        for name, p in model[i].named_parameters():
            if p.requires_grad:
                p.register_hook(lambda g, name=f"{i}.{name}": order.append(name))
    with torch.autocast("cuda"):
        out = model[3](model[0](x)[:, :3])
        assert out.dtype == torch.float16
    out.float().sum().backward()
    assert sorted(order) == ["0.bias", "0.weight"]


def test_gradients_come_in_the_same_order_as_without_casts_ahead():
    model, x, orders = network(), torch.randn(5, 4, device="cuda"), []
    for name, p in model.named_parameters():
        p.register_hook(lambda g, name=name: orders[-1].append(name))
    for _ in range(3):
        orders.append([])
        step(model, x)
    assert orders[0] == orders[1] == orders[2] and len(orders[0]) == 6


def test_two_models_in_turns_and_without_gradients():
    models, x = [network(), network()], torch.randn(5, 4, device="cuda")
    found = [[step(model, x)[1:] for model in models] for _ in range(3)]
    assert found[0] == found[1] == found[2]
    with torch.no_grad(), torch.autocast("cuda"), cupy_standin.watch() as seen:
        assert models[0](x).tolist() == found[0][0][0]
    needs_launches()
    assert seen.launches.count("convert_each") == 1
    with torch.autocast("cuda"):
        assert models[0](x).requires_grad


def test_nothing_is_kept_of_models_that_are_gone():
    model, x = network(), torch.randn(5, 4, device="cuda")
    step(model, x)
    gone = [weakref.ref(p) for p in model.parameters()]
    del model
    gc.collect()
    assert not any(one() is not None for one in gone)
    step(network(), x)


def test_casts_ahead_in_a_captured_graph():
    model, x = network(), torch.randn(5, 4, device="cuda")
    expected = step(model, x)[1:]

    def run():
        model.zero_grad(set_to_none=False)
        with torch.autocast("cuda"):
            out = model(x)
        out.float().sum().backward()
        return out

    replay = torch.cuda.graph(run)
    assert replay().tolist() == expected[0]
    with torch.no_grad():
        model[3].bias.add_(1)
    assert replay().tolist() != expected[0]
    assert [p.grad.tolist() for p in model.parameters()] == expected[1]


def test_a_long_block_without_gradients_notes_each_parameter_once():
    model, x = network(), torch.randn(5, 4, device="cuda")
    step(model, x)
    with torch.no_grad(), torch.autocast("cuda"):
        for _ in range(5):
            model(x)
        assert len(core.state.order) <= 6
