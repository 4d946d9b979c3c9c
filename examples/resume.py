"""Train a network twice, once without interruption and once killed over and over, with identical weights at the end.

    python examples/resume.py                     # train, compare the weights, save a picture
    python examples/resume.py --epochs 30 --kills 5 --seed 1 --out /tmp

Each run is a separate program (`--train`) that saves, after each epoch, everything it needs to continue: the weights,
the optimizer, the schedule, the state of the random number generator, and the losses. The second run is killed with a
signal that no program can catch, at a random moment in the middle of computing or writing, and then started again. The
data are the handwritten digits that come with scikit-learn.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

try:
    import matplotlib
    from matplotlib import pyplot as plt
    from sklearn.datasets import load_digits
    from threadpoolctl import threadpool_limits
    from tqdm import tqdm
except ImportError as error:
    sys.exit(f'{error}\nthis example needs scikit-learn, matplotlib and tqdm: pip install ".[examples]"')

import cygrad as torch
from cygrad import nn
from cygrad.utils.data import DataLoader, TensorDataset

# --- Training, which can be killed ------------------------------------------------------------------------


def make(seed: int, epochs: int) -> tuple[nn.Module, torch.optim.Optimizer, Any]:
    """Return a network with dropout (so that random numbers matter), its optimizer and a learning rate schedule."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)


def train(path: Path, epochs: int, seed: int) -> None:
    """Train from the checkpoint at `path`, or from scratch; print "saved" after saving each epoch."""
    pixels, labels = load_digits(return_X_y=True)
    data = TensorDataset(torch.from_numpy((pixels / 16).astype(np.float32)), torch.from_numpy(labels.astype(np.int64)))
    parts = make(seed, epochs)
    model, optimizer, schedule = parts
    losses: list[float] = []
    if path.exists():
        checkpoint = torch.load(path)
        for part, state in zip(parts, checkpoint["states"]):
            part.load_state_dict(state)
        torch.set_rng_state(checkpoint["random"])
        losses = checkpoint["losses"]
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2)
    while len(losses) < epochs:
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        schedule.step()
        losses.append(total / len(data))
        states = [part.state_dict() for part in parts]
        torch.save({"states": states, "random": torch.get_rng_state(), "losses": losses}, path)
        print("saved", flush=True)


# --- Killing it -------------------------------------------------------------------------------------------


def start(path: Path, epochs: int, seed: int) -> subprocess.Popen:
    """Start the training as a separate program."""
    command = [sys.executable, __file__, "--train", path, "--epochs", epochs, "--seed", seed]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)


def run(path: Path, epochs: int, seed: int, kills: int, title: str) -> list[int]:
    """Train in a program that is killed `kills` times; return the number of saved epochs at each kill."""
    chance = random.Random(seed)
    moments = sorted(chance.sample(range(1, epochs), kills))
    killed: list[int] = []
    saved = 0
    with tqdm(total=epochs, desc=title, unit="epoch", disable=None) as bar:  # None: only on terminals
        while saved < epochs:
            before = len(killed)
            with start(path, epochs, seed) as program:
                for _ in lines(program):
                    saved += 1
                    bar.update()
                    if len(killed) < kills and saved >= moments[len(killed)] and saved < epochs:
                        time.sleep(chance.uniform(0, 0.03))  # somewhere in the next epoch
                        program.kill()
                        killed.append(saved)
                        break
                more = sum(1 for _ in lines(program))  # saved before the signal arrived
                saved += more
                bar.update(more)
            if program.returncode and len(killed) == before:
                sys.exit(f"the training failed with exit status {program.returncode}")
            saved = max(saved, len(torch.load(path)["losses"]))
    return killed


def lines(program: subprocess.Popen) -> Iterator[str]:
    """Iterate over the lines that a program prints."""
    assert program.stdout is not None
    return iter(program.stdout)


def compare(out: Path, epochs: int, seed: int, kills: int) -> bool:
    """Train without and with interruptions, print and draw the results; return whether the weights are identical."""
    with tempfile.TemporaryDirectory() as directory:
        paths = Path(directory) / "whole.safetensors", Path(directory) / "pieces.safetensors"
        run(paths[0], epochs, seed, 0, "uninterrupted")
        killed = run(paths[1], epochs, seed, kills, "killed and resumed")
        whole, pieces = (torch.load(path, mmap=False) for path in paths)
    weights = [checkpoint["states"][0] for checkpoint in (whole, pieces)]
    same = all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    print(f"killed after epochs {', '.join(map(str, killed))}; the loss at the end is {pieces['losses'][-1]:.6f}")
    count = sum(value.numel() for value in weights[0].values())
    print(f"all {count} weights are the same, bit for bit" if same else "the weights differ")

    page, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    axes.plot(range(1, epochs + 1), whole["losses"], linewidth=5, alpha=0.3, label="uninterrupted")
    axes.plot(range(1, epochs + 1), pieces["losses"], linewidth=1.5, label="killed and resumed")
    for i, epoch in enumerate(killed):
        axes.axvline(epoch, color="tab:red", linestyle=":", label=None if i else "killed")
    axes.set(title="A training run, killed and resumed", xlabel="epoch", ylabel="cross entropy", yscale="log")
    axes.locator_params(axis="x", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    out.mkdir(parents=True, exist_ok=True)
    page.savefig(out / "resume.png", dpi=120)
    plt.close(page)
    print(f"wrote {out / 'resume.png'}")
    return same


def main() -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data")
    parser.add_argument("--kills", type=int, default=3, help="how often the second run is killed")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="directory for the picture")
    parser.add_argument("--train", type=Path, help="only train, using this checkpoint")
    options = parser.parse_args()
    if not 0 <= options.kills < options.epochs:
        parser.error("--epochs must be more than --kills")
    with threadpool_limits(1, user_api="blas"):  # the same number in each run, for the same order of sums
        if options.train:
            train(options.train, options.epochs, options.seed)
            return 0
        matplotlib.use("agg")
        return 0 if compare(options.out, options.epochs, options.seed, options.kills) else 1


if __name__ == "__main__":
    sys.exit(main())
