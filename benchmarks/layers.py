"""Rows for the building blocks of networks, forward and backward in float32, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.row import Library, Names, Row


def leaves(**shapes: tuple[int, ...]) -> Callable[[Library], Names]:
    """Return the setup of normally distributed tensors that require grad, except the incoming gradient `g`."""

    def setup(torch: Library) -> Names:
        torch.manual_seed(0)
        tensors = {name: torch.randn(shape, requires_grad=name != "g") for name, shape in shapes.items()}
        return {"torch": torch, "F": torch.nn.functional, **tensors}

    return setup


# --- Elementwise and row-wise ------------------------------------------------------------------

ELEMENTWISE = """
torch.sigmoid(torch.exp(torch.tanh(x) * w)).backward(g)
x.grad = w.grad = None
"""


def elementwise(size: int) -> Callable[[Library], Names]:
    """Return the setup of `ELEMENTWISE`."""
    return leaves(x=(size,), w=(size,), g=(size,))


GELU = """
F.gelu(x + b).backward(g)
x.grad = b.grad = None
"""
SOFTMAX = """
torch.softmax(x, 1).backward(g)
x.grad = None
"""
LAYER_NORM = """
F.layer_norm(x, (256,), w, b).backward(g)
x.grad = w.grad = b.grad = None
"""
CROSS_ENTROPY = """
(F.cross_entropy(x, labels) + F.embedding(words, table).sum()).backward()
x.grad = table.grad = None
"""


def cross_entropy(torch: Library) -> Names:
    """Set up scores with labels, and words with their embedding table."""
    names = leaves(x=(256, 1000), table=(10_000, 64))(torch)
    return {**names, "labels": torch.arange(256) * 3, "words": torch.arange(256) * 37 % 10_000}


# --- Small ones, dominated by overhead ---------------------------------------------------------

SLICES = """
y = x[1:9, ::2] * x[0, :16] + x[:8, 3:19]
(y[2:4, 5].sum() + y[index].sum() + x[3, 4]).backward()
x.grad = None
"""


def slices(torch: Library) -> Names:
    """Set up a matrix and a short index."""
    return {**leaves(x=(32, 32))(torch), "index": torch.tensor([0, 2, 5])}


PRODUCTS = """
y = x
for _ in range(20):
    y = y @ w
y.backward(g)
x.grad = w.grad = None
"""
MATMUL = "a @ b"
HESSIAN_VECTOR = """
(grad,) = torch.autograd.grad((torch.tanh(x @ w) ** 2).sum(), x, create_graph=True)
torch.autograd.grad((grad * g).sum(), x)
"""


def hessian_vector(torch: Library) -> Names:
    """Set up a function's argument, its constant matrix, and the vector."""
    names = leaves(x=(64, 64), w=(64, 64), g=(64, 64))(torch)
    return {**names, "w": names["w"].detach() / 8}


# --- Networks ----------------------------------------------------------------------------------

FORWARD_BACKWARD = """
model(x).backward(g)
x.grad = None
for p in parameters:
    p.grad = None
"""


def with_model(build: Callable[[Any], Any], x: tuple[int, ...], g: tuple[int, ...]) -> Callable[[Library], Names]:
    """Return the setup of a model, its input and the gradient of its result; `build` takes the library."""

    def setup(torch: Library) -> Names:
        names = leaves(x=x, g=g)(torch)
        model = build(torch)
        return {**names, "model": model, "parameters": list(model.parameters())}

    return setup


def transformer_block(torch: Library, width: int = 128, heads: int = 4) -> Any:
    """Build pre-norm attention and a two-layer network, each with a residual connection."""
    nn: Any = torch.nn
    F = nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, _ = x.shape
            three = self.into(self.norm1(x)).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            seen = F.scaled_dot_product_attention(three[0], three[1], three[2], is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    return Block()


def lstm(torch: Library) -> Any:
    """Build one layer of which only the outputs are used."""
    nn: Any = torch.nn

    class Outputs(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.LSTM(32, 64)

        def forward(self, x):
            return self.layer(x)[0]

    return Outputs()


def convolution(torch: Library) -> Any:
    """Build one 3x3 layer."""
    return torch.nn.Conv2d(32, 64, 3, padding=1)


def residual_block(torch: Library, channels: int = 32) -> Any:
    """Build two convolutions with batch norm and a residual connection."""
    nn: Any = torch.nn
    F = nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
            self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)))
            return F.relu(self.norm2(self.conv2(y)) + x)

    return Block()


STEP = """
optimizer.zero_grad()
F.cross_entropy(model(images), labels).backward()
optimizer.step()
"""


def lenet(torch: Library, batch: int = 64) -> Names:
    """Set up LeNet-5 on 28x28 images, with SGD."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )
    return {
        "F": nn.functional,
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
        "images": torch.randn(batch, 1, 28, 28),
        "labels": torch.arange(batch) % 10,
    }


def adam(count: int, size: int) -> Callable[[Library], Names]:
    """Return the setup of a single Adam step on this many tensors."""

    def setup(torch: Library) -> Names:
        parameters = [torch.randn(size, requires_grad=True) for _ in range(count)]
        for p in parameters:
            p.grad = torch.ones(size)
        return {"optimizer": torch.optim.Adam(parameters)}

    return setup


LOADED = "for batch in loader: pass"


def loader(torch: Library) -> Names:
    """Set up 10,000 samples of 8 numbers and a label, in batches of 64 with a new order each time."""
    data = torch.utils.data.TensorDataset(torch.ones(10_000, 8), torch.arange(10_000))
    return {"loader": torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)}


ROWS = [
    Row("tanh, mul, exp, sigmoid of 10^3", ELEMENTWISE, elementwise(10**3), 0.25),
    Row("tanh, mul, exp, sigmoid of 10^4.8", ELEMENTWISE, elementwise(63_096), 0.5),
    Row("tanh, mul, exp, sigmoid of 10^6", ELEMENTWISE, elementwise(10**6), 0.4),
    Row("tanh, mul, exp, sigmoid of 10^6.9", ELEMENTWISE, elementwise(7_943_282), 0.3),
    Row("gelu with bias 256x1024", GELU, leaves(x=(256, 1024), b=(1024,), g=(256, 1024)), 0.5),
    Row("softmax 4096x256", SOFTMAX, leaves(x=(4096, 256), g=(4096, 256)), 0.6),
    Row("layer norm 4096x256", LAYER_NORM, leaves(x=(4096, 256), w=(256,), b=(256,), g=(4096, 256)), 0.6),
    Row("cross-entropy 256x1000, embedding 10000x64", CROSS_ENTROPY, cross_entropy, 0.5),
    Row("slices and small indexing", SLICES, slices, 0.2),
    Row("20 products 1x32 by 32x32", PRODUCTS, leaves(x=(1, 32), w=(32, 32), g=(1, 32)), 0.25),
    Row("matmul 1024, forward", MATMUL, leaves(a=(1024, 1024), b=(1024, 1024)), 1.03),
    Row("Hessian-vector product 64x64", HESSIAN_VECTOR, hessian_vector, 0.25),
    Row("transformer block 8x64x128, 4 heads", FORWARD_BACKWARD,
        with_model(transformer_block, (8, 64, 128), (8, 64, 128)), 0.6),
    Row("LSTM, 50 steps of 16x32 to 64", FORWARD_BACKWARD, with_model(lstm, (50, 16, 32), (50, 16, 64)), 0.35),
    Row("conv2d 16x32x32x32 to 64, 3x3", FORWARD_BACKWARD,
        with_model(convolution, (16, 32, 32, 32), (16, 64, 32, 32)), 0.9),
    Row("LeNet, batch 64, SGD step", STEP, lenet, 0.6),
    Row("residual block 16x32x16x16, batch norm", FORWARD_BACKWARD,
        with_model(residual_block, (16, 32, 16, 16), (16, 32, 16, 16)), 0.8),
    Row("Adam on 100 tensors of 32", "optimizer.step()", adam(100, 32), 0.08),
    Row("Adam on 3000 tensors of 3500", "optimizer.step()", adam(3000, 3500), 0.5),
    Row("DataLoader, 10000 small samples", LOADED, loader, 0.5),
]  # fmt: skip
