"""Read handwritten digits with a convolutional network that recognizes at least 98.5 % of unseen images.

    python examples/digits_conv.py                   # train, print the accuracy, save a picture
    python examples/digits_conv.py --epochs 5 --seed 1 --out /tmp

The data are the 1797 scans of 8 x 8 pixels that come with scikit-learn, a quarter of which is held out for testing.
Each training image is shifted at random by up to one pixel each time it is used.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

try:
    import matplotlib
    from matplotlib import pyplot as plt
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from threadpoolctl import threadpool_limits
    from tqdm import tqdm
except ImportError as error:
    sys.exit(f'{error}\nthis example needs scikit-learn, matplotlib and tqdm: pip install ".[examples]"')

import cygrad as torch
from cygrad import nn
from cygrad.utils.data import DataLoader, TensorDataset


def make_data() -> tuple[TensorDataset, TensorDataset]:
    """Return the training and test sets: images of shape (1, 8, 8) with values in 0..1, and their labels."""
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    parts = train_test_split(images, labels.astype(np.int64), test_size=0.25, stratify=labels, random_state=0)
    train_x, test_x, train_y, test_y = map(torch.from_numpy, parts)
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


def make_model() -> nn.Sequential:
    """Return a network of two convolutions at 8 x 8, one at 4 x 4, and a layer of ten scores."""
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.Conv2d(24, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1),
        nn.BatchNorm2d(48),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(48 * 4, 10),
    )


def shifted(images: torch.Tensor) -> torch.Tensor:
    """Shift all images together by up to one pixel, padding with empty pixels."""
    down, right = torch.randint(0, 3, (2,)).tolist()
    return nn.functional.pad(images, (1, 1, 1, 1))[:, :, down : down + 8, right : right + 8]


@torch.no_grad()
def read(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Return the digit that the network predicts for each image."""
    model.eval()
    return model(images).argmax(dim=1)


def picture(
    path: Path, losses: list[float], accuracies: list[float], model: nn.Sequential, test: TensorDataset
) -> None:
    """Draw the training curves, the filters of the first layer, and the misread test images."""
    images, labels = test.tensors
    seen = read(model, images)
    wrong = (seen != labels).nonzero().flatten().tolist()
    page = plt.figure(figsize=(12, 6), layout="constrained")
    left, right = page.subfigures(1, 2, squeeze=False).flat
    upper, lower = left.subplots(2, 1, sharex=True)
    upper.plot(range(1, len(losses) + 1), losses)
    upper.set(ylabel="training loss", yscale="log")
    lower.plot(range(1, len(losses) + 1), [100 * a for a in accuracies], color="C1")
    lower.axhline(98.5, color="gray", linestyle=":", label="98.5 %")
    lower.set(xlabel="epoch", ylabel="test accuracy, %", ylim=(90, 100.2))
    lower.legend(frameon=False)
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.spines[["top", "right"]].set_visible(False)
    filters, misread = right.subfigures(2, 1, squeeze=False).flat
    filters.suptitle("Filters of the first layer")
    weights = model[0].weight.detach().numpy()
    for axes, weight in zip(filters.subplots(3, 8).flat, weights):
        axes.imshow(weight[0], cmap="coolwarm", vmin=-abs(weights).max(), vmax=abs(weights).max())
        axes.axis("off")
    misread.suptitle(f"Misread: {len(wrong)} of {len(labels)} test images")
    for i, axes in enumerate(misread.subplots(1, 8).flat):
        axes.axis("off")
        if i < len(wrong):
            axes.imshow(images[wrong[i], 0].numpy(), cmap="gray_r")
            axes.set_title(f"{int(labels[wrong[i]])} as {int(seen[wrong[i]])}", fontsize=9)
    page.savefig(path, dpi=110)
    plt.close(page)


def run(epochs: int, seed: int, out: Path) -> float:
    """Train, print the results, save the picture, and return the test accuracy."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    train, test = make_data()
    images, labels = test.tensors
    model, loss_fn = make_model(), nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    loader = DataLoader(train, batch_size=64, shuffle=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=epochs * len(loader))
    losses, accuracies = [], []
    bar = tqdm(range(epochs), desc="training", unit="epoch", disable=None)  # None: only on terminals
    for _ in bar:
        model.train()
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(shifted(x)), y)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(x)
        losses.append(total / len(train))
        accuracies.append((read(model, images) == labels).float().mean().item())
        bar.set_postfix(loss=f"{losses[-1]:.4f}", test=f"{accuracies[-1]:.2%}")
    print(f"test accuracy {accuracies[-1]:.2%} ({len(test)} images, seed {seed})")
    print(f"trained {epochs} epochs in {time.perf_counter() - started:.1f} s")
    out.mkdir(parents=True, exist_ok=True)
    picture(out / "digits-conv.png", losses, accuracies, model, test)
    print(f"wrote {out / 'digits-conv.png'}")
    return accuracies[-1]


def main() -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="directory for the picture")
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")
    matplotlib.use("agg")
    with threadpool_limits(1, user_api="blas"):  # several threads only slow down products this small
        run(options.epochs, options.seed, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
