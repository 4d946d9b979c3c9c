"""What `compile` and `disable` return, and the names of `cygrad.compiler`."""

import copy
import inspect
import pickle
import sys
import threading

import pytest

import cygrad
from cygrad import nn

pytestmark = pytest.mark.interpreter


def replays(compiled):
    return compiled._cygrad_step.replays()


def test_a_function_keeps_its_looks():
    def scaled(x, by=2):
        "Scale."
        return x * by

    scaled.note = 3
    compiled = cygrad.compile(scaled)
    assert compiled.__name__ == "scaled" and compiled.__doc__ == "Scale." and compiled.note == 3
    assert inspect.isfunction(compiled) and inspect.signature(compiled) == inspect.signature(scaled)
    assert compiled.__wrapped__ is scaled is compiled._torchdynamo_orig_callable
    assert cygrad._dynamo.eval_frame.innermost_fn(compiled) is scaled
    twice = cygrad.compile(compiled)
    x = cygrad.ones(2)
    for _ in range(5):
        assert twice(x, by=3).tolist() == [3, 3]
    assert replays(twice) > 0 and replays(compiled) == 0


def test_decorators():
    @cygrad.compile
    def one(x):
        return x + 1

    @cygrad.compile(mode="reduce-overhead", backend="inductor")
    def two(x):
        return x + 2

    x = cygrad.ones(2)
    for _ in range(5):
        assert one(x).tolist() == [2, 2] and two(x).tolist() == [3, 3]
    assert replays(one) > 0 and replays(two) > 0
    assert cygrad.compile(one.__wrapped__, disable=True) is one.__wrapped__


def test_methods():
    class Scale:
        def __init__(self, by):
            self.by = by

        @cygrad.compile
        def step(self, x):
            return x * self.by

    a, b = Scale(2.0), Scale(3.0)
    x = cygrad.ones(2)
    for _ in range(5):
        assert a.step(x).tolist() == [2, 2] and b.step(x).tolist() == [3, 3]
    assert replays(Scale.step) > 0
    a.by = 5.0
    assert a.step(x).tolist() == [5, 5] and b.step(x).tolist() == [3, 3]


def test_a_module_is_wrapped_as_by_pytorch():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    compiled = cygrad.compile(model)
    assert type(compiled) is cygrad._dynamo.OptimizedModule and isinstance(compiled, nn.Module)
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert [name for name, _ in compiled.named_parameters()] == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert compiled._orig_mod is model and list(compiled.children()) == [model] and len(compiled) == 2
    compiled.note = 3
    assert model.note == 3 and compiled.note == 3
    compiled.eval()
    assert not model.training and not compiled.training and not model[1].training
    x = cygrad.ones(3, 2)
    with cygrad.no_grad():
        for _ in range(5):
            assert cygrad.equal(compiled(x), model(x))
    compiled.load_state_dict(compiled.state_dict())
    del compiled.note
    assert not hasattr(model, "note")
    other = copy.deepcopy(compiled)
    assert type(other) is type(compiled) and other._orig_mod is not model and cygrad.equal(other(x), model(x))
    assert cygrad.equal(pickle.loads(pickle.dumps(compiled))(x), model(x))
    assert "(_orig_mod): Sequential(" in repr(compiled)
    assert "run as written" in str(compiled.explain())


def test_a_module_is_compiled_in_place():
    model = nn.Linear(2, 1)
    assert model._compiled_call_impl is None
    model.compile()
    x = cygrad.ones(3, 2)
    with cygrad.no_grad():
        expected = x @ model.weight.T + model.bias
        for _ in range(6):
            assert cygrad.allclose(model(x), expected)
    assert replays(model._compiled_call_impl) > 0
    seen = []
    handle = model.register_forward_hook(lambda module, args, out: seen.append(1))
    with cygrad.no_grad():
        for _ in range(3):
            model(x)
    assert len(seen) == 3
    handle.remove()
    assert list(model.state_dict()) == ["weight", "bias"]
    other = copy.deepcopy(model)
    assert other._compiled_call_impl is None and cygrad.equal(other(x), model(x))
    pickle.loads(pickle.dumps(model))


def test_names_of_back_ends():
    dynamo = cygrad._dynamo
    x = cygrad.ones(2)
    for name in ("cygrad", "inductor", "aot_eager", "cudagraphs", None):
        compiled = cygrad.compile(lambda x: x * 2, backend=name)
        for _ in range(5):
            assert compiled(x).tolist() == [2, 2]
        assert replays(compiled) > 0
    compiled = cygrad.compile(lambda x: x * 2, backend="eager")
    for _ in range(5):
        assert compiled(x).tolist() == [2, 2]
    assert replays(compiled) == 0
    with pytest.raises(dynamo.InvalidBackend, match=r"^Invalid backend: 'foo', see `torch._dynamo.list_backends\(\)`"):
        cygrad.compile(lambda x: x, backend="foo")
    assert {"cygrad", "inductor"} <= set(cygrad.compiler.list_backends())
    assert "eager" in cygrad.compiler.list_backends(()) and "eager" not in cygrad.compiler.list_backends()
    dynamo.register_backend(lambda graph, inputs: graph, name="mine")
    try:
        cygrad.compile(lambda x: x, backend="mine")
        assert "mine" in cygrad.compiler.list_backends() and callable(dynamo.lookup_backend("mine"))
    finally:
        del cygrad.compiler._backends.registered["mine"]


def test_wrong_arguments():
    f = cygrad.ones
    with pytest.raises(RuntimeError, match="^Unrecognized mode=xx, should be one of: default, lite, reduce-overhead"):
        cygrad.compile(f, mode="xx")
    with pytest.raises(RuntimeError, match="^Either mode or options can be specified, but both can't be"):
        cygrad.compile(f, mode="default", options={"check": 1})
    with pytest.raises(RuntimeError, match="^Unexpected optimization option a, known options are"):
        cygrad.compile(f, options={"a": 1})
    with pytest.raises(RuntimeError, match="^Unexpected type of attr check, got str should be int"):
        cygrad.compile(f, options={"check": "1"})
    with pytest.raises(RuntimeError, match="^Unexpected type of attr check"):
        cygrad.compile(f, options={"check": -1})
    with pytest.raises(AssertionError, match="^A callable function is expected, but <class 'int'> is provided"):
        cygrad.compile(3)
    with pytest.raises(TypeError, match="is a class\n"):
        cygrad.compile(nn.Linear)
    cygrad.compile(f, options={"max_autotune": True, "triton.cudagraphs": True})


def test_errors_of_the_function_are_its_own():
    @cygrad.compile
    def step(x, fails):
        if fails:
            raise KeyError("mine")
        return x * 2

    x = cygrad.ones(2)
    for _ in range(5):
        assert step(x, False).tolist() == [2, 2]
        with pytest.raises(KeyError, match="mine"):
            step(x, True)
    assert replays(step) > 0
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'fails'"):
        step(x)
    assert not cygrad.compiler.is_compiling()


def test_disabled_functions_prevent_replays():
    calls = []

    def log(x):
        calls.append(1)

    quiet = cygrad.compiler.disable(log, reason="logs")
    assert quiet.__name__ == "log" and quiet._torchdynamo_disable and quiet.__wrapped__ is log

    @cygrad.compile
    def step(x):
        quiet(x)
        return x * 2

    x = cygrad.ones(2)
    for _ in range(6):
        step(x)
    assert len(calls) == 6
    assert "is disabled (logs)" in str(step.explain()) and "test_wrapping.py:" in str(step.explain())

    @cygrad.compiler.disable
    def outer(x):
        return inner(x)

    inner = cygrad.compile(lambda x: x * 3)
    for _ in range(6):
        assert outer(x).tolist() == [3, 3]
    assert replays(inner) > 0
    assert type(cygrad.compiler.disable(nn.Linear(2, 1))) is cygrad._dynamo.OptimizedModule


def test_compiled_functions_in_compiled_functions():
    inner = cygrad.compile(lambda x: x * scale[0])
    scale = [2.0]
    x = cygrad.ones(2)
    for _ in range(5):
        inner(x)

    @cygrad.compile
    def outer(x):
        return inner(x) + 1

    for _ in range(6):
        assert outer(x).tolist() == [3, 3]
    assert replays(outer) > 0
    scale[0] = 4.0
    for _ in range(6):
        assert outer(x).tolist() == [5, 5] and inner(x).tolist() == [4, 4]


def test_is_compiling_is_true_in_each_call():
    seen = []

    def step(x):
        seen.append(cygrad.compiler.is_compiling())
        return x

    compiled = cygrad.compile(step)
    for _ in range(5):
        compiled(cygrad.ones(2))
    step(cygrad.ones(2))
    assert seen == [True] * 5 + [False]

    @cygrad.compile
    def branches(x):
        return x * (2 if cygrad.compiler.is_compiling() else 3)

    for _ in range(6):
        assert branches(cygrad.ones(1)).tolist() == [2]
    assert replays(branches) > 0


def test_stances():
    x = cygrad.ones(2)
    step = cygrad.compile(lambda x: x * 2)
    for _ in range(5):
        step(x)
    before = replays(step)
    with cygrad.compiler.set_stance("force_eager"):
        step(x)
    assert replays(step) == before
    with cygrad.compiler.set_stance("eager_on_recompile"):
        for _ in range(5):
            step(x)
            assert step(cygrad.ones(3)).tolist() == [2, 2, 2]
    assert replays(step) == before + 5 and len(step._cygrad_step.plans) == 1
    with cygrad.compiler.set_stance("fail_on_recompile"):
        step(x)
        with pytest.raises(RuntimeError, match="^Detected recompile when torch.compile stance is 'fail_on_recompile'"):
            step(cygrad.ones(4))

    @cygrad.compiler.set_stance("force_eager")
    def eagerly():
        return step(x)

    before = replays(step)
    eagerly()
    assert replays(step) == before
    step(x)
    assert replays(step) == before + 1


def test_reset():
    x = cygrad.ones(2)
    step = cygrad.compile(lambda x: x * 2)
    for _ in range(5):
        step(x)
    cygrad.compiler.reset()
    assert len(step._cygrad_step.plans) == 0
    for _ in range(5):
        assert step(x).tolist() == [2, 2]
    assert replays(step) == 2


def test_shapes_have_plans_of_their_own():
    step = cygrad.compile(lambda x: x * 2)
    for _ in range(6):
        for n in (1, 2, 3):
            assert step(cygrad.ones(n)).tolist() == [2] * n
    assert len(step._cygrad_step.plans) == 3 and replays(step) == 9


def test_an_argument_that_keeps_changing_is_named_once():
    step = cygrad.compile(lambda x, number: x * number)
    x = cygrad.ones(2)
    with pytest.warns(UserWarning, match="because argument 1 .*keeps changing") as caught:
        for i in range(300):
            assert step(x, i).tolist() == [i, i]
    assert len(caught) == 1 and caught[0].filename == __file__
    assert len(step._cygrad_step.plans) <= 64 and len(step._cygrad_step.kinds) <= 65


def test_state_that_keeps_changing_is_named_once():
    scale = [0.0]

    @cygrad.compile
    def step(x):
        return x * scale[0]

    x = cygrad.ones(2)
    with pytest.warns(UserWarning, match=r"because scale\[0\] keeps changing") as caught:
        for i in range(400):
            scale[0] = float(i)
            assert step(x).tolist() == [i, i]
    assert len(caught) == 1
    assert step._cygrad_step.captures <= 16
    for _ in range(2000):
        assert step(x).tolist() == [399, 399]
    assert replays(step) > 0


def test_at_most_64_plans():
    step = cygrad.compile(lambda x, n: x * n)
    x = cygrad.ones(2)
    for n in range(70):
        for _ in range(8):
            assert step(x, n).tolist() == [n, n]
    assert len(step._cygrad_step.plans) == 64
    assert step(x, 0).tolist() == [0, 0]


def test_arguments_make_patterns():
    from collections import namedtuple

    Pair = namedtuple("Pair", "a b")

    @cygrad.compile
    def step(a, *rest, **named):
        total = a["x"] * 1
        for value in rest:
            total = total + (value.a if isinstance(value, Pair) else value[0])
        return {"total": total, "pair": Pair(total, 3), "list": [total, None], "n": len(named)}

    one, two = cygrad.ones(2), cygrad.ones(2) * 2
    calls = [
        (({"x": one},), {}),
        (({"x": one}, [two]), {}),
        (({"x": one}, [one]), {}),
        (({"x": one}, (two,)), {}),
        (({"x": one}, Pair(two, 1)), {}),
        (({"x": one}, Pair(two, 2)), {}),
        (({"x": one, "y": 1}, [two]), {"k": True}),
        (({"x": one, "y": 1}, [two]), {"k": 1}),
    ]
    plain = step.__wrapped__
    for _ in range(6):
        for args, kwargs in calls:
            found, expected = step(*args, **kwargs), plain(*args, **kwargs)
            assert str(found) == str(expected) and type(found["pair"]) is Pair
    assert len(step._cygrad_step.plans) == len(calls)
    assert replays(step) == 3 * len(calls)


def test_an_argument_that_is_changed_by_the_call_is_not_replayed():
    @cygrad.compile
    def step(x, seen):
        seen.append(1)
        return x * len(seen)

    x, seen = cygrad.ones(1), []
    for i in range(6):
        assert step(x, seen).tolist() == [i + 1]
    assert replays(step) == 0


def test_threads():
    step = cygrad.compile(lambda x: (x * 2, x + 1))
    x, wrong = cygrad.ones(8), []

    def work():
        for _ in range(200):
            a, b = step(x)
            if a.tolist() != [2] * 8 or b.tolist() != [2] * 8:
                wrong.append((a, b))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and replays(step) > 0


def test_the_profiler_of_python_is_left_alone():
    import sys

    step = cygrad.compile(lambda x: x * 2)
    x, seen = cygrad.ones(2), []
    sys.setprofile(lambda frame, event, argument: seen.append(event))
    try:
        for _ in range(5):
            step(x)
        profiler = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert profiler is not None and replays(step) == 0
    for _ in range(5):
        step(x)
    assert replays(step) > 0


def test_the_oldest_explanations():
    def step(x):
        return x * 2

    text = str(cygrad._dynamo.explain(step)(cygrad.ones(2)))
    assert "2 calls replayed, 3 run as written" in text


def test_a_watch_ends_when_nothing_can_be_replayed_any_more():
    """Then the rest of the call runs at its own speed."""
    source = "\n".join(f"    print('', end='') # {i}" for i in range(40))
    names = {"sys": sys, "seen": []}
    exec(f"def step(x):\n{source}\n    seen.append(sys.getprofile())\n    return x", names)
    compiled = cygrad.compile(names["step"])
    compiled(cygrad.ones(1))
    assert names["seen"] == [None]
    assert "`print` is called" in str(compiled.explain())
