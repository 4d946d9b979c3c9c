"""Every public name of the modules around the tensors, from `accelerator` to `xpu`, has an example in the reference.

`test_docstrings.py` runs the examples; `test_reference.py` is about tensors, functions of them, and training. A method
may share the example of its class, if that calls or overrides the method.
"""

import inspect
import re

import pytest
from checkout import entries_of_reference

ELSEWHERE = re.compile(  # tensors, legacy types included, functions of them, and training
    r"cygrad(\.(Tensor|autograd|distributions|fft|func|functional|linalg|nn|optim|random|return_types|signal|special)"
    r"(\.|$)|\.[^.]*$|\.(storage|testing|types)\.|\.cuda\.[A-Z]\w*Tensor$)"
)
# Called by calling the object, or by `apply`, as the example of the class does.
CALLED_BY_CALLING = {"forward", "backward"}
# Names without an example of their own, and why.
WITHOUT = {
    "cygrad.distributed.checkpoint.FileSystemWriter.finish": "`save` calls it, with what only it knows",
    "cygrad.distributed.checkpoint.FileSystemWriter.write_part": "likewise",
    "cygrad.distributed.checkpoint.HuggingFaceStorageWriter.finish": "likewise",
    "cygrad.distributed.checkpoint.HuggingFaceStorageWriter.prepare": "likewise",
    "cygrad.distributed.checkpoint.HuggingFaceStorageWriter.write_part": "likewise",
}


ENTRIES = entries_of_reference()


def is_elsewhere(name):
    """Whether a name, or the class that it is a member of, is one of those of the package itself or of training."""
    owner, _, _ = name.rpartition(".")
    return bool(ELSEWHERE.match(name) or owner in ENTRIES and ELSEWHERE.match(owner))


NAMES = [name for name in ENTRIES if not is_elsewhere(name)]
PARTS = sorted({name.split(".")[1] for name in NAMES})


def example(value):
    """The lines of code in a docstring."""
    doc = inspect.getdoc(value) or ""
    return "\n".join(line.strip() for line in doc.splitlines() if line.strip().startswith((">>> ", "... ")))


def is_shown(name):
    value, kind = ENTRIES[name]
    if example(value):
        return True
    if kind != "method":
        return False
    owner, _, method = name.rpartition(".")
    code = example(ENTRIES[owner][0])
    return bool(code) and (method in CALLED_BY_CALLING or re.search(rf"(\.|\bdef ){method}\b", code) is not None)


def test_names_are_found():
    assert len(NAMES) > 1300
    assert {"cygrad.distributed.all_reduce", "cygrad.fx.Graph.call_function", "cygrad.xpu.synchronize"} < set(NAMES)
    assert not {"cygrad.relu", "cygrad.dtype.to_real", "cygrad.nn.Linear", "cygrad.optim.SGD.step"} & set(NAMES)


@pytest.mark.parametrize("part", PARTS)
def test_names_have_examples(part):
    """A name that is missing here needs an example in its docstring, or a call in that of its class."""
    names = [name for name in NAMES if name.split(".")[1] == part and name not in WITHOUT]
    assert [name for name in names if not is_shown(name)] == []


def test_exceptions_are_needed():
    assert [name for name in WITHOUT if name not in ENTRIES or is_shown(name)] == []
