"""A skorch classifier in a scikit-learn pipeline and a grid search."""

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier

torch.manual_seed(0)
x, y = make_classification(200, 8, n_informative=5, random_state=0)
x, y = x.astype(np.float32), y.astype(np.int64)


class Net(torch.nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))

    def forward(self, x):
        return self.layers(x)


net = NeuralNetClassifier(Net, criterion=torch.nn.CrossEntropyLoss, max_epochs=20, lr=0.1, verbose=0)
pipeline = make_pipeline(StandardScaler(), net).fit(x, y)
accuracy = pipeline.score(x, y)
losses = pipeline[-1].history[:, "train_loss"]
print("losses", losses[0], losses[-1])
assert losses[-1] < losses[0] and accuracy > 0.75
search = GridSearchCV(net, {"module__width": [4, 16]}, cv=2, refit=False).fit(x, y)
assert search.best_score_ > 0.7
