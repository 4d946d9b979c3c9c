"""Optimizers that are copied or unpickled, with their model or apart from it."""

import copy
import pickle

import pytest

import cygrad as torch
from cygrad import nn


def made():
    model = nn.Linear(3, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def stepped(model, optimizer):
    before = model.weight.detach().clone()
    optimizer.zero_grad()
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return not model.weight.equal(before)


@pytest.mark.parametrize("travel", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
class TestTravel:
    def test_together(self, travel, recwarn):
        assert stepped(*travel(made())) and not recwarn

    def test_apart(self, travel):
        model, optimizer = (travel(each) for each in made())
        with pytest.warns(UserWarning, match=r"^SGD.step\(\) has changed nothing.*\n.*within one object") as found:
            assert not stepped(model, optimizer)
        assert found[0].filename == __file__
        assert not stepped(model, optimizer)  # and warns once

    def test_a_step_for_the_sake_of_a_schedule(self, travel, recwarn):
        model, optimizer = (travel(each) for each in made())
        optimizer.step()
        assert not recwarn

    def test_a_closure_computes_gradients(self, travel, recwarn):
        model, optimizer = travel(made())

        def closure():
            optimizer.zero_grad()
            loss = model(torch.ones(1, 3)).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        assert model.weight.grad is not None and not recwarn
