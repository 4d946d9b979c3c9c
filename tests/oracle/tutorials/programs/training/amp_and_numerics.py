"""Autocasts, gradient scaling, bfloat16, reproducibility, numerical accuracy, type promotion."""

import torch
from torch import nn
from shared import told

torch.manual_seed(0)
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))
x, y = torch.randn(3, 4), torch.tensor([0, 1, 1])
with torch.autocast("cpu", dtype=torch.bfloat16):
    h = m[0](x)
    out = m(x)
    loss = nn.functional.cross_entropy(out, y)
    print(
        h.dtype,
        m[2](h).dtype,
        out.dtype,
        loss.dtype,
        (h @ h.T).dtype,
        (h + x[:, :1]).dtype,
        h.softmax(-1).dtype,
        h.sum().dtype,
        torch.cat([h, x.repeat(1, 2)]).dtype,
        h.exp().dtype,
        h.pow(2).dtype,
        h.norm().dtype,
    )
    with torch.autocast("cpu", enabled=False):
        print(m[0](x).dtype)
    print(torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled())
loss.backward()
print(loss, m[0].weight.grad.dtype, out)
with torch.autocast("cpu", dtype=torch.float16):
    print(m[0](x).dtype)
told(lambda: torch.autocast("cpu", dtype=torch.float64).__enter__().fast_dtype)
told(lambda: torch.autocast("nosuch"))
told(lambda: torch.autocast(3))
with torch.autocast("cuda"):
    print(m[0](x).dtype)
s = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
o = torch.optim.SGD(m.parameters(), lr=0.1)
for i in range(5):
    o.zero_grad()
    l = s.scale(m(x).float().sum() * (float("inf") if i == 1 else 1.0))
    l.backward()
    s.unscale_(o)
    told(lambda: s.unscale_(o))
    s.step(o)
    told(lambda: s.step(o))
    s.update()
    print(s.get_scale(), s.state_dict())
told(lambda: torch.amp.GradScaler("cpu", growth_factor=0.5))
told(lambda: torch.amp.GradScaler("cpu", backoff_factor=2.0))
told(lambda: s.scale(3))
b = torch.tensor([1.0, 2.0, 3.0, 1e-3], dtype=torch.bfloat16)
print(
    b,
    b.sum(),
    b / 3,
    b.mean(),
    b.softmax(0),
    b.cumsum(0),
    b.sqrt(),
    torch.nextafter(b, b + 1),
    b.exp().log(),
    b.std(),
    b.float().to(torch.float16),
    b.matmul(b),
)
print(
    torch.finfo(torch.bfloat16),
    torch.iinfo(torch.int16),
    torch.finfo(torch.float32).tiny,
    torch.finfo(torch.float8_e4m3fn),
)
told(lambda: torch.finfo(torch.int32))
told(lambda: torch.iinfo(torch.float32))
print(
    torch.promote_types(torch.int8, torch.uint8),
    torch.result_type(torch.ones(1, dtype=torch.int32), 1.5),
    torch.can_cast(torch.float64, torch.int32),
    (torch.ones(1, dtype=torch.int32) * torch.tensor(2.5)).dtype,
    (torch.tensor(1, dtype=torch.int64) + torch.ones(1, dtype=torch.int8)).dtype,
)
told(lambda: torch.ones(2, dtype=torch.int32).add_(1.5))
told(lambda: torch.ones(2, dtype=torch.int32).mean())
told(lambda: torch.arange(3).softmax(0))
told(lambda: torch.ones(2, dtype=torch.int32).div_(2))
told(lambda: torch.ones(2, dtype=torch.bool) - torch.ones(2, dtype=torch.bool))
told(lambda: -torch.ones(2, dtype=torch.bool))
told(lambda: torch.ones(2, dtype=torch.int32) // 0)
told(lambda: torch.ones(2, dtype=torch.int32) % 0)
told(lambda: torch.ones(2) // 0)
told(lambda: torch.tensor([-7, 7]) // torch.tensor([2, -2]))
told(
    lambda: (
        torch.tensor([-7, 7]) % 3,
        torch.fmod(torch.tensor([-7, 7]), 3),
        torch.div(torch.tensor([-7, 7]), 2, rounding_mode="trunc"),
    )
)
told(lambda: torch.div(torch.ones(1), 2, rounding_mode="x"))
told(lambda: torch.tensor([300]).to(torch.uint8))
told(lambda: torch.tensor([2**40], dtype=torch.int32))
told(lambda: torch.tensor(2**70))
told(lambda: torch.full((2,), 300, dtype=torch.uint8))
told(lambda: torch.ones(1, dtype=torch.uint8) + 300)
told(lambda: (torch.tensor([1e30]) * 1e30, torch.tensor([0.0]) / 0, torch.tensor([1e-45]) / 2))
print(
    torch.logsumexp(torch.tensor([1000.0, 1000.0]), 0),
    torch.log1p(torch.tensor(1e-10)),
    torch.expm1(torch.tensor(1e-10)),
    torch.tensor([0.1] * 10).sum(),
    torch.tensor(16777217.0),
    torch.tensor([0.5, 1.5, 2.5]).round(),
    torch.tensor(2.345).round(decimals=2),
)
torch.set_printoptions(precision=2, sci_mode=True)
print(torch.tensor([1.0, 1234.5]), torch.tensor(1.5))
torch.set_printoptions(profile="default")
torch.set_default_dtype(torch.float64)
print(torch.tensor(1.0).dtype, torch.ones(1).dtype, torch.tensor(1j).dtype, torch.arange(0, 1, 0.5).dtype)
torch.set_default_dtype(torch.float32)
told(lambda: torch.set_default_dtype(torch.int32))
torch.use_deterministic_algorithms(True, warn_only=True)
print(
    torch.are_deterministic_algorithms_enabled(),
    torch.is_deterministic_algorithms_warn_only_enabled(),
    torch.get_deterministic_debug_mode(),
)
torch.use_deterministic_algorithms(False)
g = torch.Generator().manual_seed(3)
s = g.get_state()
a = torch.randn(3, generator=g)
g.set_state(s)
print(torch.equal(a, torch.randn(3, generator=g)), g.initial_seed(), torch.initial_seed())
with torch.random.fork_rng():
    torch.manual_seed(9)
    print(torch.rand(1))
print(torch.rand(1), torch.get_float32_matmul_precision())
told(lambda: torch.set_float32_matmul_precision("x"))
told(lambda: torch.manual_seed("a"))
