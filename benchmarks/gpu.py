"""The same work on a GPU by cygrad and by PyTorch, in one process: medians of interleaved runs, timed by events.

    python -m benchmarks.gpu

prints a table; `tools/gpu_report.py` puts it into docs/gpu-report.md.
"""

import statistics

import cygrad

ROUNDS = 30


def chain(size):
    """tanh, mul, exp, sigmoid and sum, forward and backward."""

    def make(torch):
        x = torch.randn(size, device="cuda", requires_grad=True)

        def run():
            x.grad = None
            (torch.tanh(x) * x).exp().sigmoid().sum().backward()

        return run

    return make


def rows(function):
    """A function of rows of 4096, forward and backward."""

    def make(torch):
        x = torch.randn(8192, 4096, device="cuda", requires_grad=True)
        g = torch.randn(8192, 4096, device="cuda")

        def run():
            x.grad = None
            function(torch, x).backward(g)

        return run

    return make


def forward(function):
    """A function of 10^8 elements, forward alone: what is read and written once."""

    def make(torch):
        x = torch.randn(24576, 4096, device="cuda")

        def run():
            with torch.no_grad():
                function(torch, x)

        return run

    return make


def cross_entropy(torch):
    x = torch.randn(8192, 4096, device="cuda", requires_grad=True)
    target = torch.randint(0, 4096, (8192,), device="cuda")

    def run():
        x.grad = None
        torch.nn.functional.cross_entropy(x, target).backward()

    return run


def matmul(dtype):
    """The product of two matrices of 4096 x 4096."""

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


def captured_step(torch):
    """The same step as a graph of cygrad's, against PyTorch's ops."""
    return cygrad.cuda.graph(mlp_step(cygrad, capturable=True)) if torch is cygrad else mlp_step(torch)


def transformer(torch):
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True).cuda()
    x = torch.randn(32, 512, 768, device="cuda")

    def run():
        layer.zero_grad()
        layer(x).sum().backward()

    return run


def convolutions(torch):
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
        nn.Conv2d(128, 256, 3, stride=2, padding=1), nn.BatchNorm2d(256), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10),
    ).cuda()  # fmt: skip
    x = torch.randn(64, 3, 32, 32, device="cuda")

    def run():
        model.zero_grad()
        model(x).sum().backward()

    return run


def adam(torch):
    params = [torch.randn(3500, device="cuda", requires_grad=True) for _ in range(3000)]
    for p in params:
        p.grad = torch.randn(3500, device="cuda")
    return torch.optim.Adam(params).step


MAKERS = {
    "chain of 10^6": chain(10**6),
    "chain of 10^8": chain(10**8),
    "softmax 8192x4096": rows(lambda torch, x: torch.softmax(x, -1)),
    "layer norm 8192x4096": rows(lambda torch, x: torch.nn.functional.layer_norm(x, (4096,))),
    "cross-entropy 8192x4096": cross_entropy,
    "gelu 24576x4096, forward": forward(lambda torch, x: torch.nn.functional.gelu(x)),
    "softmax 24576x4096, forward": forward(lambda torch, x: torch.softmax(x, -1)),
    "layer norm 24576x4096, forward": forward(lambda torch, x: torch.nn.functional.layer_norm(x, (4096,))),
    "matmul 4096": matmul("float32"),
    "matmul 4096, bfloat16": matmul("bfloat16"),
    "784-128-10 step with Adam": mlp_step,
    "784-128-10 step with Adam, captured": captured_step,
    "transformer block 32x512x768": transformer,
    "convolutions 64x3x32x32": convolutions,
    "Adam of 3000 tensors": adam,
}


def milliseconds(torch, run):
    """How long the GPU takes for one run."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


# Bytes that a row reads and writes at least
BYTES = {row: 2 * 4 * 24576 * 4096 for row in MAKERS if row.endswith("forward")}


def row(name):
    """{"times": {library: median in milliseconds}, "share": that of the memory's bandwidth, if it is what counts}."""
    libraries = peers()
    runs = {library: MAKERS[name](torch) for library, torch in libraries.items()}
    times: dict[str, list[float]] = {library: [] for library in libraries}
    for turn in range(ROUNDS + 3):  # the first compile kernels and fill pools
        for library, run in runs.items():
            time = milliseconds(libraries[library], run)
            if turn >= 3:
                times[library].append(time)
    medians = {library: statistics.median(values) for library, values in times.items()}
    if name not in BYTES:
        return {"times": medians}
    return {"times": medians, "share": BYTES[name] / (medians["cygrad"] / 1000) / bandwidth()}


def bandwidth():
    """Bytes that the memory of the GPU could move in a second."""
    from cygrad._kernels.gpu.library import cupy

    attribute = cupy().cuda.runtime.deviceGetAttribute
    kilohertz, bits = 36, 37  # numbers of CUDA's attributes
    return 2 * 1000 * attribute(kilohertz, 0) * attribute(bits, 0) / 8


def peers():
    """cygrad, and PyTorch where it has a GPU."""
    found = {"cygrad": cygrad}
    try:
        import torch
    except ImportError:
        return found
    if torch.cuda.is_available():
        found["PyTorch"] = torch
    return found


def as_table(table, shares):
    """The figures as a table of Markdown."""
    names = sorted({name for times in table.values() for name in times}, key=str.lower)
    lines = ["| work | " + " | ".join(f"{name} (ms)" for name in names) + " | ratio | of bandwidth |"]
    lines.append("|---" * (len(names) + 3) + "|")
    for row, times in table.items():
        ratio = f"{times['cygrad'] / times['PyTorch']:.2f}" if "PyTorch" in times else ""
        share = f"{100 * shares[row]:.0f} %" if shares.get(row) else ""
        cells = (f"{times[name]:.3f}" if name in times else "" for name in names)
        lines.append(f"| {row} | " + " | ".join(cells) + f" | {ratio} | {share} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if not cygrad.cuda.is_available():
        raise SystemExit("there is no GPU")
    found = {name: row(name) for name in MAKERS}
    times, shares = ({name: r.get(key) for name, r in found.items()} for key in ("times", "share"))
    print(as_table(times, shares))
