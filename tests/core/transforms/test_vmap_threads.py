"""Random numbers in `vmap` while another thread draws from the global generator."""

import threading

import pytest

import cygrad as torch
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._ops.random.generator import Draws

KINDS = ["error", "same", "different"]


@pytest.fixture
def interrupting_thread(monkeypatch):
    """Return a function that lets another thread draw, in the middle of what this thread does."""
    drawn = []

    def draw():
        thread = threading.Thread(target=lambda: drawn.extend(torch.rand(2).tolist()))
        thread.start()
        thread.join()

    draw.drawn = drawn
    return draw


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("chunk_size", [None, 2])
@pytest.mark.parametrize("is_refused", [False, True], ids=["at once", "one by one"])
@pytest.mark.parametrize("randomness", KINDS)
def test_what_another_thread_draws_does_not_count(randomness, is_refused, chunk_size, interrupting_thread):
    attempts = []

    def f(x):
        interrupting_thread()
        noise = 0 if randomness == "error" else torch.rand(2)
        attempts.append(x.shape)
        if is_refused and len(attempts) == 1:
            raise NoBatchingRule("an op without a batching rule")
        return x * 2 + noise

    x = torch.ones(4, 2)
    result = torch.vmap(f, randomness=randomness, chunk_size=chunk_size)(x)
    following = torch.rand(2).tolist()
    numbers = interrupting_thread.drawn
    assert len(numbers) >= 2 and len(set(numbers)) == len(numbers)  # none of them a second time
    assert not set(following) & set(numbers)
    if randomness == "error":
        assert result.tolist() == [[2.0, 2.0]] * 4
    else:
        rows = {tuple(row) for row in result.tolist()}
        assert len(rows) == (1 if randomness == "same" else 4)


def test_linearize_does_not_set_the_generator_back_for_others(interrupting_thread):
    def f(x):
        interrupting_thread()
        y = x.exp()
        z = y * 2
        y.mul_(3)  # exp has saved its result: the function is called again, with copies
        return z + y

    torch.func.linearize(f, torch.ones(2))
    numbers = interrupting_thread.drawn
    assert len(numbers) == 4 and len(set(numbers)) == 4


def test_own_draws_are_taken_back():
    torch.manual_seed(1)
    expected = torch.rand(3).tolist()
    torch.manual_seed(1)
    draws = Draws()
    assert not draws
    torch.rand(3)
    assert draws
    draws.take_back()
    assert not draws and torch.rand(3).tolist() == expected
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.vmap(lambda x: x + torch.rand(2))(torch.ones(3, 2))
