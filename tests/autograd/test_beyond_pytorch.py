"""Cases in which cygrad does what its documentation promises and PyTorch does not."""

import asyncio
import gc
import warnings
import weakref

import numpy as np
import pytest

import cygrad as torch
from helpers import fails, leaf

# ------------------------------------------------------------------ grad modes


def test_decorated_coroutine_runs_in_its_mode():
    @torch.no_grad()
    async def mode():
        before = torch.is_grad_enabled()
        await asyncio.sleep(0)
        return before, torch.is_grad_enabled()

    async def main():
        inside = await mode()
        return inside, torch.is_grad_enabled()

    assert asyncio.run(main()) == ((False, False), True)


def test_decorated_coroutines_do_not_leak_their_mode_into_others():
    seen = []

    @torch.no_grad()
    async def off():
        for _ in range(3):
            seen.append(("off", torch.is_grad_enabled()))
            await asyncio.sleep(0)

    async def on():
        for _ in range(3):
            seen.append(("on", torch.is_grad_enabled()))
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(off(), on())

    asyncio.run(main())
    assert sorted(seen) == [("off", False)] * 3 + [("on", True)] * 3
    assert torch.is_grad_enabled()


def test_decorated_asynchronous_generator():
    @torch.no_grad()
    async def numbers():
        for _ in range(2):
            yield torch.is_grad_enabled()

    async def main():
        return [(mode, torch.is_grad_enabled()) async for mode in numbers()]

    assert asyncio.run(main()) == [(False, True)] * 2


def test_one_mode_object_can_be_nested():
    mode = torch.no_grad()
    with mode:
        with mode:
            pass
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


# ------------------------------------------------------------------ nothing changes on an error


def test_failed_change_of_an_inference_tensor_changes_nothing():
    with torch.inference_mode():
        t = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        t.mul_(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        t[0] = 5.0
    assert t.tolist() == [1.0, 1.0]


def test_mismatched_gradient_of_a_later_root_is_named_by_its_index():
    x = leaf(1.0, 2.0)
    with fails(
        RuntimeError,
        "Mismatch in shape: grad_output[1] has a shape of torch.Size([3]) and output[1] has a "
        "shape of torch.Size([2]).",
    ):
        torch.autograd.backward([x * 2, x * 3], [torch.ones(2), torch.ones(3)])
    assert x.grad is None


def test_read_only_memory_is_not_written():
    array = np.ones(3, dtype=np.float32)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.from_numpy(array)
    assert (x + 1).tolist() == [2.0, 2.0, 2.0]
    for change in (lambda: x.add_(1), lambda: x.zero_(), lambda: x.__setitem__(0, 5.0)):
        with pytest.raises(RuntimeError, match="read-only"):
            change()
    assert array.tolist() == [1.0, 1.0, 1.0]
    assert x._version == 0


# ------------------------------------------------------------------ cycles are collected


class Witness:
    """An object to hold a weak reference to."""


def test_create_graph_makes_no_leak_and_no_warning():
    x = leaf(1.0)
    x.witness = Witness()
    gone = weakref.ref(x.witness)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    del x
    gc.collect()
    assert gone() is None


def test_hook_that_holds_its_own_tensor_is_collected():
    witness = Witness()
    gone = weakref.ref(witness)
    y = leaf(1.0) * 2
    y.register_hook(lambda grad, y=y, witness=witness: None)
    y.grad_fn.register_hook(lambda gi, go, y=y: None)
    y.grad_fn.metadata["y"] = y
    del y, witness
    gc.collect()
    assert gone() is None


def test_tensors_kept_on_ctx_are_collected():
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, witness):
            ctx.witness = witness
            ctx.result = x * 2
            return ctx.result

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    witness = Witness()
    gone = weakref.ref(witness)
    y = Keeps.apply(leaf(1.0), witness)
    y.grad_fn.itself = y
    del y, witness
    gc.collect()
    assert gone() is None


# ------------------------------------------------------------------ old names


def test_retain_variables_is_the_old_name_of_retain_graph():
    x = leaf(1.0)
    y = x.exp()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.backward(retain_variables=True)
        torch.autograd.backward(y, retain_variables=True)
    y.backward()
    assert x.grad.tolist() == pytest.approx([3 * 2.7182817])


def test_tensors_are_collected_when_the_user_drops_them():
    x = leaf(1.0)
    y = x * 2
    gone = weakref.ref(y)
    del y
    assert gone() is None
