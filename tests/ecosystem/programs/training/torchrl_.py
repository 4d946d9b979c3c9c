"""Reinforcement learning by TorchRL: advantages, and the losses of PPO, SAC and DQN, on steps from a replay buffer."""

import torch
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torch import nn
from torchrl.data import Bounded, LazyTensorStorage, OneHot, TensorDictReplayBuffer
from torchrl.modules import MLP, ProbabilisticActor, QValueActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, DQNLoss, SACLoss, SoftUpdate
from torchrl.objectives.value import GAE


def actor():
    network = nn.Sequential(MLP(in_features=5, out_features=4, num_cells=[16]), NormalParamExtractor())
    module = TensorDictModule(network, in_keys=["observation"], out_keys=["loc", "scale"])
    return ProbabilisticActor(module, in_keys=["loc", "scale"], distribution_class=TanhNormal, return_log_prob=True)


def critic(keys, size):
    return ValueOperator(MLP(in_features=size, out_features=1, num_cells=[16]), in_keys=keys)


def steps():
    x = torch.randn(8, 6, 5)
    next_x = x + 0.1 * torch.randn(8, 6, 5)
    ends = torch.zeros(8, 6, 1, dtype=torch.bool)
    after = {"observation": next_x, "reward": next_x[..., :1], "done": ends, "terminated": ends}
    return TensorDict({"observation": x, "next": after}, [8, 6])


def train(loss, data, count=20):
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-2)
    totals = []
    for _ in range(count):
        torch.manual_seed(2)
        parts = loss(data)
        total = sum(value for key, value in parts.items() if key.startswith("loss"))
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        totals.append(total.item())
    return totals


torch.manual_seed(0)
policy, value = actor(), critic(["observation"], 5)
data = steps()
with torch.no_grad():
    policy(data)
GAE(gamma=0.9, lmbda=0.95, value_network=value)(data)
print(data["advantage"].mean().item(), data["value_target"].mean().item())
losses = train(ClipPPOLoss(policy, value), data)
print("PPO", losses[0], losses[-1])
assert losses[-1] < losses[0]

loss = SACLoss(actor(), critic(["observation", "action"], 7), action_spec=Bounded(-1, 1, (2,)))
losses = train(loss, data.select("observation", "action", "next"), 5)
print("SAC", losses[0], losses[-1])
SoftUpdate(loss, eps=0.9).step()

data = steps()
data["action"] = nn.functional.one_hot(torch.randint(0, 3, (8, 6)), 3)
buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(48), batch_size=32)
buffer.extend(data.reshape(-1))
network = MLP(in_features=5, out_features=3, num_cells=[16])
loss = DQNLoss(QValueActor(network, in_keys=["observation"], spec=OneHot(3)), action_space=OneHot(3))
losses = train(loss, buffer.sample())
print("DQN", losses[0], losses[-1])
assert losses[-1] < losses[0]
