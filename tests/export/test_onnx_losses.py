"""Losses as ONNX models, for each reduction and two batch sizes."""

import pytest
from export.onnx_support import check

import cygrad as torch
from cygrad import nn
from cygrad.nn import functional as F

pytest.importorskip("onnxruntime", reason="needs cygrad[onnx]")
pytest.importorskip("onnx", reason="needs cygrad[onnx]")

CLASSES = 5


def real(n):
    return torch.randn(n, CLASSES)


def positive(n):
    return torch.rand(n, CLASSES) + 0.1


def share(n):
    return torch.rand(n, CLASSES) * 0.98 + 0.01


def sign(n):
    return torch.randint(2, (n, CLASSES)) * 2.0 - 1


def signs(n):
    return torch.randint(2, (n,)) * 2 - 1


def label(n):
    return torch.arange(n) * 3 % CLASSES


def some_labels(n):
    return torch.tensor([[3, 0, -1, 1, 2], [1, -1, 0, 4, 2], [0, 1, 2, 3, 4], [-1, 0, 1, 2, 3], [4, 2, 0, -1, 1]][:n])


def logs(n):
    return torch.randn(n, CLASSES).log_softmax(1)


def pictures(n):
    return torch.randn(n, CLASSES, 2, 3)


def labels_of_pictures(n):
    return torch.arange(n * 6).view(n, 2, 3) % CLASSES


def shares_of_pictures(n):
    return torch.randn(n, CLASSES, 2, 3).softmax(1)


WEIGHT = torch.tensor([0.5, 1.0, 2.0, 0.25, 1.5])

LOSSES = {  # the layer, and what makes its arguments for a batch
    "MSELoss": (nn.MSELoss, {}, (real, real)),
    "L1Loss": (nn.L1Loss, {}, (real, real)),
    "SmoothL1Loss": (nn.SmoothL1Loss, {"beta": 0.7}, (real, real)),
    "SmoothL1Loss-0": (nn.SmoothL1Loss, {"beta": 0.0}, (real, real)),
    "HuberLoss": (nn.HuberLoss, {"delta": 0.7}, (real, real)),
    "BCELoss": (nn.BCELoss, {"weight": WEIGHT}, (share, share)),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, {"weight": WEIGHT, "pos_weight": WEIGHT + 1}, (real, share)),
    "BCEWithLogitsLoss-plain": (nn.BCEWithLogitsLoss, {}, (real, share)),
    "KLDivLoss": (nn.KLDivLoss, {}, (logs, share)),
    "KLDivLoss-logs": (nn.KLDivLoss, {"log_target": True}, (logs, logs)),
    "PoissonNLLLoss": (nn.PoissonNLLLoss, {"full": True}, (real, lambda n: 4 * positive(n))),
    "PoissonNLLLoss-plain": (nn.PoissonNLLLoss, {"log_input": False}, (positive, positive)),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, {"full": True}, (real, real, positive)),
    "GaussianNLLLoss-one": (nn.GaussianNLLLoss, {}, (real, real, lambda n: torch.rand(n) + 0.1)),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, {"margin": 0.7}, (real, sign)),
    "SoftMarginLoss": (nn.SoftMarginLoss, {}, (real, sign)),
    "MarginRankingLoss": (nn.MarginRankingLoss, {"margin": 0.3}, (real, real, sign)),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, {"margin": 0.1}, (real, real, signs)),
    "TripletMarginLoss": (nn.TripletMarginLoss, {"margin": 0.8}, (real, real, real)),
    "TripletMarginLoss-swap": (nn.TripletMarginLoss, {"swap": True, "p": 1}, (real, real, real)),
    "MultiMarginLoss": (nn.MultiMarginLoss, {"margin": 0.8}, (real, label)),
    "MultiMarginLoss-2": (nn.MultiMarginLoss, {"p": 2, "weight": WEIGHT}, (real, label)),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, {"weight": WEIGHT}, (real, share)),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, {}, (real, some_labels)),
    "NLLLoss": (nn.NLLLoss, {"weight": WEIGHT, "ignore_index": 3}, (logs, label)),
    "NLLLoss-pictures": (nn.NLLLoss, {}, (lambda n: pictures(n).log_softmax(1), labels_of_pictures)),
    "CrossEntropyLoss": (nn.CrossEntropyLoss, {}, (real, label)),
    "CrossEntropyLoss-smooth": (
        nn.CrossEntropyLoss,
        {"weight": WEIGHT, "ignore_index": 3, "label_smoothing": 0.1},
        (real, label),
    ),
    "CrossEntropyLoss-shares": (
        nn.CrossEntropyLoss,
        {"weight": WEIGHT, "label_smoothing": 0.1},
        (real, lambda n: real(n).softmax(1)),
    ),
    "CrossEntropyLoss-pictures": (
        nn.CrossEntropyLoss,
        {"weight": WEIGHT, "label_smoothing": 0.2},
        (pictures, labels_of_pictures),
    ),
    "CrossEntropyLoss-shares-of-pictures": (nn.CrossEntropyLoss, {"weight": WEIGHT}, (pictures, shares_of_pictures)),
    "LinearCrossEntropyLoss": (
        nn.LinearCrossEntropyLoss,
        {"in_features": CLASSES, "num_classes": CLASSES, "bias": True, "weight": WEIGHT, "label_smoothing": 0.1},
        (real, label),
    ),
}


@pytest.mark.filterwarnings("ignore:reduction")  # the mean of KLDivLoss is not the divergence
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_loss(name, reduction):
    layer, options, makers = LOSSES[name]
    args, others = (tuple(make(n) for make in makers) for n in (3, 5))
    check(layer(reduction=reduction, **options), args, ({0: "batch"},) * len(args), others)


def test_other_reductions_and_weights():
    x, y = (real(3), share(3)), (real(5), share(5))
    batch = ({0: "batch"},) * 2
    check(nn.KLDivLoss(reduction="batchmean"), x, batch, y)
    check(lambda a, b: F.mse_loss(a, b, weight=WEIGHT.expand(a.size(0), CLASSES)), x, batch, y)
    check(lambda a, b: F.l1_loss(a, b, weight=WEIGHT.expand(a.size(0), CLASSES), reduction="sum"), x, batch, y)
    check(lambda a, b: F.huber_loss(a, b, "mean", 0.5, weight=WEIGHT.expand(a.size(0), CLASSES)), x, batch, y)
    check(lambda a: F.cross_entropy(a[0], torch.tensor(2)), x[:1], batch[:1], y[:1])
    check(lambda a: F.nll_loss(a[0], torch.tensor(2), WEIGHT), x[:1], batch[:1], y[:1])


def test_layers_without_a_test():
    known = {name.partition("-")[0] for name in LOSSES}
    layers = {name for name, kind in vars(nn).items() if isinstance(kind, type) and name.endswith("Loss")}
    # the first takes a Python function, the others have loops over the labels or over clusters
    assert layers - known == {"TripletMarginWithDistanceLoss", "CTCLoss", "AdaptiveLogSoftmaxWithLoss"}
