"""An adaptive softmax over many classes that spends little computation on rare ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules.container import ModuleList, Sequential
from cygrad.nn.modules.linear import Linear
from cygrad.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The log-probability of each target, and the loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over `n_classes` sorted by decreasing frequency, with rare classes grouped into clusters.

    After E. Grave et al., "Efficient softmax approximation for GPUs" (2017). `head` scores the first `cutoffs[0]`
    classes plus one entry per cluster. A cluster consists of the classes from one cutoff to the next; `tail[i]` scores
    cluster i through `in_features // div_value**(i + 1)` hidden features. The log-probability of a rare class is that
    of its cluster plus that of the class within the cluster.

    Called with input (N, in_features) and target (N), or (in_features) and (), returns (output, loss): the
    log-probabilities of the targets, and minus their mean. Raises ValueError unless the cutoffs increase strictly
    between 1 and n_classes - 1, RuntimeError for targets that are not valid classes.

    >>> import cygrad
    >>> layer = cygrad.nn.AdaptiveLogSoftmaxWithLoss(16, 100, [10, 50])
    >>> layer(cygrad.randn(4, 16), cygrad.tensor([0, 20, 60, 99])).output.shape
    torch.Size([4])
    >>> layer.log_prob(cygrad.randn(4, 16)).exp().sum(1).round(decimals=3)
    tensor([1., 1., 1., 1.], grad_fn=<RoundBackward1>)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rises = all(a < b for a, b in zip(cutoffs, cutoffs[1:]))
        if not rises or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or any(int(c) != c for c in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        kwargs = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kwargs)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(self._clusters()):
            hidden = int(in_features // div_value ** (i + 1))
            first, second = (in_features, hidden), (hidden, high - low)
            self.tail.append(Sequential(*(Linear(*sizes, bias=False, **kwargs) for sizes in (first, second))))

    def _clusters(self) -> list[tuple[int, int]]:
        """Return the classes [low, high) of each cluster."""
        return list(zip(self.cutoffs, self.cutoffs[1:]))

    def reset_parameters(self) -> None:
        """Reinitialize all parameters.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.AdaptiveLogSoftmaxWithLoss(16, 10, cutoffs=[2, 5])
        >>> before = m.head.weight.clone()
        >>> m.reset_parameters()
        >>> cygrad.equal(m.head.weight, before)
        False
        """
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Return the log-probability of each target, and minus their mean.

        `input_` has the shape (N, in_features) and `target_` (N,), or they are (in_features,) and (). Raises
        RuntimeError for other shapes and for targets out of range.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.AdaptiveLogSoftmaxWithLoss(16, 10, cutoffs=[2, 5])
        >>> output, loss = m(cygrad.randn(3, 16), cygrad.tensor([0, 3, 9]))
        >>> output.shape, loss.shape
        (torch.Size([3]), torch.Size([]))
        """
        self._check(input_, target_)
        is_batched = target_.dim() > 0
        input, target = (input_, target_) if is_batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        in_head = target.clone()
        rare = cygrad.zeros(len(target), dtype=input.dtype, device=input.device)
        for i, (low, high) in enumerate(self._clusters()):
            inside = (target >= low) & (target < high)
            in_head = in_head.masked_fill(inside, self.shortlist_size + i)
            rows = inside.nonzero().squeeze(1)
            if len(rows):
                own = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
                chosen = own.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
                rare = rare.index_add(0, rows, chosen)
        output = rare + F.log_softmax(self.head(input), dim=1).gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if is_batched else output.squeeze(0), loss)

    def _check(self, input: Tensor, target: Tensor) -> None:
        if target.dim() == 1:
            if input.shape[0] != target.shape[0]:
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
        elif target.dim() == 0:
            if input.dim() != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found inputs with size {input.size()}"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, given the scores of the head."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, layer in enumerate(self.tail):
            cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(layer(input), dim=1) + cluster)
        return cygrad.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities (N, n_classes) of all classes.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.AdaptiveLogSoftmaxWithLoss(16, 10, cutoffs=[2, 5])
        >>> m.log_prob(cygrad.randn(3, 16)).shape
        torch.Size([3, 10])
        """
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each row; most clusters need not be computed for this.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.AdaptiveLogSoftmaxWithLoss(16, 10, cutoffs=[2, 5])
        >>> m.predict(cygrad.randn(3, 16)).shape
        torch.Size([3])
        """
        scores = self.head(input)
        best = scores.argmax(1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if len(rows):
            full = self._get_full_log_prob(input.index_select(0, rows), scores.index_select(0, rows))
            best = best.index_copy(0, rows, full.argmax(1))
        return best
