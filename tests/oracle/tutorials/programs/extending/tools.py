"""Profiler tables, timers, checkpointing, flop counts, summaries, hooks of memory, compile, export."""

import re
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, set_checkpoint_early_stop
from shared import told

torch.manual_seed(0)
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
x = torch.randn(3, 4, requires_grad=True)
calls = []


def block(x, k=1):
    calls.append(torch.is_grad_enabled())
    return m(x) * k


out = checkpoint(block, x, 2, use_reentrant=False)
out.sum().backward()
print(calls, x.grad.sum())
x.grad = None
calls.clear()
checkpoint(block, x, use_reentrant=True).sum().backward()
print(calls, x.grad.sum())
told(lambda: checkpoint(block, x.detach(), use_reentrant=True).sum().backward())
told(lambda: checkpoint(block, x, use_reentrant=False, nosuch=3))
told(lambda: checkpoint(block, x, k=3, use_reentrant=True))
print(checkpoint_sequential(m.eval(), 2, x, use_reentrant=False).sum())
n = [0]


def changing(x):
    n[0] += 1
    return x.sin() if n[0] == 1 else x.exp().exp()


told(lambda: checkpoint(changing, x, use_reentrant=False).sum().backward())


def fewer(x):
    n[0] += 1
    return x.sin().cos() if n[0] == 3 else x * 1


n[0] = 2
told(lambda: checkpoint(fewer, x, use_reentrant=False).sum().backward())
told(lambda: torch.autograd.grad(checkpoint(block, x, use_reentrant=True).sum(), x))
from torch.utils.flop_counter import FlopCounterMode

with FlopCounterMode(display=False) as f:
    m(x).sum().backward()
print(f.get_total_flops())
from torch.profiler import profile, record_function, ProfilerActivity, schedule

with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p:
    with record_function("mine"):
        m(x).sum().backward()
names = sorted({e.key for e in p.key_averages()})
print(
    [n for n in names if n in ("mine", "aten::linear", "aten::relu", "aten::sum")],
    [h for h in re.findall(r"[A-Z][\w%# ]+", p.key_averages().table(row_limit=1).splitlines()[1])][:3],
)
print([str(schedule(wait=1, warmup=1, active=2, repeat=1)(i)) for i in range(6)])
from torch.utils.benchmark import Timer

t = Timer("x + 1", globals={"x": x.detach()}, label="add").timeit(3)
print(type(t).__name__, t.number_per_run, t.title, t.median > 0)
c = torch.compile(m)
print(torch.allclose(c(x), m(x)), type(c).__name__, list(c.state_dict())[:1])


@torch.compile(fullgraph=True)
def g(x):
    return x * 2 + 1


print(g(torch.ones(2)), torch.compiler.is_compiling())
e = torch.export.export(m, (torch.randn(3, 4),))
print(e.graph_signature.user_inputs, e.graph_signature.user_outputs, e.graph_signature.parameters)
print(e.module()(torch.ones(3, 4)).shape)
told(lambda: e.module()(torch.ones(4, 4)))
b = torch.export.Dim("b", min=2, max=9)
e2 = torch.export.export(m, (torch.randn(3, 4),), dynamic_shapes=({0: b},))
told(lambda: e2.module()(torch.ones(5, 4)).shape)
j = torch.jit.trace(m, x.detach())
print(torch.allclose(j(x), m(x)), type(j).__name__)
s = torch.jit.script(nn.Linear(2, 2))
print(s(torch.ones(1, 2)).shape)
with torch.autograd.profiler.profile() as q:
    x.sin()
print([e.name for e in q.function_events][:2])
print(
    torch.backends.mkldnn.is_available() in (True, False),
    torch.get_num_threads() > 0,
    torch.__version__.split(".")[0],
    torch.version.cuda,
    torch.cuda.device_count() if not torch.cuda.is_available() else 0,
)
told(lambda: torch.set_num_threads(0))
