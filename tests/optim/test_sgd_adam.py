"""SGD, Adam and AdamW: the formulas step by step, and behavior shared by all optimizers."""

import copy
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import cygrad as torch
from cygrad.optim import SGD, Adam, AdamW
from cygrad.optim import optimizer as base
from helpers import fails, leaf

# ------------------------------------------------------------------ formulas


def sgd(p, grads, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False):
    """SGD in NumPy, by its definition."""
    buffer = None
    for g in grads:
        g = (-g if maximize else g) + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g
    return p


def adam(
    p, grads, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, maximize=False,
    decoupled_weight_decay=False,
):  # fmt: skip
    """Adam in NumPy, by its definition."""
    m = v = largest = np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        g = -g if maximize else g
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        largest = np.maximum(largest, v)
        second = (largest if amsgrad else v) / (1 - betas[1] ** t)
        p = p - lr * m / (1 - betas[0] ** t) / (np.sqrt(second) + eps)
    return p


def adamw(p, grads, weight_decay=1e-2, **options):
    return adam(p, grads, weight_decay=weight_decay, decoupled_weight_decay=True, **options)


CASES = [
    (SGD, sgd, {"lr": 0.1}),
    (SGD, sgd, {"lr": 0.1, "weight_decay": 0.3}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.4, "weight_decay": 0.1}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.5, "maximize": True, "weight_decay": 0.1}),
    (Adam, adam, {}),
    (Adam, adam, {"lr": 0.1, "betas": (0.5, 0.7), "eps": 0.1}),
    (Adam, adam, {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    (Adam, adam, {"lr": 0.1, "maximize": True}),
    (AdamW, adamw, {"lr": 0.1}),
    (AdamW, adamw, {"lr": 0.1, "weight_decay": 0.5, "amsgrad": True, "maximize": True}),
]


@pytest.mark.parametrize("differentiable", [False, True], ids=["compiled", "recorded"])
@pytest.mark.parametrize(("optimizer", "formula", "options"), CASES, ids=lambda v: getattr(v, "__name__", str(v)))
def test_twenty_steps_follow_the_formula(optimizer, formula, options, differentiable):
    random = np.random.default_rng(0)
    starts = [random.standard_normal(shape) for shape in ((3, 4), (5,), ())]
    grads = [[random.standard_normal(p.shape) for p in starts] for _ in range(20)]
    params = [torch.tensor(p, dtype=torch.float64, requires_grad=True) for p in starts]
    if differentiable:  # the step is recorded, and recorded ops cannot modify leaves
        params = [p.clone() for p in params]
        for param in params:
            param.retain_grad()
    steps = optimizer(params, **options, differentiable=differentiable)
    for step in grads:
        for param, grad in zip(params, step):
            param.grad = torch.tensor(grad, dtype=torch.float64)
        steps.step()
    for i, (param, start) in enumerate(zip(params, starts)):
        expected = formula(start, [step[i] for step in grads], **options)
        np.testing.assert_allclose(param.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
        assert param.requires_grad and param.is_leaf != differentiable


@pytest.mark.parametrize("optimizer", [SGD, Adam, AdamW])
def test_float16_and_strided_parameters(optimizer):
    start = np.arange(1, 7, dtype=np.float16).reshape(2, 3)
    plain = torch.from_numpy(start.copy()).requires_grad_()
    strided = torch.from_numpy(np.asfortranarray(start)).requires_grad_()
    steps = optimizer([plain, strided], lr=0.5)
    for param in (plain, strided):
        param.grad = torch.from_numpy(start)
    steps.step()
    assert plain.dtype == torch.float16
    assert (plain == strided).all() and not (plain.detach().numpy() == start).all()


def test_gradients_flow_through_a_differentiable_step():
    lr = torch.tensor(0.1, requires_grad=True)
    start = leaf(1.0, 2.0)
    param = start.clone()
    param.retain_grad()
    param.grad = torch.tensor([3.0, 5.0])
    SGD([param], lr=lr, differentiable=True).step()
    param.sum().backward()
    assert lr.grad.item() == -8.0 and start.grad.tolist() == [1.0, 1.0]


# ------------------------------------------------------------------ stepping


def test_parameters_without_gradient_stay_and_get_no_state():
    a, b = leaf(1.0), leaf(1.0)
    a.grad = torch.ones(1)
    steps = Adam([a, b])
    steps.step()
    assert b.tolist() == [1.0] and list(steps.state) == [a]
    Adam([b]).step()


def test_closure_runs_with_grad_mode_and_its_loss_is_returned():
    w = leaf(3.0)
    steps = SGD([w], lr=0.1)

    def closure():
        steps.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert steps.step(closure).item() == 9.0
    assert w.item() == pytest.approx(2.4)


def test_a_step_counts_as_an_inplace_change():
    w = leaf(3.0)
    loss = (w * w).sum()
    w.grad = torch.ones(1)
    SGD([w]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_read_only_parameters_are_refused_and_nothing_changes():
    array = np.ones(2, dtype=np.float32)
    array.flags.writeable = False
    writable, frozen = leaf(1.0, 1.0), torch.from_numpy(array).requires_grad_()
    for param in (writable, frozen):
        param.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="read-only"):
        SGD([writable, frozen]).step()
    assert writable.tolist() == [1.0, 1.0] and writable._version == 0


def test_zero_grad():
    w = leaf(1.0)
    w.grad = grad = torch.ones(1)
    steps = SGD([w])
    steps.zero_grad(set_to_none=False)
    assert w.grad is grad and grad.tolist() == [0.0]
    steps.zero_grad()
    assert w.grad is None


def test_learning_rate_may_be_a_tensor():
    w = leaf(1.0)
    w.grad = torch.ones(1)
    SGD([w], lr=torch.tensor(0.25)).step()
    Adam([w], lr=torch.tensor(0.25)).step()
    assert w.item() == pytest.approx(0.5)


def test_hooks_around_a_step():
    w, order = leaf(1.0), []
    w.grad = torch.ones(1)
    steps = SGD([w], lr=0.5)
    handles = [
        base.register_optimizer_step_pre_hook(lambda *_: order.append("global pre")),
        base.register_optimizer_step_post_hook(lambda *_: order.append("global post")),
        steps.register_step_pre_hook(lambda *_: order.append("pre")),
        steps.register_step_post_hook(lambda s, args, kwargs: order.append(w.item())),
    ]
    steps.step()
    for handle in handles:
        handle.remove()
    steps.step()
    assert order == ["global pre", "pre", 0.5, "global post"]


def test_hooks_run_once_where_step_calls_step():
    class Twice(SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    w, calls = leaf(1.0), []
    w.grad = torch.ones(1)
    steps = Twice([w], lr=0.25)
    steps.register_step_pre_hook(lambda *_: calls.append(1))
    steps.step()
    assert calls == [1] and w.item() == 0.5


def test_pre_hook_may_replace_arguments():
    w = leaf(1.0)
    steps = SGD([w])
    handle = steps.register_step_pre_hook(lambda s, args, kwargs: ((*args, lambda: 7), {}))
    assert steps.step() == 7
    handle.remove()
    steps.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs"):
        steps.step()


# ------------------------------------------------------------------ groups and options


def test_groups_have_their_own_options():
    a, b = leaf(1.0), leaf(1.0)
    steps = SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.25)
    for param in (a, b):
        param.grad = torch.ones(1)
    steps.step()
    assert (a.item(), b.item()) == (0.75, 0.5)
    steps.add_param_group({"params": leaf(1.0), "momentum": 0.5})
    assert [group["momentum"] for group in steps.param_groups] == [0, 0, 0.5]


def test_repr_lists_the_groups():
    assert repr(SGD([{"params": leaf(1.0)}, {"params": leaf(2.0), "lr": 0.5}])) == (
        "SGD (\n"
        + "\n\n".join(
            f"Parameter Group {i}\n    dampening: 0\n    differentiable: False\n    foreach: None\n"
            f"    fused: None\n    lr: {lr}\n    maximize: False\n    momentum: 0\n"
            "    nesterov: False\n    weight_decay: 0"
            for i, lr in enumerate((0.001, 0.5))
        )
        + "\n)"
    )


def test_named_parameters():
    steps = SGD([("a", leaf(1.0)), ("b", leaf(1.0))])
    assert steps.param_groups[0]["param_names"] == ["a", "b"]
    with fails(ValueError, "all optimizer params should be with/without names. Some param names..."):
        SGD([("a", leaf(1.0)), leaf(1.0)])
    line = "all optimizer param groups should be with/without names. cannot add param group without..."
    with fails(ValueError, line):
        steps.add_param_group({"params": [leaf(1.0)]})


SHARED = torch.ones(1, requires_grad=True)


@pytest.mark.parametrize(
    ("params", "exception", "line"),
    [
        (lambda: SHARED, TypeError, "params argument given to the optimizer should be an iterable "
         "of Tensors or dicts, but got torch.FloatTensor"),
        (list, ValueError, "optimizer got an empty parameter list"),
        (lambda: [3], TypeError,
         "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda: [SHARED * 2], ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: [{"params": {SHARED}}], TypeError, "optimizer parameters need to be organized in "
         "ordered collections, but the ordering of tensors in sets will change between runs. "
         "Please use a list instead."),
        (lambda: [{"params": [SHARED]}, {"params": [SHARED]}], ValueError,
         "some parameters appear in more than one parameter group"),
    ],
)  # fmt: skip
def test_bad_parameters(params, exception, line):
    with fails(exception, line):
        SGD(params())


def test_bad_groups():
    steps = SGD([SHARED])
    with fails(TypeError, "param_group must be a dict, but got <class 'int'>"):
        steps.add_param_group(3)
    with pytest.warns(UserWarning, match="parameter group with duplicate parameters"):
        SGD([SHARED, SHARED])

    class Needs(base.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": base.required})

    line = "parameter group didn't specify a value of required optimization parameter lr"
    with fails(ValueError, line):
        Needs([SHARED])
    assert Needs([{"params": SHARED, "lr": 1}]).param_groups[0]["lr"] == 1
    with pytest.raises(NotImplementedError):
        Needs([{"params": SHARED, "lr": 1}]).step()


@pytest.mark.parametrize(
    ("optimizer", "options", "exception", "line"),
    [
        (SGD, {"lr": -1}, ValueError, "Invalid learning rate: -1"),
        (SGD, {"momentum": -1}, ValueError, "Invalid momentum value: -1"),
        (SGD, {"weight_decay": -1}, ValueError, "Invalid weight_decay value: -1"),
        (SGD, {"nesterov": True}, ValueError,
         "Nesterov momentum requires a momentum and zero dampening"),
        (SGD, {"lr": torch.ones(2)}, ValueError, "Tensor lr must be 1-element"),
        (SGD, {"fused": True, "foreach": True}, RuntimeError,
         "`fused` and `foreach` cannot be `True` together."),
        (Adam, {"fused": True, "differentiable": True}, RuntimeError,
         "`fused` does not support `differentiable`"),
        (Adam, {"lr": -1}, ValueError, "Invalid learning rate: -1"),
        (Adam, {"eps": -1}, ValueError, "Invalid epsilon value: -1"),
        (Adam, {"betas": (2, 0.5)}, ValueError, "Invalid beta parameter at index 0: 2"),
        (AdamW, {"betas": (0.5, 1.0)}, ValueError, "Invalid beta parameter at index 1: 1.0"),
        (AdamW, {"weight_decay": -1}, ValueError, "Invalid weight_decay value: -1"),
        (Adam, {"lr": torch.tensor(0.1), "foreach": True}, ValueError,
         "lr as a Tensor is not supported for capturable=False and foreach=True"),
        (Adam, {"betas": (torch.tensor(0.1), 0.5)}, ValueError,
         "betas must be either both floats or both Tensors"),
    ],
)  # fmt: skip
def test_bad_options(optimizer, options, exception, line):
    with fails(exception, line):
        optimizer([SHARED], **options)


@pytest.mark.parametrize("option", ["foreach", "fused", "capturable"])
def test_choices_of_implementation_are_accepted(option):
    w = leaf(1.0)
    w.grad = torch.ones(1)
    Adam([w], lr=0.5, **{option: True}).step()
    assert w.item() == pytest.approx(0.5)


# ------------------------------------------------------------------ state


def stepped(optimizer=Adam, steps=3, **options):
    """A parameter and its optimizer after a few steps."""
    w = leaf(1.0, 2.0)
    optimizer = optimizer([w], lr=0.1, **options)
    advance(w, optimizer, steps)
    return w, optimizer


def advance(w, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()


def test_state_dict_has_pytorchs_layout():
    _, steps = stepped(amsgrad=True)
    state = steps.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert state["state"][0]["step"].dtype == torch.float32 and state["state"][0]["step"] == 3
    assert list(state["param_groups"][0]) == [
        "lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "foreach", "capturable",
        "differentiable", "fused", "decoupled_weight_decay", "params",
    ]  # fmt: skip
    assert state["param_groups"][0]["params"] == [0]
    _, steps = stepped(SGD, momentum=0.9)
    assert list(steps.state_dict()["state"][0]) == ["momentum_buffer"]


@pytest.mark.parametrize(("kind", "options"), [(SGD, {"momentum": 0.9}), (Adam, {"amsgrad": True}), (AdamW, {})])
@pytest.mark.parametrize("way", ["load", "pickle", "deepcopy"])
def test_training_resumes_as_if_never_interrupted(kind, options, way):
    w, steps = stepped(kind, **options)
    if way == "load":
        again = w.detach().clone().requires_grad_()
        resumed = kind([again])
        resumed.load_state_dict(steps.state_dict())
    else:
        both = (w, steps)
        again, resumed = pickle.loads(pickle.dumps(both)) if way == "pickle" else copy.deepcopy(both)
    advance(again, resumed, 4)
    advance(w, steps, 4)
    assert again.tolist() == w.tolist()


def test_loaded_state_is_a_copy_in_the_parameters_dtype():
    _, steps = stepped()
    w = leaf(1.0, 2.0, dtype=torch.float64)
    other = Adam([w])
    other.load_state_dict(steps.state_dict())
    assert other.state[w]["exp_avg"].dtype == torch.float64
    assert other.state[w]["step"].dtype == torch.float32
    before = steps.state_dict()["state"][0]["step"].item()
    advance(w, other, 1)
    assert steps.state_dict()["state"][0]["step"].item() == before
    assert other.param_groups[0]["lr"] == 0.1


def test_state_of_another_shape_is_refused_and_nothing_changes():
    w, steps = stepped()
    before = steps.state[w]
    with fails(ValueError, "loaded state dict has a different number of parameter groups"):
        steps.load_state_dict({"state": {}, "param_groups": []})
    line = "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
    with fails(ValueError, line):
        steps.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})
    assert steps.state[w] is before


def test_hooks_around_state_dicts():
    w, steps = stepped()
    order = []
    steps.register_state_dict_pre_hook(lambda s: order.append("before"))
    steps.register_state_dict_post_hook(lambda s, state: {**state, "note": 1})
    steps.register_load_state_dict_pre_hook(lambda s, state: {k: state[k] for k in list(state)[:2]})
    steps.register_load_state_dict_post_hook(lambda s: order.append("after"))
    state = steps.state_dict()
    assert state["note"] == 1
    steps.load_state_dict(state)
    assert order == ["before", "after"] and len(state) == 3


def test_adamw_stays_decoupled_after_loading_adams_state():
    _, steps = stepped(Adam)
    other = AdamW([leaf(1.0, 2.0)])
    other.load_state_dict(steps.state_dict())
    assert other.param_groups[0]["decoupled_weight_decay"] is True


def test_optimizers_that_make_themselves():
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner):
            self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = OrderedDict(), OrderedDict()
            self._patch_step_function()
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    x, calls = torch.ones(2, requires_grad=True), []
    wrapper = Wrapper(torch.optim.SGD([x], lr=0.5))
    wrapper.register_step_post_hook(lambda *_: calls.append(1))
    x.sum().backward()
    wrapper.step()
    assert x.tolist() == [0.5, 0.5] and calls == [1]
