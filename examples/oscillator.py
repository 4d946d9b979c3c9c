"""Solve a differential equation with a network: a damped oscillation, learned from the equation without data.

    python examples/oscillator.py                    # train, print the error, save a picture
    python examples/oscillator.py --steps 500 --out /tmp

The equation is u'' + 2 d u' + w^2 u = 0 with u(0) = 1 and u'(0) = 0. The network N defines u(t) = 1 + tanh(w t / 2)^2
N(t), which satisfies the initial conditions for any N. The derivatives with respect to t come from `autograd.grad` with
`create_graph=True`. The loss is the mean square of the left side at some times t; differentiating it with respect to
the weights is a third derivative.
"""

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np

try:
    import matplotlib
    from matplotlib import pyplot as plt
    from threadpoolctl import threadpool_limits
    from tqdm import tqdm
except ImportError as error:
    sys.exit(f'{error}\nthis example needs matplotlib and tqdm: pip install ".[examples]"')

import cygrad as torch
from cygrad import nn

DAMPING, FREQUENCY, END = 0.8, 5.0, 3.0


def exact(t: np.ndarray) -> np.ndarray:
    """Return the closed-form solution."""
    frequency = math.sqrt(FREQUENCY**2 - DAMPING**2)
    return np.exp(-DAMPING * t) * (np.cos(frequency * t) + DAMPING / frequency * np.sin(frequency * t))


class Solution(nn.Module):
    """The function u(t) = 1 + tanh(w t / 2)^2 N(t), and the residual of the equation."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, t: torch.Tensor) -> torch.Tensor:
        """Return u at the given times, a column."""
        return (t * (FREQUENCY / 2)).tanh().square() * self.network(t * (2 / END) - 1) + 1

    def residual(self, t: torch.Tensor) -> torch.Tensor:
        """Return u'' + 2 d u' + w^2 u, which is 0 for the solution."""
        t = t.requires_grad_()
        u = self(t)
        (speed,) = torch.autograd.grad(u.sum(), t, create_graph=True)
        (acceleration,) = torch.autograd.grad(speed.sum(), t, create_graph=True)
        return acceleration + speed * (2 * DAMPING) + u * FREQUENCY**2


def picture(path: Path, times: np.ndarray, found: np.ndarray, residual: np.ndarray, losses: list[float]) -> None:
    """Draw the solution, its error and the loss curve."""
    page, (upper, middle, lower) = plt.subplots(3, 1, figsize=(8, 9), layout="constrained")
    upper.plot(times, exact(times), label="exact", linewidth=4, alpha=0.35)
    upper.plot(times, found, label="network", linestyle="--", color="C3")
    upper.set(ylabel="u(t)", title="u'' + 2 d u' + w² u = 0")
    middle.plot(times, np.abs(found - exact(times)), label="error of u")
    middle.plot(times, np.abs(residual) / FREQUENCY**2, label="residual / w²", alpha=0.7)
    middle.set(xlabel="t", yscale="log")
    lower.plot(losses, color="C2", linewidth=0.8)
    lower.set(xlabel="step", ylabel="loss", yscale="log")
    for axes in (upper, middle, lower):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    upper.legend(frameon=False)
    middle.legend(frameon=False)
    page.savefig(path, dpi=110)
    plt.close(page)


def run(steps: int, seed: int, out: Path) -> float:
    """Train, print the error, save the picture, and return the largest error."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    model = Solution()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    bar = tqdm(range(steps), desc="training", unit="step", disable=None)  # None: only on terminals
    for step in bar:
        # Stratified sampling: one random time in each of 64 equal intervals leaves no gaps.
        t = (torch.arange(64.0) + torch.rand(64)).unsqueeze(1) * (END / 64)
        optimizer.zero_grad()
        loss = model.residual(t).square().mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0:
            bar.set_postfix(loss=f"{losses[-1]:.2e}")
    times = np.linspace(0, END, 301, dtype=np.float32)
    t = torch.from_numpy(times).unsqueeze(1)
    found, residual = (value.detach().numpy()[:, 0] for value in (model(t), model.residual(t)))
    error = float(np.abs(found - exact(times)).max())
    print(f"largest error of u {error:.1e}, for values between {found.min():.2f} and {found.max():.2f}")
    print(f"trained {steps} steps in {time.perf_counter() - started:.1f} s")
    out.mkdir(parents=True, exist_ok=True)
    picture(out / "oscillator.png", times, found, residual, losses)
    print(f"wrote {out / 'oscillator.png'}")
    return error


def main() -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=6000, help="training steps")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="directory for the picture")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")
    matplotlib.use("agg")
    with threadpool_limits(1, user_api="blas"):  # several threads only slow down products this small
        run(options.steps, options.seed, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
