"""Check that a GPU computes the same as the CPU, starting with the most informative checks.

    python tools/gpu_first_look.py [NAME...]

prints a line of JSON when a check begins and another when it ends. `tools/gpu_report.py` starts with these checks.
"""

import sys
import time
from typing import Any, cast

import numpy as np

import cygrad as torch
import cygrad.nn.functional as F
from benchmarks.gpu import print_rows


def drawn(*shape, dtype=torch.float32, device="cpu", seed=0):
    """Return a leaf of normally distributed numbers, the same on all devices."""
    values = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return torch.from_numpy(values).to(device).to(dtype).requires_grad_()


def of(function, *shapes, dtype=torch.float32):
    """Return a check that computes a function of leaves of these shapes, and their gradients, on a device."""

    def results(device):
        leaves = [drawn(*shape, dtype=dtype, device=device, seed=i) for i, shape in enumerate(shapes)]
        found = function(*leaves)
        found.backward(drawn(*found.shape, dtype=found.dtype, device=device, seed=9).detach())
        return [found, *(leaf.grad for leaf in leaves)]

    return results


def recurrent(device):
    """Run an LSTM and compute its gradients."""
    torch.manual_seed(0)
    layer, x = torch.nn.LSTM(6, 5, batch_first=True).to(device), drawn(4, 7, 6, device=device)
    found, _ = layer(x)
    (found * found).sum().backward()
    return [found, x.grad, *(p.grad for p in layer.parameters())]


def trained(optimizer, **how):
    """Return a check that computes a small network's weights after some optimizer steps."""

    def results(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Tanh(), torch.nn.Linear(30, 5)).to(device)
        steps = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01, **how)
        x, y = drawn(16, 20, device=device).detach(), torch.arange(16, device=device) % 5
        for _ in range(5):
            steps.zero_grad()
            F.cross_entropy(model(x), y).backward()
            steps.step()
        return list(model.parameters())

    return results


steps_taken: list = []  # by the captured steps below


def captured(device):
    """Return weights after replayed steps, and after as many steps on the CPU."""
    torch.manual_seed(0)
    model, is_gpu = torch.nn.Linear(20, 5).to(device), device == "cuda"
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, capturable=is_gpu)
    x = drawn(16, 20, device=device).detach()

    def step():
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()

    run: Any = torch.cuda.graph(cast("Any", step)) if is_gpu else step
    for _ in range(5 if is_gpu else steps_taken[-1]):
        run()
    steps_taken.append(int(optimizer.state[model.weight]["step"]))  # includes those before the capture
    return list(model.parameters())


def streams(device):
    """Read in one stream the result of another."""
    x = drawn(1000, 1000, device=device).detach()
    if device == "cpu":
        return [x @ x + 1]
    stream, y = torch.cuda.Stream(), x @ x
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        z = y + 1
    torch.cuda.current_stream().wait_stream(stream)
    return [z]


def index(*shape, below, device):
    """Return random integers."""
    return torch.from_numpy(np.random.default_rng(1).integers(0, below, shape)).to(device)


def picked(device):
    """Gather rows and elements by index, and scatter-add into such positions."""
    x, i = drawn(50, 8, device=device), index(30, below=50, device=device)
    (F.embedding(i, x).sum() + (x[i] ** 2).sum() + x.gather(0, index(4, 8, below=50, device=device)).sum()).backward()
    return [x.grad, torch.zeros(50, 8, device=device).index_add(0, i, torch.ones(30, 8, device=device))]


def counted(device):
    """Return memory statistics."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        x = torch.empty(1 << 20, device=device)
        grown = torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before
        del x
        return [torch.tensor([float(n) for n in (*grown, torch.cuda.memory_allocated() - before)])]
    return [torch.tensor([4.0 * (1 << 20), 4.0 * (1 << 20), 0.0])]


def random_numbers(device):
    """Return rounded means and standard deviations of random numbers."""
    torch.manual_seed(0)
    x, y = torch.rand(100_000, device=device), torch.randn(100_000, device=device)
    kept = F.dropout(torch.ones(100_000, device=device), 0.5)
    return [torch.stack([t.mean() for t in (x, y, kept)] + [t.std() for t in (x, y)]).mul(20).round()]


def half(name):
    """Return a 16-bit dtype."""
    return getattr(torch, name)


def attention(*shape, dtype=torch.float32, **how):
    """Return a check of attention whose query, keys and values have one shape."""
    return of(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **how), shape, shape, shape, dtype=dtype)


def in_tf32(results):
    """Return a check with products of float32 in TF32."""

    def with_it(device):
        torch.set_float32_matmul_precision("high")
        try:
            return results(device)
        finally:
            torch.set_float32_matmul_precision("highest")

    return with_it


def convolution(allow_tf32, dtype=torch.float32, uses_cudnn=True, **how):
    """Return a check of a convolution, by cuDNN if it is there, or without it."""
    check = of(lambda x, w, b: F.conv2d(x, w, b, **how), (4, 72, 12, 12), (80, 72, 3, 3), (80,), dtype=dtype)

    def results(device):
        with torch.backends.cudnn.flags(enabled=uses_cudnn, allow_tf32=allow_tf32):
            return check(device)

    return results


CHECKS = {
    "there and back": lambda device: [drawn(1000, device=device) * 1],
    "elementwise": of(lambda x, y: (x * y + 1).tanh().exp() / 3 - y, (1000,), (1000,)),
    "elementwise, float16": of(lambda x, y: (x * y + 1).tanh().exp(), (1000,), (1000,), dtype=torch.float16),
    "elementwise, bfloat16": of(lambda x, y: (x * y + 1).tanh().exp(), (1000,), (1000,), dtype=torch.bfloat16),
    "elementwise, float64": of(lambda x, y: (x * y + 1).tanh().exp(), (999,), (999,), dtype=torch.float64),
    "broadcast and strided": of(lambda x, y: (x.t()[::2] * y[:, :1]).sum(0), (7, 20), (10, 3)),
    "activations": of(lambda x: F.gelu(x) + F.silu(x) + F.softplus(x) + F.leaky_relu(x) + F.elu(x), (1000,)),
    "sums": of(lambda x: x.sum(0) + x.mean() + x.var() + x.norm() + x.logsumexp(0) + x.amax(0), (300, 70)),
    "sums of few long rows": of(lambda x: x.sum(1) + x.sum(), (2, 1_000_003)),
    "matmul": of(lambda x, y: x @ y, (65, 130), (130, 33)),
    "matmul, float16": of(lambda x, y: x @ y, (64, 128), (128, 32), dtype=torch.float16),
    "matmul, bfloat16 stacks": of(lambda x, y: x @ y, (3, 64, 128), (3, 128, 32), dtype=torch.bfloat16),
    "linear": of(lambda x, w, b: F.linear(x, w, b), (40, 50), (60, 50), (60,)),
    "linear, float16": of(lambda x, w, b: F.linear(x, w, b), (40, 50), (60, 50), (60,), dtype=torch.float16),
    "linear, bfloat16": of(lambda x, w, b: F.linear(x, w, b), (40, 64), (72, 64), (72,), dtype=half("bfloat16")),
    "sums with products": of(
        lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2) + torch.addmm(c[0], x, y, beta=2, alpha=0.5),
        (40, 60), (40, 50), (50, 60)),
    "softmax": of(lambda x: x.softmax(-1) + x.log_softmax(0), (100, 1000)),
    "softmax of long rows": of(lambda x: x.softmax(-1), (3, 40_001)),
    "cross-entropy": of(lambda x: F.cross_entropy(x, index(100, below=1000, device=x.device)), (100, 1000)),
    "layer norm": of(lambda x, w, b: F.layer_norm(x, (768,), w, b), (100, 768), (768,), (768,)),
    "batch norm": of(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (8, 6, 9, 9), (6,), (6,)),
    "group norm": of(lambda x, w, b: F.group_norm(x, 3, w, b), (8, 6, 9, 9), (6,), (6,)),
    "attention": attention(2, 3, 100, 64),
    "attention, float16, causal": attention(2, 3, 100, 64, dtype=torch.float16, is_causal=True),
    "attention, bfloat16, wide": attention(2, 3, 100, 128, dtype=torch.bfloat16),
    "attention, float16, heads of 32": attention(2, 3, 100, 32, dtype=torch.float16),
    "attention, float16, copied by tiles": attention(2, 3, 100, 60, dtype=torch.float16),
    "attention, TF32": in_tf32(attention(2, 3, 100, 64)),
    "attention, TF32, causal": in_tf32(attention(2, 3, 100, 128, is_causal=True)),
    "convolution": convolution(False, padding=1),
    "convolution, TF32": convolution(True, padding=1),
    "convolution on tensor cores, TF32": convolution(True, uses_cudnn=False, padding=1, stride=2),
    "convolution on tensor cores, float16": convolution(True, torch.float16, uses_cudnn=False, padding=1),
    "convolution on tensor cores, bfloat16": convolution(True, torch.bfloat16, uses_cudnn=False, dilation=2),
    "convolution by channels": of(lambda x, w: F.conv2d(x, w, stride=2, groups=8), (4, 8, 12, 12), (8, 1, 3, 3)),
    "pooling": of(lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2), (4, 8, 12, 12)),
    "indices": picked,
    "sorts and sums so far": of(lambda x: x.sort(-1)[0] + x.cumsum(-1) + x.topk(50, -1)[0].sum(), (20, 100)),
    "random numbers": random_numbers,
    "SGD": trained("SGD", momentum=0.9),
    "Adam": trained("Adam"),
    "AdamW": trained("AdamW", weight_decay=0.1),
    "NAdam, capturable": trained("NAdam", capturable=True),
    "RAdam, capturable": trained("RAdam", capturable=True, betas=(0.8, 0.9)),
    "Adafactor": trained("Adafactor"),
    "LSTM": recurrent,
    "captured graph": captured,
    "streams": streams,
    "memory": counted,
    "linear algebra": of(lambda x: torch.linalg.solve(x @ x.mT + torch.eye(20, device=x.device), x), (20, 20)),
    "fft": of(lambda x: torch.fft.rfft(x).abs(), (20, 64)),
}  # fmt: skip


def check(name):
    """Return {"error": difference from the CPU relative to the largest value, "seconds": including compilation}."""
    start = time.monotonic()
    found, expected = ([t.detach().cpu().double().numpy() for t in CHECKS[name](d)] for d in ("cuda", "cpu"))
    taken, error = time.monotonic() - start, 0.0
    for a, b in zip(found, expected, strict=True):
        if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return {"problem": f"shape {a.shape} for {b.shape}, or non-finite values in other places"}
        error = max(error, float(np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(b), initial=0), 1e-30)))
    bound = 5e-2 if "bfloat16" in name else 1e-2 if "float16" in name else 5e-3 if "TF32" in name else 1e-3
    result = {"error": error, "seconds": round(taken, 2)}
    return result if error < bound else {**result, "problem": f"differs from the CPU by {error:.2g} of the largest"}


if __name__ == "__main__":
    print_rows(check, sys.argv[1:] or CHECKS)
