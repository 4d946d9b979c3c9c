"""nn.utils against PyTorch's."""

import copy
import importlib
import itertools

import numpy as np
import pytest
from oracle.programs import compare, fill

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle


def with_grads(library, *grads):
    params = []
    for grad in grads:
        params.append(library.nn.Parameter(library.zeros(3, dtype=library.float32 if grad is None else grad.dtype)))
        params[-1].grad = grad
    return params


# ------------------------------------------------------------------ gradients and vectors


@pytest.mark.parametrize("order", [2.0, 1, 0, -1, "inf", float("-inf"), 3.5, float("nan")])
def test_clipping_by_norm(order):
    def program(lib, say):
        a, b = lib.tensor([3.0, -4.0, 0.5]), lib.tensor([1.0, 2.0, -7.0])
        for grads in ([a], [a, None, b], [a.double(), b], [a.half(), b.half()], [], [a * 1j]):
            for bound in (1.0, 100, "2"):
                params = with_grads(lib, *[None if g is None else g.clone() for g in grads])
                say(lambda: lib.nn.utils.clip_grad_norm_(params, bound, order))
                say([p.grad for p in params])

    compare(program)


def test_clipping():
    def program(lib, say):
        utils = lib.nn.utils

        def grad(scale=1.0):
            return lib.tensor([3.0, -4.0, 0.5]) * scale

        (p,) = with_grads(lib, grad())
        say(lambda: utils.clip_grad_norm_(p, 1.0))
        say(lambda: utils.clip_grad_norm_((q for q in [p]), 0.5))
        say(lambda: utils.clip_grad_norm_((q for q in []), 0.5))
        say(lambda: utils.clip_grad_norm(p, 0.1))
        say(lambda: utils.clip_grad_norm_(p, "a"))
        say(p.grad)
        for value in (1.0, -1.0, "0.5", "x", None):
            (p,) = with_grads(lib, grad())
            say(lambda: utils.clip_grad_value_(p, value))
            say(p.grad)
        for bad in ("inf", "nan"):
            params = with_grads(lib, grad(), grad(float(bad)))
            say(lambda: utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True))
            say(params[0].grad)
            say(lambda: utils.clip_grad_norm_(params, 1.0))
            say([q.grad for q in params])
        say(lambda: utils.get_total_norm([]))
        say(lambda: utils.get_total_norm(grad().requires_grad_()))
        say(lambda: utils.get_total_norm((g for g in [grad(), grad(2).double()]), 1.0))
        params = with_grads(lib, grad(), None)
        say(lambda: utils.clip_grads_with_norm_(params, 1.0, lib.tensor(10.0)))
        say(params[0].grad)

    compare(program)


def test_vectors():
    def program(lib, say):
        utils = lib.nn.utils
        model = fill(lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Linear(3, 1)))
        say(lambda: utils.parameters_to_vector(model.parameters()))
        say(lambda: utils.parameters_to_vector([]))
        say(lambda: utils.vector_to_parameters([1.0], model.parameters()))
        say(lambda: utils.vector_to_parameters(lib.ones(7), model.parameters()))
        vector = lib.arange(20.0)
        say(lambda: utils.vector_to_parameters(vector, model.parameters()))
        vector += 1
        say(list(model.parameters()))

    compare(program)


# ------------------------------------------------------------------ skipping, memory, fusion


def test_skip_init():
    def program(lib, say):
        utils, nn = lib.nn.utils, lib.nn
        say(lambda: utils.skip_init(nn.Linear, 3, 4, dtype=lib.float64).weight.shape)
        say(lambda: utils.skip_init(nn.BatchNorm1d, 3).running_mean.shape)
        say(lambda: utils.skip_init(nn.ReLU))
        say(lambda: utils.skip_init(int))
        lib.manual_seed(0)
        before = lib.get_rng_state()
        utils.skip_init(nn.Linear, 3, 4)
        say(bool((before == lib.get_rng_state()).all()))
        for kind, rank, layout in (("conv2d", 2, lib.channels_last), ("conv3d", 3, lib.channels_last_3d)):
            convert = getattr(utils, f"convert_{kind}_weight_memory_format")
            for name in (f"Conv{rank}d", f"ConvTranspose{rank}d"):
                model = fill(nn.Sequential(getattr(nn, name)(3, 4, 2)))
                weight = model[0].weight
                say(convert(model, layout)[0].weight is weight)
                say(weight.stride())
                say(weight)

    compare(program)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_fusion(bias, affine):
    def program(lib, say):
        nn, utils = lib.nn, lib.nn.utils
        conv = fill(nn.Conv2d(3, 4, 2, groups=1, bias=bias)).eval()
        turned = fill(nn.ConvTranspose2d(3, 4, 2, bias=bias)).eval()
        linear = fill(nn.Linear(3, 4, bias=bias)).eval()
        conv.weight.requires_grad_(False)
        bn2, bn1 = fill(nn.BatchNorm2d(4, affine=affine)).eval(), fill(nn.BatchNorm1d(4)).eval()
        for fused in (
            utils.fuse_conv_bn_eval(conv, bn2),
            utils.fuse_conv_bn_eval(turned, bn2, transpose=True),
            utils.fuse_linear_bn_eval(linear, bn1),
            utils.fuse_linear_bn_eval(linear, fill(nn.BatchNorm1d(1)).eval()),
        ):
            say(fused)
            say(list(fused.parameters()))
        say(lambda: utils.fuse_conv_bn_eval(conv.train(), bn2))
        say(lambda: utils.fuse_linear_bn_eval(linear, nn.BatchNorm1d(5).eval()))
        say(lambda: utils.fuse_linear_bn_eval(linear, nn.BatchNorm1d(4, track_running_stats=False).eval()))

    compare(program)


# ------------------------------------------------------------------ functional calls with other parameters


def functional_call(lib, *args, **kwargs):
    call = torch.func.functional_call if lib is torch else cygrad.nn.utils.stateless.call_with
    return call(*args, **kwargs)


def tied(lib):
    class Tied(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = lib.nn.Parameter(lib.ones(1))
            self.b = self.a
            self.register_buffer("count", lib.zeros(1))

        def forward(self, x, scale=1):
            self.count = self.count + 1
            return (self.a * x + self.b) * scale

    return Tied()


def test_functional_call():
    def program(lib, say):
        x, five, six = lib.ones(1), lib.tensor([5.0], requires_grad=True), lib.tensor([6.0])
        model = tied(lib)
        for given, kwargs in [
            ({"a": five}, {}),
            ({"a": five}, {"tie_weights": False}),
            ({"a": five, "b": six}, {}),
            ({"a": five, "b": five}, {}),
            ({"a": five, "b": six}, {"tie_weights": False}),
            ({"a": five}, {"strict": True}),
            ({"a": five, "b": five, "count": six, "other": x}, {"strict": True}),
            (({"a": five}, {"count": six}), {"strict": True}),
            (({"a": five}, {"a": six}), {}),
            ({"a": 3}, {}),
            ({"x.b": x}, {}),
            ({"": x}, {}),
            (3, {}),
        ]:
            before = dict(model.named_parameters())
            say(lambda: functional_call(lib, model, given, x, **kwargs))
            say(all(dict(model.named_parameters())[k] is v for k, v in before.items()))
        counted = {"count": six}
        say(lambda: functional_call(lib, model, counted, (x,), {"scale": 2}))
        say([counted["count"], model.count])
        say(lambda: lib.nn.utils.stateless.functional_call(model, {"a": five}, x))
        functional_call(lib, model, {"a": five}, x).backward()
        say([five.grad, model.a.grad])

    compare(program)


# ------------------------------------------------------------------ parametrizations


def parametrizations_of(lib):
    """Some parametrizations with and without an inverse, and some invalid ones."""
    nn = lib.nn

    def module(forward, right_inverse=None):
        members = {"forward": lambda self, *args: forward(*args)}
        if right_inverse is not None:
            members["right_inverse"] = lambda self, value: right_inverse(value)
        return type("P", (nn.Module,), members)()

    return {
        "symmetric": module(lambda x: x.triu() + x.triu(1).mT),
        "exp": module(lambda x: x.exp(), lambda y: y.abs().log()),
        "halves": module(lambda a, b: a + b, lambda y: (y / 4, y * 3 / 4)),
        "product": module(lambda a, b: a @ b, lambda y: [y[:, :1].clone(), y[:1].clone()]),
        "shape": module(lambda x: x[:1]),
        "dtype": module(lambda x: x.double()),
        "no tensor": module(lambda x: 3),
        "inverse no tensor": module(lambda x: x, lambda y: 3),
        "inverse dtype": module(lambda x: x, lambda y: y.double()),
        "inverse shape": module(lambda x: x, lambda y: y[:1]),
        "inverse mixed": module(lambda a, b: a, lambda y: (y, 3)),
        "inverse fails": module(lambda x: x, lambda y: [][0]),
        "not implemented": module(lambda x: x.exp(), lambda y: (_ for _ in ()).throw(NotImplementedError())),
    }


NAMES = list(parametrizations_of(cygrad))


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_register_parametrization(name, unsafe):
    # A value that is not a tensor of the same dtype cannot replace the original in place; PyTorch's message is about
    # internals.
    leaves = [False] if name in ("dtype", "no tensor") else [False, True]

    def program(lib, say):
        P = lib.nn.utils.parametrize
        for before, leave in itertools.product(([], ["exp"], ["halves"]), leaves):
            layer = fill(lib.nn.Linear(3, 3))
            weight = layer.weight
            for other in before:
                P.register_parametrization(layer, "weight", parametrizations_of(lib)[other])
            say(lambda: P.register_parametrization(layer, "weight", parametrizations_of(lib)[name], unsafe=unsafe))
            say(lambda: layer.weight)
            say(lambda: dict(layer.state_dict()))
            say([n for n, _ in layer.named_parameters()])
            say(any(p is weight for p in layer.parameters()))
            say(lambda: setattr(layer, "weight", weight.detach().abs() + 1))
            say(lambda: layer.weight)
            say(lambda: layer(lib.ones(1, 3)))
            say(lambda: dict(copy.deepcopy(layer).state_dict()))
            say(lambda: P.remove_parametrizations(layer, "weight", leave_parametrized=leave))
            say(lambda: dict(layer.state_dict()))

    compare(program)


def test_parametrize():
    def program(lib, say):
        P, nn = lib.nn.utils.parametrize, lib.nn
        given = parametrizations_of(lib)
        layer = fill(nn.Linear(2, 2))
        say(P.is_parametrized(layer))
        P.register_parametrization(layer, "bias", given["exp"])
        P.register_parametrization(layer, "weight", given["halves"])
        say([P.is_parametrized(layer), P.is_parametrized(layer, "bias"), P.is_parametrized(layer, "other")])
        say([P.type_before_parametrizations(layer) is nn.Linear, isinstance(layer, nn.Linear), type(layer).__name__])
        say([isinstance(p, nn.Module) for p in (layer.parametrizations, layer.parametrizations.bias)])
        say(layer.parametrizations.weight.is_tensor)
        say([layer.weight is layer.weight, layer.bias is layer.bias])
        with P.cached(), P.cached():
            say([layer.weight is layer.weight, layer.bias is layer.bias])
        layer(lib.ones(1, 2)).sum().backward()
        say({n: p.grad for n, p in layer.named_parameters()})
        again = nn.Linear(2, 2)
        P.register_parametrization(again, "bias", given["exp"])
        P.register_parametrization(again, "weight", given["halves"])
        say(lambda: again.load_state_dict(layer.state_dict()))
        say(bool((again(lib.ones(1, 2)) == layer(lib.ones(1, 2))).all()))
        say(layer.double().weight.dtype)
        say(lambda: setattr(layer, "weight", nn.Parameter(lib.ones(2, 2))))
        for bad in (lambda y: 3, lambda y: (y,), lambda y: (y, 3), lambda y: (y, y.float()), lambda y: y):
            type(given["halves"]).right_inverse = lambda self, y, bad=bad: bad(y)
            say(lambda: setattr(layer, "weight", lib.ones(2, 2).double()))
        type(given["exp"]).right_inverse = lambda self, y: 3
        say(lambda: setattr(layer, "bias", lib.ones(2).double()))
        type(given["exp"]).right_inverse = lambda self, y: y.float()
        say(lambda: setattr(layer, "bias", lib.ones(2).double()))
        say(lambda: P.remove_parametrizations(layer, "other"))
        say(lambda: P.register_parametrization(layer, "other", given["exp"]))
        say(lambda: layer.__getstate__())
        say(lambda: type(P.remove_parametrizations(layer, "bias")).__name__)
        say(lambda: P.ParametrizationList([], lib.ones(1)))
        norm = nn.BatchNorm1d(2)
        P.register_parametrization(norm, "running_var", nn.Identity())
        say(norm)
        say(dict(norm.state_dict()))
        say(dict(P.remove_parametrizations(norm, "running_var").state_dict()))

    compare(program)


def test_transfer():
    def program(lib, say):
        P, nn = lib.nn.utils.parametrize, lib.nn
        source = fill(nn.Linear(2, 2))
        for name in ("exp", "symmetric"):
            P.register_parametrization(source, "weight", parametrizations_of(lib)[name])
        for target in (nn.Linear(2, 2), fill(nn.Conv1d(2, 2, 1)), nn.Module()):
            say(lambda: P.transfer_parametrizations_and_params(source, target))
            say(target.weight)
            say(target.parametrizations.weight.original is source.parametrizations.weight.original)
        say(P.transfer_parametrizations_and_params(nn.Linear(2, 2), nn.Linear(3, 2)))

    compare(program)


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("trivial", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (5, 3, 2)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
def test_orthogonal(kind, shape, trivial, complex_):
    rng = np.random.default_rng(0)
    start, step, slope = (rng.standard_normal(shape) * (1 + 1j if complex_ else 1) for _ in range(3))
    tall = np.linalg.qr(np.swapaxes(start, -1, -2) if shape[-2] < shape[-1] else start)[0]
    target = np.ascontiguousarray(np.swapaxes(tall, -1, -2) if shape[-2] < shape[-1] else tall)
    state = {}

    def program(lib, say):
        model = lib.nn.Module()
        model.w = lib.nn.Parameter(lib.tensor(start))
        options = {"orthogonal_map": kind, "use_trivialization": trivial}
        say(lambda: lib.nn.utils.parametrizations.orthogonal(model, "w", **options))
        if not hasattr(model, "parametrizations"):
            return
        state.setdefault("start", {k: v.numpy().copy() for k, v in model.state_dict().items()})  # has random columns
        say(lambda: model.load_state_dict({k: lib.from_numpy(v.copy()) for k, v in state["start"].items()}))
        original = model.parametrizations.w.original
        if kind != "householder":
            original.data += lib.tensor(step)
        say(lambda: model.w)
        say(lambda: (model.w * lib.tensor(slope)).sum().abs().backward())
        say(original.grad)
        say(lambda: setattr(model, "w", lib.tensor(target)))
        say(lambda: model.w)
        say(lambda: setattr(model, "w", lib.zeros(7, 7)))

    compare(program)


def test_default_maps_and_errors_of_orthogonal():
    def program(lib, say):
        nn, make = lib.nn, lib.nn.utils.parametrizations.orthogonal
        for layer in (nn.Linear(2, 2), nn.Linear(2, 3), nn.Linear(2, 3, dtype=lib.complex64)):
            say(lambda: make(layer).parametrizations.weight[0].orthogonal_map.name) if lib is torch else say(
                lambda: make(layer).parametrizations.weight[0].orthogonal_map
            )
        say(lambda: make(nn.Linear(2, 2), orthogonal_map="other"))
        say(lambda: make(nn.Linear(2, 2), "bias"))
        say(lambda: make(nn.Linear(2, 2), "other"))

    compare(program)


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm(dim):
    def program(lib, say):
        nn, utils = lib.nn, lib.nn.utils
        old, new = (fill(nn.Conv1d(3, 4, 2)).double() for _ in range(2))  # its sums cancel
        say(lambda: utils.weight_norm(old, dim=dim))
        say(lambda: utils.parametrizations.weight_norm(new, dim=dim))
        for layer in (old, new):
            say(dict(layer.state_dict()))
            say(layer.weight)
            layer(lib.ones(1, 3, 4, dtype=lib.float64)).square().sum().backward()
            say({n: p.grad for n, p in layer.named_parameters()})
        say(lambda: new.load_state_dict(fill(old).state_dict()))
        say(new(lib.ones(1, 3, 4, dtype=lib.float64)) - old(lib.ones(1, 3, 4, dtype=lib.float64)))
        say(lambda: utils.weight_norm(old, dim=dim))
        say(dict(utils.remove_weight_norm(old).state_dict()))
        say(lambda: utils.remove_weight_norm(old))
        say(lambda: utils.weight_norm(old, "other"))
        say(lambda: utils.parametrizations.weight_norm(old, "bias"))
        say(lambda: utils.parametrizations.weight_norm(old, "other"))

    compare(program)


@pytest.mark.parametrize("name", ["Linear", "Conv2d", "ConvTranspose2d"])
def test_spectral_norm(name):
    def program(lib, say):
        nn, utils = lib.nn, lib.nn.utils
        args, x = ((3, 4), lib.ones(1, 3)) if name == "Linear" else ((3, 4, 2), lib.ones(1, 3, 3, 3))
        for old in (True, False):
            layer = getattr(nn, name)(*args)
            say(lambda: (utils if old else utils.parametrizations).spectral_norm(layer, n_power_iterations=2))
            say({k: v.shape for k, v in layer.state_dict().items()})
            say([n for n, _ in layer.named_buffers()])
            say(str(layer.state_dict()._metadata))
            fill(layer)
            for mode in (True, True, False):
                layer.train(mode)
                out = layer(x)
                say(out)
                say(dict(layer.state_dict()))
            out.square().sum().backward()
            say({n: p.grad for n, p in layer.named_parameters()})
            say(layer.weight)
            if old:
                say(lambda: utils.spectral_norm(layer))
                say(dict(utils.remove_spectral_norm(layer).state_dict()))
                say(str(layer.state_dict()._metadata))
                say(lambda: utils.remove_spectral_norm(layer))
        for make in (utils.spectral_norm, utils.parametrizations.spectral_norm):
            say(lambda: make(nn.Linear(2, 2), n_power_iterations=0))
            say(lambda: make(nn.Linear(2, 2), "other"))
        say(lambda: utils.parametrizations.spectral_norm(nn.Linear(2, 2), dim=2))
        say(lambda: utils.parametrizations.spectral_norm(fill(nn.Linear(2, 2)), "bias").bias)

    compare(program)


# ------------------------------------------------------------------ pruning


def prune_of(lib):
    return importlib.import_module(f"{lib.__name__}.nn.utils.prune")


@pytest.mark.parametrize(
    "steps",
    [
        [("l1_unstructured", {"amount": 0.3})],
        [("l1_unstructured", {"amount": 3}), ("l1_unstructured", {"amount": 0.5})],
        [("ln_structured", {"amount": 1, "n": 2, "dim": 0}), ("l1_unstructured", {"amount": 2})],
        [("l1_unstructured", {"amount": 5}), ("ln_structured", {"amount": 1, "n": 1, "dim": 1})],
        [("ln_structured", {"amount": 0.5, "n": float("inf"), "dim": -1})] * 2,
        [("ln_structured", {"amount": 1, "n": "fro", "dim": 0})],
        [("identity", {}), ("l1_unstructured", {"amount": 0.25})],
        [("l1_unstructured", {"amount": 50})],
        [("l1_unstructured", {"amount": 1.5})],
        [("l1_unstructured", {"amount": -1})],
        [("l1_unstructured", {"amount": "a"})],
        [("ln_structured", {"amount": 1, "n": 2, "dim": 5})],
        [("random_structured", {"amount": 1, "dim": 4})],
        [("random_unstructured", {"amount": 12})],
    ],
    ids=lambda steps: "+".join(name for name, _ in steps),
)
def test_pruning(steps):
    def program(lib, say):
        prune = prune_of(lib)
        layer = fill(lib.nn.Linear(4, 3))
        for name, options in steps:
            say(lambda: getattr(prune, name)(layer, "weight", **options))
            say(layer.weight)
            say({n: layer.state_dict()[n] for n in sorted(layer.state_dict())})
        say([prune.is_pruned(layer), prune.is_pruned(lib.nn.Sequential(layer))])
        layer(lib.ones(1, 4)).square().sum().backward()
        say({n: p.grad for n, p in sorted(layer.named_parameters())})
        say(lambda: prune.remove(layer, "weight"))
        say([n for n, _ in layer.named_parameters()] if prune.is_pruned(layer) else layer.weight)
        say(lambda: prune.remove(layer, "weight"))

    compare(program)


def test_pruning_by_scores_masks_and_globally():
    def program(lib, say):
        prune, nn = prune_of(lib), lib.nn
        scores = lib.arange(12.0).reshape(3, 4)
        layer = fill(nn.Linear(4, 3))
        say(prune.l1_unstructured(layer, "weight", 3, importance_scores=scores).weight_mask)
        say(prune.ln_structured(layer, "weight", 1, 2, 0, importance_scores=-scores).weight_mask)
        say(lambda: prune.l1_unstructured(layer, "weight", 3, importance_scores=lib.ones(4)))
        say(prune.custom_from_mask(layer, "bias", lib.tensor([0, 1, 0])).bias)
        say(lambda: prune.custom_from_mask(layer, "bias", lib.tensor([0, 1])))
        a, b = fill(nn.Linear(4, 3)), fill(nn.Linear(3, 5))
        pairs = [(a, "weight"), (b, "bias")]
        say(lambda: prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.4))
        say([a.weight_mask, b.bias_mask])
        say(lambda: prune.global_unstructured(pairs, prune.L1Unstructured, {(b, "bias"): lib.zeros(5)}, amount=8))
        say([a.weight_mask, b.bias_mask])
        say(lambda: prune.global_unstructured(pairs, prune.LnStructured, amount=1, n=2)) if lib is cygrad else say(
            lambda: (_ for _ in ()).throw(
                TypeError(
                    'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
                    f"{prune.LnStructured} of type structured"
                )
            )
        )
        say(lambda: prune.global_unstructured(3, prune.L1Unstructured, amount=1))
        say(lambda: prune.global_unstructured(pairs, prune.L1Unstructured, 3, amount=1))
        method = prune.L1Unstructured(3)
        mask = lib.tensor([1.0, 0, 1, 1, 1, 1])
        say([method.prune(lib.arange(6.0)), method.prune(lib.arange(6.0), mask), method.PRUNING_TYPE])
        container = prune.PruningContainer()
        container._tensor_name = "w"
        for name in "wwz":
            other = prune.L1Unstructured(2)
            other._tensor_name = name
            say(lambda: container.add_pruning_method(other))
        say(lambda: container.add_pruning_method(3))
        say([len(container), len(list(container)), container.compute_mask(lib.arange(6.0), mask)])

    compare(program)
