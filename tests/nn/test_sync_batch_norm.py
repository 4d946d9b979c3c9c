"""SyncBatchNorm in one process, and what Module accepts for compatibility with PyTorch."""

import pytest

import cygrad
from cygrad import nn


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 4)])
def test_it_computes_what_batch_norm_does(shape):
    x = cygrad.randn(shape)
    plain = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(shape)](3)
    sync = nn.SyncBatchNorm(3)
    for mode in (True, False):
        assert cygrad.allclose(plain.train(mode)(x), sync.train(mode)(x))
    assert cygrad.allclose(plain.running_var, sync.running_var)
    with pytest.raises(ValueError, match="expected at least 2D input"):
        sync(cygrad.ones(3))


def test_conversion_keeps_parameters_and_statistics():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3, momentum=0.3)))
    model(cygrad.randn(5, 2))
    model.eval()
    expected, norm = model(cygrad.ones(1, 2)), model[1][0]
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert converted is model
    assert type(model[1][0]) is nn.SyncBatchNorm
    assert model[1][0].weight is norm.weight
    assert not model[1][0].training and model[1][0].momentum == 0.3
    assert bool((model(cygrad.ones(1, 2)) == expected).all())


def test_old_name_of_the_loss_warns():
    with pytest.warns(FutureWarning, match="`NLLLoss2d` has been deprecated"):
        nn.NLLLoss2d()


def test_compile_changes_nothing():
    layer = nn.Linear(2, 2)
    assert layer.compile(mode="max-autotune") is None
    assert layer(cygrad.ones(1, 2)).shape == (1, 2)


def test_bfloat16_leaves_integers():
    pytest.importorskip("ml_dtypes")
    norm = nn.BatchNorm1d(2).bfloat16()
    assert norm.weight.dtype == cygrad.bfloat16
    assert norm.num_batches_tracked.dtype is cygrad.int64
