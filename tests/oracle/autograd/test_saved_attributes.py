"""Node attributes for arguments and shapes, in addition to saved tensors, against PyTorch's."""

import pytest

import cygrad

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

MAKERS = {
    "addbmm": lambda lib, x: lib.addbmm(x[0, :, :3] + 0, x[..., :3] + 0, x[..., :3] * 2),
    "mm": lambda lib, x: x[0].mm(x[1].t() * 2),
    "as_strided": lambda lib, x: x.as_strided((2, 2), (1, 2), 3),
    "binary_cross_entropy": lambda lib, x: lib.nn.functional.binary_cross_entropy(x / 30, x.detach() / 30),
    "embedding": lambda lib, x: lib.nn.functional.embedding(lib.tensor([0, 2]), x[0]),
    "expand": lambda lib, x: x[:, :1].expand(2, 3, 4),
    "fold": lambda lib, x: lib.nn.functional.fold(x.reshape(1, 4, 6), (3, 4), 2),
    "gather": lambda lib, x: x.gather(1, lib.zeros(2, 1, 4, dtype=lib.int64)),
    "grid_sample": lambda lib, x: lib.nn.functional.grid_sample(
        x[None], lib.zeros(1, 2, 2, 2), "nearest", "border", align_corners=True
    ),
    "group_norm": lambda lib, x: lib.nn.functional.group_norm(x, 1, lib.ones(3), lib.ones(3)),
    "index_add": lambda lib, x: x.index_add(1, lib.tensor([0, 2]), x[:, :2]),
    "index_copy": lambda lib, x: x.index_copy(1, lib.tensor([0, 2]), x[:, :2]),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, (4,), x[0, 0]),
    "max_pool2d": lambda lib, x: lib.nn.functional.max_pool2d(x, (3, 2), (1, 2), (1, 0), ceil_mode=True),
    "mean": lambda lib, x: x.mean(),
    "mean of rows": lambda lib, x: x.mean(1),
    "nll_loss": lambda lib, x: lib.nn.functional.nll_loss(x[0], lib.tensor([0, 1, 3])),
    "unfold": lambda lib, x: lib.nn.functional.unfold(x[None], (2, 3), padding=1),
    "upsample": lambda lib, x: lib.nn.functional.interpolate(x[None], size=(6, 6), mode="bilinear"),
}


def told(lib, make):
    """Return {name: value} of the attributes of this result's node, with shapes in place of tensors."""
    node = make(lib, lib.arange(1.0, 25.0).reshape(2, 3, 4).requires_grad_()).grad_fn
    names = [name for name in dir(node) if name.startswith("_saved_")]
    return {name: plain(getattr(node, name)) for name in names}


def plain(value):
    if hasattr(value, "detach"):
        return [round(number, 4) for number in value.detach().flatten().tolist()]
    return tuple(value) if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize("name", MAKERS)
def test_same_as_pytorch(name):
    from cygrad._core.saved.derived_attributes import stated

    ours, theirs = told(cygrad, MAKERS[name]), told(torch, MAKERS[name])
    node = MAKERS[name](cygrad, cygrad.arange(1.0, 25.0).reshape(2, 3, 4).requires_grad_()).grad_fn
    derived = {f"_saved_{each}" for each in stated(node.name())}
    assert derived <= set(ours)
    assert {each: ours[each] for each in derived} == {each: theirs[each] for each in derived}
