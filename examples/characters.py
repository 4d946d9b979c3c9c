"""Train a small transformer to write docstrings one character at a time, on those of Python's standard library.

    python examples/characters.py                    # train, print the loss and a sample text, save a picture
    python examples/characters.py --steps 3000 --seed 1 --out /tmp

The text comes from the interpreter that runs this, so it differs between versions of Python. Some modules, a tenth of
the text, are held out for validation. With Python 3.11 the validation loss ends below 1.75 nats per character. For
comparison, the program also prints the losses of models that count single characters and triples of them.
"""

import argparse
import ast
import math
import sys
import sysconfig
import textwrap
import time
from collections.abc import Iterator
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
from cygrad.nn import functional as F

ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
LETTERS, CONTEXT, WIDTH, HEADS, DEPTH, BATCH = len(ALPHABET), 64, 64, 4, 2, 24
PROMPT = "Return the "

# --- The text ---------------------------------------------------------------------------------------------


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings in a module's source, without running the module."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text and text.isascii():
                yield text


def read_text() -> tuple[torch.Tensor, torch.Tensor]:
    """Return the training and validation texts as indices into the alphabet."""
    library = Path(sysconfig.get_paths()["stdlib"])
    modules = [path for path in sorted(library.glob("*.py")) if not path.name.startswith("_")]
    texts = ["\n\n".join(docstrings(path)) for path in modules]
    # Hold out whole modules, a tenth of the text, with a fixed seed of their own.
    order = np.random.default_rng(0).permutation(len(texts))
    ends = np.cumsum([len(texts[i]) for i in order])
    if not ends.size or ends[-1] < 100_000:
        sys.exit(f"{library}: found no docstrings to read; this example needs the library's source")
    first = int(np.searchsorted(ends, 0.9 * ends[-1]))
    number = {letter: i for i, letter in enumerate(ALPHABET)}
    parts = ("\n\n\n".join(texts[i] for i in part) for part in (order[:first], order[first:]))
    train, test = (torch.tensor([number[letter] for letter in part if letter in number]) for part in parts)
    return train, test


def count_loss(train: torch.Tensor, test: torch.Tensor, order: int) -> float:
    """Return the test loss of an n-gram model of this order, smoothed with the counts of shorter groups."""
    scores = np.full(len(test) - order + 1, 1 / LETTERS)
    for size in range(1, order + 1):
        powers = LETTERS ** np.arange(size)[::-1]
        groups = np.lib.stride_tricks.sliding_window_view(train.numpy(), size) @ powers
        counts = np.bincount(groups, minlength=LETTERS**size)
        asked = np.lib.stride_tricks.sliding_window_view(test.numpy()[order - size :], size) @ powers
        total = counts.reshape(-1, LETTERS).sum(axis=1)[asked // LETTERS]
        scores = (counts[asked] + 5 * scores) / (total + 5)
    return float(-np.log(scores).mean())


# --- The model --------------------------------------------------------------------------------------------


class Block(nn.Module):
    """Causal self-attention, then a small network for each character."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.heads, self.together = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.network = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, characters, width) to the same shape."""
        batch, length, _ = x.shape
        heads = self.heads(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind()
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.together(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.network(self.norm2(x))


class Writer(nn.Module):
    """Scores the next character after each one; input and output share the embedding table."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(LETTERS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)
        for table in (self.letters, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Map indices (batch, characters) to scores (batch, characters, alphabet)."""
        x = self.letters(text) + self.places.weight[: text.shape[1]]
        return self.norm(self.blocks(x)) @ self.letters.weight.T

    @torch.no_grad()
    def write(self, prompt: str, length: int, temperature: float = 0.7) -> str:
        """Continue the prompt by `length` characters, each sampled from its scores."""
        text = [ALPHABET.index(letter) for letter in prompt]
        for _ in range(length):
            scores = self(torch.tensor([text[-CONTEXT:]]))[0, -1] / temperature
            text.append(int(torch.multinomial(scores.softmax(dim=0), 1)))
        return "".join(ALPHABET[i] for i in text)


# --- Training ---------------------------------------------------------------------------------------------


def loss_of(model: nn.Module, text: torch.Tensor, starts: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    """Return the loss of predicting the CONTEXT characters after each start."""
    pieces = text[starts.unsqueeze(1) + torch.arange(CONTEXT + 1)]
    return F.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten(), reduction=reduction)


@torch.no_grad()
def validate(model: nn.Module, text: torch.Tensor, pieces: int) -> float:
    """Return the mean loss on this many evenly spaced excerpts."""
    return loss_of(model, text, torch.linspace(0, len(text) - CONTEXT - 1, pieces).long()).item()


def learning_rate(step: int, steps: int) -> float:
    """Return the learning rate relative to its maximum: linear warm-up, then cosine decay."""
    rise = min(100, steps // 10 + 1)
    return min((step + 1) / rise, 0.5 + 0.5 * math.cos(math.pi * step / steps))


def train(
    model: nn.Module, text: torch.Tensor, test: torch.Tensor, steps: int
) -> tuple[list[float], list[tuple[int, float]]]:
    """Return the loss of each step, and from time to time (step, loss on the test text)."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=5e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate(step, steps))
    losses: list[float] = []
    tested = [(0, validate(model, test, 100))]
    bar = tqdm(range(1, steps + 1), desc="training", unit="step", disable=None)  # None: only on terminals
    for step in bar:
        optimizer.zero_grad()
        loss = loss_of(model, text, torch.randint(0, len(text) - CONTEXT, (BATCH,)))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 0 or step == steps:
            tested.append((step, validate(model, test, 100)))
        if step % 10 == 0:
            bar.set_postfix(loss=f"{losses[-1]:.3f}", test=f"{tested[-1][1]:.3f}")
    return losses, tested


def picture(
    path: Path,
    losses: list[float],
    tested: list[tuple[int, float]],
    counted: dict[str, float],
    model: nn.Module,
    test: torch.Tensor,
) -> None:
    """Draw the loss curves, and unseen text colored by the loss of each character."""
    page, (left, right) = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
    left.plot(range(1, len(losses) + 1), losses, linewidth=0.5, alpha=0.6, label="training")
    left.plot(*zip(*tested), color="C1", label="validation")
    for style, (name, value) in zip((":", "--"), counted.items()):
        left.axhline(value, color="gray", linestyle=style, label=name)
    left.set(xlabel="step", ylabel="loss, nats per character", title="Training", ylim=(0, None))
    left.grid(alpha=0.3)
    left.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)

    columns, rows = CONTEXT, 16
    starts = torch.arange(rows) * columns
    with torch.no_grad():
        surprise = loss_of(model, test, starts, reduction="none").reshape(rows, columns).numpy()
    shown = right.imshow(surprise, cmap="YlOrRd", vmin=0, vmax=6, aspect="auto")
    for row in range(rows):
        for column in range(columns):
            letter = ALPHABET[int(test[row * columns + column + 1])]
            right.text(
                *(column, row, letter.replace("\n", "·")),
                color="white" if surprise[row, column] > 4 else "black",
                ha="center",
                va="center",
                family="monospace",
                fontsize=7,
            )
    right.axis("off")
    right.set_title("Unseen text, colored by the loss of each character")
    page.colorbar(shown, ax=right, orientation="horizontal", shrink=0.5, pad=0.02, label="nats")
    page.savefig(path, dpi=110)
    plt.close(page)


def run(steps: int, seed: int, out: Path) -> float:
    """Train, print the loss and a sample text, save the picture, and return the loss."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    text, test = read_text()
    model = Writer()
    print(f"{len(text)} characters to learn from, {sum(p.numel() for p in model.parameters())} weights", flush=True)
    losses, tested = train(model, text, test, steps)
    counted = {"counting characters": count_loss(text, test, 1), "counting triples": count_loss(text, test, 3)}
    loss = validate(model, test, 500)
    print(f"validation loss {loss:.3f}; {', '.join(f'{name} {value:.3f}' for name, value in counted.items())}")
    print(f"trained {steps} steps in {time.perf_counter() - started:.1f} s\n")
    print(textwrap.indent(model.write(PROMPT, 400), "    "), end="\n\n")
    out.mkdir(parents=True, exist_ok=True)
    picture(out / "characters.png", losses, tested, counted, model, test)
    print(f"wrote {out / 'characters.png'}")
    return loss


def main() -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000, help="training steps")
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
