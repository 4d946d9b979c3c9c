"""Agents that learn by policy gradients, as actor and critic, by Q-learning, and by clipped objectives."""

import random
from collections import deque, namedtuple
from itertools import count

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical, Normal

random.seed(543)
torch.manual_seed(543)
eps = torch.finfo(torch.float32).eps


class Corridor:
    """An agent walks a corridor; the right end pays."""

    def reset(self):
        self.at, self.t = 2, 0
        return self.seen()

    def seen(self):
        return [float(self.at == i) for i in range(5)]

    def step(self, action):
        self.at, self.t = max(0, min(4, self.at + (1 if action == 1 else -1))), self.t + 1
        return self.seen(), float(self.at == 4) - 0.1, self.at == 4 or self.t > 12


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(5, 16)
        self.dropout = nn.Dropout(p=0.6)
        self.affine2 = nn.Linear(16, 2)
        self.saved_log_probs, self.rewards = [], []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.dropout(self.affine1(x)))), dim=1)


env, policy = Corridor(), Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
running = 10
for episode in range(4):
    state, total = env.reset(), 0
    for t in range(1, 50):
        m = Categorical(policy(torch.tensor(state).float().unsqueeze(0)))
        action = m.sample()
        policy.saved_log_probs.append(m.log_prob(action))
        state, reward, done = env.step(action.item())
        policy.rewards.append(reward)
        total += reward
        if done:
            break
    running = 0.05 * total + 0.95 * running
    R, returns = 0, deque()
    for r in policy.rewards[::-1]:
        R = r + 0.99 * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    loss = [-log_prob * R for log_prob, R in zip(policy.saved_log_probs, returns)]
    optimizer.zero_grad()
    loss = torch.cat(loss).sum()
    loss.backward()
    optimizer.step()
    del policy.rewards[:], policy.saved_log_probs[:]
    print(f"episode {episode} length {t} loss {loss:.3f} average {running:.3f}")

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine, self.action_head, self.value_head = nn.Linear(5, 16), nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, x):
        x = F.relu(self.affine(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model, saved, rewards = ActorCritic(), [], []
optimizer = optim.Adam(model.parameters(), lr=3e-2)
for episode in range(4):
    state, done = env.reset(), False
    while not done:
        probs, value = model(torch.tensor(state))
        m = Categorical(probs)
        action = m.sample()
        saved.append(SavedAction(m.log_prob(action), value))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
    R, returns, policy_losses, value_losses = 0, [], [], []
    for r in rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for (log_prob, value), R in zip(saved, returns):
        policy_losses.append(-log_prob * (R - value.item()))
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del rewards[:], saved[:]
    print(f"{len(returns)} {loss.item():.3f}")

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n):
        return random.sample(self.memory, n)

    def __len__(self):
        return len(self.memory)


def q_network():
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))


q, target = q_network(), q_network()
target.load_state_dict(q.state_dict())
optimizer, memory = optim.AdamW(q.parameters(), lr=1e-2, amsgrad=True), ReplayMemory(100)
for episode in range(4):
    state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
    for t in count():
        if random.random() > 0.5:
            with torch.no_grad():
                action = q(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[random.randrange(2)]], dtype=torch.long)
        observation, reward, done = env.step(action.item())
        following = None if done else torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
        memory.push(state, action, following, torch.tensor([reward]))
        state = following
        if len(memory) >= 8:
            batch = Transition(*zip(*memory.sample(8)))
            mask = torch.tensor(tuple(s is not None for s in batch.next_state), dtype=torch.bool)
            follow = torch.cat([s for s in batch.next_state if s is not None])
            values = q(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
            expected = torch.zeros(8)
            with torch.no_grad():
                expected[mask] = target(follow).max(1).values
            expected = expected * 0.99 + torch.cat(batch.reward)
            loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_value_(q.parameters(), 100)
            optimizer.step()
        ours, theirs = q.state_dict(), target.state_dict()
        for key in ours:
            theirs[key] = ours[key] * 0.005 + theirs[key] * (1 - 0.005)
        target.load_state_dict(theirs)
        if done:
            break
    print(episode, t, len(memory), f"{loss.item():.4f}", q(torch.eye(5)).argmax(1))


class Gaussian(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.log_std, self.v = nn.Linear(3, 2), nn.Parameter(torch.zeros(2)), nn.Linear(3, 1)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight, 0.5)
                nn.init.constant_(m.bias, 0.0)

    def distribution(self, x):
        return Normal(self.mu(x), self.log_std.exp().expand(len(x), 2))


agent = Gaussian()
optimizer = optim.Adam(agent.parameters(), lr=3e-3, eps=1e-5)
scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / 10)
states = torch.randn(16, 3)
with torch.no_grad():
    d = agent.distribution(states)
    actions = d.sample()
    logp, v = d.log_prob(actions).sum(-1), agent.v(states).squeeze(-1)
    reward = -(actions - states[:, :2]).pow(2).sum(-1)
    advantages, last = torch.zeros_like(reward), 0
    for t in reversed(range(16)):
        following = 0 if t == 15 else v[t + 1]
        last = reward[t] + 0.99 * following - v[t] + 0.95 * 0.99 * last
        advantages[t] = last
    returns = advantages + v
for epoch in range(3):
    for index in torch.randperm(16).chunk(2):
        d = agent.distribution(states[index])
        logratio = d.log_prob(actions[index]).sum(-1) - logp[index]
        ratio = logratio.exp()
        a = advantages[index]
        a = (a - a.mean()) / (a.std() + 1e-8)
        objective = torch.max(-a * ratio, -a * torch.clamp(ratio, 0.8, 1.2)).mean()
        entropy = d.entropy().sum(-1).mean()
        loss = objective - 0.01 * entropy + 0.5 * F.mse_loss(agent.v(states[index]).squeeze(-1), returns[index])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
    scheduler.step()
    kl = ((ratio - 1) - logratio).mean()
    print(
        f"{loss:.4f} {norm:.4f} {kl:.4f}",
        scheduler.get_last_lr(),
        torch.distributions.kl_divergence(d, Normal(0, 1)).shape,
    )
