"""Search for good settings of a network, each tried in a process of its own: on a laptop, or unchanged on a cluster.

    python examples/sweep.py                                   # all cores of this machine
    python examples/sweep.py --scheduler tcp://head-node:8786  # the workers of a Dask cluster
    python examples/sweep.py --scheduler ray                   # those of a Ray cluster, or, without one, of Ray here
    python examples/sweep.py --trials 40 --rounds 4 --keep 3

Random settings train for an epoch; those that read the most held-out digits go on for twice as long, round after round
(successive halving). A trial is a plain function of its settings, its model and its optimizer. Model and optimizer
travel to the process that goes on with them, and back, by pickle; their arrays are not copied where the library passes
buffers out of band. For a Dask cluster start `dask scheduler` on one machine and `dask worker tcp://head-node:8786` on
each, where cygrad and scikit-learn are installed too. A Ray cluster is found by `RAY_ADDRESS`, or on its own machines.
"""

import argparse
import math
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

try:
    import joblib
    from sklearn.datasets import load_digits
except ImportError as error:
    sys.exit(f'{error}\nthis example needs scikit-learn, which brings joblib: pip install "cygrad[examples]"')

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
    accuracy: float = 0.0
    model: Any = field(default=None, repr=False)
    optimizer: Any = field(default=None, repr=False)

    @classmethod
    def drawn(cls, number: int, chance: random.Random) -> "Trial":
        """Return a trial with random settings."""
        rate = 10 ** chance.uniform(-4, -1.3)
        return cls(number, rate, chance.choice([32, 64, 128, 256]), chance.uniform(0, 0.5), chance.choice([16, 32, 64]))


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
    trial.accuracy = (read == y[-HELD_OUT:]).float().mean().item()
    return trial


def search(trials: list[Trial], rounds: int, keep: int, parallel: joblib.Parallel) -> Trial:
    """Train trials in rounds, after each of which one in `keep` goes on; return the best."""
    for number in range(rounds):
        begun = time.perf_counter()
        epochs = 2**number
        trials = parallel(joblib.delayed(go_on)(trial, epochs) for trial in trials)
        trials.sort(key=lambda trial: -trial.accuracy)
        best = trials[0]
        print(
            f"round {number + 1}: {len(trials)} trials of {best.epochs} epochs in {time.perf_counter() - begun:.1f} s; "
            f"the best reads {best.accuracy:.2%}"
        )
        trials = trials[: math.ceil(len(trials) / keep)]
    return trials[0]


def main() -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=18, help="settings to begin with")
    parser.add_argument("--rounds", type=int, default=4, help="rounds, each twice as long as the one before")
    parser.add_argument("--keep", type=int, default=2, help="one in so many trials goes on after a round")
    parser.add_argument("--seed", type=int, default=0, help="seed of the settings")
    parser.add_argument("--jobs", type=int, default=-1, help="processes on this machine; -1 for one on each core")
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
            best = search(trials, options.rounds, options.keep, joblib.Parallel())
    elif options.scheduler:
        from dask.distributed import Client  # only clusters need it

        with Client(options.scheduler), joblib.parallel_config("dask"):
            best = search(trials, options.rounds, options.keep, joblib.Parallel())
    else:
        best = search(trials, options.rounds, options.keep, joblib.Parallel(n_jobs=options.jobs))
    print(f"the best: {best}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
