"""Where a value goes in a function: read from its instructions, which are not executed.

`ways_out` tells of a call that is in progress at which places of what its function returns its value stands. It answers
None unless the function does nothing else with the value: then it may be another one without anything else being
another.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType
from typing import Any

_PUSHING = frozenset("LOAD_CONST LOAD_GLOBAL LOAD_DEREF LOAD_CLOSURE LOAD_SMALL_INT LOAD_NAME".split())
_IDLE = frozenset("NOP CACHE RESUME PRECALL KW_NAMES EXTENDED_ARG NOT_TAKEN".split())
_LOADING = frozenset("LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_BORROW".split())
_PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
_POPPING = {  # how many items an instruction takes, if that does not depend on its argument
    **dict.fromkeys("UNARY_NEGATIVE UNARY_NOT UNARY_INVERT UNARY_POSITIVE TO_BOOL LOAD_ATTR LOAD_METHOD".split(), 1),
    **dict.fromkeys("BINARY_OP COMPARE_OP IS_OP CONTAINS_OP BINARY_SUBSCR".split(), 2),
}
_JUMPING = ("JUMP_FORWARD", "JUMP_ABSOLUTE")
_CODE_FLAGS = 0x20 | 0x80 | 0x200  # generators and coroutines
_MOST = 500  # instructions that are followed

Path = tuple[int, ...]


class _Consumed(Exception):
    """The value is used by an instruction other than those that hand it on."""


class _Step:
    """An instruction, or a half of one that does two things."""

    __slots__ = ("argval", "instruction", "name")

    def __init__(self, instruction: Any, name: str, argval: Any) -> None:
        self.instruction, self.name, self.argval = instruction, name, argval


@lru_cache(256)
def _steps_of(code: CodeType) -> tuple[list[_Step], dict[int, int]]:
    """Return the steps of a function, and {offset of an instruction: number of its first step}."""
    steps: list[_Step] = []
    places: dict[int, int] = {}
    for instruction in dis.get_instructions(code):
        places[instruction.offset] = len(steps)
        pair = _PAIRS.get(instruction.opname)
        if pair is not None:
            steps += [_Step(instruction, name, value) for name, value in zip(pair, instruction.argval)]
        elif instruction.opname not in _IDLE:
            steps.append(_Step(instruction, instruction.opname, instruction.argval))
    return steps, places


@lru_cache(1024)
def ways_out(
    code: CodeType, offset: int, name: str, is_method: bool, is_straight: bool = False
) -> frozenset[Path] | None:
    """Return where the value of the call at an offset stands in what the function returns, or None if it is used.

    A place is the number of an item, of an item of that, and so on; () is the returned value itself. The call must be
    one of a method, without arguments, or of a global function, with one: `name`. It is any one if there is no name.
    `is_straight`: nothing may be passed by on the way, nor come from elsewhere.
    """
    steps, places = _steps_of(code)
    if code.co_flags & _CODE_FLAGS or offset < 0:
        return None
    begin = max(start for start in places if start <= offset)  # the offset may be within the instruction
    call = places[begin]  # in CPython 3.11, the instruction before the call may be the one that is running
    if not steps[call].name.startswith("CALL") or name and not _calls(steps, call, name, is_method):
        return None
    try:
        return frozenset(_follow(code, call + 1, (), set(), is_straight))
    except (_Consumed, RecursionError, ValueError):
        return None


def _calls(steps: list[_Step], call: int, name: str, is_method: bool) -> bool:
    if is_method:
        last = steps[call - 1]
        if last.name == "PUSH_NULL":
            last = steps[call - 2]
        return steps[call].argval == 0 and last.name in ("LOAD_METHOD", "LOAD_ATTR") and last.argval == name
    if steps[call].name != "CALL" or steps[call].argval != 1:
        return False
    for first in range(call - 1, -1, -1):
        if steps[first].name == "LOAD_GLOBAL" and steps[first].argval == name:
            above = 1 if sys.version_info >= (3, 13) else 0  # a NULL
            try:
                for step in steps[first + 1 : call]:
                    above = _above_after(step, above)
            except (_Consumed, ValueError):
                continue
            if above == (2 if sys.version_info >= (3, 13) else 1):
                return True
    return False


def has_one_way_out(code: CodeType) -> bool:
    """Whether a function returns something else than a constant in one place only, and stores to no variable twice.

    If it does, and `is_straight` ways lead there, then the value always stands where they say.
    """
    steps, _ = _steps_of(code)
    returns = [i for i, step in enumerate(steps) if step.name == "RETURN_VALUE" and steps[i - 1].name != "LOAD_CONST"]
    stored = [step.argval for step in steps if step.name == "STORE_FAST"]
    return (
        len(returns) == 1
        and len(stored) == len(set(stored))
        and not {*stored} & {*code.co_varnames[: code.co_argcount]}
    )


def _follow(code: CodeType, at: int, inner: Path, variables: set[tuple[str, Path]], is_straight: bool) -> set[Path]:
    """Follow a value on top of the stack from a step on; `inner` leads to it in the container that it is now in."""
    steps, places = _steps_of(code)
    found: set[Path] = set()
    todo, seen = [(at, 0, inner)], set()
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        at, above, path = state
        if at >= len(steps) or len(seen) > _MOST:
            raise _Consumed
        step = steps[at]
        if is_straight and (step.instruction.is_jump_target or "JUMP" in step.name):
            raise _Consumed
        if step.name == "RETURN_VALUE" and above == 0:
            found.add(path)
        elif step.name == "POP_TOP" and above == 0:
            pass
        elif step.name == "STORE_FAST" and above == 0:
            found |= _of_variable(code, step.argval, path, variables, is_straight)
        elif step.name in _JUMPING:
            todo.append((places[step.argval], above, path))
        elif step.name.startswith("POP_JUMP") and "BACKWARD" not in step.name and above > 0:
            todo += [(at + 1, above - 1, path), (places[step.argval], above - 1, path)]
        elif (into := _container(step, above)) is not None:
            todo.append((at + 1, 0, (into, *path)))
        else:
            todo.append((at + 1, _above_after(step, above), path))
    return found


def _of_variable(
    code: CodeType, name: str, path: Path, variables: set[tuple[str, Path]], is_straight: bool
) -> set[Path]:
    """Follow a value from each use of the variable that holds it."""
    if name not in code.co_varnames or name in code.co_cellvars or (name, path) in variables:
        raise _Consumed
    found: set[Path] = set()
    steps, _ = _steps_of(code)
    for i, step in enumerate(steps):
        if step.argval == name and step.name in _LOADING:
            found |= _follow(code, i + 1, path, {*variables, (name, path)}, is_straight)
        elif "FAST" in step.name and step.name != "STORE_FAST" and step.argval == name:
            raise _Consumed
    return found


def _container(step: _Step, above: int) -> int | None:
    """Return which item of a container the value becomes, or None if the step makes no container of it."""
    count = step.argval
    if step.name in ("BUILD_TUPLE", "BUILD_LIST") and count > above:
        return count - 1 - above
    if step.name == "BUILD_MAP" and 2 * count > above:
        place = 2 * count - 1 - above
        if place % 2 == 0:  # a key
            raise _Consumed
        return place // 2
    if step.name == "BUILD_CONST_KEY_MAP" and count + 1 > above:
        if above == 0:
            raise _Consumed
        return count - above
    return None


def _above_after(step: _Step, above: int) -> int:
    """Return how many items lie above the value after a step that leaves it alone."""
    name, instruction, count = step.name, step.instruction, step.argval
    if name in _LOADING:
        return above + 1
    if name == "STORE_FAST":
        taken, effect = 1, -1
    elif name == "POP_TOP":
        taken, effect = 1, -1
    elif name == "SWAP":
        return 0 if above == count - 1 else count - 1 if above == 0 else above
    elif name == "COPY":
        if above == count - 1:
            raise _Consumed
        return above + 1
    else:
        effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        if name in _PUSHING or name == "PUSH_NULL":
            taken = 0
        elif name in ("BUILD_TUPLE", "BUILD_LIST", "BUILD_STRING"):
            taken = count
        elif name == "BUILD_MAP":
            taken = 2 * count
        elif name == "BUILD_CONST_KEY_MAP":
            taken = count + 1
        elif name in ("CALL", "CALL_KW"):
            taken = count + 2 + (name == "CALL_KW")
            effect = 1 - taken
        elif name in _POPPING:
            taken = _POPPING[name]
        else:
            raise _Consumed
    if taken > above:
        raise _Consumed
    return above + effect
