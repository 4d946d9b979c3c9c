"""`state_dict` and `load_state_dict`: contents, mismatches, hooks."""

import gc
import warnings
import weakref
from collections import OrderedDict

import numpy as np
import pytest

import cygrad as torch
from cygrad import nn
from helpers import fails


def model():
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))


def values(module):
    return {name: tensor.tolist() for name, tensor in module.state_dict().items()}


class Counter(nn.Module):
    """A module with state that is not a tensor."""

    count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


# ------------------------------------------------------------------ saving


def test_contents_share_memory_and_are_detached():
    module = model()
    state = module.state_dict()
    assert isinstance(state, OrderedDict)
    assert list(state) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert not state["0.weight"].requires_grad
    state["0.bias"].fill_(7)
    assert module[0].bias.tolist() == [7.0] * 3
    assert module.state_dict(keep_vars=True)["0.bias"] is module[0].bias


def test_prefix_destination_and_versions():
    module = model()
    target = OrderedDict(first=1)
    assert module.state_dict(destination=target, prefix="net.") is target
    assert list(target)[:2] == ["first", "net.0.weight"]
    assert module.state_dict()._metadata == {name: {"version": 1} for name in ("", "0", "1", "2")}
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert "p.0.weight" in module.state_dict({}, "p.")


# ------------------------------------------------------------------ loading


def test_loading_copies_and_keeps_the_parameters():
    source, target = model(), model()
    weight = target[0].weight
    assert repr(target.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert target[0].weight is weight
    assert values(target) == values(source)
    with torch.no_grad():
        source[0].weight.fill_(0)
    assert values(target) != values(source)


def test_assigned_tensors_become_the_parameters():
    layer = nn.Linear(1, 1)
    bias = nn.Parameter(torch.ones(1))
    weight = torch.full((1, 1), 2.0, dtype=torch.float64)
    layer.load_state_dict({"weight": weight, "bias": bias}, assign=True)
    assert layer.bias is bias
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.dtype == torch.float64


def test_arrays_are_no_tensors_and_the_remedy_works():
    layer = nn.Linear(1, 2)
    state_dict = {"weight": np.array([[1.0], [2.0]]), "bias": np.zeros(2)}
    with pytest.raises(RuntimeError) as caught:
        layer.load_state_dict(state_dict)
    first, second, third, remedy = str(caught.value).splitlines()
    assert first == "Error(s) in loading state_dict for Linear:"
    assert second == (
        '\tWhile copying the parameter named "weight", expected torch.Tensor or Tensor-like object from checkpoint but '
        "received <class 'numpy.ndarray'>"
    )
    assert '"bias"' in third
    layer.load_state_dict(eval(remedy.removeprefix("Load tensors: "), {"torch": torch, "state_dict": state_dict}))
    assert values(layer) == {"weight": [[1.0], [2.0]], "bias": [0.0, 0.0]}
    assert layer.weight.dtype == torch.float32


def test_every_mismatch_is_listed_and_nothing_changes():
    layer = nn.Linear(2, 3)
    before = values(layer)
    bad = {"weight": torch.ones(3, 3), "extra": torch.ones(1), "sub.x": torch.ones(1)}
    with pytest.raises(RuntimeError) as caught:
        layer.load_state_dict(bad)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Linear:\n"
        '\tMissing key(s) in state_dict: "bias". \n'
        '\tUnexpected key(s) in state_dict: "extra", "sub.x". \n'
        "\tsize mismatch for weight: copying a param with shape torch.Size([3, 3]) from "
        "checkpoint, the shape in current model is torch.Size([3, 2])."
    )
    assert values(layer) == before


def test_a_missing_key_leaves_the_tensors_that_fit_untouched():
    module = model()
    before = values(module)
    state = {name: tensor * 0 for name, tensor in module.state_dict().items()}
    del state["2.bias"]
    with fails(RuntimeError, "Error(s) in loading state_dict for Sequential:"):
        module.load_state_dict(state)
    assert values(module) == before


def test_not_strict_loads_what_fits_and_reports_the_rest():
    layer = nn.Linear(1, 1)
    result = layer.load_state_dict({"weight": torch.ones(1, 1), "x": 1}, strict=False)
    assert result.missing_keys == ["bias"] and result.unexpected_keys == ["x"]
    assert repr(result) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['x'])"
    assert layer.weight.tolist() == [[1.0]]
    with fails(RuntimeError, "Error(s) in loading state_dict for Linear:"):
        layer.load_state_dict({"weight": torch.ones(2, 1)}, strict=False)


def test_what_is_no_tensor_is_named():
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(1, 1).load_state_dict({"weight": torch.ones(1, 1), "bias": "text"})
    assert (
        'While copying the parameter named "bias", expected torch.Tensor or Tensor-like object '
        "from checkpoint but received <class 'str'>"
    ) in str(caught.value)
    with fails(TypeError, "Expected state_dict to be dict-like, got <class 'int'>."):
        nn.Linear(1, 1).load_state_dict(3)


@pytest.mark.parametrize("wrapped_is", ["the checkpoint", "the model"])
def test_a_prefix_is_recognised_and_the_remedy_works(wrapped_is):
    plain, wrapped = nn.Linear(1, 1), nn.ModuleDict({"module": nn.Linear(1, 1)})
    source, target = (wrapped, plain) if wrapped_is == "the checkpoint" else (plain, wrapped)
    state_dict = source.state_dict()
    with pytest.raises(RuntimeError, match="prefix") as caught:
        target.load_state_dict(state_dict)
    remedy = str(caught.value).rsplit("Load this: ", 1)[1]
    target.load_state_dict(eval(remedy, {"state_dict": state_dict}))
    assert list(values(target).values()) == list(values(source).values())


def test_scalars_saved_with_one_dimension():
    module = nn.Module()
    module.register_buffer("count", torch.tensor(0.0))
    module.load_state_dict({"count": torch.ones(1)})
    assert module.count.item() == 1.0


def test_extra_state():
    source, target = nn.Sequential(Counter()), nn.Sequential(Counter())
    source[0].count = 5
    target.load_state_dict(source.state_dict())
    assert target[0].count == 5
    with fails(RuntimeError, "Error(s) in loading state_dict for Counter:"):
        Counter().load_state_dict({})
    with pytest.raises(RuntimeError, match='Unexpected key.*"_extra_state"'):
        nn.ReLU().load_state_dict({"_extra_state": 1})


def test_overridden_reading_may_rename():
    class Renamed(nn.Linear):
        _version = 2

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args):
            if local_metadata.get("version", 1) < 2:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    old = {"kernel": torch.ones(1, 1), "bias": torch.zeros(1)}
    layer = Renamed(1, 1)
    layer.load_state_dict(old)
    assert layer.weight.tolist() == [[1.0]] and "kernel" in old
    Renamed(1, 1).load_state_dict(layer.state_dict())


# ------------------------------------------------------------------ hooks


def test_hooks_around_writing():
    order = []
    layer = nn.Linear(1, 1)
    layer.register_state_dict_pre_hook(lambda m, prefix, keep_vars: order.append((prefix, keep_vars)))

    def add(module, state_dict, prefix, local_metadata):
        state_dict[prefix + "new"] = local_metadata["version"]

    layer.register_state_dict_post_hook(add)
    assert nn.Sequential(layer).state_dict()["0.new"] == 1
    assert order == [("0.", False)]
    layer.register_state_dict_post_hook(lambda *_: {})
    with fails(RuntimeError, "state_dict post-hook must return None"):
        layer.state_dict()


def test_old_hook_may_return_another_dictionary():
    layer = nn.Linear(1, 1)
    layer._register_state_dict_hook(lambda m, state, prefix, metadata: {"only": 1})
    assert layer.state_dict() == {"only": 1}


def test_hook_before_loading_may_rename():
    layer = nn.Linear(1, 1)

    def rename(module, state_dict, prefix, *args):
        assert module is layer
        state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")

    layer.register_load_state_dict_pre_hook(rename)
    layer.load_state_dict({"w": torch.ones(1, 1), "bias": torch.ones(1)})
    assert layer.weight.tolist() == [[1.0]]


def test_hook_after_loading_may_pardon_missing_keys():
    layer = nn.Linear(1, 1)
    seen = []

    def pardon(module, keys):
        seen.append(module.weight.tolist())
        keys.missing_keys.clear()

    layer.register_load_state_dict_post_hook(pardon)
    layer.load_state_dict({"weight": torch.ones(1, 1)})
    assert seen == [[[1.0]]]
    layer.register_load_state_dict_post_hook(lambda module, keys: keys)
    with pytest.raises(AssertionError, match="are not expected to return new values"):
        layer.load_state_dict({"weight": torch.ones(1, 1)})


@pytest.mark.parametrize("has_metadata", [False, True])
def test_spectral_norm_loads_states_without_the_right_vector(has_metadata):
    """PyTorch 0.4 saved the divided weight and the left vector u only; v follows from W v = u."""
    weight = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
    u = np.array([0.6, 0.8])
    norm = 2.5
    state = OrderedDict(
        bias=torch.zeros(2),
        weight_orig=torch.tensor(weight, dtype=torch.float32),
        weight_u=torch.tensor(u, dtype=torch.float32),
        weight=torch.tensor(weight / norm, dtype=torch.float32),
    )
    if has_metadata:
        state._metadata = OrderedDict([("", {"version": 1})])
    layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    outer = nn.Sequential(layer)
    result = outer.load_state_dict({f"0.{key}": value for key, value in state.items()})
    assert result.missing_keys == result.unexpected_keys == []
    direction = np.linalg.pinv(weight) @ u
    expected = direction * norm / (u @ weight @ direction)
    np.testing.assert_allclose(layer.weight_v.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(layer.eval()(torch.eye(3)).detach().numpy(), weight.T / norm, rtol=1e-5)
    layer.load_state_dict(state)
    layer.load_state_dict(layer.state_dict())
    np.testing.assert_allclose(layer.weight_v.numpy(), expected, rtol=1e-5)
    del state["weight_u"]
    with pytest.raises(RuntimeError, match='Missing key\\(s\\) in state_dict: "weight_u", "weight_v"'):
        layer.load_state_dict(state)
    nn.utils.remove_spectral_norm(layer)
    assert not layer._load_state_dict_pre_hooks and not layer._state_dict_hooks


@pytest.mark.parametrize(
    "arguments, options, error",
    [
        ((torch.float64,), {"dtype": torch.float32}, TypeError),
        ((torch.float64,), {"device": "cpu"}, TypeError),
        ((torch.ones(1),), {"dtype": torch.float32}, TypeError),
        (("cpu", "cpu"), {}, TypeError),
        ((torch.float64,), {"non_blocking": "x"}, TypeError),
        ((torch.float64,), {"copy": 3}, TypeError),
        ((), {"memory_format": 3}, TypeError),
        (("nowhere",), {}, RuntimeError),
    ],
)
def test_arguments_that_to_refuses(arguments, options, error):
    for convert in (torch.ones(2).to, nn.Linear(1, 1).to, nn.ReLU().to):  # a layer without parameters refuses them too
        if options.get("copy") and convert.__self__.__class__ is not torch.Tensor:
            continue
        with pytest.raises(error):
            convert(*arguments, **options)


def test_modules_are_not_copied():
    for arguments, options in ((("cpu", torch.float64, False, True), {}), (("cpu",), {"copy": True})):
        layer = nn.Linear(1, 1)
        with pytest.raises(RuntimeError, match="^\\.to\\(\\) does not accept copy argument"):
            layer.to(*arguments, **options)
        assert layer.weight.dtype is torch.float32


def test_hooks_and_loading_keep_no_module_alive():
    module = nn.Linear(2, 1)
    module.register_load_state_dict_pre_hook(lambda module, *_: None)
    state, reference = module.state_dict(), weakref.ref(module)
    entry = weakref.ref(state)
    gc.disable()
    try:
        module.load_state_dict(state)
        del module, state
        assert reference() is None and entry() is None
    finally:
        gc.enable()


def test_loading_into_meta_parameters_warns():
    module = nn.Linear(2, 1, bias=False, device="meta")
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter in the checkpoint to a meta"):
        module.load_state_dict(nn.Linear(2, 1, bias=False).state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.load_state_dict(nn.Linear(2, 1, bias=False).state_dict(), assign=True)
    assert not module.weight.is_meta
