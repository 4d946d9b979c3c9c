"""Each recording path describes an op once and hands it to the observers of its thread."""

import threading

import pytest

import cygrad as torch
from cygrad._core.graph.observers import GEOMETRY, IN_PLACE, OP, WITH_OUT, Listener
from cygrad.autograd import profiler


@pytest.fixture
def seen():
    found = []
    listener = Listener(found.append)
    listener.start()
    yield found
    listener.stop()


def leaf(*shape):
    return torch.ones(*shape).requires_grad_()


def test_new_results(seen):
    x, y = leaf(2), leaf(2)
    del seen[:]
    product = x * y
    sine = x.sin()
    joined = torch.cat([x, y])
    parts = joined.split(2)
    assert [each.op.name for each in seen] == ["mul", "sin", "cat", "split"]
    assert {each.kind for each in seen} == {OP} and not any(each.writes for each in seen)
    assert [each.outs for each in seen] == [(product,), (sine,), (joined,), parts]
    assert seen[0].inputs[0] is x and seen[0].inputs[1] is y and seen[1].inputs[0] is x
    assert seen[2].args and seen[0].args == () and seen[0].operands() == [x, y]
    assert [each.node is each.outs[0].grad_fn for each in seen] == [True] * 4
    assert {each.code.co_name for each in seen} == {"test_new_results"}


def test_ops_without_history(seen):
    x = torch.ones(2)
    del seen[:]
    (x * 2).argmax()
    assert [(each.op.name, each.node) for each in seen] == [("mul", None), ("argmax", None)]
    assert seen[0].code.co_name == "test_ops_without_history"


def test_changes(seen):
    x, y = leaf(2) * 1, torch.ones(2)
    del seen[:]
    x.mul_(y)
    torch.add(y, 1, out=y)
    y.fill_(3)
    x.unsqueeze_(0)
    assert [(each.op.name, each.kind) for each in seen] == [
        ("mul", IN_PLACE),
        ("add", IN_PLACE),
        ("fill", IN_PLACE),
        ("unsqueeze", OP),  # which finds the new geometry
        ("unsqueeze", GEOMETRY),
    ]
    assert seen[0].outs[0] is x and seen[0].writes and seen[0].inputs[1] is y
    assert not seen[-1].writes
    torch.exp(y, out=torch.empty(2))
    assert (seen[-1].op.name, seen[-1].kind) == ("exp", WITH_OUT)


def test_new_tensors(seen):
    t = torch.zeros(3)
    assert [(each.op, each.kind, each.outs) for each in seen] == [("zeros", OP, (t,))]


def test_a_write_that_fails_is_not_handed_over(seen):
    x = leaf(2)
    del seen[:]
    for _ in range(3):
        with pytest.raises(RuntimeError, match="leaf"):
            x.mul_(2)
    y = torch.ones(2)
    y.mul_(2)
    assert [each.outs[0] is y for each in seen if each.writes] == [True]


def test_several_observers_and_threads(seen):
    other, elsewhere = [], []
    listener = Listener(other.append)
    listener.start()
    with profiler.profile() as profile:
        torch.ones(2).exp()
    listener.stop()
    torch.ones(2).exp()
    thread = threading.Thread(target=lambda: elsewhere.append(torch.ones(2).exp()))
    thread.start()
    thread.join()
    assert [getattr(each.op, "name", each.op) for each in other] == ["ones", "exp"]
    assert len(seen) == 4 and len(elsewhere) == 1
    assert [event.name for event in profile.function_events] == ["aten::ones", "aten::exp"]


def test_what_a_transform_computes_comes_after_the_op(seen):
    del seen[:]
    torch.func.jvp(lambda x: x.sin() * 2, (torch.ones(2),), (torch.ones(2),))
    names = [each.op.name for each in seen if not isinstance(each.op, str)]
    assert names.index("sin") < names.index("cos")
