"""Predict the progression of diabetes with error bars, using a Laplace approximation of a network's posterior.

    python examples/diabetes.py                      # train, print error and coverage, save a picture
    python examples/diabetes.py --seed 1 --out /tmp

The data are the 442 patients that come with scikit-learn, a quarter of whom are held out for testing. L-BFGS finds the
weights with the highest posterior probability. Around them, the posterior is approximated by a normal distribution
whose precision is the exact Hessian H of the negative log posterior. A prediction f(x) then has the variance J H^-1
J^T, where J is its gradient with respect to the weights, in addition to the variance of the noise.
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
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import train_test_split
    from threadpoolctl import threadpool_limits
    from tqdm import tqdm
except ImportError as error:
    sys.exit(f'{error}\nthis example needs scikit-learn, matplotlib and tqdm: pip install ".[examples]"')

import cygrad as torch
from cygrad import nn
from cygrad.nn.utils import parameters_to_vector, vector_to_parameters

PRIOR = 30.0  # precision of the weights before any data
QUANTILE = 1.645  # of the normal distribution: 90 % lie within this many standard deviations


def scaled(part: np.ndarray, model: np.ndarray) -> torch.Tensor:
    """Standardize `part` by the mean and standard deviation of `model`."""
    return torch.from_numpy((part - model.mean(0)) / model.std(0))


class Data:
    """Features and progression in float64, with mean 0 and variance 1 on the training data."""

    def __init__(self, seed: int) -> None:
        x, y = load_diabetes(return_X_y=True, scaled=False)
        train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.25, random_state=seed)
        self.train_x, self.test_x = (scaled(part, train_x) for part in (train_x, test_x))
        self.train_y, self.test_y = (scaled(part, train_y) for part in (train_y, test_y))


class Posterior:
    """The negative log posterior of a network's weights, as a function of one vector."""

    def __init__(self, network: nn.Module, x: torch.Tensor, y: torch.Tensor, noise: float) -> None:
        self.network, self.x, self.y, self.noise = network, x, y, noise
        self.shapes = {name: p.shape for name, p in network.named_parameters()}

    def predict(self, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Return the network's predictions with the given weights."""
        parts = weights.split([math.prod(shape) for shape in self.shapes.values()])
        named = {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts)}
        return torch.func.functional_call(self.network, named, (x,)).squeeze(-1)

    def __call__(self, weights: torch.Tensor) -> torch.Tensor:
        misfit = (self.predict(weights, self.x) - self.y).square().sum() / (2 * self.noise**2)
        return misfit + PRIOR / 2 * weights.square().sum()


def find_maximum(posterior: Posterior, rounds: int) -> tuple[torch.Tensor, list[float]]:
    """Return the weights that maximize the posterior, and the negative log posterior of each round."""
    weights = parameters_to_vector(posterior.network.parameters()).detach().requires_grad_()
    optimizer = torch.optim.LBFGS([weights], max_iter=10, history_size=30, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        value = posterior(weights)
        value.backward()
        return value

    values = []
    bar = tqdm(range(rounds), desc="training", unit="round", disable=None)  # None: only on terminals
    for _ in bar:
        values.append(optimizer.step(closure).item())
        bar.set_postfix(posterior=f"{values[-1]:.3f}")
    return weights.detach(), values


def deviations(posterior: Posterior, weights: torch.Tensor, x: torch.Tensor) -> tuple[np.ndarray, float]:
    """Return each prediction's standard deviation due to the weights, and the smallest eigenvalue of H."""
    hessian = torch.autograd.functional.hessian(posterior, weights)
    slopes = torch.autograd.functional.jacobian(lambda w: posterior.predict(w, x), weights)
    values, vectors = torch.linalg.eigh(hessian)
    if values.min() <= 0:
        sys.exit(
            "the weights are not at a maximum: the posterior grows in some direction of the Hessian; try more --rounds"
        )
    spread = (slopes @ vectors) / values.sqrt()
    return torch.linalg.vector_norm(spread, dim=1).numpy(), values.min().item()


def picture(
    path: Path, data: Data, mean: np.ndarray, known: np.ndarray, total: np.ndarray, values: list[float]
) -> None:
    """Draw predictions with their intervals, the parts of the uncertainty, and the training curve."""
    truth = data.test_y.numpy()
    order = np.argsort(mean)
    inside = np.abs(truth - mean) < QUANTILE * total
    page, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.5), layout="constrained", width_ratios=[2, 1, 1])
    place = np.arange(len(mean))
    for width, alpha, label in ((total, 0.2, "90 %, with noise"), (known, 0.5, "90 %, weights only")):
        low, high = (mean + sign * QUANTILE * width for sign in (-1, 1))
        left.fill_between(place, low[order], high[order], alpha=alpha, color="C0", label=label, linewidth=0)
    left.plot(place, mean[order], color="C0")
    for kept, color, label in ((inside, "C2", "measured, inside"), (~inside, "C3", "measured, outside")):
        left.scatter(place[kept[order]], truth[order][kept[order]], s=14, color=color, label=label, zorder=3)
    left.set(xlabel="test patients, by prediction", ylabel="progression, standardized")
    left.legend(frameon=False, fontsize=8)
    distance = torch.linalg.vector_norm(data.test_x, dim=1).numpy()
    middle.scatter(distance, known, s=14)
    middle.set(xlabel="distance from the mean patient", ylabel="deviation due to the weights")
    right.plot(range(1, len(values) + 1), values)
    right.set(xlabel="round of L-BFGS", ylabel="minus log posterior")
    for axes in (left, middle, right):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    page.savefig(path, dpi=110)
    plt.close(page)


def run(rounds: int, seed: int, out: Path) -> tuple[float, float]:
    """Train, print the results, save the picture, and return the explained variance and the coverage."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    data, noise = Data(0), 0.7
    network = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    posterior = Posterior(network, data.train_x, data.train_y, noise)
    weights, values = find_maximum(posterior, rounds)
    vector_to_parameters(weights, network.parameters())
    mean = posterior.predict(weights, data.test_x).numpy()
    known, smallest = deviations(posterior, weights, data.test_x)
    total = np.hypot(known, noise)
    errors = data.test_y.numpy() - mean
    explained = 1 - (errors**2).mean() / data.test_y.numpy().var()
    covered = float((np.abs(errors) < QUANTILE * total).mean())
    linear = LinearRegression().fit(data.train_x.numpy(), data.train_y.numpy())
    by_line = linear.score(data.test_x.numpy(), data.test_y.numpy())
    print(f"explains {explained:.1%} of the variance in {len(mean)} test patients; linear regression {by_line:.1%}")
    print(f"{covered:.1%} of them lie within their 90 % intervals")
    print(
        f"smallest eigenvalue of the Hessian of {len(weights)} weights {smallest:.2f}; of the prior alone {PRIOR:.2f}"
    )
    print(f"all in {time.perf_counter() - started:.1f} s")
    out.mkdir(parents=True, exist_ok=True)
    picture(out / "diabetes.png", data, mean, known, total, values)
    print(f"wrote {out / 'diabetes.png'}")
    return explained, covered


def main() -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30, help="rounds of ten L-BFGS steps")
    parser.add_argument("--seed", type=int, default=0, help="seed of the initial weights")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="directory for the picture")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    matplotlib.use("agg")
    with threadpool_limits(1, user_api="blas"):  # several threads only slow down products this small
        run(options.rounds, options.seed, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
