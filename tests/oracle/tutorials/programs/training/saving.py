"""Saving and loading in all variants, and the errors of wrong files."""

import argparse, collections, datetime, io, os, pathlib, tempfile, pickle, enum
import numpy as np
import torch
from torch import nn
from shared import told


def round_trip(value, **kw):
    f = io.BytesIO()
    torch.save(value, f)
    f.seek(0)
    return torch.load(f, **kw)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.l.weight.copy_(torch.arange(4.0).view(2, 2))

    def forward(self, x):
        return self.l(x)


class Color(enum.Enum):
    RED = 1


print(
    round_trip(
        {
            "a": torch.ones(2),
            "b": [1, 2.0, "x", None, True, 1j],
            "c": (torch.int8, torch.Size([1, 2]), torch.device("cpu")),
        }
    )
)
told(lambda: round_trip(Net()))
print(round_trip(Net(), weights_only=False))
told(lambda: round_trip(argparse.Namespace(a=1)))
told(lambda: round_trip(np.ones(2)))
told(lambda: round_trip(Color.RED))
told(lambda: round_trip(pathlib.Path("a")))
told(lambda: round_trip(datetime.date(2020, 1, 1)))
told(lambda: round_trip(datetime.date(2020, 1, 1), weights_only=False))
told(lambda: round_trip(set([1])))
told(lambda: round_trip(collections.OrderedDict(a=1)))
told(lambda: round_trip(collections.Counter("aab")))
told(lambda: round_trip(collections.defaultdict(list, a=[1])))
told(lambda: round_trip(bytearray(b"ab")))
told(lambda: round_trip(b"ab"))
told(lambda: round_trip(slice(1, 2)))
told(lambda: round_trip(range(3)))
told(lambda: round_trip(print))
with torch.serialization.safe_globals([argparse.Namespace, Net, nn.Linear] + [getattr]):
    told(lambda: round_trip(argparse.Namespace(a=1)))
f = io.BytesIO()
torch.save(Net(), f)
f.seek(0)
print(sorted(g.replace("cygrad", "torch") for g in torch.serialization.get_unsafe_globals_in_checkpoint(f)))
base = torch.arange(6.0)
v = round_trip([base[:3], base[1:], base.view(2, 3).t()])
for t in (
    torch.ones(2, dtype=torch.bfloat16),
    torch.tensor([1 + 2j]),
    torch.tensor(True),
    torch.zeros(0, 3),
    torch.ones(2, requires_grad=True),
    nn.Parameter(torch.ones(1), requires_grad=False),
    torch.ones(2, device="meta"),
    torch.ones(2).to(torch.float8_e5m2),
):
    r = round_trip(t)
    print(type(r).__name__, r.dtype, tuple(r.shape), r.requires_grad, r.layout, r.device)
told(lambda: torch.save((torch.ones(1, requires_grad=True) * 2), io.BytesIO()))
print(round_trip(torch.ones(1, requires_grad=True) * 2).grad_fn)
t = torch.ones(1)
t.extra = 3
print(round_trip(t).extra)
h = torch.ones(1, requires_grad=True)
h.register_hook(lambda g: g)
told(lambda: round_trip(h))
with tempfile.TemporaryDirectory() as d:
    os.chdir(d)
    torch.save(Net().state_dict(), "m.pt")
    print(
        torch.load("m.pt"),
        torch.load(pathlib.Path("m.pt"), mmap=True),
        torch.load("m.pt", map_location="meta")["l.weight"],
    )
    print(
        torch.load("m.pt", map_location=lambda s, l: s)["l.weight"],
        torch.load("m.pt", map_location={"cpu": "cpu"}).keys(),
    )
    told(lambda: torch.load("m.pt", map_location="nosuch"))
    told(lambda: torch.load("nosuch.pt"))
    told(lambda: torch.save(1, "no/such/dir.pt"))
    open("empty.pt", "wb").close()
    open("bad.pt", "wb").write(b"garbage, not a file of tensors")
    whole = open("m.pt", "rb").read()
    open("cut.pt", "wb").write(whole[: len(whole) // 2])
    told(lambda: torch.load("cut.pt"))
    pickle.dump({"a": 1}, open("p.pt", "wb"))
    told(lambda: torch.load("m.pt", weights_only=False, pickle_module=pickle).keys())
    told(lambda: torch.load("m.pt", mmap=True, weights_only=True).keys())
    told(lambda: torch.load(io.BytesIO(whole), mmap=True))
    torch.save({"a": torch.ones(2)}, "old.pt", _use_new_zipfile_serialization=False)
    print(torch.load("old.pt"))
    told(lambda: torch.load("old.pt", mmap=True))
    told(lambda: torch.load(open("m.pt")))
    told(lambda: torch.load(3))
    told(lambda: torch.save(torch.ones(1), 3))
    with open("two.pt", "wb") as f:
        torch.save(1, f)
        torch.save(torch.ones(1), f)
    with open("s.pt", "wb") as f:
        for i in range(2):
            torch.save(i, f, _use_new_zipfile_serialization=False)
    with open("s.pt", "rb") as f:
        print(torch.load(f), torch.load(f))
    torch.ones(3).numpy().tofile("raw")
    print(torch.from_file("raw", size=3), torch.frombuffer(open("raw", "rb").read()[:8] + b"", dtype=torch.float32))
    os.chdir("/")
opt = torch.optim.Adam(Net().parameters())
print(round_trip({"epoch": 3, "opt": opt.state_dict(), "rng": torch.get_rng_state()})["opt"])
