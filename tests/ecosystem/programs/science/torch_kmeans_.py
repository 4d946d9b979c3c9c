"""Clusters by k-means, also soft and with constraints on their sizes, several problems at once."""

import torch
from torch_kmeans import ConstrainedKMeans, KMeans, SoftKMeans

torch.manual_seed(0)
centers = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
x = (centers.repeat(10, 1) + 0.2 * torch.randn(30, 2)).expand(2, 30, 2).contiguous()
for init in ("rnd", "k-means++"):
    model = KMeans(n_clusters=3, init_method=init, num_init=4, seed=1, verbose=False)
    result = model(x)
    print(init, result.inertia.sum().item())
    for labels in result.labels:
        assert all(len(labels[i::3].unique()) == 1 for i in range(3)) and len(labels.unique()) == 3
soft = SoftKMeans(n_clusters=3, seed=1, verbose=False)
y = x.clone().requires_grad_()
found = soft(y)
found.centers.square().sum().backward()
print("soft", found.centers.square().sum().item(), y.grad.norm().item())
sizes = ConstrainedKMeans(n_clusters=3, seed=1, verbose=False)(x, weights=torch.full((2, 30), 1 / 12))
assert (torch.bincount(sizes.labels[0]) <= 12).all()
