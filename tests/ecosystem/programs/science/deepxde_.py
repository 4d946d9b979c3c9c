"""DeepXDE on its back end for PyTorch solves Poisson's equation by Adam, then by L-BFGS."""

import os

os.environ["DDE_BACKEND"] = "pytorch"

import deepxde
import numpy as np
import torch

deepxde.config.set_random_seed(0)
domain = deepxde.geometry.Interval(-1, 1)


def residual(x, y):
    return -deepxde.grad.hessian(y, x) - np.pi**2 * torch.sin(np.pi * x)


def solution(x):
    return np.sin(np.pi * x)


edge = deepxde.icbc.DirichletBC(domain, solution, lambda x, on_edge: on_edge)
data = deepxde.data.PDE(domain, residual, edge, 16, 2, solution=solution, num_test=20)
model = deepxde.Model(data, deepxde.nn.FNN([1, 16, 16, 1], "tanh", "Glorot uniform"))
model.compile("adam", lr=1e-2, metrics=["l2 relative error"], verbose=0)
history, _ = model.train(iterations=60, display_every=20, verbose=0)
losses = [float(sum(each)) for each in history.loss_train]
model.compile("L-BFGS", metrics=["l2 relative error"], verbose=0)
history, state = model.train(verbose=0)
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0] and state.best_metrics[0] < 0.05
