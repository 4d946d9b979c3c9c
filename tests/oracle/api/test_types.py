"""Types in the stubs against those in PyTorch's: the same results, and parameters that accept what PyTorch's do."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import cygrad

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

SAME = {
    r"\bDeviceLikeType( \| None)?|_device \| _int \| str \| None": "Device",
    r"Callable\[\[.*?\], (\w+)\]|\bCallable(?=$| )": r"Callable[..., \1]",
    r"\[_?S\]|^_?S$": "S",
    r"\b_(int|float|bool|complex|dtype|device|layout|memory_format)\b": r"\1",
    r"\blist\[Any\]": "list",
    r"\btorch\.(?=dtype|return_types|memory_format|SymInt|SymFloat)|'": "",
    r"\b(SymInt|IntLikeType)\b": "int",
    r"\bSymFloat\b": "float",
    r"\bDType\b": "dtype",
    r"\bSelf\b": "Tensor",
    r"\b_(sym)?size\b|\blist\[int\]|\btuple\[int, \.\.\.\]|Sequence\[int \| int\]": "Sequence[int]",
    r"\blist\[float\]": "Sequence[float]",
    r"BroadcastingList\d\[(\w+)\]": r"\1 | Sequence[\1]",
    r"Optional\[(.*)\]": r"\1 | None",
    r"tuple\[(Tensor(?: \| None)?), \.\.\.\] \| list\[Tensor(?: \| None)?\]": r"Sequence[\1]",
    r"numpy\.ndarray|np\.ndarray\[Any, Any\]": "ndarray",
}

# PyTorch says None, a list without the type of its items, that a tuple is any sequence, or a storage for its class.
OTHER_RESULTS = {"split_copy", "split_with_sizes_copy", "unbind_copy", "tolist", "Tensor.split", "storage_type"}
# PyTorch's `alpha` may be None and the second operand of `@` a number in the stubs alone; `celu` takes complex factors
# there and refuses them when it runs; `hx` is a tensor for all recurrent functions but `lstm`; `Storage` is both kinds.
OTHER_PARAMETERS = {
    "alpha",
    "apply_.callable",
    "map_.callable",
    "map2_.callable",
    "__matmul__.other",
    "lstm.hx",
    "set_.source",
}


def kinds(annotation):
    """The members of a union, as this module spells them."""
    text = ast.unparse(annotation)
    for pattern, name in SAME.items():
        text = re.sub(pattern, name, text)
    found = set(re.split(r" \| (?![^\[]*\])", text))
    return found | ({"None"} if "Device" in found else set())


def functions(body):
    found = defaultdict(list)
    for node in body:
        if isinstance(node, ast.FunctionDef) and not re.match(r"_[a-z]|__(init|eq|ne|new)__", node.name):
            found[node.name].append(node)
    return found


def stub(path, name=None):
    """The functions of a stub, or the methods of one of its classes."""
    body = ast.parse(Path(path).read_text(encoding="utf-8")).body
    if name:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == name)
    return functions(body)


@cache
def pairs():
    """[(name, PyTorch's forms, ours)] for each function that both have."""
    found = []
    theirs, ours = Path(torch.__file__).parent, Path(cygrad.__file__).parent
    for owner, their, our in (
        ("", stub(theirs / "_C/_VariableFunctions.pyi"), stub(ours / "__init__.pyi")),
        ("Tensor.", stub(theirs / "_C/__init__.pyi", "TensorBase"), stub(ours / "__init__.pyi", "Tensor")),
        ("functional.", stub(theirs / "nn/functional.py"), stub(ours / "nn/functional.pyi")),
    ):
        for name in sorted(their.keys() & our.keys()):
            found.append((owner + name, their[name], our[name]))
    return found


def test_results():
    compared, differ = 0, {}
    for name, their, our in pairs():
        wanted = set().union(*(kinds(form.returns) for form in their if form.returns))
        found = set().union(*(kinds(form.returns) for form in our))
        compared += bool(wanted)
        extra = found - wanted - ({"Any", "tuple[Tensor, Tensor]"} if "max_pool" in name else set())
        if wanted and (wanted - found or extra) and not {name, name.partition(".")[2]} & OTHER_RESULTS:
            differ[name] = wanted, found
    assert not differ, "\n".join(map(str, differ.items()))
    assert compared > 800


def test_parameters():
    compared, refused = 0, {}
    for name, their, our in pairs():
        accepted = defaultdict(set)
        for form in our:
            for parameter in every(form):
                accepted[parameter.arg] |= kinds(parameter.annotation)
        for parameter in (p for form in their for p in every(form) if accepted.get(p.arg)):
            ours = accepted[parameter.arg] | ({"float"} & accepted[parameter.arg] and {"int"})
            ours = ours | ({"float", "int"} if "complex" in ours else set()) | ({"None"} if "bool" in ours else set())
            compared += 1
            missing = kinds(parameter.annotation) - ours
            short = name.rpartition(".")[2]
            skipped = {parameter.arg, f"{short}.{parameter.arg}"} & OTHER_PARAMETERS
            if missing and "Any" not in ours and parameter.arg != "out" and not skipped:
                refused[f"{name}.{parameter.arg}"] = missing, accepted[parameter.arg]
    assert not refused, "\n".join(map(str, refused.items()))
    assert compared > 3000


def every(form):
    """The annotated parameters of a form."""
    arguments = form.args
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg]
    return [p for p in found if p is not None and p.annotation is not None]
