"""Metrics of torcheval, as functions and over batches."""

import torch
from torcheval import metrics
from torcheval.metrics import functional as F

torch.manual_seed(0)
scores, labels = torch.rand(20), torch.randint(2, (20,))
print(
    F.binary_auroc(scores, labels).item(),
    F.binary_auprc(scores, labels).item(),
    F.binary_f1_score(scores, labels).item(),
)
logits, classes = torch.randn(30, 4), torch.randint(4, (30,))
print(
    F.multiclass_accuracy(logits, classes, average="macro", num_classes=4).item(),
    F.topk_multilabel_accuracy(logits, torch.nn.functional.one_hot(classes, 4), k=2).item(),
)
print(F.multiclass_confusion_matrix(logits, classes, 4), F.multiclass_auroc(logits, classes, num_classes=4).item())
print(F.mean_squared_error(logits[:, 0], logits[:, 1]).item(), F.r2_score(logits[:, 0], logits[:, 1]).item())
metric = metrics.MulticlassF1Score(num_classes=4, average="weighted")
for part in range(3):
    metric.update(logits[part * 10 : part * 10 + 10], classes[part * 10 : part * 10 + 10])
other = metrics.MulticlassF1Score(num_classes=4, average="weighted")
other.load_state_dict(metric.state_dict())
print(metric.compute().item(), other.compute().item(), metric.merge_state([other]).compute().item())
perplexity = metrics.Perplexity().update(torch.randn(2, 5, 7), torch.randint(7, (2, 5)))
print(perplexity.compute().item(), F.bleu_score(["a b c d e"], ["a b c d f"], n_gram=2).item())
print(metrics.PeakSignalNoiseRatio().update(torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 4)).compute().item())
print(F.hit_rate(logits, classes, k=2).mean().item(), F.reciprocal_rank(logits, classes).mean().item())
