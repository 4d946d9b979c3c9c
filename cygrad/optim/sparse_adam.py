"""SparseAdam: Adam for sparse gradients, which only updates the rows that these hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.optim.optimizer import Optimizer, loss_of

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """`Adam` for sparse gradients, such as those of `nn.Embedding(sparse=True)`.

    In the rows of the gradient g, in step t:

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        parameter -= lr * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + eps)

    The running averages, and the parameter, change only in the rows that the gradient holds: the others are as if they
    had not taken part in the step. The step count, and so the correction of the averages, is that of all steps.

    Raises `ValueError` for options out of range and for sparse or complex parameters, RuntimeError for dense gradients.

    >>> import cygrad
    >>> layer = cygrad.nn.Embedding.from_pretrained(cygrad.ones(3, 2), freeze=False, sparse=True)
    >>> optimizer = cygrad.optim.SparseAdam(layer.parameters(), lr=0.1)
    >>> layer(cygrad.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> layer.weight.detach()
    tensor([[1.0000, 1.0000],
            [0.9000, 0.9000],
            [1.0000, 1.0000]])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = self._places(lambda param: param.layout is not cygrad.strided)
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        is_complex = self._places(Tensor.is_complex)
        if is_complex:
            raise ValueError(f"Complex params at indices {is_complex}: SparseAdam does not support complex parameters")

    def _places(self, concerns: Callable[[Tensor], bool]) -> list[list[int]]:
        return [
            [number, place]
            for number, group in enumerate(self.param_groups)
            for place, param in enumerate(group["params"])
            if concerns(param)
        ]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        >>> import cygrad
        >>> m = cygrad.nn.Embedding(3, 2, sparse=True)
        >>> optimizer = cygrad.optim.SparseAdam(m.parameters(), lr=0.1)
        >>> before = m.weight.detach().clone()
        >>> m(cygrad.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> (m.weight != before).any(1)
        tensor([False,  True, False])
        """
        loss = loss_of(closure)
        with cygrad.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._step_rows(param, param.grad, group)
        return loss

    def _step_rows(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"] = cygrad.zeros_like(param)
            state["exp_avg_sq"] = cygrad.zeros_like(param)
        state["step"] += 1
        grad = grad.coalesce()
        indices, values = grad.indices(), grad.values()
        if not values.numel():
            return
        if group["maximize"]:
            values = -values
        beta1, beta2 = group["betas"]

        def averaged(name: str, term: Tensor, beta: float) -> Tensor:
            former = state[name].sparse_mask(grad).values()
            change = (term - former) * (1 - beta)
            state[name].add_(cygrad.sparse_coo_tensor(indices, change, grad.shape, is_coalesced=True))
            return former + change

        mean = averaged("exp_avg", values, beta1)
        square = averaged("exp_avg_sq", values * values, beta2)
        t = state["step"]
        rate = float(group["lr"]) * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
        change = mean / (square.sqrt() + group["eps"])
        param.add_(cygrad.sparse_coo_tensor(indices, change, grad.shape, is_coalesced=True), alpha=-rate)
