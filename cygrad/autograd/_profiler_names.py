"""Names of events and Python frames: which ones the profiler's tables leave out, and which they put together."""

import re

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"

_LEFT_OUT = {
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    "aten::_version",
    "aten::is_leaf",
    "aten::output_nr",
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
}
_FRAMES_LEFT_OUT = (  # (part of the file, part of the function)
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
)


def _filter_name(name: str) -> bool:
    """Whether tables leave out events of this name."""
    return name in _LEFT_OUT


def _filter_stack_entry(entry: str) -> bool:
    """Whether stacks show this frame."""
    return not any(file in entry and function in entry for file, function in _FRAMES_LEFT_OUT)


def _rewrite_name(name: str, with_wildcard: bool = False) -> str:
    """Return the name under which events are put together: with `with_wildcard` all steps have one.

    >>> from cygrad.autograd.profiler_util import _rewrite_name
    >>> _rewrite_name("ProfilerStep#3", with_wildcard=True)
    'ProfilerStep*'
    """
    return re.sub(r"^ProfilerStep#.*", "ProfilerStep*", name) if with_wildcard else name
