"""Train on several processes, then again while they are killed over and over: the weights at the end are the same.

    python examples/distributed_digits.py                        # train on two, then on three that are killed
    python examples/distributed_digits.py --epochs 10 --kills 5 --sizes 2 4 --out /tmp

Each training is started as `python -m cygrad.distributed.run --nproc-per-node N --max-restarts K`, which starts it anew
from the last checkpoint when a process has died. `--train` is the part that it runs; to use that alone:

    python -m cygrad.distributed.run --nproc-per-node 2 examples/distributed_digits.py --train /tmp/digits

The data are the handwritten digits that come with scikit-learn. `deterministic` lets a step consist of the same 8
micro-batches whatever the number of processes, and adds their gradients up in the same order, so that all weights are
equal bit for bit. With `import torch.distributed as dist` and without the lines about it, this is a program for
PyTorch.
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

try:
    import matplotlib
    from matplotlib import pyplot as plt
    from sklearn.datasets import load_digits
except ImportError as error:
    sys.exit(f'{error}\nthis example needs scikit-learn and matplotlib: pip install ".[examples,distributed]"')

import cygrad as torch
import cygrad.distributed as dist
import cygrad.distributed.checkpoint as dcp
from cygrad import nn
from cygrad.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from cygrad.utils.data import DataLoader, TensorDataset

SHARDS, BATCH = 8, 8  # micro-batches in a step, images in each

# --- Training, of which any process can be killed ---------------------------------------------------------


def data() -> tuple[TensorDataset, torch.Tensor, torch.Tensor]:
    """Return the training data, and the images and labels for testing: the last 300."""
    pixels, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy((pixels / 16).astype(np.float32)), torch.from_numpy(labels.astype(np.int64))
    return TensorDataset(x[:-300], y[:-300]), x[-300:], y[-300:]


def train(folder: Path, epochs: int, kills: int) -> None:
    """Train from the newest checkpoint in `folder`, or from scratch, saving one after each epoch."""
    torch.set_num_threads(1)
    dist.init_process_group()
    dist.deterministic(True, shards=SHARDS)
    torch.manual_seed(0)
    images, test_x, test_y = data()
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    sampler = dist.MicroBatchSampler(images, BATCH)
    loader = DataLoader(images, batch_sampler=sampler)

    newest, first = dcp.latest(folder), 0
    if newest is not None:
        states = get_state_dict(model, optimizer)
        state = {"model": states[0], "optimizer": states[1], "epoch": 0, "random": torch.get_rng_state()}
        dcp.load(state, checkpoint_id=newest)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        torch.set_rng_state(state["random"])
        first = state["epoch"]
        if dist.get_rank() == 0:
            print(f"goes on after epoch {first} with {dist.get_world_size()} processes", flush=True)
    for epoch in range(first, epochs):
        if epoch >= (killed(folder) + 1) * epochs // (kills + 2):  # spread over the training
            die_perhaps(folder, epoch, kills)
        sampler.set_epoch(epoch)
        batches = iter(loader)
        for _ in range(sampler.steps):
            optimizer.zero_grad()
            for _ in dist.my_shards():
                x, y = next(batches)
                nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        states = get_state_dict(model, optimizer)
        state = {"model": states[0], "optimizer": states[1], "epoch": epoch + 1, "random": torch.get_rng_state()}
        dcp.save(state, checkpoint_id=folder / f"epoch-{epoch + 1}")
        if dist.get_rank() == 0:
            with torch.no_grad():
                outputs = model.module.eval()(test_x)
            model.module.train()
            (folder / f"loss-{epoch + 1}").write_text(str(nn.functional.cross_entropy(outputs, test_y).item()))
    if dist.get_rank() == 0:
        with torch.no_grad():
            right = (model.module.eval()(test_x).argmax(1) == test_y).float().mean().item()
        weights = hashlib.sha256(b"".join(v.numpy().tobytes() for v in model.module.state_dict().values()))
        print(f"accuracy {right:.2%}, weights {weights.hexdigest()[:16]}", flush=True)
    dist.destroy_process_group()


def killed(folder: Path) -> int:
    """Return how often processes have been killed so far."""
    return len(list(folder.glob("killed-*")))


def die_perhaps(folder: Path, epoch: int, kills: int) -> None:
    """Let one process kill itself at a random moment of this epoch, unless that has happened often enough."""
    done = killed(folder)
    if done < kills and dist.get_rank() == done % dist.get_world_size():
        moment = random.uniform(0.005, 0.05)

        def die() -> None:
            time.sleep(moment)
            (folder / f"killed-{done}").write_text(str(epoch))
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=die, daemon=True).start()


# --- Starting it ------------------------------------------------------------------------------------------


def start(folder: Path, size: int, epochs: int, kills: int) -> str:
    """Train with `size` processes; return the last line that they print."""
    folder.mkdir()
    command = [
        *(sys.executable, "-m", "cygrad.distributed.run", "--nproc-per-node", size, "--max-restarts", kills),
        *(__file__, "--train", folder, "--epochs", epochs, "--kills", kills),
    ]
    begun = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the training failed with exit status {done.returncode}:\n{done.stdout}{done.stderr}")
    *steps, last = done.stdout.splitlines()
    print(f"{size} processes, killed {killed(folder)} times, {time.perf_counter() - begun:.1f} s: {last}")
    for step in steps:
        if step.startswith("goes on"):  # and not what MPI says of processes that have died
            print(f"    {step}")
    return last


def draw(folders: list[Path], sizes: list[int], path: Path) -> None:
    """Draw the loss on the test images after each epoch of each training, and when processes were killed."""
    page, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for place, (folder, size) in enumerate(zip(folders, sizes)):
        found = {int(file.name.partition("-")[2]): float(file.read_text()) for file in folder.glob("loss-*")}
        epochs = sorted(found)
        width, alpha = (1.5, 1.0) if place else (6.0, 0.3)
        losses = [found[epoch] for epoch in epochs]
        axes.plot(epochs, losses, linewidth=width, alpha=alpha, label=f"{size} processes")
    for i, epoch in enumerate(int(file.read_text()) for file in sorted(folders[-1].glob("killed-*"))):
        axes.axvline(epoch + 0.5, color="tab:red", linestyle=":", label=None if i else "a process is killed")
    axes.set(title="The same training on different numbers of processes", xlabel="epoch")
    axes.set(ylabel="cross entropy on test images", ylim=(0, None))
    axes.locator_params(axis="x", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    page.savefig(path, dpi=120)
    plt.close(page)
    print(f"wrote {path}")


def main() -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10, help="passes over the data")
    parser.add_argument("--kills", type=int, default=3, help="how often processes of the last training are killed")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 3], help="numbers of processes, at most 8")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="directory for the picture")
    parser.add_argument("--train", type=Path, help="only train, with checkpoints in this folder")
    options = parser.parse_args()
    if options.epochs < 1 or options.kills < 0 or not all(1 <= size <= SHARDS for size in options.sizes):
        parser.error(f"--epochs must be at least 1, --kills at least 0, and --sizes from 1 to {SHARDS}")
    if options.train:
        train(options.train, options.epochs, options.kills)
        return 0
    with tempfile.TemporaryDirectory() as directory:
        folders = [Path(directory) / str(place) for place in range(len(options.sizes))]
        kills = [0] * (len(folders) - 1) + [options.kills]
        results = [start(at, size, options.epochs, count) for at, size, count in zip(folders, options.sizes, kills)]
        matplotlib.use("agg")
        draw(folders, options.sizes, options.out / "distributed-digits.png")
    same = len(set(results)) == 1
    print("all weights are the same, bit for bit" if same else "the weights differ")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
