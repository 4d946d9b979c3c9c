"""Metrics of classification and regression, over several batches and in a collection."""

import torch
from torchmetrics import MeanSquaredError, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC, MulticlassConfusionMatrix

metrics = MetricCollection(
    {
        "accuracy": MulticlassAccuracy(num_classes=3, average="micro"),
        "confusion": MulticlassConfusionMatrix(num_classes=3),
        "auroc": MulticlassAUROC(num_classes=3),
    },
    compute_groups=False,
)
scores = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
targets = torch.tensor([0, 1, 2, 2])
for part in (slice(0, 2), slice(2, 4)):
    metrics.update(scores[part], targets[part])
values = metrics.compute()
assert values["accuracy"] == 0.75 and values["confusion"].tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
print("auroc", values["auroc"].item())
error = MeanSquaredError()
assert error(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0])) == 2
