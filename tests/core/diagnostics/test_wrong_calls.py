"""Wrong arguments in the autograd namespace give an error or a result and leave all state unchanged."""

import pytest
from core.diagnostics.wrong_calls import CALLS, arguments, outcome, wrong_values

import cygrad as torch
from cygrad._core.runtime import thread_state
from cygrad._core.saved.saved_tensor_hooks import hooks_in_use, write_hook
from cygrad._core.transforms import forward_mode
from cygrad.autograd import forward_ad, graph


def modes():
    """All modes that a call could have left switched on, thread-local or global, and the results of a small pass."""
    found = [
        thread_state.get_modes(),
        thread_state.set_forward(False),
        thread_state.is_observed(),
        forward_mode.levels(),
    ]
    found += [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
    found += [hooks_in_use(), write_hook()]
    found.append(thread_state.set_watch(0))
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t), forward_ad.dual_level():
        pass
    x = torch.tensor([2.0], requires_grad=True)
    (x * x.exp()).sum().backward()
    return [*found, x.grad.item(), torch.vmap(lambda x: x.sum())(torch.ones(2, 3)).tolist()]


@pytest.mark.parametrize("call", CALLS)
def test_everything_is_as_it_was(call):
    expected = modes()
    assert expected[:9] == [0, False, False, (), False, True, None, None, 0]
    for name in arguments(call):
        for what in wrong_values(torch):
            outcome(torch, call, name, what)
            assert modes() == expected, f"{name}={what}"
