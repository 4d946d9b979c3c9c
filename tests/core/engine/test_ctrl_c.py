"""Ctrl-C at every point where CPython checks for it restores hooks, modes, autocast and random state."""

import functools
import gc
import sys

import pytest

import cygrad as torch
from cygrad._core.engine.backward import current_run
from cygrad._core.graph.dual import is_forward
from cygrad._core.registry import autocast
from cygrad._core.saved.saved_tensor_hooks import _thread, hooks_in_use
from cygrad._core.transforms import forward_mode
from cygrad.autograd import forward_ad, graph
from cygrad.utils import checkpoint as module
from cygrad.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
from helpers import leaf


def interrupted_everywhere(run, check, prepare=tuple):
    """Call `run(*prepare())` repeatedly with a KeyboardInterrupt at its first point, its second, ...; then `check`.

    CPython raises it on entry to a function written in Python, and after a call of any other function.
    """
    in_finalizers = ("weakref.py", "_weakrefset.py")  # these swallow the interrupt

    def interrupt(frame, event, arg):
        nonlocal left
        code = frame.f_code
        if (
            event not in ("call", "c_return")
            or code.co_filename.endswith(in_finalizers)
            or code.co_name in ("<lambda>", "<genexpr>")
        ):
            return
        if arg is not sys.setprofile:
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

    run(*prepare())  # performs imports that happen on first use
    total, ended = 0, False
    watching, gc.callbacks[:] = gc.callbacks[:], []  # Hypothesis's callbacks would swallow it, too
    try:
        while not ended:
            total += 1
            left, given = total, prepare()
            try:
                sys.setprofile(interrupt)
                run(*given)
                ended = True
            except KeyboardInterrupt:
                pass
            finally:
                sys.setprofile(None)
            check()
    finally:
        gc.callbacks[:] = watching
    assert total > 5


def nothing_is_left():
    assert hooks_in_use() is None and _thread.disabled is None
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    assert current_run() == (0, [])
    assert forward_mode.levels() == () and not is_forward()
    assert not torch.is_autocast_enabled("cpu") and autocast.state.keeper is None and autocast.state.nesting == 0
    assert module._overrides == {"early_stop": None, "debug": None}
    assert module.GraphExecGroup._innermost == {"notes": None}
    x = leaf(2.0)
    x.sin().backward()
    assert x.grad is not None


@torch.no_grad()
def unrecorded(x):
    return x.exp()


def blocks(x):
    with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = x.sin()
        with graph.save_on_cpu():
            y = y.exp()
        with torch.no_grad():
            factor = unrecorded(x).item()
        with torch.inference_mode(), torch.enable_grad():
            x.exp()
        with torch.set_grad_enabled(True):
            y = y.cos() * factor
    with graph.disable_saved_tensors_hooks("not now"):
        y = y.sin()
    with forward_ad.dual_level():
        forward_ad.make_dual(x, x.detach()).sin()
    with module.set_checkpoint_early_stop(False), module.set_checkpoint_debug_enabled(False):
        checkpoint(torch.sin, y, use_reentrant=False).backward()


def test_blocks():
    x = leaf(0.5)
    interrupted_everywhere(lambda: blocks(x), nothing_is_left)


def dropped(x):
    return torch.nn.functional.dropout(x * x, 0.5).sin()


def nested(x):
    return checkpoint(dropped, x.exp(), use_reentrant=False)


def selective():
    return create_selective_checkpoint_contexts([torch.ops.aten.mm.default])


ways = {
    "plain": functools.partial(checkpoint, dropped, use_reentrant=False),
    "nested": functools.partial(checkpoint, nested, use_reentrant=False),
    "reentrant": functools.partial(checkpoint, dropped, use_reentrant=True),
    "selective": functools.partial(checkpoint, lambda x: dropped(x @ x), use_reentrant=False, context_fn=selective),
}


@pytest.mark.parametrize("way", ways)
def test_checkpoints(way):
    x = torch.rand(2, 2, requires_grad=True)
    interrupted_everywhere(lambda: ways[way](x), nothing_is_left)
    state = torch.get_rng_state()

    def prepare():
        with torch.autocast("cpu", dtype=torch.float16):  # so that the recomputation switches it on and off
            output = ways[way](x).sum()
        torch.set_rng_state(state)
        return (output,)

    def check():
        nothing_is_left()
        assert torch.get_rng_state().equal(state)

    interrupted_everywhere(torch.Tensor.backward, check, prepare)


def test_a_group_of_passes():
    x = leaf(0.5)

    def run(y):
        with module.GraphExecGroup():
            y.backward()

    interrupted_everywhere(run, nothing_is_left, lambda: (checkpoint(torch.sin, x, use_reentrant=False),))
