"""Arguments of methods bear PyTorch's names, also where another method of the kind calls them otherwise."""

import inspect
import typing

import pytest

import cygrad as torch
from cygrad import distributions as dist
from cygrad import nn
from cygrad.nn.attention import flex_attention

NAMES = [
    (nn.ModuleList.__getitem__, "self idx"),
    (nn.ModuleList.__setitem__, "self idx module"),
    (nn.Sequential.__delitem__, "self idx"),
    (torch.utils.data.Subset.__getitem__, "self idx"),
    (torch.utils.data.ConcatDataset.__getitem__, "self idx"),
    (dist.HalfNormal.icdf, "self prob"),
    (dist.HalfCauchy.icdf, "self prob"),
    (dist.CorrCholeskyTransform.log_abs_det_jacobian, "self x y intermediates"),
    (
        flex_attention.create_block_mask,
        "mask_mod B H Q_LEN KV_LEN device BLOCK_SIZE _compile separate_full_blocks compute_dq_write_order dq_kv_order",
    ),
]


@pytest.mark.parametrize("function, names", NAMES, ids=lambda value: getattr(value, "__qualname__", ""))
def test_names(function, names):
    assert list(inspect.signature(function).parameters) == names.split()


def test_calls_by_name():
    half = torch.tensor([0.5])
    torch.testing.assert_close(dist.HalfNormal(1.0).icdf(prob=half), torch.tensor([0.6745]), atol=1e-4, rtol=0)
    data = torch.utils.data.ConcatDataset([[1, 2], [3]])
    assert [data[-1], data[0], torch.utils.data.Subset([5, 6], [1])[0]] == [3, 1, 6]
    layers = nn.Sequential(nn.ReLU(), nn.GELU(), nn.Tanh())
    del layers[0]
    layers[-1] = nn.ELU()
    assert [type(layer).__name__ for layer in layers[0:2]] == ["GELU", "ELU"]
    transform, x = dist.CorrCholeskyTransform(), torch.tensor([0.5])
    y = transform(x)
    assert transform.log_abs_det_jacobian(x, y, None).equal(transform.log_abs_det_jacobian(x, y))
    mask = flex_attention.create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, dq_kv_order=False)
    assert mask.sparsity() == 25


def test_annotations_of_generated_code():
    assert typing.get_type_hints(torch.fx.graph.source_of)["graph"] is torch.fx.Graph
