"""Module hooks: before and after forward, and in the backward pass."""

import collections

import pytest

import cygrad as torch
from cygrad import nn
from cygrad.nn.modules import module as all_modules
from cygrad.utils.hooks import HookDict, RemovableHandle
from helpers import fails


def ones(*shape):
    return torch.ones(*shape, requires_grad=True)


class Two(nn.Module):
    """Three inputs and three outputs, connected crosswise."""

    def forward(self, a, b, c):
        return a * 2, b * 3 + a, 5 * c


# ------------------------------------------------------------------ forward


def test_pre_hook_sees_and_replaces_arguments():
    module = nn.Identity()
    handle = module.register_forward_pre_hook(lambda m, args: args[0] + 1)
    assert module(torch.zeros(1)).tolist() == [1.0]
    handle.remove()
    assert module(torch.zeros(1)).tolist() == [0.0]


def test_post_hook_sees_and_replaces_the_output():
    module = nn.Identity()
    seen = []
    module.register_forward_hook(lambda m, args, out: seen.append((m, args[0], out)))
    module.register_forward_hook(lambda m, args, out: out * 10)
    x = torch.ones(1)
    assert module(x).tolist() == [10.0]
    assert seen == [(module, x, x)]


def test_hooks_with_kwargs():
    class Times(nn.Module):
        def forward(self, x, factor=1):
            return x * factor

    module = Times()
    module.register_forward_pre_hook(lambda m, args, kwargs: (args, {"factor": 5}), with_kwargs=True)
    module.register_forward_hook(lambda m, args, kw, out: out + kw["factor"], with_kwargs=True)
    assert module(torch.ones(1), factor=2).tolist() == [10.0]


def test_bad_result_of_a_pre_hook_with_kwargs():
    module = nn.Identity()
    module.register_forward_pre_hook(lambda *_: 3, with_kwargs=True)
    line = "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got 3."
    with fails(RuntimeError, line):
        module(torch.ones(1))


def test_prepend_runs_first():
    module, order = nn.Identity(), []
    for name, prepend in (("a", False), ("b", False), ("c", True)):
        module.register_forward_hook(lambda *_, name=name: order.append(name), prepend=prepend)
    module(torch.ones(1))
    assert order == ["c", "a", "b"]


def test_always_called_hooks_survive_an_error():
    class Boom(nn.Module):
        def forward(self, x):
            raise ValueError("boom")

    module, seen = Boom(), []
    module.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    module.register_forward_hook(lambda m, args, out: seen.append("never"))
    with pytest.raises(ValueError, match="boom"):
        module(1)
    assert seen == [None]
    module.register_forward_hook(lambda *_: 1 / 0, always_call=True)
    with (
        pytest.warns(UserWarning, match="silenced as another error was raised in forward"),
        pytest.raises(ValueError, match="boom"),
    ):
        module(1)


def test_hook_may_remove_itself_while_it_runs():
    module, calls = nn.Identity(), []
    handle = module.register_forward_hook(lambda *_: (calls.append(1), handle.remove())[1])
    module(torch.ones(1))
    module(torch.ones(1))
    assert calls == [1]


def test_handle_is_a_context_manager():
    module, calls = nn.Identity(), []
    with module.register_forward_hook(lambda *_: calls.append(1)):
        module(torch.ones(1))
    module(torch.ones(1))
    assert calls == [1]


def test_global_hooks_see_every_module():
    order = []
    module = nn.modules.module
    handles = [
        module.register_module_forward_pre_hook(lambda m, a: order.append("pre")),
        module.register_module_forward_hook(lambda m, a, o: order.append(type(m).__name__)),
        module.register_module_full_backward_pre_hook(lambda m, go: order.append("backward pre")),
        module.register_module_full_backward_hook(lambda m, gi, go: order.append("backward")),
    ]
    model = nn.Tanh()
    model(ones(1)).sum().backward()
    for handle in handles:
        handle.remove()
    model(ones(1)).sum().backward()
    assert order == ["pre", "Tanh", "backward pre", "backward"]


# ------------------------------------------------------------------ backward


def test_the_node_before_a_module_with_backward_hooks_has_pytorchs_name():
    module = nn.ReLU(inplace=True)
    module.register_full_backward_hook(lambda m, gi, go: None)
    with fails(RuntimeError, "Output 0 of BackwardHookFunction is a view and is being modified inplace. This..."):
        module(torch.ones(2, requires_grad=True) * 1)


def test_full_backward_hook_sees_gradients_of_inputs_and_outputs():
    layer = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[3.0, 4.0]]))
    seen = []
    layer.register_full_backward_hook(
        lambda m, gi, go: seen.append(([g.tolist() for g in gi], [g.tolist() for g in go]))
    )
    (layer(ones(1, 2)) * 2).sum().backward()
    assert seen == [([[[6.0, 8.0]]], [[[2.0]]])]


def test_order_in_nested_modules():
    order = []
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Linear(2, 1))
    for name, module in model.named_modules():
        module.register_full_backward_pre_hook(lambda m, go, name=name: order.append(f"pre {name}"))
        module.register_full_backward_hook(lambda m, gi, go, name=name: order.append(f"post {name}"))
    model(ones(3, 2)).sum().backward()
    assert order == [
        "pre ", "pre 1", "post 1", "pre 0", "pre 0.1", "post 0.1", "pre 0.0", "post 0.0",
        "post 0", "post ",
    ]  # fmt: skip


def test_input_gradient_is_that_through_the_module_alone():
    seen = []
    module = nn.Tanh()
    module.register_full_backward_hook(lambda m, gi, go: seen.append(gi[0].item()))
    x = torch.zeros(1, requires_grad=True)
    (module(x) + 10 * x).sum().backward()
    assert seen == [1.0] and x.grad.tolist() == [11.0]


def test_gradients_can_be_replaced_jointly():
    module = Two()
    module.register_full_backward_pre_hook(lambda m, go: tuple(g * 2 for g in go))
    module.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10, gi[1] * 100, None))
    a, b, c = ones(1), ones(1), ones(1)
    sum(module(a, b, c)).backward()
    assert (a.grad.tolist(), b.grad.tolist(), c.grad) == ([60.0], [600.0], None)


def test_values_that_need_no_gradient_are_none():
    seen = []
    module = Two()
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    outputs = module(ones(1), torch.ones(1), torch.ones(1))
    (outputs[0] + outputs[1]).sum().backward()
    ((grad_input, grad_output),) = seen
    assert [g is None for g in grad_input] == [False, True, True]
    assert [g is None for g in grad_output] == [False, False, True]


def test_without_input_gradients_the_hook_runs_at_the_outputs():
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    with pytest.warns(UserWarning, match="Full backward hook is firing"):
        layer(torch.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]


def test_module_followed_by_an_inplace_op():
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(go[0].tolist()))
    layer(ones(1, 2)).mul_(5).sum().backward()
    assert seen == [[[5.0]]]


def test_identity_has_both_gradients():
    module, seen = nn.Identity(), []
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0], go[0])))
    (module(ones(1)) * 3).sum().backward()
    assert [(gi.item(), go.item()) for gi, go in seen] == [(3.0, 3.0)]


def test_wrong_number_of_gradients():
    module = nn.Tanh()
    module.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    line = "Backward hook returned an invalid number of grad_input, got 2, but expected 1"
    with fails(RuntimeError, line):
        module(ones(1)).sum().backward()
    module = nn.Tanh()
    module.register_full_backward_pre_hook(lambda m, go: (go[0], go[0]))
    line = "Backward pre hook returned an invalid number of grad_output, got 2, but expected 1"
    with fails(RuntimeError, line):
        module(ones(1)).sum().backward()


def test_output_that_cannot_be_watched_is_warned_about():
    module = nn.Identity()
    module.register_full_backward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        assert module(3) == 3


def test_no_grad_runs_no_backward_hooks():
    module = nn.Tanh()
    module.register_full_backward_hook(lambda *_: pytest.fail("called"))
    with torch.no_grad():
        assert not module(ones(1)).requires_grad


def test_regular_and_full_backward_hooks_exclude_each_other():
    line = (
        "Cannot use both regular backward hooks and full backward hooks on a single Module. "
        "Please use only one of them."
    )
    module, seen = nn.Tanh(), []
    module.register_backward_hook(lambda m, gi, go: seen.append((gi[0].item(), go[0].item())))
    with fails(RuntimeError, line):
        module.register_full_backward_hook(lambda *_: None)
    (module(ones(1) * 0) * 2).sum().backward()
    assert seen == [(2.0, 2.0)]
    module = nn.Tanh()
    module.register_full_backward_hook(lambda *_: None)
    with fails(RuntimeError, line):
        module.register_backward_hook(lambda *_: None)


def test_hooks_stand_in_their_dictionaries_as_they_were_given():
    layer = nn.Linear(2, 2)

    def before(module, args):
        return (args[0] * 2,)

    handle = layer.register_forward_pre_hook(before)
    layer.register_forward_hook(print)
    assert list(layer._forward_pre_hooks.values()) == [before]
    assert list(layer._forward_hooks.values()) == [print]
    handle.remove()
    assert not layer._forward_pre_hooks
    nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
    nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
    (hook,) = layer._forward_pre_hooks.values()
    assert hook._tensor_name == "weight" and len(list(hook)) == 2


def test_full_hooks_are_not_called_for_gradients_that_do_not_come_through_the_output():
    class Aside(nn.Module):
        def forward(self, x):
            self.aside = x * 2
            return x * 3

    module, x = Aside(), torch.ones(1, requires_grad=True)
    module.register_full_backward_hook(lambda *_: pytest.fail("called"))
    assert module(x).requires_grad
    module.aside.backward()
    assert x.grad.item() == 2


def test_backward_pre_hooks_alone_warn_as_well_where_no_input_requires_grad():
    module, seen = nn.Linear(2, 1), []
    module.register_full_backward_pre_hook(lambda m, go: seen.append(go[0].item()))
    with pytest.warns(UserWarning, match="Full backward hook is firing when gradients are computed with respect to"):
        module(torch.ones(1, 2)).backward()
    assert seen == [1.0]


# ------------------------------------------------------------------ names of PyTorch's


Pair = collections.namedtuple("Pair", ["first", "second"])


class Pairing(nn.Module):
    def forward(self, x):
        return Pair(x * 2, x * 3)


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_backward_hooks_leave_named_tuples_as_they_are(register):
    module, seen = Pairing(), []
    getattr(module, register)(lambda m, *grads: seen.append(grads))
    output = module(ones(1))
    assert type(output) is Pair
    output.second.sum().backward()
    first, second = seen[0][-1]
    assert first is None and second.tolist() == [1.0]


def test_modules_tell_which_hooks_are_called_how():
    module = nn.Identity()
    plain = module.register_forward_hook(lambda *_: None)
    always = module.register_forward_hook(lambda *_: None, always_call=True)
    keywords = module.register_forward_hook(lambda *_: None, with_kwargs=True)
    before = module.register_forward_pre_hook(lambda *_: None, with_kwargs=True)
    assert module._forward_hooks_always_called == {always.id: True}
    assert module._forward_hooks_with_kwargs == {keywords.id: True}
    assert module._forward_pre_hooks_with_kwargs == {before.id: True}
    for handle in (plain, always, keywords, before):
        handle.remove()
    assert not (module._forward_hooks_always_called or module._forward_hooks_with_kwargs)
    assert not module._forward_pre_hooks_with_kwargs


def test_handles_lead_to_their_dictionaries():
    hooks, others, more = HookDict(), HookDict(), HookDict()
    handle = RemovableHandle(hooks, extra_dict=[others, more])
    hooks[handle.id] = others[handle.id] = more[handle.id] = print
    assert handle.hooks_dict_ref() is hooks
    assert [reference() for reference in handle.extra_dict_ref] == [others, more]
    RemovableHandle(hooks).remove()  # of a hook that is not there
    handle.remove()
    assert not (hooks or others or more)


def test_regular_backward_hooks_of_all_modules():
    line = (
        "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
        "Please use only one of them."
    )
    order = []
    handle = all_modules.register_module_backward_hook(lambda m, gi, go: order.append("all"))
    module = nn.Tanh()
    module.register_backward_hook(lambda m, gi, go: order.append("own"))
    with handle:
        module(ones(1) * 2).backward()
        with fails(RuntimeError, line):
            all_modules.register_module_full_backward_hook(lambda *_: None)
    assert order == ["all", "own"]
    with (
        all_modules.register_module_full_backward_hook(lambda *_: None),
        fails(RuntimeError, line),
    ):
        all_modules.register_module_backward_hook(lambda *_: None)


def test_a_new_dictionary_makes_all_modules_forget_their_hooks():
    all_modules.register_module_forward_hook(lambda *_: 1 / 0, always_call=True)
    all_modules.register_module_forward_pre_hook(lambda *_: 1 / 0)
    all_modules.register_module_backward_hook(lambda *_: 1 / 0)
    assert len(all_modules._global_forward_hooks_always_called) == len(all_modules._global_backward_hooks) == 1
    for name in ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks"):
        setattr(all_modules, name, {})
        assert not getattr(all_modules, name)
    nn.Tanh()(ones(1) * 2).backward()


class _Listing(nn.Module):
    def forward(self, a, b=None):
        return [a * 2]


class _Apart(nn.Module):
    def forward(self, a, b):
        return a * 2, b * 3


class _Twice(nn.Module):
    def forward(self, a):
        return (a * 2) * 3


@pytest.mark.parametrize(
    ("module", "arguments", "line"),
    [
        (_Listing(), 1, "on a Module that does not return a single Tensor or a tuple of Tensors"),
        (_Apart(), 2, "hook when outputs are generated by different autograd Nodes"),
        (_Twice(), 1, "hook when the forward contains multiple autograd Nodes"),
    ],
)
def test_regular_backward_hooks_warn_of_what_they_miss(module, arguments, line):
    module.register_backward_hook(lambda *_: None)
    with pytest.warns(FutureWarning, match=line):
        module(*(ones(1) * 2 for _ in range(arguments)))


def test_regular_backward_hooks_warn_of_inputs_in_containers():
    module = nn.Module()
    module.forward = lambda tensors: tensors[0].clone()
    module.register_backward_hook(lambda *_: None)
    with pytest.warns(FutureWarning, match="does not take as input a single Tensor or a tuple of Tensors"):
        module([ones(1) * 2])
