"""Q-learning from a replay memory, and steps of a clipped policy gradient."""

import math, random
from collections import namedtuple, deque
from itertools import count
import torch, torch.nn as nn, torch.optim as optim, torch.nn.functional as F
import numpy as np

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n):
        return random.sample(self.memory, n)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.layer1 = nn.Linear(n_obs, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, n_act)

    def forward(self, x):
        return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))


class Env:
    def reset(self):
        self.x, self.v, self.t = random.uniform(-0.1, 0.1), 0.0, 0
        return np.array([self.x, self.v])

    def step(self, a):
        self.v += (a - 1) * 0.1 + 0.02 * self.x
        self.x += self.v
        self.t += 1
        return np.array([self.x, self.v]), 1.0 - abs(self.x), abs(self.x) > 1, self.t >= 20


env = Env()
policy, target = DQN(2, 3), DQN(2, 3)
target.load_state_dict(policy.state_dict())
optimizer = optim.AdamW(policy.parameters(), lr=1e-3, amsgrad=True)
memory = ReplayMemory(1000)
steps = 0


def select_action(state):
    global steps
    eps = 0.05 + 0.85 * math.exp(-steps / 100)
    steps += 1
    if random.random() > eps:
        with torch.no_grad():
            return policy(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(3)]], dtype=torch.long)


def optimize():
    if len(memory) < 32:
        return None
    batch = Transition(*zip(*memory.sample(32)))
    mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    nxt = torch.cat([s for s in batch.next_state if s is not None])
    state, action, reward = map(torch.cat, (batch.state, batch.action, batch.reward))
    q = policy(state).gather(1, action)
    v = torch.zeros(32)
    with torch.no_grad():
        v[mask] = target(nxt).max(1).values
    loss = nn.SmoothL1Loss()(q, (v * 0.99 + reward).unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    return loss.item()


for ep in range(12):
    state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
    total = 0.0
    for t in count():
        action = select_action(state)
        obs, r, term, trunc = env.step(action.item())
        reward = torch.tensor([r], dtype=torch.float32)
        total += r
        next_state = None if term else torch.tensor(obs, dtype=torch.float32).unsqueeze(0)
        memory.push(state, action, next_state, reward)
        state = next_state
        loss = optimize()
        tsd, psd = target.state_dict(), policy.state_dict()
        for key in psd:
            tsd[key] = psd[key] * 0.005 + tsd[key] * 0.995
        target.load_state_dict(tsd)
        if term or trunc:
            break
    if ep % 3 == 2:
        print(ep, t, round(total, 3), None if loss is None else round(loss, 5))
# PPO-like
from torch.distributions import Categorical

pi = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 3))
vf = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
opt = optim.Adam([{"params": pi.parameters(), "lr": 3e-3}, {"params": vf.parameters(), "lr": 1e-2}])
obs = torch.randn(64, 2)
dist = Categorical(logits=pi(obs))
act = dist.sample()
old = dist.log_prob(act).detach()
ret = -obs[:, 0].abs() + act * 0.1
for _ in range(5):
    dist = Categorical(logits=pi(obs))
    ratio = torch.exp(dist.log_prob(act) - old)
    adv = ret - vf(obs).squeeze(-1).detach()
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    loss = (
        -torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv).mean()
        + 0.5 * F.mse_loss(vf(obs).squeeze(-1), ret)
        - 0.01 * dist.entropy().mean()
    )
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*pi.parameters(), *vf.parameters()], 0.5)
    opt.step()
    print(f"{loss:.5f}", end=" ")
print()
