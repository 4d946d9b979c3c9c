"""Time the same work on a GPU with cygrad and PyTorch, in one process: medians of interleaved runs, timed by events.

    python -m benchmarks.gpu [ROW...]

prints a line of JSON when a row begins and another when it ends. `tools/gpu_report.py` turns them into a table.

Two events enclose as many runs as take 5 ms (the same number for both libraries), and the time is divided by that
number. A single run would find the GPU idle, so its time would include the CPU's for the launches. A short row thus
measures the GPU if the CPU stays ahead of it, and otherwise the CPU. Rows named "CPU time of ..." measure the CPU for
one run.
"""

import functools
import json
import statistics
import sys
import time
import traceback
from contextlib import nullcontext
from typing import Any

import cygrad

ROUNDS, WARM = 30, 3  # rounds, and warm-up rounds that compile kernels and fill pools
ENOUGH, MOST_RUNS = 5, 200  # least milliseconds between two events, and most runs


def chain(size):
    """Return the chain tanh, mul, exp, sigmoid and sum, forward and backward."""

    def make(torch):
        x = torch.randn(size, device="cuda", requires_grad=True)

        def run():
            x.grad = None
            (torch.tanh(x) * x).exp().sigmoid().sum().backward()

        return run

    return make


def rows(function):
    """Return a function of rows of 4096 elements, forward and backward."""

    def make(torch):
        x = torch.randn(8192, 4096, device="cuda", requires_grad=True)
        g = torch.randn(8192, 4096, device="cuda")

        def run():
            x.grad = None
            function(torch, x).backward(g)

        return run

    return make


def forward(function):
    """Return a function of 10^8 elements, forward only, that reads and writes each once."""

    def make(torch):
        x = torch.randn(24576, 4096, device="cuda")

        def run():
            with torch.no_grad():
                function(torch, x)

        return run

    return make


def normalized_gelu(torch, x):
    functional = torch.nn.functional
    return functional.gelu(functional.layer_norm(x, (4096,)))


def masked_softmax(torch, x):
    return torch.softmax(x * 0.125 + x.detach()[0], -1)


def block_of_norm(torch, x):
    """GELU of a scaled layer norm of a sum."""
    functional, r = torch.nn.functional, x.detach()
    return functional.gelu(functional.layer_norm(x + r, (4096,)) * r)


def cross_entropy(torch):
    x = torch.randn(8192, 4096, device="cuda", requires_grad=True)
    target = torch.randint(0, 4096, (8192,), device="cuda")

    def run():
        x.grad = None
        torch.nn.functional.cross_entropy(x, target).backward()

    return run


def matmul(dtype):
    """Return the product of two 4096 x 4096 matrices."""

    def make(torch):
        a, b = (torch.randn(4096, 4096, device="cuda", dtype=getattr(torch, dtype)) for _ in range(2))
        return lambda: a @ b

    return make


def mlp_step(torch, **how):
    model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), **how)
    x, y = torch.randn(64, 784, device="cuda"), torch.randint(0, 10, (64,), device="cuda")

    def run():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return run


def captured(make):
    """Return the same work as a captured graph, in both libraries."""

    def make_graph(torch):
        run = make(torch)
        if torch is cygrad:
            return cygrad.cuda.graph(run)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM):
                run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        return graph.replay

    return make_graph


def compiled(make):
    """Return the same work by each library's `compile`: as one function, with its backward pass and optimizer."""
    return lambda torch: torch.compile(make(torch))


def transformer(autocast, batch=32, length=512, heads=12):
    """Return a step of a transformer's layer, in float32 or under bfloat16 autocast."""

    def make(torch):
        width = 64 * heads
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True).cuda()
        x = torch.randn(batch, length, width, device="cuda")

        def run():
            layer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
                y = layer(x)
            y.sum().backward()

        return run

    return make


def small_convolutions(torch, batch=64):
    """Return a training step with SGD of a network with two convolutions."""
    nn = torch.nn
    first = nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    model = nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(64 * 7 * 7, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(batch, 1, 28, 28, device="cuda"), torch.randint(0, 10, (batch,), device="cuda")

    def run():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return run


def recurrent(torch, length=64, batch=64):
    """Return a step of an LSTM layer over sequences."""
    layer = torch.nn.LSTM(128, 256).cuda()
    x = torch.randn(length, batch, 128, device="cuda")

    def run():
        layer.zero_grad()
        layer(x)[0].sum().backward()

    return run


def attention(dtype, size, is_causal):
    """Return scaled dot-product attention, forward and backward, of 16384 tokens with 768 features."""

    def make(torch):
        shape = 32, 768 // size, 512, size
        q, k, v, g = (torch.randn(shape, device="cuda").to(getattr(torch, dtype)) for _ in range(4))
        given = [t.requires_grad_() for t in (q, k, v)]

        def run():
            for t in given:
                t.grad = None
            torch.nn.functional.scaled_dot_product_attention(*given, is_causal=is_causal).backward(g)

        return run

    return make


def in_tf32(make):
    """Return the same work with products of float32 in TF32."""

    def make_in_tf32(torch):
        run = make(torch)

        def run_in_tf32():
            before = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("high")
            run()
            torch.set_float32_matmul_precision(before)

        return run_in_tf32

    return make_in_tf32


def linear(dtype):
    """Return a linear layer with a bias, forward only."""

    def make(torch):
        of_type = {"device": "cuda", "dtype": getattr(torch, dtype)}
        x, w, b = (torch.randn(*shape, **of_type) for shape in ((16384, 768), (3072, 768), (3072,)))
        return lambda: torch.nn.functional.linear(x, w, b)

    return make


def resnet(uses_cudnn, with_adam=False, batch=128, narrower=1):
    """Return a training step, with SGD or Adam, of a ResNet-18-shaped network on 32 x 32 images."""

    def make(torch):
        nn = torch.nn
        module: Any = nn.Module

        class Block(module):
            def __init__(self, given, made):
                super().__init__()
                self.first = nn.Conv2d(given, made, 3, stride=made // given, padding=1, bias=False)
                self.second = nn.Conv2d(made, made, 3, padding=1, bias=False)
                self.norms = nn.ModuleList([nn.BatchNorm2d(made), nn.BatchNorm2d(made)])
                self.past = nn.Conv2d(given, made, 1, stride=2, bias=False) if given != made else nn.Identity()

            def forward(self, x):
                y = torch.relu(self.norms[0](self.first(x)))
                return torch.relu(self.norms[1](self.second(y)) + self.past(x))

        widths = [width // narrower for width in (64, 64, 64, 128, 128, 256, 256, 512, 512)]
        blocks = [Block(given, made) for given, made in zip(widths, widths[1:])]
        stem = nn.Conv2d(3, widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()
        end = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10)
        model = nn.Sequential(*stem, *blocks, *end).cuda()
        optim = torch.optim
        if with_adam:
            optimizer = optim.Adam(model.parameters(), capturable=True)
        else:
            optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x, y = torch.randn(batch, 3, 32, 32, device="cuda"), torch.randint(0, 10, (batch,), device="cuda")

        def run():
            with nullcontext() if uses_cudnn or torch is not cygrad else torch.backends.cudnn.flags(enabled=False):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()

        return run

    return make


def convolution(dtype, uses_cudnn):
    """Return a convolution with 3 x 3 windows, forward and backward."""

    def make(torch):
        of_type = getattr(torch, dtype)
        x = torch.randn(128, 128, 32, 32, device="cuda").to(of_type).requires_grad_()
        w = torch.randn(128, 128, 3, 3, device="cuda").to(of_type).requires_grad_()
        g = torch.randn(128, 128, 32, 32, device="cuda").to(of_type)

        def run():
            x.grad = w.grad = None
            with torch.backends.cudnn.flags(enabled=uses_cudnn or torch is not cygrad):
                torch.nn.functional.conv2d(x, w, padding=1).backward(g)

        return run

    return make


def reduction(shape, dim):
    """Return a sum along a dimension."""

    def make(torch):
        x = torch.randn(*shape, device="cuda")
        return lambda: x.sum(dim)

    return make


def launches(function):
    """Return an op on 4 elements, recorded 500 times, to measure the CPU (more would fill CUDA's queue)."""

    def make(torch):
        x, y = (torch.randn(4, device="cuda", requires_grad=True) for _ in range(2))

        def run():
            for _ in range(500):
                function(torch, x, y)

        return run

    return make


def adam(torch):
    params = [torch.randn(3500, device="cuda", requires_grad=True) for _ in range(3000)]
    for p in params:
        p.grad = torch.randn(3500, device="cuda")
    return torch.optim.Adam(params).step


MAKERS = {
    "chain of 10^6": chain(10**6),
    "chain of 10^8": chain(10**8),
    "chain of 6.7 * 10^7": chain(67 * 10**6),
    "softmax 8192x4096": rows(lambda torch, x: torch.softmax(x, -1)),
    "layer norm with gelu 8192x4096": rows(normalized_gelu),
    "layer norm 8192x4096": rows(lambda torch, x: torch.nn.functional.layer_norm(x, (4096,))),
    "softmax of scaled and masked 8192x4096": rows(masked_softmax),
    "gelu of scaled layer norm of sum 8192x4096": rows(block_of_norm),
    "rms norm by hand 8192x4096": rows(lambda torch, x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)),
    "cross-entropy 8192x4096": cross_entropy,
    "x + y 24576x4096, forward": forward(lambda torch, x: x + x),
    "gelu 24576x4096, forward": forward(lambda torch, x: torch.nn.functional.gelu(x)),
    "softmax 24576x4096, forward": forward(lambda torch, x: torch.softmax(x, -1)),
    "layer norm 24576x4096, forward": forward(lambda torch, x: torch.nn.functional.layer_norm(x, (4096,))),
    "matmul 4096": matmul("float32"),
    "matmul 4096, bfloat16": matmul("bfloat16"),
    "784-128-10 step with Adam": mlp_step,
    "784-128-10 step with Adam, captured": captured(functools.partial(mlp_step, capturable=True)),
    "transformer block 32x512x768": transformer(False),
    "transformer block 32x512x768, bfloat16 autocast": transformer(True),
    "small convolutional network 64x1x28x28, SGD": small_convolutions,
    "LSTM 128 to 256, 64 steps, batch 64": recurrent,
    "ResNet-18's shape, 128x3x32x32, without cuDNN": resnet(False),
    "ResNet-18's shape, 128x3x32x32, with cuDNN": resnet(True),
    "ResNet-18's shape, 128x3x32x32, Adam": resnet(True, with_adam=True),
    "Adam of 3000 tensors": adam,
    "CPU time of 500 x * y, recorded": launches(lambda torch, x, y: x * y),
    "CPU time of 500 tanh, recorded": launches(lambda torch, x, y: torch.tanh(x)),
    "sum of 10^8": reduction((10**8,), 0),
    "sums of 4 rows of 2.5 * 10^7": reduction((4, 25 * 10**6), 1),
    "sums of 128 columns of 10^6": reduction((10**6, 128), 0),
}


# The same as captured graphs and compiled, and attention alone
_STEPS = (
    "chain of 10^6",
    "chain of 6.7 * 10^7",
    "softmax 8192x4096",
    "softmax of scaled and masked 8192x4096",
    "layer norm with gelu 8192x4096",
    "gelu of scaled layer norm of sum 8192x4096",
    "rms norm by hand 8192x4096",
    "cross-entropy 8192x4096",
    "transformer block 32x512x768",
    "transformer block 32x512x768, bfloat16 autocast",
    "small convolutional network 64x1x28x28, SGD",
    "LSTM 128 to 256, 64 steps, batch 64",
    "ResNet-18's shape, 128x3x32x32, Adam",
)
MAKERS |= {f"{row}, captured": captured(MAKERS[row]) for row in _STEPS}
MAKERS |= {
    f"convolution 128x128x32x32, {dtype}, {'with' if uses_cudnn else 'without'} cuDNN": convolution(dtype, uses_cudnn)
    for dtype in ("float32", "bfloat16")
    for uses_cudnn in (False, True)
}
MAKERS |= {
    f"attention, {dtype}, heads of {size}{', causal' if is_causal else ''}": attention(dtype, size, is_causal)
    for dtype in ("bfloat16", "float16")
    for size in (32, 64, 128)
    for is_causal in (False, True)
}
MAKERS |= {
    f"attention, float32 by TF32, heads of {size}{', causal' if is_causal else ''}": in_tf32(
        attention("float32", size, is_causal)
    )
    for size in (64, 128)
    for is_causal in (False, True)
}
MAKERS |= {f"linear 16384x768 to 3072, {dtype}": linear(dtype) for dtype in ("float32", "bfloat16")}
MAKERS["784-128-10 step with Adam, compiled"] = compiled(functools.partial(mlp_step, capturable=True))
MAKERS |= {f"{row}, compiled": compiled(MAKERS[row]) for row in _STEPS}  # last, since PyTorch takes long to compile


def milliseconds(torch, run, runs=1, of_cpu=False):
    """Return the GPU time per run over several runs, or the CPU time of one run."""
    if of_cpu:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        return (time.perf_counter() - begin) * 1000
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(runs):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / runs


# Least number of bytes that a row reads and writes
BYTES = {row: 2 * 4 * 24576 * 4096 for row in MAKERS if row.endswith("forward")}
BYTES |= {row: 4 * 10**8 for row in MAKERS if row.startswith("sum")}
BYTES["sums of 128 columns of 10^6"] = 4 * 128 * 10**6


def row(name):
    """Return {"times": {library: median in ms}, "share": fraction of the memory bandwidth, for memory-bound rows}."""
    libraries = peers()
    runs = {library: MAKERS[name](torch) for library, torch in libraries.items()}
    times: dict[str, list[float]] = {library: [] for library in libraries}
    at_once = 1
    for turn in range(WARM + ROUNDS):
        for library, run in runs.items():
            taken = milliseconds(libraries[library], run, at_once, name.startswith("CPU"))
            times[library].append(taken)
        if turn < WARM:
            fastest = min(values.pop() for values in times.values())
            at_once = max(1, min(MOST_RUNS, round(ENOUGH / fastest))) if fastest else MOST_RUNS
    medians = {library: statistics.median(values) for library, values in times.items()}
    if name not in BYTES or not (most := bandwidth()):
        return {"times": medians}
    return {"times": medians, "share": BYTES[name] / (medians["cygrad"] / 1000) / most}


def bandwidth():
    """Return the GPU's memory bandwidth in bytes per second, or 0 if it is not reported."""
    from cygrad._kernels.device.cupy_library import cupy

    attribute = cupy().cuda.runtime.deviceGetAttribute
    kilohertz, bits = 36, 37  # CUDA device attribute numbers
    return 2 * 1000 * attribute(kilohertz, 0) * attribute(bits, 0) / 8


def peers():
    """Return cygrad, and PyTorch if it has a GPU."""
    found = {"cygrad": cygrad}
    try:
        import torch
    except ImportError:
        return found
    if torch.cuda.is_available():
        found["PyTorch"] = torch
    return found


def as_table(table, shares):
    """Format the figures as a Markdown table."""
    names = sorted({name for times in table.values() for name in times}, key=str.lower)
    lines = ["| work | " + " | ".join(f"{name} (ms)" for name in names) + " | ratio | of bandwidth |"]
    lines.append("|---" * (len(names) + 3) + "|")
    for row, times in table.items():
        ratio = f"{times['cygrad'] / times['PyTorch']:.2f}" if "PyTorch" in times else ""
        share = f"{100 * shares[row]:.0f} %" if shares.get(row) else ""
        cells = (f"{times[name]:.3f}" if name in times else "" for name in names)
        lines.append(f"| {row} | " + " | ".join(cells) + f" | {ratio} | {share} |")
    return "\n".join(lines)


def print_rows(result, names):
    """Print {"begin": name} and then {"row": name, ...} as JSON lines for each name, with the result or the problem."""
    if not cygrad.cuda.is_available():
        raise SystemExit("there is no GPU")
    for name in names:
        print(json.dumps({"begin": name}), flush=True)
        try:
            found = result(name)
        except Exception as error:  # the other rows are unaffected
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            found = {"problem": text[:300], "output": traceback.format_exc()[-2000:]}
        print(json.dumps({"row": name, **found}), flush=True)


if __name__ == "__main__":
    print_rows(row, sys.argv[1:] or MAKERS)
