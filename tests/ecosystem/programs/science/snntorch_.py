"""A spiking network learns to fire for one of two inputs."""

import snntorch as snn
import snntorch.functional as SF
import torch
from snntorch import surrogate

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)  # rounding in float32 moves a spike now and then, and all that follows


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 16), torch.nn.Linear(16, 2)
        self.spike1 = snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid())
        self.spike2 = snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid())

    def forward(self, x):
        memory1, memory2 = self.spike1.init_leaky(), self.spike2.init_leaky()
        spikes = []
        for _ in range(15):
            spike, memory1 = self.spike1(self.first(x), memory1)
            spike, memory2 = self.spike2(self.second(spike.to(x.dtype)), memory2)
            spikes.append(spike)
        return torch.stack(spikes)


x = torch.rand(32, 4)
y = (x[:, 0] > x[:, 1]).long()
net, criterion = Net(), SF.ce_count_loss()
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
losses = []
for _ in range(40):
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.8 * losses[0]
