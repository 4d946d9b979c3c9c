"""`ModuleTracker`: the modules of the backward pass."""

import cygrad as torch
from cygrad import nn
from cygrad.utils.module_tracker import ModuleTracker


class Inner(nn.Module):
    def __init__(self, tell):
        super().__init__()
        self.tell = tell

    def forward(self, given):
        x = given["x"] * 2
        self.tell("forward")
        if x.requires_grad:
            x.register_hook(lambda grad: self.tell("backward"))
        return {"x": x.sin()}


class Outer(nn.Module):
    def __init__(self, tell):
        super().__init__()
        self.first, self.last = Inner(tell), nn.ModuleList([Inner(tell)])

    def forward(self, given):
        return self.last[0](self.first(given))


def test_hooks_see_the_modules_whose_backward_runs():
    seen, tracker = [], ModuleTracker()

    def tell(which):
        seen.append((which, sorted(tracker.parents), tracker.is_bw))

    with tracker:
        for requires_grad in (True, False, True):
            seen.clear()
            x = torch.ones(1, requires_grad=requires_grad) * 1
            y = Outer(tell)({"x": x})["x"]
            if requires_grad:
                y.backward()
                assert tracker.parents == {"Global"} and not tracker.is_bw
    first, last = ["Global", "Outer", "Outer.first"], ["Global", "Outer", "Outer.last.0"]
    assert seen == [
        ("forward", first, False),
        ("forward", last, False),
        ("backward", last, True),
        ("backward", first, True),
    ]
    assert not x._backward_hooks  # they have been removed
