"""An embedding learns to keep three classes apart."""

import torch
from pytorch_metric_learning import distances, losses, miners

torch.manual_seed(0)
labels = torch.arange(3).repeat_interleave(10)
inputs = torch.randn(30, 5) + 0.5 * torch.nn.functional.one_hot(labels, 5)
model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
criterion = losses.TripletMarginLoss(margin=0.2, distance=distances.CosineSimilarity())
miner = miners.TripletMarginMiner(margin=0.2, type_of_triplets="all")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
found = []
for _ in range(60):
    optimizer.zero_grad()
    embeddings = model(inputs)
    loss = criterion(embeddings, labels, miner(embeddings, labels))
    loss.backward()
    optimizer.step()
    found.append(loss.item())
print("losses", found[0], found[-1])
assert found[-1] < 0.7 * found[0]
