"""Modules that hold the settings of a function: how to create and call each one.

Rows are expressions over `nn`, `torch` and the tensors of `tensors`, so that one table serves the tests with and
without PyTorch. The third column is the equivalent function call, where `weight` is the module's weight.
"""

import numpy as np

ACTIVATIONS = [
    ("ReLU()", "relu(x)"),
    ("ReLU6()", "relu6(x)"),
    ("LeakyReLU()", "leaky_relu(x)"),
    ("LeakyReLU(0.2)", "leaky_relu(x, 0.2)"),
    ("PReLU()", "prelu(x, weight)"),
    ("PReLU(4, 0.1)", "prelu(x, weight)"),
    ("RReLU(0.2, 0.2)", "rrelu(x, 0.2, 0.2, True)"),
    ("RReLU().eval()", "rrelu(x)"),
    ("ELU()", "elu(x)"),
    ("ELU(0.5)", "elu(x, 0.5)"),
    ("SELU()", "selu(x)"),
    ("CELU()", "celu(x)"),
    ("CELU(2)", "celu(x, 2)"),
    ("GELU()", "gelu(x)"),
    ("GELU('tanh')", "gelu(x, approximate='tanh')"),
    ("SiLU()", "silu(x)"),
    ("Mish()", "mish(x)"),
    ("Softplus()", "softplus(x)"),
    ("Softplus(2, 1)", "softplus(x, 2, 1)"),
    ("Softshrink()", "softshrink(x)"),
    ("Softshrink(0.25)", "softshrink(x, 0.25)"),
    ("Hardshrink()", "hardshrink(x)"),
    ("Hardshrink(1)", "hardshrink(x, 1)"),
    ("Tanhshrink()", "tanhshrink(x)"),
    ("Hardtanh()", "hardtanh(x)"),
    ("Hardtanh(-0.5, 2)", "hardtanh(x, -0.5, 2)"),
    ("Hardsigmoid()", "hardsigmoid(x)"),
    ("Hardswish()", "hardswish(x)"),
    ("LogSigmoid()", "logsigmoid(x)"),
    ("Softsign()", "softsign(x)"),
    ("Threshold(0.1, 20)", "threshold(x, 0.1, 20)"),
    ("GLU()", "glu(x)"),
    ("GLU(1)", "glu(x, 1)"),
    ("Sigmoid()", "sigmoid(x)"),
    ("Tanh()", "tanh(x)"),
    ("Softmax(1)", "softmax(x, 1)"),
    ("Softmin(dim=1)", "softmin(x, 1)"),
    ("LogSoftmax(-1)", "log_softmax(x, -1)"),
    ("Softmax2d()", "softmax(x, 1)"),
    ("PairwiseDistance()", "pairwise_distance(a, b)"),
    ("PairwiseDistance(1, 0.01, True)", "pairwise_distance(a, b, 1, 0.01, True)"),
    ("CosineSimilarity()", "cosine_similarity(a, b)"),
    ("CosineSimilarity(0, 0.1)", "cosine_similarity(a, b, 0, 0.1)"),
]

# Activations with an in-place option.
IN_PLACE = (
    "ReLU() ReLU6() LeakyReLU(0.2) RReLU(0.2,0.2) ELU() SELU() CELU() SiLU() Mish() Hardtanh() Hardsigmoid() "
    "Hardswish() Threshold(0.1,20)"
).split()

LOSSES = [
    ("L1Loss()", "l1_loss(a, b)"),
    ("MSELoss()", "mse_loss(a, b)"),
    ("SmoothL1Loss()", "smooth_l1_loss(a, b)"),
    ("SmoothL1Loss(beta=0.5)", "smooth_l1_loss(a, b, beta=0.5)"),
    ("HuberLoss()", "huber_loss(a, b)"),
    ("HuberLoss(delta=0.5)", "huber_loss(a, b, delta=0.5)"),
    ("BCELoss()", "binary_cross_entropy(p, q)"),
    ("BCELoss(w)", "binary_cross_entropy(p, q, w)"),
    ("BCEWithLogitsLoss()", "binary_cross_entropy_with_logits(a, q)"),
    ("BCEWithLogitsLoss(w, pos_weight=v)", "binary_cross_entropy_with_logits(a, q, w, pos_weight=v)"),
    ("KLDivLoss()", "kl_div(a, q)"),
    ("KLDivLoss(log_target=True)", "kl_div(a, b, log_target=True)"),
    ("NLLLoss(w, ignore_index=1)", "nll_loss(a, y, w, ignore_index=1)"),
    ("CrossEntropyLoss(w, label_smoothing=0.1)", "cross_entropy(a, y, w, label_smoothing=0.1)"),
    ("PoissonNLLLoss()", "poisson_nll_loss(a, k)"),
    ("PoissonNLLLoss(False, True, eps=1e-3)", "poisson_nll_loss(p, k, False, True, eps=1e-3)"),
    ("GaussianNLLLoss()", "gaussian_nll_loss(a, b, p)"),
    ("GaussianNLLLoss(full=True, eps=0.5)", "gaussian_nll_loss(a, b, p, True, 0.5)"),
    ("HingeEmbeddingLoss()", "hinge_embedding_loss(a, s)"),
    ("HingeEmbeddingLoss(0.5)", "hinge_embedding_loss(a, s, 0.5)"),
    ("MarginRankingLoss()", "margin_ranking_loss(a, b, s)"),
    ("MarginRankingLoss(0.5)", "margin_ranking_loss(a, b, s, 0.5)"),
    ("MultiMarginLoss()", "multi_margin_loss(a, y)"),
    ("MultiMarginLoss(2, 0.5, w)", "multi_margin_loss(a, y, 2, 0.5, w)"),
    ("MultiLabelMarginLoss()", "multilabel_margin_loss(a, labels)"),
    ("MultiLabelSoftMarginLoss()", "multilabel_soft_margin_loss(a, q)"),
    ("MultiLabelSoftMarginLoss(w)", "multilabel_soft_margin_loss(a, q, w)"),
    ("SoftMarginLoss()", "soft_margin_loss(a, s)"),
    ("CosineEmbeddingLoss()", "cosine_embedding_loss(a, b, t)"),
    ("CosineEmbeddingLoss(0.3)", "cosine_embedding_loss(a, b, t, 0.3)"),
    ("TripletMarginLoss()", "triplet_margin_loss(a, b, c)"),
    ("TripletMarginLoss(2.0, 1.0, 1e-3, True)", "triplet_margin_loss(a, b, c, 2.0, 1.0, 1e-3, True)"),
    ("TripletMarginWithDistanceLoss()", "triplet_margin_with_distance_loss(a, b, c)"),
    (
        "TripletMarginWithDistanceLoss(distance_function=far, margin=2.0, swap=True)",
        "triplet_margin_with_distance_loss(a, b, c, distance_function=far, margin=2.0, swap=True)",
    ),
    ("CTCLoss()", "ctc_loss(logs, words, long, short)"),
    ("CTCLoss(1, zero_infinity=True)", "ctc_loss(logs, words, long, short, 1, zero_infinity=True)"),
]

REDUCTIONS = ("mean", "sum", "none")


def tensors(library):
    """The tensors that the expressions refer to, equal in both libraries; a, b, c, p, x and logs require grad."""
    random = np.random.default_rng(0)
    found = {name: random.standard_normal((3, 4)) for name in "abc"}
    found["x"] = random.standard_normal((2, 4, 3, 2))
    found["p"] = random.uniform(0.1, 0.9, (3, 4))
    logs = random.standard_normal((5, 2, 4))
    found["logs"] = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
    found = {name: library.from_numpy(array).requires_grad_() for name, array in found.items()}
    constants = {
        "q": random.uniform(0.1, 0.9, (3, 4)),
        "w": np.array([0.5, 1.0, 2.0, 4.0]),
        "v": np.array([3.0, 1.0, 0.5, 2.0]),
        "k": random.poisson(3.0, (3, 4)).astype(np.float64),
        "s": random.choice([-1.0, 1.0], (3, 4)),
        "t": np.array([1.0, -1.0, -1.0]),
        "y": np.array([2, 0, 3]),
        "labels": np.array([[3, 0, -1, 1], [1, -1, 0, 2], [0, 1, 2, -1]]),
        "words": np.array([[2, 3], [3, 2]]),
        "long": np.array([5, 4]),
        "short": np.array([2, 1]),
    }
    return found | {name: library.from_numpy(array) for name, array in constants.items()} | {"far": far}


def far(first, second):
    return (first - second).abs().sum(-1)


def arguments(call):
    """The names of the tensors in a function call that are passed to the module."""
    taken = [text.strip() for text in call.partition("(")[2].rstrip(")").split(",")]
    module_takes = {"x", "a", "b", "c", "p", "q", "k", "s", "t", "y", "labels", "logs", "words", "long", "short"}
    return [text for text in taken if text in module_takes]


def with_reduction(text, reduction):
    """The text of a loss or of its function call, with one more argument."""
    head = text[:-1]
    return f"{head}{'' if head.endswith('(') else ', '}reduction={reduction!r})"
