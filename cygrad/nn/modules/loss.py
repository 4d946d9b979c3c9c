"""Losses: functions that measure the error of an output against its target.

Margin losses are in margin_loss.py.
"""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules._loss import Loss, TargetLoss, WeightedLoss

# PyTorch has these here:
from cygrad.nn.modules.linear_cross_entropy import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from cygrad.nn.modules.margin_loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from cygrad.nn.modules.margin_loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from cygrad.nn.modules.margin_loss import MarginRankingLoss as MarginRankingLoss
from cygrad.nn.modules.margin_loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from cygrad.nn.modules.margin_loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from cygrad.nn.modules.margin_loss import MultiMarginLoss as MultiMarginLoss
from cygrad.nn.modules.margin_loss import SoftMarginLoss as SoftMarginLoss
from cygrad.nn.modules.margin_loss import TripletMarginLoss as TripletMarginLoss
from cygrad.nn.modules.margin_loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from cygrad.utils.warning import warn

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
]

# Base classes of losses: libraries look for these names here.
_Loss, _WeightedLoss = Loss, WeightedLoss


class L1Loss(TargetLoss):
    """The absolute error |input - target|, elementwise, then reduced.

    >>> import cygrad
    >>> cygrad.nn.L1Loss()(cygrad.tensor([1.0, 2.0]), cygrad.tensor([0.0, 0.0]))
    tensor(1.5000)
    """

    _function = "l1_loss"


class MSELoss(TargetLoss):
    """The squared error (input - target)**2, elementwise, then reduced.

    >>> import cygrad
    >>> cygrad.nn.MSELoss()(cygrad.tensor([1.0, 2.0]), cygrad.tensor([0.0, 0.0]))
    tensor(2.5000)
    """

    _function = "mse_loss"


class SmoothL1Loss(TargetLoss):
    """With d = |input - target|: d**2 / (2 beta) where d < beta, else d - beta / 2.

    >>> import cygrad
    >>> cygrad.nn.SmoothL1Loss()(cygrad.tensor([0.5, 2.0]), cygrad.tensor([0.0, 0.0]))
    tensor(0.8125)
    """

    _function = "smooth_l1_loss"
    _settings = ("beta",)

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta


class HuberLoss(TargetLoss):
    """With d = |input - target|: d**2 / 2 where d <= delta, else delta * (d - delta / 2).

    >>> import cygrad
    >>> cygrad.nn.HuberLoss(delta=2.0)(cygrad.tensor([1.0, 4.0]), cygrad.tensor([0.0, 0.0]))
    tensor(3.2500)
    """

    _function = "huber_loss"
    _settings = ("delta",)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta


class BCELoss(WeightedLoss):
    """Binary cross-entropy -(target log(input) + (1 - target) log(1 - input)) of probabilities.

    Logarithms are clamped to at least -100. `weight` scales elements.

    >>> import cygrad
    >>> cygrad.nn.BCELoss()(cygrad.tensor([0.5, 0.9]), cygrad.tensor([0.0, 1.0]))
    tensor(0.3993)
    """

    _function = "binary_cross_entropy"


class BCEWithLogitsLoss(WeightedLoss):
    """A sigmoid and `BCELoss` in one, without overflow.

    -(target log sigmoid(input) + (1 - target) log(1 - sigmoid(input))), elementwise, then reduced.

    `weight` scales elements, `pos_weight` the terms of positive targets.

    >>> import cygrad
    >>> cygrad.nn.BCEWithLogitsLoss()(cygrad.tensor([0.0, 2.0]), cygrad.tensor([0.0, 1.0]))
    tensor(0.4100)
    """

    pos_weight: Tensor | None
    _function = "binary_cross_entropy_with_logits"
    _settings = ("weight", "pos_weight")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)


class KLDivLoss(TargetLoss):
    """The pointwise Kullback-Leibler divergence target * (log(target) - input), for log-probabilities `input`.

    With `log_target` the target is also given as log-probabilities. Reduction `"batchmean"` divides the
    sum by the batch size, the mathematical definition; `"mean"` divides it by the number of elements.

    >>> import cygrad
    >>> kl_loss = cygrad.nn.KLDivLoss(reduction="batchmean")
    >>> kl_loss(cygrad.tensor([[0.5, 0.5]]).log(), cygrad.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    _function = "kl_div"
    _settings = ("log_target",)

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target


class NLLLoss(WeightedLoss):
    """The negative log-likelihood: -weight[class] * input[class] for each sample, then reduced.

    Input of shape (C) or (N, C, d1, ...) holds log-probabilities, target () or (N, d1, ...) class
    indices. `weight` (C) scales classes; samples of class `ignore_index` are ignored.

    >>> import cygrad
    >>> log_probabilities = cygrad.tensor([[0.5, 0.5], [0.9, 0.1]]).log()
    >>> cygrad.nn.NLLLoss()(log_probabilities, cygrad.tensor([0, 0]))
    tensor(0.3993)
    """

    _function = "nll_loss"
    _settings = ("weight", "ignore_index")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index


class NLLLoss2d(NLLLoss):
    """Deprecated alias of `NLLLoss`.

    Warns with FutureWarning.

    >>> import cygrad
    >>> from cygrad import nn
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     loss = nn.NLLLoss2d()
    >>> loss(cygrad.zeros(1, 2, 1, 1).log_softmax(1), cygrad.tensor([[[1]]]))
    tensor(0.6931)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
        )
        super().__init__(*args, **kwargs)


class CrossEntropyLoss(WeightedLoss):
    """Log-softmax and `NLLLoss` in one: the usual loss of a classifier.

    log(sum over classes of exp(input)) - input[class] for each sample, then reduced.

    Input of shape (C) or (N, C, d1, ...) holds unnormalized scores (logits); target either () or
    (N, d1, ...) class indices, or class probabilities of input's shape. `label_smoothing` mixes the
    target with the uniform distribution.

    >>> import cygrad
    >>> cygrad.nn.CrossEntropyLoss()(cygrad.zeros(3, 10), cygrad.tensor([1, 2, 3]))
    tensor(2.3026)
    """

    _function = "cross_entropy"
    _settings = ("weight", "ignore_index", "label_smoothing")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compare `input` with `target`.

        `input` has the shape (N, C, ...) or (C,); `target` holds classes, without the dimension C, or probabilities,
        with it. Raises as `nn.functional.cross_entropy` does.

        >>> import cygrad
        >>> from cygrad import nn
        >>> loss = nn.CrossEntropyLoss()
        >>> loss(cygrad.tensor([[2.0, 0.0], [0.0, 2.0]]), cygrad.tensor([0, 0]))
        tensor(1.1269)
        """
        return F.cross_entropy(
            input,
            target,
            self._buffers["weight"],
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class PoissonNLLLoss(Loss):
    """The Poisson loss exp(input) - target * input, where `input` is the logarithm of the rate.

    Without `log_input` the input is the rate itself: input - target * log(input + eps). `full`
    adds Stirling's approximation of log(target!) where target > 1.

    >>> import cygrad
    >>> cygrad.nn.PoissonNLLLoss()(cygrad.tensor([0.0, 1.0]), cygrad.tensor([1.0, 2.0]))
    tensor(0.8591)
    """

    _function = "poisson_nll_loss"
    _settings = ("log_input", "full", "eps")

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Compare rates (or log-rates) with counts.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.PoissonNLLLoss()(cygrad.tensor([0.0]), cygrad.tensor([2.0]))
        tensor(1.)
        """
        return self._call(log_input, target)


class GaussianNLLLoss(Loss):
    """The Gaussian loss (log(var) + (input - target)**2 / var) / 2.

    Variances are clamped to at least `eps`; `full` adds the constant log(2 pi) / 2.

    >>> import cygrad
    >>> cygrad.nn.GaussianNLLLoss()(cygrad.tensor([1.0, 2.0]), cygrad.zeros(2), cygrad.ones(2))
    tensor(1.2500)
    """

    _function = "gaussian_nll_loss"
    _settings = ("full", "eps")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Compare means with samples; `var` may have size 1 in the last dimension, lack it, or be a number.

        Raises ValueError for a `var` of another size or with negative entries.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.GaussianNLLLoss()(cygrad.tensor([1.0]), cygrad.tensor([3.0]), cygrad.tensor([2.0]))
        tensor(1.3466)
        """
        return self._call(input, target, var)


class CTCLoss(Loss):
    """Connectionist temporal classification: minus the log-probability of label sequences, summed over all alignments.

    -log(sum over alignments a of exp(sum over t of log_probs[t, a[t]])) for each sample, then reduced.

    `log_probs` has the shape (T, N, C) or (T, C), `targets` (N, S) or all targets concatenated; the lengths give the
    valid part of each. `blank` is the class between labels; `zero_infinity` zeroes infinite losses (of targets too long
    for their input) and their gradients.

    >>> import cygrad
    >>> log_probabilities = cygrad.full((2, 1, 2), 0.5).log()
    >>> cygrad.nn.CTCLoss()(log_probabilities, cygrad.tensor([[1]]), cygrad.tensor([2]), cygrad.tensor([1]))
    tensor(0.2877)
    """

    _function = "ctc_loss"
    _settings = ("blank", "zero_infinity")

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """Compare log-probabilities of classes in time with sequences of labels.

        `log_probs` has the shape (T, N, C) or (T, C), `targets` (N, S) or the sum of the lengths. Raises as
        `nn.functional.ctc_loss` does.

        >>> import cygrad
        >>> from cygrad import nn
        >>> log_probs = cygrad.zeros(4, 1, 3).log_softmax(2)
        >>> nn.CTCLoss()(log_probs, cygrad.tensor([[1, 2]]), (4,), (2,))
        tensor(0.8432)
        """
        return self._call(log_probs, targets, input_lengths, target_lengths)
