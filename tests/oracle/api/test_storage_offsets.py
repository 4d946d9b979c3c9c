"""Offsets, storages and bases of views, of views of views, and of what was detached from them, are PyTorch's."""

import pytest
from oracle.answers import lines

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = pytest.mark.oracle

TENSORS = """
x
x[1:]
x[1:].detach()
x[1:].data
x[1:][1:].detach()
x[1:].detach()[1:]
x.detach()[2:].detach()
x[1:, 1].detach()
x[2].detach().view(2, 2)
x.t().detach()
x.as_strided((2, 2), (1, 2), 3).detach()
x.as_strided((2, 2), (1, 2), 3).detach().as_strided((2,), (1,))
x[1:].detach().as_strided((2,), (1,), 0)
x.chunk(2)[1].detach()
x.unbind(0)[2].detach()
x.diagonal(1).detach()
x[1:].view(torch.int16)[1:].detach()
x[1:].clone().detach()
x[:, 1:].contiguous().detach()
torch.nn.Parameter(x[1:])
torch.nn.Parameter(x[1:])[1:]
x[1:].expand(3, 4).detach()
x[1:1].detach()
torch.ones(0).set_(x[1:])
torch.ones(0).set_(x.untyped_storage(), 3, (2, 2)).detach()
(x[1:] + 1).detach()
torch.cat([x, x])[5:].detach()
torch.ones(3, dtype=torch.complex64)[1:].imag.detach()
"""


def facts(library, expression):
    x = library.arange(16.0).reshape(4, 4).clone()
    t = eval(expression, {"torch": library, "x": x})
    memory = t.untyped_storage()
    return (
        t.storage_offset(), memory.nbytes(), memory.data_ptr() == x.untyped_storage().data_ptr(), t.stride(),
        t._base is None, t._base is x, t.is_set_to(x), t.is_set_to(t.view_as(t)),
        t.numel() and t.data_ptr() - memory.data_ptr(),
    )  # fmt: skip


@pytest.mark.parametrize("expression", lines(TENSORS))
def test_as_in_pytorch(expression):
    assert facts(cygrad, expression) == facts(torch, expression)
