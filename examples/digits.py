"""Train a network to read handwritten digits: 1797 real scans of 8 x 8 pixels that come with scikit-learn.

    python examples/digits.py                     # train, print the accuracy, save two pictures
    python examples/digits.py --epochs 5 --seed 1 --out /tmp

The code is plain PyTorch: with `import torch` in place of the import below, training is the same.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

try:
    import matplotlib
    from matplotlib import pyplot as plt
    from matplotlib.figure import Figure
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from threadpoolctl import threadpool_limits
    from tqdm import tqdm
except ImportError as error:
    sys.exit(f'{error}\nthis example needs scikit-learn, matplotlib and tqdm: pip install ".[examples]"')

import cygrad as torch
from cygrad import nn, viz

BATCH = 64


class Data:
    """Pixels scaled to 0..1 as float32 and labels as int64, with a quarter held out for testing."""

    def __init__(self) -> None:
        pixels, labels = load_digits(return_X_y=True)
        parts = train_test_split(
            (pixels / 16).astype(np.float32),
            labels.astype(np.int64),
            test_size=0.25,
            stratify=labels,
            random_state=0,
        )
        self.train_x, self.test_x, self.train_y, self.test_y = map(torch.from_numpy, parts)


def make_model() -> nn.Sequential:
    """Return a network with 64 pixels as input and ten scores as output."""
    return nn.Sequential(
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(128, 10),
    )


def train_epoch(model: nn.Module, loss_fn: nn.Module, optimizer: torch.optim.Optimizer, data: Data) -> float:
    """Make one pass over the training data in random order and return the mean loss."""
    model.train()
    order = torch.randperm(len(data.train_x))
    total = 0.0
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        optimizer.zero_grad()
        loss = loss_fn(model(data.train_x[batch]), data.train_y[batch])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    return total / len(order)


@torch.no_grad()
def evaluate(model: nn.Module, loss_fn: nn.Module, data: Data) -> tuple[float, np.ndarray]:
    """Return the loss on the test data and the digit predicted for each test image."""
    model.eval()
    scores = model(data.test_x)
    return loss_fn(scores, data.test_y).item(), scores.argmax(dim=1).numpy()


def train(data: Data, epochs: int) -> tuple[nn.Module, list[tuple[float, float]], np.ndarray]:
    """Return a model trained for `epochs`, its training and test losses, and the digits it predicts."""
    model, loss_fn = make_model(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses: list[tuple[float, float]] = []
    bar = tqdm(range(epochs), desc="training", unit="epoch", disable=None)  # None: only on terminals
    for _ in bar:
        train_loss = train_epoch(model, loss_fn, optimizer, data)
        test_loss, read = evaluate(model, loss_fn, data)
        losses.append((train_loss, test_loss))
        bar.set_postfix(loss=f"{train_loss:.4f}", test=f"{accuracy(data, read):.2%}")
    return model, losses, read


def accuracy(data: Data, read: np.ndarray) -> float:
    """Return the fraction of test images read correctly."""
    return float((read == data.test_y.numpy()).mean())


def figure(losses: list[tuple[float, float]], data: Data, read: np.ndarray, network: viz.Graph) -> Figure:
    """Draw the loss curve, the misread digits and the network's graph on one page."""
    page = plt.figure(figsize=(13, 8), layout="constrained")
    left, right = page.subfigures(1, 2, squeeze=False, width_ratios=[1.5, 1]).flat
    upper, lower = left.subfigures(2, 1, squeeze=False, height_ratios=[1.25, 1]).flat

    curve = upper.subplots()
    epochs = range(1, len(losses) + 1)
    for name, values in zip(("training", "test"), zip(*losses)):
        curve.plot(epochs, values, label=name, linewidth=2)
    curve.set(title="Loss", xlabel="epoch", ylabel="cross entropy", yscale="log")
    curve.grid(alpha=0.3, which="both")
    curve.spines[["top", "right"]].set_visible(False)
    curve.legend(frameon=False)

    truth = data.test_y.numpy()
    wrong = np.flatnonzero(read != truth)
    lower.suptitle(f"Misread: {len(wrong)} of {len(truth)} test images")
    rows = 1 if len(wrong) <= 8 else 2
    for place, index in zip(lower.subplots(rows, 8).flat, [*wrong[:16], *[None] * 16]):
        place.axis("off")
        if index is not None:
            place.imshow(data.test_x[int(index)].reshape(8, 8).numpy(), cmap="gray_r")
            place.set_title(f"{truth[index]} read as {read[index]}", fontsize=8)

    right.suptitle("The network, as recorded")
    network.draw(right.subplots())
    return page


def run(epochs: int, seed: int, out: Path) -> None:
    """Train, print the results and save the pictures."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    data = Data()
    print(f"training on {len(data.train_x)} images for {epochs} epochs", flush=True)
    model, losses, read = train(data, epochs)
    trained = time.perf_counter()

    steps = epochs * -(-len(data.train_x) // BATCH)
    print(f"test accuracy {accuracy(data, read):.2%} ({len(data.test_x)} images, seed {seed})")
    print(f"trained {epochs} epochs ({steps} steps) in {trained - started:.1f} s")

    model.train()
    loss = nn.functional.cross_entropy(model(data.train_x[:BATCH]), data.train_y[:BATCH])
    network = viz.graph(loss, params=model)
    out.mkdir(parents=True, exist_ok=True)
    network.save(out / "digits-network.svg")
    page = figure(losses, data, read, network)
    page.savefig(out / "digits.png", dpi=120)
    plt.close(page)
    print(f"wrote {out / 'digits.png'} and {out / 'digits-network.svg'}")


def main() -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40, help="passes over the data")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="directory for the pictures")
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")
    matplotlib.use("agg")
    started = time.perf_counter()
    try:
        with threadpool_limits(1, user_api="blas"):  # several threads only slow down products this small
            run(options.epochs, options.seed, options.out)
    except KeyboardInterrupt:
        print("\nstopped: interrupted from the keyboard", file=sys.stderr)
        return 130
    print(f"all in {time.perf_counter() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
