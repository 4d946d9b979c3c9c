"""Learn to balance a pole on a cart, with a reward for each step until the pole falls (gymnasium's CartPole).

    python examples/cartpole.py                      # train, print the mean return, save a picture
    python examples/cartpole.py --updates 20 --seed 1 --out /tmp

Policy and value are two small networks. In each update, eight carts run for 32 steps each. The policy then moves in
small steps towards the actions that turned out better than the value predicted (proximal policy optimization). An
episode ends after 500 steps at the latest, which bounds the return. After training, the pole stays up for at least 475
steps on average, which is gymnasium's criterion for solving the task.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

try:
    import gymnasium
    import matplotlib
    from matplotlib import pyplot as plt
    from threadpoolctl import threadpool_limits
    from tqdm import tqdm
except ImportError as error:
    sys.exit(f'{error}\nthis example needs gymnasium, matplotlib and tqdm: pip install ".[examples]"')

import cygrad as torch
from cygrad import nn

CARTS, STEPS, PASSES = 8, 32, 20
DISCOUNT, SMOOTHING, CLIP = 0.98, 0.8, 0.2


class Carts:
    """Several carts that run at the same time; when an episode ends, the cart starts the next one."""

    def __init__(self, count: int, seed: int) -> None:
        self.carts = [gymnasium.make("CartPole-v1") for _ in range(count)]
        self.states = np.stack([cart.reset(seed=seed + i)[0] for i, cart in enumerate(self.carts)])
        self.running = np.zeros(count)
        self.returns: list[float] = []

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Push each cart left (0) or right (1); return the new states, which poles fell, and which episodes ended."""
        fell, ended = np.zeros((2, len(self.carts)), bool)
        reached = np.empty_like(self.states)
        for i, cart in enumerate(self.carts):
            reached[i], reward, fell[i], late, _ = cart.step(int(actions[i]))
            self.running[i] += float(reward)
            ended[i] = fell[i] or late
        self.states = reached.copy()
        for i in np.flatnonzero(ended).tolist():
            self.returns.append(float(self.running[i]))
            self.running[i] = 0
            self.states[i], _ = self.carts[i].reset()
        return reached, fell, ended


def network(outputs: int, gain: float) -> nn.Sequential:
    """Return a network on position, velocity, angle and angular velocity; `gain` scales the last layer's weights."""
    layers = [nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)]
    for layer, size in zip(layers[::2], (2**0.5, 2**0.5, gain)):
        nn.init.orthogonal_(layer.weight, size)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def play(carts: Carts, policy: nn.Module, value: nn.Module) -> list[torch.Tensor]:
    """Run the carts; return states, actions, their log probabilities, advantages and returns."""
    states, actions, logs = [], [], []
    rewards, values, nexts, ends = np.ones((4, STEPS, len(carts.carts)), np.float32)
    with torch.no_grad():
        for step in range(STEPS):
            state = torch.from_numpy(carts.states)
            chances = policy(state).log_softmax(dim=1)
            action = torch.multinomial(chances.exp(), 1)
            reached, fell, ended = carts.step(action.flatten().numpy())
            values[step] = value(state).flatten().numpy()
            # A truncated episode would have continued, so its last state is worth its predicted value.
            nexts[step] = np.where(fell, 0, value(torch.from_numpy(reached)).flatten().numpy())
            ends[step] = ended
            states.append(state)
            actions.append(action)
            logs.append(chances.gather(1, action))
    surprises = rewards + DISCOUNT * nexts - values
    advantages = np.empty_like(surprises)
    behind = np.zeros(len(carts.carts), np.float32)
    for step in reversed(range(STEPS)):
        behind = surprises[step] + DISCOUNT * SMOOTHING * (1 - ends[step]) * behind
        advantages[step] = behind
    found = [torch.from_numpy(array.reshape(-1, 1)) for array in (advantages, advantages + values)]
    return [torch.cat(states), torch.cat(actions), torch.cat(logs), *found]


def learn(
    policy: nn.Module, value: nn.Module, optimizer: torch.optim.Optimizer, played: list[torch.Tensor], clip: float
) -> list[float]:
    """Take optimizer steps on the recorded data; return mean policy loss, value loss and entropy."""
    state, action, before, advantage, result = played
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    losses = []
    for _ in range(PASSES):
        chances = policy(state).log_softmax(dim=1)
        ratio = (chances.gather(1, action) - before).exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()
        error = nn.functional.mse_loss(value(state), result)
        entropy = -(chances.exp() * chances).sum(dim=1).mean()
        optimizer.zero_grad()
        (0.5 * error - gain).backward()
        nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], 0.5)
        optimizer.step()
        losses.append([-gain.item(), error.item(), entropy.item()])
    return np.mean(losses, axis=0).tolist()


@torch.no_grad()
def evaluate(policy: nn.Module, episodes: int, seed: int) -> tuple[list[float], np.ndarray]:
    """Return the returns of new episodes with the greedy policy, and the first cart's path."""
    carts = Carts(episodes, seed)
    path, first = [carts.states[0]], [0.0] * episodes
    done = np.zeros(episodes, bool)
    while not done.all():
        reached, _, ended = carts.step(policy(torch.from_numpy(carts.states)).argmax(dim=1).numpy())
        if not done[0]:
            path.append(reached[0])
        for i in np.flatnonzero(~done):
            first[i] += 1
        done |= ended
    return first, np.stack(path)


@torch.no_grad()
def picture(path: Path, returns: list[float], losses: list[list[float]], policy: nn.Module, ride: np.ndarray) -> None:
    """Draw returns and losses during training, a map of the policy, and one episode."""
    page, ((upper, map_), (lower, cart)) = plt.subplots(2, 2, figsize=(12, 7.5), layout="constrained")
    upper.plot(returns, ".", markersize=3, alpha=0.4, label="episodes")
    if len(returns) >= 50:
        means = np.convolve(returns, np.full(50, 1 / 50), "valid")
        upper.plot(np.arange(49, len(returns)), means, color="C1", label="mean of 50")
    upper.axhline(475, color="gray", linestyle=":", label="475")
    upper.set(title="Training", xlabel="episode", ylabel="return", ylim=(0, 510))
    policy_loss, value_loss, entropy = zip(*losses)
    lower.plot(entropy, color="C2", label="entropy of the policy")
    lower.plot(policy_loss, color="C0", label="loss of the policy")
    lower.set(xlabel="update", ylabel="policy")
    right = lower.twinx()
    right.plot(value_loss, color="C3", label="loss of the value (right)")
    right.set(ylabel="value", yscale="log")
    lower.legend(handles=[*lower.lines, *right.lines], frameon=False)

    angles, speeds = np.meshgrid(np.linspace(-0.2, 0.2, 101), np.linspace(-2, 2, 101))
    states = np.zeros((angles.size, 4), np.float32)
    states[:, 2], states[:, 3] = angles.ravel(), speeds.ravel()
    push = policy(torch.from_numpy(states)).softmax(dim=1)[:, 1].reshape(angles.shape).numpy()
    shown = map_.pcolormesh(np.degrees(angles), speeds, push, cmap="coolwarm", vmin=0, vmax=1, rasterized=True)
    page.colorbar(shown, ax=map_, label="probability of a push to the right")
    map_.set(title="The policy, for a cart at rest", xlabel="angle of the pole, degrees", ylabel="its velocity, rad/s")
    seconds = np.arange(len(ride)) * 0.02
    cart.plot(seconds, ride[:, 0], label="position, m")
    cart.plot(seconds, np.degrees(ride[:, 2]), label="angle, degrees", alpha=0.8)
    cart.set(title="An episode", xlabel="seconds")
    cart.legend(frameon=False)
    for axes in (upper, lower, cart):
        axes.grid(alpha=0.3)
        axes.spines["top"].set_visible(False)
    upper.legend(frameon=False, loc="lower right")
    page.savefig(path, dpi=110)
    plt.close(page)


def run(updates: int, seed: int, out: Path) -> float:
    """Train, print the mean return, save the picture, and return the mean return."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    carts = Carts(CARTS, 1000 * seed)
    policy, value = network(2, 0.01), network(1, 1.0)
    parameters = [*policy.parameters(), *value.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3, eps=1e-5)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=updates)
    losses = []
    bar = tqdm(range(updates), desc="training", unit="update", disable=None)  # None: only on terminals
    for update in bar:
        clip = CLIP * (1 - update / updates)
        losses.append(learn(policy, value, optimizer, play(carts, policy, value), clip))
        schedule.step()
        recent = np.mean(carts.returns[-50:]) if carts.returns else 0.0
        bar.set_postfix({"return": f"{recent:.0f}", "loss": f"{losses[-1][1]:.2f}"})
    returns, ride = evaluate(policy, 100, 1_000_000 + 1000 * seed)
    mean = float(np.mean(returns))
    print(f"mean return of 100 new episodes {mean:.1f}, lowest {min(returns):.0f} (seed {seed})")
    print(f"trained on {updates * STEPS * CARTS} cart steps in {time.perf_counter() - started:.1f} s")
    out.mkdir(parents=True, exist_ok=True)
    picture(out / "cartpole.png", carts.returns, losses, policy, ride)
    print(f"wrote {out / 'cartpole.png'}")
    return mean


def main() -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=400, help="number of policy updates")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="directory for the picture")
    options = parser.parse_args()
    if options.updates < 1:
        parser.error("--updates must be at least 1")
    matplotlib.use("agg")
    with threadpool_limits(1, user_api="blas"):  # several threads only slow down products this small
        run(options.updates, options.seed, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
