"""`cygrad.debug()` warns once about a graph that grows from step to step, and never about others."""

import collections
import contextlib
import warnings

import pytest

import cygrad as torch
from cygrad.optim.optimizer import global_post_hooks
from helpers import fails


def warnings_of(loss_of, steps=12, after=lambda loss: None, debug=torch.debug, **how):
    """The texts of the warnings during a training whose loss is `loss_of(w, step)`."""
    w = torch.full((3,), 0.5, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.01)
    with warnings.catch_warnings(record=True) as seen, debug():
        warnings.simplefilter("always")
        for step in range(steps):
            loss = loss_of(w, step)
            optimizer.zero_grad()
            loss.backward(**how)
            optimizer.step()
            after(loss)
    assert not global_post_hooks
    return [str(warning.message) for warning in seen]


class Total:
    """A running total."""

    def __init__(self, of=lambda loss: loss):
        self.value, self.of = torch.zeros(()), of

    def add(self, loss):
        self.value = self.value + self.of(loss)


def squares(w, step):
    return (w * w).exp().sum()


def test_running_total():
    total = Total()
    (text,) = warnings_of(squares, 10, total.add)
    assert "was computed by AddBackward0 at " in text and "`self.value = self.value + self.of(loss)`" in text
    assert "behind it has a length of 8" in text  # five additions, and the three ops of a loss
    assert text.endswith("add `loss.detach()` or `loss.item()` to it")


def test_list_of_losses():
    losses = []
    (text,) = warnings_of(squares, 10, losses.append)
    assert "was computed by SumBackward0 at " in text
    assert "6 results of this line are kept" in text


class Hidden:
    """A hidden state carried from step to step."""

    def __init__(self, detach, lengths=(3,)):
        self.value, self.detach, self.lengths = torch.ones(3), detach, lengths

    def loss(self, w, step):
        if self.detach:
            self.value = self.value.detach()
        for _ in range(self.lengths[step % len(self.lengths)]):
            self.value = (self.value + w).tanh()
        return self.value.sum()


def test_state_that_is_carried_on():
    (text,) = warnings_of(Hidden(detach=False).loss, retain_graph=True)
    assert "it continues into earlier steps through the result of TanhBackward0, made at " in text
    assert text.endswith("carried over from one iteration to the next: cut it off there with `.detach()`")


@pytest.mark.parametrize("lengths", [(3,), tuple(range(1, 13))])
def test_truncated_time_is_no_growth(lengths):
    assert warnings_of(Hidden(detach=True, lengths=lengths).loss) == []


def test_what_does_not_grow():
    assert warnings_of(squares) == []
    assert warnings_of(squares, after=collections.deque(maxlen=3).append) == []
    assert warnings_of(squares, after=Total(torch.Tensor.detach).add) == []
    assert warnings_of(squares, after=Total(torch.Tensor.item).add) == []


def test_circles_that_wait_for_the_collector_are_no_growth():
    def kept_by_itself(w, step):
        loss = squares(w, step)
        loss.itself = loss
        return loss

    assert warnings_of(kept_by_itself) == []


def test_graph_made_before_the_loop():
    scale = torch.tensor(2.0, requires_grad=True).exp()
    assert warnings_of(lambda w, step: (w.detach() * scale + w).sum(), retain_graph=True) == []


def test_what_grows_without_the_optimizers_parameters():
    """No warning: it may be the graph of another thread, whose node numbers differ."""
    other, losses = torch.ones(2, requires_grad=True), []
    assert warnings_of(squares, after=lambda _: losses.append(other.exp())) == []


def test_two_optimizers_take_turns():
    w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    optimizers = [torch.optim.SGD([w], lr=0.01), torch.optim.Adam([v], lr=0.01)]
    losses = []

    def training(keep):
        with warnings.catch_warnings(record=True) as seen, torch.debug():
            warnings.simplefilter("always")
            for _ in range(10):
                for parameter, optimizer in zip((w, v), optimizers):
                    loss = (parameter * parameter).sum()
                    loss.backward()
                    optimizer.step()
                    keep(loss)
        return len(seen)

    assert training(lambda loss: None) == 0
    assert training(losses.append) == 1


def test_switch():
    assert not global_post_hooks
    torch.debug()
    assert len(global_post_hooks) == 1
    with torch.debug(False):
        assert not global_post_hooks
    assert len(global_post_hooks) == 1
    torch.debug(False)
    assert not global_post_hooks
    with torch.debug(), torch.debug():
        pass
    assert not global_post_hooks
    with fails(TypeError, "debug(): argument 'mode' must be bool, not int"):
        torch.debug(1)


def test_off_nothing_is_said():
    assert warnings_of(squares, after=[].append, debug=contextlib.nullcontext) == []
