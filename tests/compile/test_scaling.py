"""Compiled steps that clip gradients, scale losses or average models: eager's bits, also where a step is skipped."""

import copy
import math
import warnings

import pytest
from compile.replays import bits

import cygrad
from cygrad import nn
from cygrad._core.graph.internals import memory_of
from cygrad._core.replay import decisions
from cygrad.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class World:
    """A model with its optimizer, a scaler and an average of it."""

    def __init__(self, clip=None, scales=False, averages=None, unscales=False, lowers=False):
        cygrad.manual_seed(3)
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        self.optimizer = cygrad.optim.Adam(self.net.parameters(), lr=0.01)
        self.scaler = cygrad.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=3, enabled=scales)
        self.average = averages(copy.deepcopy(self.net)) if averages else None
        self.clip, self.unscales, self.lowers = clip, unscales, lowers

    def step(self, x, y):
        self.optimizer.zero_grad()
        with cygrad.autocast("cpu", dtype=cygrad.bfloat16, enabled=self.lowers):
            loss = ((self.net(x).float() - y) ** 2).mean()
        self.scaler.scale(loss).backward()
        if self.unscales:
            self.scaler.unscale_(self.optimizer)
        norm = self.clip(self.net.parameters()) if self.clip else None
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.average is not None:
            self.average.update_parameters(self.net)
        return loss, norm

    def seen(self):
        models = [self.net] if self.average is None else [self.net, self.average]
        tensors = [t for model in models for t in (*model.parameters(), *model.buffers())]
        states = [t for state in self.optimizer.state.values() for t in state.values()]
        scaler = self.scaler.state_dict()
        grads = [None if t.grad is None else bits(t.grad) for t in tensors]
        return [bits(t) for t in (*tensors, *states)], grads, scaler


def compare(inputs, least, **options):
    eager, other = World(**options), World(**options)
    compiled = cygrad.compile(other.step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in inputs:
            y = cygrad.ones(5, 3)
            wanted, found = eager.step(x, y), compiled(x, y)
            assert [None if t is None else bits(t) for t in found] == [None if t is None else bits(t) for t in wanted]
            assert other.seen() == eager.seen(), compiled.explain()
    assert compiled._cygrad_step.replays() >= least, compiled.explain()


def inputs(n, bad=()):
    cygrad.manual_seed(4)
    return [cygrad.randn(5, 4) * (math.inf if i in bad else 1) for i in range(n)]


CLIPS = {
    "norm": lambda parameters: nn.utils.clip_grad_norm_(parameters, 0.1),
    "large norm": lambda parameters: nn.utils.clip_grad_norm_(parameters, 1e6),
    "1-norm": lambda parameters: nn.utils.clip_grad_norm_(parameters, 0.1, norm_type=1),
    "largest": lambda parameters: nn.utils.clip_grad_norm_(parameters, 0.1, norm_type=math.inf),
    "one by one": lambda parameters: nn.utils.clip_grad_norm_(parameters, 0.1, foreach=False),
    "values": lambda parameters: nn.utils.clip_grad_value_(parameters, 0.001),
}


@pytest.mark.parametrize("clip", CLIPS)
def test_clipping(clip):
    compare(inputs(8), 5, clip=CLIPS[clip])


@pytest.mark.parametrize("unscales", [False, True])
def test_scaled_losses(unscales):
    compare(inputs(14), 11, scales=True, unscales=unscales, clip=CLIPS["norm"] if unscales else None)


def test_steps_with_infinite_gradients_are_skipped():
    compare(inputs(16, bad=(1, 6, 7, 12)), 6, scales=True)


def test_scaled_losses_in_lower_precision():
    compare(inputs(12, bad=(8,)), 4, scales=True, lowers=True)


AVERAGES = {
    "mean": AveragedModel,
    "exponential": lambda net: AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9)),
    "with buffers": lambda net: AveragedModel(net, use_buffers=True),
}


@pytest.mark.parametrize("average", AVERAGES)
def test_averages(average):
    compare(inputs(9), 4, averages=AVERAGES[average])


def test_without_a_look_at_the_condition(monkeypatch):
    monkeypatch.setattr(decisions, "decide", lambda condition: bool(memory_of(condition)))
    with pytest.raises(AssertionError):
        compare(inputs(16, bad=(6, 7)), 6, scales=True)
