"""What `inspect.signature` and the lists in errors show is what calls take."""

import inspect
import pickle
import types

import pytest
from ops.calls import SAMPLES, Call, Cygrad, is_internal

import cygrad as torch
from cygrad._core.diagnostics.refused_calls import KINDS
from cygrad._core.graph.opdef import facts_of, registry
from cygrad._core.registry.signatures import signatures

PLACES = (torch, torch.Tensor, torch.nn.functional, torch.special, torch.linalg, torch.fft, torch.signal.windows)
X = torch.ones(2)


def functions():
    found = {}
    for place in PLACES:
        for name in dir(place):
            function = getattr(place, name)
            if not name.startswith("_") and callable(function) and not isinstance(function, (type, types.MethodType)):
                found[f"{place.__name__}.{name}"] = function
    return found


FUNCTIONS = functions()
COMPILED = {name: f for name, f in FUNCTIONS.items() if "cython" in type(f).__name__}


def test_no_default_is_an_ellipsis():
    shown = {name: inspect.signature(function) for name, function in FUNCTIONS.items()}
    assert len(shown) > 1000
    assert [name for name, s in shown.items() if any(p.default is ... for p in s.parameters.values())] == []
    assert [name for name, s in shown.items() if "Ellipsis" in str(s)] == []


def error_of(function, *args, **kwargs):
    """The text of the TypeError of a call; empty if it raises another error or none."""
    try:
        function(*args, **kwargs)
    except TypeError as error:
        return str(error)
    except Exception:
        return ""
    return ""


def takes_any(signature, kind):
    return any(p.kind is kind for p in signature.parameters.values())


@pytest.mark.filterwarnings("ignore")
def test_arguments_are_taken_by_position_and_by_name_as_shown():
    refused = []
    for name, function in COMPILED.items():
        signature = inspect.signature(function)
        if takes_any(signature, inspect.Parameter.VAR_POSITIONAL):
            continue
        by_place = [p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        values = [X] + [object()] * (len(by_place) - 1)
        if "positional argument" in error_of(function, *values):
            refused.append((name, "fewer by position"))
        if not error_of(function, *values, object()):
            refused.append((name, "more by position"))
        for p in signature.parameters.values():
            if p is not by_place[0] and "unexpected keyword" in error_of(function, X, **{p.name: object()}):
                refused.append((name, p.name))
    assert refused == []


def test_calls_fit_the_signature():
    refused = []
    for name in SAMPLES:
        if not is_internal(name):
            signature = inspect.signature(Cygrad.function(name))
            for sample in SAMPLES[name]:
                call = Call(name, sample)
                try:
                    signature.bind(*call.args, **call.kwargs)
                except TypeError as error:
                    refused.append((name, str(signature), str(error)))
    assert refused == []


def test_known_signatures():
    assert str(inspect.signature(torch.add)) == "(input, other, *, alpha=1, out=None)"
    assert str(inspect.signature(torch.Tensor.add_)) == "(input, other, *, alpha=1)"
    assert str(inspect.signature(torch.squeeze)) == "(input, dim=<not given>, *, axis=None)"
    assert str(inspect.signature(X.add)) == "(other, *, alpha=1, out=None)"
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        torch.mul(X, X, X)


def test_signatures_are_pickled():
    signature = inspect.signature(torch.add)
    assert str(pickle.loads(pickle.dumps(signature))) == str(signature)
    assert signature.replace(parameters=[]) == inspect.Signature()


def test_lists_of_expected_arguments():
    with pytest.raises(TypeError) as found:
        torch.sum(X, dimension=0)
    assert str(found.value) == (
        "sum() received an invalid combination of arguments - got (Tensor, dimension=int), but expected one of:\n"
        " * (Tensor input, *, torch.dtype dtype = None)\n"
        " * (Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)\n"
    )
    with pytest.raises(TypeError) as found:
        X.max(dimension=0)
    assert str(found.value) == (
        "max() received an invalid combination of arguments - got (dimension=int, ), but expected one of:\n"
        " * ()\n * (Tensor other, *, Tensor out = None)\n * (int dim, bool keepdim = False, *, Tensor out = None)\n"
    )


def test_lists_have_types():
    names = [name for name in facts_of["overloads"] if dict.get(registry, name) is not None]
    assert len(names) > 50
    for name in names:
        function = registry[name].entry
        while hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        for text in signatures(function, KINDS):
            assert "Ellipsis" not in text and "not given" not in text
            for part in text.split(", "):
                assert part.startswith("*") or len(part.partition(" = ")[0].split()) >= 2, (name, text)
