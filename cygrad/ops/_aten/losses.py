"""Losses whose reduction is a code: 0 for none, 1 for the mean, 2 for the sum."""

import cygrad
from cygrad._ops.loss import classifier_losses, distribution_losses, margin_losses, pointwise_losses
from cygrad._ops.loss.reductions import CODES
from cygrad.ops._aten.table import aten, own

_REDUCTIONS = {code: name for name, code in CODES.items()}


def reduction_of(code):
    """Return the word for the code of a reduction."""
    return _REDUCTIONS.get(code, "none")


def _loss(function, name, arguments):
    """Return the form of a loss that takes the code of the reduction, and its arguments in this order."""

    def loss(self, target, *args, **kwargs):
        values = dict(zip(arguments, args)) | kwargs
        code = values.pop("reduction", CODES["mean"])
        return function(self, target, reduction=reduction_of(code), **values)

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"`{name}` with the arguments (self, target, {', '.join(arguments)})."
    return aten(loss)


_loss(pointwise_losses.mse_loss, "mse_loss", ("reduction",))
_loss(pointwise_losses.l1_loss, "l1_loss", ("reduction",))
_loss(pointwise_losses.smooth_l1_loss, "smooth_l1_loss", ("reduction", "beta"))
_loss(pointwise_losses.huber_loss, "huber_loss", ("reduction", "delta"))
_loss(distribution_losses.binary_cross_entropy, "binary_cross_entropy", ("weight", "reduction"))
_loss(
    distribution_losses.binary_cross_entropy_with_logits,
    "binary_cross_entropy_with_logits",
    ("weight", "pos_weight", "reduction"),
)
_loss(margin_losses.soft_margin_loss, "soft_margin_loss", ("reduction",))
_loss(margin_losses.multilabel_margin_loss, "multilabel_margin_loss", ("reduction",))
_loss(margin_losses.multi_margin_loss, "multi_margin_loss", ("p", "margin", "weight", "reduction"))
for _name in ("nll_loss", "nll_loss2d", "nll_loss_nd"):
    _loss(classifier_losses.nll_loss, _name, ("weight", "reduction", "ignore_index"))
_loss(classifier_losses.cross_entropy, "cross_entropy_loss", ("weight", "reduction", "ignore_index", "label_smoothing"))


@aten
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    """Return `nll_loss`, and the total weight of the samples that count; 0 without a reduction."""
    result = own["nll_loss"](self, target, weight, reduction, ignore_index)
    if reduction == CODES["none"]:
        return result, self.new_zeros(())
    counts = target != ignore_index
    if weight is None:
        return result, counts.sum().to(self.dtype)
    return result, (weight[cygrad.where(counts, target, 0)] * counts).sum()


@aten
def nll_loss2d_forward(self, target, weight, reduction, ignore_index):
    """`nll_loss_forward` of images: a class for each point."""
    return nll_loss_forward(self, target, weight, reduction, ignore_index)


@aten
def multilabel_margin_loss_forward(self, target, reduction):
    """Return `multilabel_margin_loss`, and which classes are among the labels."""
    counts = (target >= 0).cumprod(-1) > 0 if target.ndim else target >= 0
    is_label = self.new_zeros(self.shape).reshape(-1, (self.shape or (1,))[-1])
    labels, counts = cygrad.where(counts, target, 0).view(is_label.shape), counts.view(is_label.shape)
    is_label = is_label.scatter_add(-1, labels, counts.to(self.dtype)).clamp(max=1).view(self.shape)
    return own["multilabel_margin_loss"](self, target, reduction), is_label


@aten
def _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    """Return the loss of each sample, and an empty tensor in place of the logarithms of its states."""
    losses = cygrad.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, 0, zero_infinity)
    return losses, losses.new_empty(0)
