"""Each guard is needed: without it, a change would not be seen, and the tests of `test_state.py` would fail."""

import pytest
from compile.cases import GUARDED, REFUSED
from compile.test_state import module, shown

import cygrad
from cygrad._core.replay.calls import plans
from cygrad._core.replay.guards import state
from cygrad.compiler import _state, _step, _watching

KINDS = ("whole", "named", "items", "content", "version", "function", "instance", "tensor", "asked", "empty")
# Cases that each kind of check alone can see.
SEEN_BY = {
    "whole": "dictionary",
    "named": "global",
    "items": "list element",
    "content": "cell",
    "version": "class attribute",
    "function": "default argument",
    "instance": "dictionary of an object",
    "tensor": "resized tensor",
    "asked": "slot",
    "empty": "empty set",
}


def is_stale(source, change, tmp_path):
    """Whether a compiled function misses a change."""
    x = cygrad.tensor([1.0, -2.0])
    eager, other = module(source, tmp_path), module(source, tmp_path)
    step = cygrad.compile(other["step"])
    for _ in range(6):
        step(x)
    exec(change, eager)
    exec(change, other)
    return any(shown(step(x)) != shown(eager["step"](x)) for _ in range(5))


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_kind_of_check(kind, tmp_path, monkeypatch):
    source, change = GUARDED[SEEN_BY[kind]]
    assert not is_stale(source, change, tmp_path)
    taken_out = type("TakenOut", (state.Guard,), {kind: lambda self, *args: True})
    monkeypatch.setattr(_state, "Guard", taken_out)
    assert is_stale(source, change, tmp_path)


def test_all_kinds_of_checks_are_tried():
    others = {"holds", "why", "where", "described", "failed", "release", "leave_out"}
    methods = {name for name in vars(state.Guard) if not name.startswith("__")}
    assert methods - others == set(KINDS) == set(SEEN_BY)


def never_seen(case, tmp_path):
    """Whether a function that must not be replayed is replayed, or a change by the call itself is lost."""
    x = cygrad.tensor([1.0, -2.0])
    eager, other = module(REFUSED[case][0], tmp_path), module(REFUSED[case][0], tmp_path)
    step = cygrad.compile(other["step"])
    differs = [shown(step(x)) != shown(eager["step"](x)) for _ in range(7)]
    return any(differs) or step._cygrad_step.replays() > 0


def test_without_a_look_at_what_c_functions_do(tmp_path, monkeypatch):
    assert not never_seen("time that nobody reads", tmp_path)
    monkeypatch.setattr(_watching, "impurity", lambda function: None)
    assert never_seen("time that nobody reads", tmp_path)


def test_without_a_look_at_the_state_after_the_call(tmp_path, monkeypatch):
    assert not never_seen("counter that nobody reads", tmp_path)
    monkeypatch.setattr(_step.Step, "_reasons_after", lambda *args: [])
    taken_out = type("TakenOut", (state.Guard,), {"named": lambda self, *args: None})
    monkeypatch.setattr(_state, "Guard", taken_out)
    assert never_seen("counter that nobody reads", tmp_path)


def test_without_a_look_at_the_package_functions(tmp_path, monkeypatch):
    assert not never_seen("seed", tmp_path)
    monkeypatch.setattr(_watching, "_KEEPING_NOTHING", ("",))
    monkeypatch.setattr(_watching, "_CHANGING", {})
    assert never_seen("seed", tmp_path)


def test_without_a_refusal_of_unknown_objects(tmp_path, monkeypatch):
    assert not never_seen("lock", tmp_path)
    monkeypatch.setattr(_state.Survey, "refuse", lambda *args: None)
    assert never_seen("lock", tmp_path)


def test_without_knowing_that_a_call_is_watched(monkeypatch):
    def run():
        scale = [2.0]
        inner = cygrad.compile(lambda x: x * scale[0])
        outer = cygrad.compile(lambda x: inner(x) + 1)
        x = cygrad.ones(2)
        for _ in range(5):
            inner(x)
        for _ in range(5):
            outer(x)
        scale[0] = 4.0
        return outer(x).tolist() == [5, 5] and outer._cygrad_step.replays() > 0

    assert run()
    monkeypatch.setattr(_step, "_watching", lambda on: None)
    assert not run()
    assert plans.MISS is not None
