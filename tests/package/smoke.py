"""A one-minute check of an installed cygrad that needs only the standard library and NumPy.

This is not a pytest file: `tox -e wheel` runs it from an empty directory, in an environment with only cygrad and NumPy.
Each small section exercises another part of the package.
"""

import copy
import pickle
import sys
import sysconfig
import threading
from pathlib import Path

import numpy as np

import cygrad as torch
import cygrad.nn as nn


def close(tensor, expected):
    return np.allclose(tensor.detach().numpy(), expected)


def autograd():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x.exp() * x.sin()).sum()
    y.backward()
    assert close(x.grad, np.exp([1, 2, 3]) * (np.sin([1, 2, 3]) + np.cos([1, 2, 3])))

    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert close(second, [6, 12, 18])


def arrays():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = torch.from_numpy(array)
    array[0, 0] = 7
    assert tensor[0, 0].item() == 7, "from_numpy copies"
    assert close(tensor @ tensor.t(), array @ array.T)
    assert repr(torch.tensor([1.5, 2.0])) == "tensor([1.5000, 2.0000])"


def errors():
    w = torch.ones(3, requires_grad=True)
    y = (w.exp() * 2).sum()
    y.backward()
    try:
        y.backward()
    except RuntimeError as error:
        assert str(error).startswith("Trying to backward through the graph a second time")
        assert Path(__file__).name in str(error), f"the error names no line: {error}"
    else:
        raise AssertionError("a freed graph ran a second time")


def training():
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 64).reshape(-1, 1)
    y = x * x
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(300):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.005, f"the network learnt nothing: loss {loss.item()}"

    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert close(twin(x), model(x).detach().numpy())


def threads():
    results = [None] * 4

    def work(i):
        w = torch.full((100,), float(i), requires_grad=True)
        (w * w).sum().backward()
        results[i] = w.grad

    workers = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(close(grad, 2.0 * i) for i, grad in enumerate(results))


def main():
    site = Path(sysconfig.get_path("platlib")).resolve()
    where = Path(torch.__file__).resolve()
    assert where.is_relative_to(site), f"this is not the installed package: {where}"
    for part in (autograd, arrays, errors, training, threads):
        part()
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "importing cygrad has switched the GIL on"
    print(f"smoke test passed: cygrad {torch.__version__}, NumPy {np.__version__}")


if __name__ == "__main__":
    main()
