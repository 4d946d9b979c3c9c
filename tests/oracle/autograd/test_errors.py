"""The first line and the type of each error in `core/diagnostics/situations` match PyTorch's."""

import functools
import re
import warnings

import pytest
from core.diagnostics import situations as ours

from cygrad._core.diagnostics import graph_errors

pytestmark = pytest.mark.oracle

BEYOND = {
    "nan_in_a_result": "PyTorch has no nan_check",
    "infinite_result": "PyTorch has no nan_check",
    "nan_in_a_gradient_only": "PyTorch has no nan_check",
    "read_only_memory_changed": "PyTorch writes into read-only memory",
    "requires_grad_set_on_a_loss_without_history": "PyTorch trains nothing and says nothing",
    "forward_mode_of_a_function_without_jvp": "PyTorch asks for setup_context before",
    **dict.fromkeys(
        ("losses_added_up", "losses_kept_in_a_list", "moving_average_of_losses", "state_carried_from_step_to_step"),
        "PyTorch does not look for graphs that grow",
    ),
    **dict.fromkeys(
        ("hook_that_calls_itself", "backward_that_calls_itself"),
        "PyTorch begins a thread for every sixty passes within each other, until there is no memory",
    ),
}


@functools.cache
def theirs():
    """The same situations for PyTorch: the source of all files, concatenated."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in ours.FILES)
    source = re.sub(r"^from core\.diagnostics\.situations.*", "", source, flags=re.MULTILINE)
    source = source.replace("import cygrad as torch", "import torch").replace("nan_check, ", "")
    source = re.sub(r"^(import|from) cygrad\.", r"\1 torch.", source, flags=re.MULTILINE)
    names = {}
    exec(compile(source, "situations of PyTorch", "exec"), names)
    return names["SITUATIONS"]


def outcome(situation):
    """Return (builtin type of the error or warning, first line)."""
    graph_errors._warned.clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            situation()
        except Exception as error:
            kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
            return kind.__name__, str(error).split("\n")[0]
    return (
        ("UserWarning", str(seen[-1].message).split("\n")[0].partition(" (Triggered internally")[0]) if seen else None
    )


@pytest.mark.parametrize("name", sorted(set(ours.SITUATIONS) - set(BEYOND)))
def test_same_first_line(name):
    assert outcome(ours.SITUATIONS[name]) == outcome(theirs()[name])
