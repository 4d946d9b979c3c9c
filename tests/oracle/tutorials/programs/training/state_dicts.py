"""Transfer of weights: strict loading, renamed keys, shapes, buffers, tied weights, assignment."""

import collections, io, copy
import torch
from shared import told
import torch.nn as nn


torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
        self.head = nn.Linear(2, classes)
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("cache", torch.zeros(3), persistent=False)
        self.register_parameter("none", None)


a, b = Net(3), Net(5)
print(list(a.state_dict()), list(dict(a.named_buffers())), a.state_dict()._metadata)
told(lambda: b.load_state_dict(a.state_dict()))
told(lambda: b.load_state_dict(a.state_dict(), strict=False))
sd = {k: v for k, v in a.state_dict().items() if not k.startswith("head")}
told(lambda: b.load_state_dict(sd))
told(lambda: b.load_state_dict(sd, strict=False))
sd["extra.weight"] = torch.ones(1)
told(lambda: b.load_state_dict(sd, strict=False))
told(lambda: b.load_state_dict(sd))
told(lambda: b.load_state_dict(3))
told(lambda: b.load_state_dict({"scale": 3}, strict=False))
told(
    lambda: a.load_state_dict(
        {"head.weight": torch.ones(3, 2, dtype=torch.float64), "none": torch.ones(1)}, strict=False
    )
)
print(a.head.weight.dtype)
a.load_state_dict({"head.weight": torch.ones(3, 2, dtype=torch.float64)}, strict=False, assign=True)
print(a.head.weight.dtype, a.head.weight.requires_grad, type(a.head.weight).__name__)
for p in a.features.parameters():
    p.requires_grad_(False)
print(sum(p.numel() for p in a.parameters() if p.requires_grad), sum(p.numel() for p in a.parameters()))
told(lambda: torch.optim.SGD([p for p in a.parameters() if not p.requires_grad and p.ndim > 9]))
told(lambda: a.register_buffer("head", torch.ones(1)))
told(lambda: a.register_buffer("a.b", torch.ones(1)))
told(lambda: a.register_buffer("", torch.ones(1)))
told(lambda: a.register_buffer("z", 3))
told(lambda: a.register_parameter("z", torch.ones(1)))
told(lambda: a.register_parameter("z", nn.Parameter(torch.ones(1)) * 2))
told(lambda: a.add_module("z", 3))
told(lambda: a.add_module("scale", nn.ReLU()))
told(lambda: setattr(a, "head", torch.ones(1)))
told(lambda: setattr(a.head, "weight", torch.ones(1)))
told(lambda: setattr(a, "scale", 3))
told(lambda: a.nosuch)
told(lambda: a.get_submodule("features.0"))
told(lambda: a.get_submodule("features.9"))
told(lambda: a.get_parameter("head.none"))
told(lambda: a.get_parameter("features.1.running_mean"))
told(lambda: a.get_buffer("head.weight"))
told(lambda: a.get_submodule("head.weight"))
told(lambda: a.set_submodule("features.0", nn.Identity()))
told(lambda: a.set_submodule("", nn.Identity()))
print(a)


class Early(nn.Module):
    def __init__(self):
        self.a = nn.Linear(1, 1)


told(Early)


class Early2(nn.Module):
    def __init__(self):
        self.a = nn.Parameter(torch.ones(1))


told(Early2)
tied = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
tied["b"].weight = tied["a"].weight
print(len(list(tied.parameters())), len(list(tied.named_parameters(remove_duplicate=False))), list(tied.state_dict()))
c = copy.deepcopy(tied)
print(c["a"].weight is c["b"].weight)
f = io.BytesIO()
torch.save(tied.state_dict(), f)
f.seek(0)
sd = torch.load(f)
print(type(sd).__name__, sd["a.weight"].data_ptr() == sd["b.weight"].data_ptr())
told(lambda: nn.ModuleDict({"a.b": nn.ReLU()}))
told(lambda: nn.ModuleDict({"keys": nn.ReLU()}))
told(lambda: nn.ParameterList([1, 2]))
told(lambda: nn.ModuleList([1]))
told(lambda: nn.Sequential(3))
told(lambda: nn.Sequential(nn.ReLU())[1])
told(lambda: nn.ModuleList([nn.ReLU()])[3])
told(lambda: nn.Sequential(nn.ReLU()).insert(4, nn.ReLU()))
told(lambda: nn.Sequential(nn.ReLU()) + nn.Sequential(nn.Tanh()))
told(lambda: nn.Sequential(nn.ReLU()) * 2)
told(lambda: nn.Sequential(collections.OrderedDict(a=nn.ReLU(), b=nn.Tanh()))[1:])


class Extra(nn.Module):
    def get_extra_state(self):
        return {"n": 4}

    def set_extra_state(self, state):
        print("extra", state)


e = Extra()
print(e.state_dict())
told(lambda: e.load_state_dict(e.state_dict()))
told(lambda: e.load_state_dict({}))
told(lambda: nn.Linear(2, 2).load_state_dict({"_extra_state": 3, "weight": torch.ones(2, 2), "bias": torch.ones(2)}))
told(lambda: a.apply(3))
told(lambda: a.to(torch.int64))
told(lambda: a.to("nosuch"))
told(lambda: a.half().head.weight.dtype)
told(lambda: a.requires_grad_(False).training)
told(lambda: a.train(3))
told(lambda: nn.Linear(2, 2)(torch.ones(3)))
told(lambda: nn.Module()(3))
told(lambda: nn.Linear(-1, 2))
told(lambda: nn.Linear(2, 2, nosuch=3))
told(lambda: nn.Module(3))
told(lambda: nn.Module(a=3))
