"""All optimizers as functions of lists, in the module where PyTorch gathers them."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.optim._of_lists import step_of_lists
from cygrad.optim.adadelta import adadelta as adadelta
from cygrad.optim.adagrad import adagrad as adagrad
from cygrad.optim.adam import adam as adam
from cygrad.optim.adam import adamw as adamw
from cygrad.optim.adamax import adamax as adamax
from cygrad.optim.asgd import asgd as asgd
from cygrad.optim.nadam import nadam as nadam
from cygrad.optim.radam import radam as radam
from cygrad.optim.rmsprop import rmsprop as rmsprop
from cygrad.optim.rprop import rprop as rprop
from cygrad.optim.sgd import sgd as sgd
from cygrad.optim.sparse_adam import SparseAdam


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """Update `params` by sparse `grads` in place, as a step of `SparseAdam` does.

    Unlike in the other functions, `state_steps` are numbers, and already count this step.

    >>> import cygrad
    >>> w, m, v = cygrad.ones(2), cygrad.zeros(2), cygrad.zeros(2)
    >>> grad = cygrad.tensor([0.0, 2.0]).to_sparse()
    >>> sparse_adam([w], [grad], [m], [v], [1], eps=1e-8, beta1=0.9, beta2=0.999, lr=0.1, maximize=False)
    >>> w
    tensor([1.0000, 0.9000])
    """
    states: dict[str, list[Any]] = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    states["step"] = [step - 1 for step in state_steps]
    step_of_lists(
        SparseAdam, params, grads, states, {"eps": eps, "betas": (beta1, beta2), "lr": lr, "maximize": maximize}
    )
