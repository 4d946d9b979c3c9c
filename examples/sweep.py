"""Search for good settings of a network, each tried in a process of its own: on a laptop, or unchanged on a cluster.

    python examples/sweep.py                                   # all cores of this machine; saves a picture
    python examples/sweep.py --scheduler tcp://head-node:8786  # the workers of a Dask cluster
    python examples/sweep.py --scheduler ray                   # the workers of a Ray cluster, or of Ray on this machine
    python examples/sweep.py --trials 40 --rounds 4 --keep 3 --out /tmp

Random settings train for an epoch; those that read the most held-out digits go on for twice as long, round after round
(successive halving). A trial is a plain function of its settings, its model and its optimizer. Model and optimizer
travel to the process that goes on with them, and back, by pickle; their arrays are not copied where the library passes
buffers out of band. For a Dask cluster start `dask scheduler` on one machine and `dask worker tcp://head-node:8786` on
each, where cygrad and scikit-learn are installed too. Ray finds a cluster by `RAY_ADDRESS`, or on a machine that
belongs to it.
"""

import argparse
import math
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

try:
    import joblib
    import matplotlib
    from matplotlib import pyplot as plt
    from sklearn.datasets import load_digits
except ImportError as error:
    sys.exit(f'{error}\nthis example needs scikit-learn (with joblib) and matplotlib: pip install ".[examples]"')

import cygrad as torch
from cygrad import nn

HELD_OUT = 450


@dataclass
class Trial:
    """Settings, and what has come of them so far."""

    number: int
    rate: float
    width: int
    dropout: float
    batch: int
    epochs: int = 0
    accuracies: dict[int, float] = field(default_factory=dict)  # after so many epochs
    model: Any = None
    optimizer: Any = None

    @classmethod
    def drawn(cls, number: int, chance: random.Random) -> "Trial":
        """Return a trial with random settings."""
        rate = 10 ** chance.uniform(-4, -1.3)
        return cls(number, rate, chance.choice([32, 64, 128, 256]), chance.uniform(0, 0.5), chance.choice([16, 32, 64]))

    @property
    def accuracy(self) -> float:
        """The share of held-out digits read after the last round."""
        return self.accuracies[self.epochs]

    def __str__(self) -> str:
        return f"rate {self.rate:.2g}, width {self.width}, dropout {self.dropout:.2f}, batch {self.batch}"


def go_on(trial: Trial, epochs: int) -> Trial:
    """Train a trial for some more epochs; this runs in a worker."""
    torch.set_num_threads(1)  # the processes share the cores
    torch.manual_seed(1000 * trial.number + trial.epochs)
    pixels, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy((pixels / 16).astype(np.float32)), torch.from_numpy(labels.astype(np.int64))
    if trial.model is None:
        trial.model = nn.Sequential(
            nn.Linear(64, trial.width), nn.ReLU(), nn.Dropout(trial.dropout), nn.Linear(trial.width, 10)
        )
        trial.optimizer = torch.optim.Adam(trial.model.parameters(), lr=trial.rate)
    trial.model.train()
    for _ in range(epochs):
        for part in torch.randperm(len(x) - HELD_OUT).split(trial.batch):
            trial.optimizer.zero_grad()
            nn.functional.cross_entropy(trial.model(x[part]), y[part]).backward()
            trial.optimizer.step()
    trial.epochs += epochs
    with torch.no_grad():
        read = trial.model.eval()(x[-HELD_OUT:]).argmax(1)
    trial.accuracies[trial.epochs] = (read == y[-HELD_OUT:]).float().mean().item()
    return trial


def search(trials: list[Trial], rounds: int, keep: int, parallel: joblib.Parallel) -> list[Trial]:
    """Train trials in rounds, after each of which one in `keep` goes on; return all, beginning with the best."""
    dropped: list[Trial] = []
    for number in range(rounds):
        begun = time.perf_counter()
        epochs = 2**number
        trials = parallel(joblib.delayed(go_on)(trial, epochs) for trial in trials)
        trials.sort(key=lambda trial: -trial.accuracy)
        best = trials[0]
        print(
            f"round {number + 1}: {len(trials)} {'trials' if len(trials) > 1 else 'trial'} of {best.epochs} "
            f"{'epochs' if number else 'epoch'} in {time.perf_counter() - begun:.1f} s; "
            f"the best reads {best.accuracy:.2%}",
            flush=True,
        )
        if number + 1 < rounds:
            going_on = math.ceil(len(trials) / keep)
            dropped += trials[going_on:]
            trials = trials[:going_on]
    return trials + dropped


def draw(trials: list[Trial], path: Path) -> None:
    """Draw how many digits each trial misread after each of its rounds, in the color of its learning rate."""
    page, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    rates = matplotlib.colors.LogNorm(min(trial.rate for trial in trials), max(trial.rate for trial in trials))
    colors = matplotlib.colormaps["viridis_r"]
    for trial in reversed(trials):  # the best is drawn last, over all others
        epochs = list(trial.accuracies)
        misread = [1 - accuracy for accuracy in trial.accuracies.values()]
        axes.plot(epochs, misread, "o-", color=colors(rates(trial.rate)), linewidth=3 if trial is trials[0] else 1.2)
    axes.annotate("best", (epochs[-1], misread[-1]), (8, 0), textcoords="offset points", va="center")
    axes.set(title="A search that drops the worst trials after each round", xlabel="epochs")
    axes.set(ylabel="held-out digits misread", xscale="log", yscale="log")
    axes.set_xticks(epochs, map(str, epochs))
    axes.set_yticks([0.05, 0.1, 0.2, 0.5, 1], ["5%", "10%", "20%", "50%", "100%"])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    page.colorbar(matplotlib.cm.ScalarMappable(rates, colors), ax=axes, label="learning rate")
    path.parent.mkdir(parents=True, exist_ok=True)
    page.savefig(path, dpi=120)
    plt.close(page)
    print(f"wrote {path}")


def main() -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=18, help="settings to begin with")
    parser.add_argument("--rounds", type=int, default=4, help="rounds, each twice as long as the one before")
    parser.add_argument("--keep", type=int, default=2, help="one in so many trials goes on after a round")
    parser.add_argument("--seed", type=int, default=0, help="seed of the settings")
    parser.add_argument("--jobs", type=int, default=-1, help="processes on this machine; -1 for one on each core")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="directory for the picture")
    parser.add_argument("--scheduler", help="address of a Dask scheduler, or ray: its workers are used instead")
    options = parser.parse_args()
    if min(options.trials, options.rounds) < 1 or options.keep < 2:
        parser.error("--trials and --rounds must be at least 1, and --keep at least 2")
    chance = random.Random(options.seed)
    trials = [Trial.drawn(number, chance) for number in range(options.trials)]
    if options.scheduler == "ray":
        from ray.util.joblib import register_ray  # only clusters need it

        register_ray()
        with joblib.parallel_config("ray", n_jobs=options.jobs):
            trials = search(trials, options.rounds, options.keep, joblib.Parallel())
    elif options.scheduler:
        from dask.distributed import Client  # only clusters need it

        with Client(options.scheduler), joblib.parallel_config("dask"):
            trials = search(trials, options.rounds, options.keep, joblib.Parallel())
    else:
        trials = search(trials, options.rounds, options.keep, joblib.Parallel(n_jobs=options.jobs))
    best = trials[0]
    print(f"the best: {best}; it reads {best.accuracy:.2%}")
    matplotlib.use("agg")
    draw(trials, options.out / "sweep.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
