"""A trainer and an evaluator of ignite, with metrics and events."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, Loss

torch.manual_seed(0)
x = torch.randn(64, 4)
y = (x[:, 0] > 0).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16)
model = torch.nn.Linear(4, 2)
criterion = torch.nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), lr=0.5), criterion)
evaluator = create_supervised_evaluator(model, metrics={"accuracy": Accuracy(), "loss": Loss(criterion)})
losses = []


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(loader)
    losses.append(evaluator.state.metrics["loss"])


trainer.run(loader, max_epochs=10)
print("losses", losses[0], losses[-1])
assert losses[-1] < losses[0] and evaluator.state.metrics["accuracy"] > 0.9
