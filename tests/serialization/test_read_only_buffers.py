"""Pickles whose buffers travel apart and are read-only, as Ray's and Dask's are; errors by cloudpickle."""

import pickle
import subprocess
import sys

import pytest

import cygrad as torch
from cygrad import nn

cloudpickle = pytest.importorskip("cloudpickle")


def travelled(value, dumps=pickle.dumps):
    """The value as another process gets it, with how many of its arrays travelled apart."""
    buffers = []
    data = dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[memoryview(bytes(each)).toreadonly() for each in buffers]), len(buffers)


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_a_module_trains(dumps):
    model = nn.Sequential(nn.Linear(40, 30), nn.BatchNorm1d(30), nn.PReLU())
    arrived, apart = travelled(model, dumps)
    assert apart >= 7
    optimizer = torch.optim.Adam(arrived.parameters(), lr=0.1)
    x = torch.randn(8, 40)
    arrived(x).sum().backward()
    optimizer.step()
    assert arrived[1].num_batches_tracked == 1 and model[1].num_batches_tracked == 0
    assert not torch.equal(arrived[0].weight, model[0].weight)


def test_an_optimizer_goes_on():
    model = nn.Linear(40, 30)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(8, 40)).sum().backward()
    optimizer.step()
    (arrived, its_optimizer), apart = travelled((model, optimizer))
    assert apart >= 6
    x = torch.randn(8, 40)
    for each, of_it in ((model, optimizer), (arrived, its_optimizer)):
        of_it.zero_grad()
        each(x).sum().backward()
        of_it.step()
    assert torch.equal(arrived.weight, model.weight)


def test_a_leaf_with_gradients_can_be_changed():
    arrived, _ = travelled(torch.ones(100, requires_grad=True))
    with torch.no_grad():
        arrived += 1
    assert arrived.requires_grad and arrived.sum() == 200


def test_plain_tensors_are_not_copied():
    buffers = []
    data = pickle.dumps(torch.arange(100), protocol=5, buffer_callback=buffers.append)
    shared = memoryview(bytearray(buffers[0].raw()))
    arrived = pickle.loads(data, buffers=[shared])
    shared[:8] = (7).to_bytes(8, "little")
    assert arrived[0] == 7
    arrived, _ = travelled(torch.arange(100))
    with pytest.raises(torch.errors.ReadOnlyError):
        arrived += 1


def test_dtypes_that_numpy_lacks_travel_apart():
    pytest.importorskip("ml_dtypes")
    values = torch.arange(100, dtype=torch.bfloat16).view(10, 10)
    arrived, apart = travelled(values.t())
    assert apart == 1 and arrived.equal(values.t()) and arrived.dtype == torch.bfloat16
    with pytest.raises(torch.errors.ReadOnlyError):
        arrived += 1
    for protocol in range(2, 6):
        assert pickle.loads(pickle.dumps(values, protocol)).equal(values)
    parameter, apart = travelled(nn.Parameter(torch.ones(10, dtype=torch.float8_e5m2), requires_grad=False))
    assert apart == 1 and parameter.dtype == torch.float8_e5m2


def test_buffers_that_can_be_written_are_not_copied():
    parameter = nn.Parameter(torch.zeros(100))
    buffers = []
    data = pickle.dumps(parameter, protocol=5, buffer_callback=buffers.append)
    shared = memoryview(bytearray(buffers[0].raw()))
    arrived = pickle.loads(data, buffers=[shared])
    shared[:4] = b"\x00\x00\x80?"
    assert arrived[0] == 1


def test_errors_travel_by_reference():
    sender = (
        "import cloudpickle, sys, cygrad\n"
        "try:\n"
        "    cygrad.ones(2).sum().backward()\n"
        "except RuntimeError as error:\n"
        "    sys.stdout.buffer.write(cloudpickle.dumps(error))\n"
    )
    data = subprocess.run([sys.executable, "-c", sender], capture_output=True, check=True).stdout
    assert b"cygrad.errors" in data and len(data) < 5000
    error = pickle.loads(data)
    assert type(error) is torch.errors.NoGradientError and "requires_grad" in str(error)
    for name in torch.errors.__all__:
        assert pickle.loads(cloudpickle.dumps(getattr(torch.errors, name))) is getattr(torch.errors, name)
