"""Policy gradient with a baseline, Q-learning with a target network, and a clipped policy objective."""

import torch
import numpy as np
import collections
import random
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical, Normal, Bernoulli, MultivariateNormal
from collections import deque, namedtuple

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
rng = np.random.default_rng(5)
random.seed(0)


class Env:
    def __init__(self):
        self.r = np.random.default_rng(1)

    def reset(self):
        self.s = self.r.standard_normal(4)
        self.t = 0
        return self.s.copy()

    def step(self, a):
        self.s = 0.9 * self.s + (0.3 if a else -0.3) + 0.05 * self.r.standard_normal(4)
        self.t += 1
        return self.s.copy(), -float(abs(self.s[0])), self.t >= 10, {}


class AC(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 32)
        self.action_head = nn.Linear(32, 2)
        self.value_head = nn.Linear(32, 1)
        self.saved_actions, self.rewards = [], []
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight, gain=nn.init.calculate_gain("relu"))
                nn.init.constant_(m.bias, 0.0)

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model = AC()
for p in model.parameters():
    p.data.copy_(torch.tensor(rng.uniform(-0.4, 0.4, tuple(p.shape))))
optimizer = optim.Adam(model.parameters(), lr=3e-2)
eps = np.finfo(np.float32).eps.item()
env = Env()
running = 10
for ep in range(10):
    state = env.reset()
    logs, vals, rews, ents = [], [], [], []
    for t in range(1, 100):
        probs, v = model(torch.from_numpy(state).float().unsqueeze(0))
        m = Categorical(probs)
        m.sample()
        action = (torch.as_tensor(rng.random()) < probs[0, 1]).long().view(1)
        logs.append(m.log_prob(action))
        vals.append(v)
        ents.append(m.entropy())
        state, r, done, _ = env.step(action.item())
        rews.append(r)
        if done:
            break
    R = 0
    returns = deque()
    for r in rews[::-1]:
        R = r + 0.99 * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    pl = [-lp * (R - v.item()) for lp, v, R in zip(logs, vals, returns)]
    vl = [F.smooth_l1_loss(v, torch.tensor([[R]])) for v, R in zip(vals, returns)]
    optimizer.zero_grad()
    loss = torch.stack(pl).sum() + torch.stack(vl).sum() - 0.01 * torch.cat(ents).mean()
    loss.backward()
    optimizer.step()
    running = 0.05 * sum(rews) + 0.95 * running
    print(f"Episode {ep}\tLast reward: {sum(rews):.2f}\tAverage reward: {running:.2f}\tloss {loss:.4f}")


# DQN
class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(4, 16)
        self.l2 = nn.Linear(16, 2)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


policy_net, target_net = DQN(), DQN()
for p in policy_net.parameters():
    p.data.copy_(torch.tensor(rng.uniform(-0.4, 0.4, tuple(p.shape))))
print(target_net.load_state_dict(policy_net.state_dict()))
opt = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
mem = deque([], maxlen=1000)
s = env.reset()
s = torch.tensor(s, dtype=torch.float32).unsqueeze(0)
for it in range(60):
    with torch.no_grad():
        a = (
            policy_net(s).max(1)[1].view(1, 1)
            if rng.random() > 0.3
            else torch.tensor([[int(rng.integers(2))]], dtype=torch.long)
        )
    o, r, done, _ = env.step(a.item())
    ns = None if done else torch.tensor(o, dtype=torch.float32).unsqueeze(0)
    mem.append(Transition(s, a, ns, torch.tensor([r])))
    s = ns if ns is not None else torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
    if len(mem) < 16:
        continue
    b = Transition(*zip(*random.sample(mem, 16)))
    mask = torch.tensor(tuple(map(lambda s: s is not None, b.next_state)), dtype=torch.bool)
    nfs = torch.cat([s for s in b.next_state if s is not None])
    q = policy_net(torch.cat(b.state)).gather(1, torch.cat(b.action))
    nv = torch.zeros(16)
    with torch.no_grad():
        nv[mask] = target_net(nfs).max(1).values
    exp = (nv * 0.99) + torch.cat(b.reward)
    loss = nn.SmoothL1Loss()(q, exp.unsqueeze(1))
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    opt.step()
    tsd, psd = target_net.state_dict(), policy_net.state_dict()
    for k in psd:
        tsd[k] = psd[k] * 0.05 + tsd[k] * 0.95
    target_net.load_state_dict(tsd)
    if it % 10 == 9:
        print(it, f"{loss.item():.5f}")
# PPO-ish continuous
mu = nn.Parameter(torch.zeros(2))
ls = nn.Parameter(torch.zeros(2))
o2 = torch.optim.SGD([mu, ls], lr=0.01)
acts = torch.tensor(rng.standard_normal((32, 2))).float()
adv = torch.tensor(rng.standard_normal(32)).float()
old = Normal(mu.detach().clone(), ls.detach().exp()).log_prob(acts).sum(-1)
for _ in range(4):
    d = Normal(mu, ls.exp())
    ratio = (d.log_prob(acts).sum(-1) - old).exp()
    l = -torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv).mean() - 0.01 * d.entropy().sum(-1).mean()
    o2.zero_grad()
    l.backward()
    o2.step()
    print(f"{l:.5f}")
mvn = MultivariateNormal(torch.zeros(2), torch.eye(2))
print(mvn.log_prob(torch.ones(2)), Bernoulli(logits=torch.tensor(0.3)).entropy())
