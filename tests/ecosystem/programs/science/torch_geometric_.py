"""A graph convolutional network learns the two halves of a graph."""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool

torch.manual_seed(0)
pairs = [(a, b) for half in (range(5), range(5, 10)) for a in half for b in half if a != b]
graph = Data(x=torch.eye(10), edge_index=torch.tensor(pairs).t().contiguous(), y=torch.arange(10) // 5)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(10, 8), GCNConv(8, 2)

    def forward(self, data):
        return self.second(self.first(data.x, data.edge_index).relu(), data.edge_index)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
losses = []
for _ in range(40):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(graph), graph.y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.2 * losses[0] and net(graph).argmax(1).equal(graph.y)
(batch,) = DataLoader([graph, graph], batch_size=2)
assert batch.num_graphs == 2 and global_mean_pool(batch.x, batch.batch).shape == (2, 10)
