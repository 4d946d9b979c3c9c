"""What a compiled function reads of Python: changed, the result is eager's; what cannot be guarded is not replayed."""

import pytest
from compile.cases import GUARDED, REFUSED

import cygrad

pytestmark = pytest.mark.interpreter


def module(source, tmp_path):
    """A module's namespace, whose lines are in a file."""
    path = tmp_path / "case.py"
    path.write_text(source, encoding="utf-8")
    namespace = {"__file__": str(path), "__name__": "case"}
    exec(compile(source, str(path), "exec"), namespace)
    return namespace


def shown(value):
    return value.tolist() if isinstance(value, cygrad.Tensor) else value.x.tolist()


@pytest.mark.parametrize("case", GUARDED)
def test_a_change_is_seen(case, tmp_path):
    source, change = GUARDED[case]
    x = cygrad.tensor([1.0, -2.0])
    eager, other = module(source, tmp_path), module(source, tmp_path)
    step = cygrad.compile(other["step"])
    for _ in range(6):
        assert shown(step(x)) == shown(eager["step"](x))
    assert step._cygrad_step.replays() > 0, step.explain()
    former = step(x)
    exec(change, eager)
    exec(change, other)
    expected = shown(eager["step"](x))
    if case not in ("new step", "negative zero"):
        assert expected != shown(former), "the change does not matter"
    for _ in range(5):
        found = step(x)
        assert shown(found) == expected, step.explain()
        assert str(found) == str(eager["step"](x))


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_guarded_is_not_replayed(case, tmp_path):
    source, word = REFUSED[case]
    x = cygrad.tensor([1.0, -2.0])
    eager, other = module(source, tmp_path), module(source, tmp_path)
    step = cygrad.compile(other["step"])
    for _ in range(7):
        assert shown(step(x)) == shown(eager["step"](x))
    assert step._cygrad_step.replays() == 0
    assert word in str(step.explain()), step.explain()
    if "was" in word or case == "print":
        assert f"{tmp_path / 'case.py'}:" in str(step.explain())
    strict_one = module(source, tmp_path)
    strict = cygrad.compile(strict_one["step"], fullgraph=True)
    with pytest.raises(cygrad.errors.GraphBreak, match="cannot be replayed without Python"):
        for _ in range(7):
            strict(x)
    for namespace in (eager, other, strict_one):
        if case == "file":
            namespace["f"].close()
