"""How much of the communication is hidden behind backward, with the clocks of network and processor simulated.

A machine for tests has too few cores to show it. Here each gradient takes a time in proportion to its size, and a
transfer its latency and its bytes by the bandwidth, one after the other.
"""

import pytest

import cygrad as torch
import cygrad.distributed as dist
from cygrad import nn
from cygrad.distributed._c10d.engines.engine import Handle
from cygrad.distributed._c10d.engines.single import Single
from cygrad.nn.parallel import DistributedDataParallel

PER_BYTE = 4e-9  # seconds of backward
LATENCY, BANDWIDTH = 25e-6, 0.5e9  # of a network on which reductions take about half as long as backward


class Network(Single):
    """All-reduces of a group of one that end at a time."""

    def __init__(self):
        super().__init__()
        self.now = self.free = self.busy = 0.0
        self.sizes = []

    def all_reduce(self, buffer, op):
        lasts = LATENCY + buffer.nbytes / BANDWIDTH
        self.free = max(self.now, self.free) + lasts
        self.busy += lasts
        self.sizes.append(buffer.nbytes)
        return Transfer(self, self.free)


class Transfer(Handle):
    def __init__(self, network, end):
        self.network, self.end = network, end

    def test(self):
        return self.network.now >= self.end

    def wait(self, timeout=None, watch=None):
        self.network.now = max(self.network.now, self.end)


class Transformer(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.words, self.places = nn.Embedding(64, width), nn.Parameter(torch.zeros(4, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True) for _ in range(depth)
        )
        self.out = nn.Linear(width, 64)

    def forward(self, x):
        h = self.words(x) + self.places
        for layer in self.layers:
            h = layer(h)
        return self.out(h)


def hidden(group, model, **options):
    """The share of communication that is hidden in each of two passes, and the sizes of the transfers."""
    network = Network()
    for parameter in model.parameters():

        def computed(parameter):
            network.now += parameter.numel() * parameter.element_size() * PER_BYTE

        parameter.register_post_accumulate_grad_hook(computed)
    wrapped = DistributedDataParallel(model, **options)
    group._engines["cpu"] = network
    backward = sum(p.numel() * p.element_size() for p in model.parameters()) * PER_BYTE
    shares = []
    for _ in range(2):
        network.now = network.free = network.busy = 0.0
        network.sizes.clear()
        wrapped(torch.arange(4).view(1, 4)).sum().backward()
        shares.append(1 - (network.now - backward) / network.busy)
    return shares, list(network.sizes)


def test_more_than_half_is_hidden(group):
    model = Transformer(256, 4)
    shares, sizes = hidden(group, model)
    assert min(shares) > 0.7 and len(sizes) >= 6, (shares, sizes)


@pytest.mark.parametrize("width", [64, 256])
def test_nothing_is_hidden_by_one_bucket(group, width):
    shares, sizes = hidden(group, Transformer(width, 2), bucket_cap_mb_list=[1000.0])
    assert shares == pytest.approx([0, 0], abs=1e-9) and len(sizes) == 1


def test_a_cap_of_the_users_own_is_kept(group):
    _, sizes = hidden(group, Transformer(256, 4), bucket_cap_mb=25)
    assert len(sizes) == 2  # the first of 1 MB, and the rest
    wrapped = DistributedDataParallel(nn.Linear(1000, 300))  # 1.2 MB
    assert wrapped.bucket_bytes_cap == 25 * 2**20 and len(wrapped._reducer.buckets) <= 2
    assert dist.get_world_size() == 1
