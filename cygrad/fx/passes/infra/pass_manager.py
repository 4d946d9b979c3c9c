"""Runs several passes in turn."""

import functools
import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

from cygrad import nn
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.passes.infra.pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

_Constraint = Callable[[Any, Any], bool]  # whether the first pass may run before the second


def pass_result_wrapper(fn: Callable[[Any], Any]) -> Callable[[Any], PassResult]:
    """Return a pass that returns a PassResult, of one that changes a module in place or returns another module.

    >>> import cygrad
    >>> from cygrad.fx.passes.infra.pass_manager import pass_result_wrapper
    >>> lint = pass_result_wrapper(lambda module: module.graph.lint())
    >>> lint(cygrad.fx.symbolic_trace(lambda x: x + 1)).modified
    True
    """

    @functools.wraps(fn)
    def wrapped(module: Any) -> PassResult:
        result = fn(module)
        if result is None or isinstance(result, nn.Module):
            return PassResult(module if result is None else result, True)
        if isinstance(result, PassResult):
            return result
        raise TypeError(f"expected a pass that returns None, a module or a PassResult, but got {type(result)}")

    wrapped.__name__ = _name_of(fn)
    return wrapped


def this_before_that_pass_constraint(this: Any, that: Any) -> _Constraint:
    """Return the constraint that one pass runs before another, for `PassManager.add_constraint`.

    >>> from cygrad.fx.passes.infra.pass_manager import this_before_that_pass_constraint
    >>> is_allowed = this_before_that_pass_constraint("fold", "fuse")
    >>> is_allowed("fold", "fuse"), is_allowed("fuse", "fold")
    (True, False)
    """

    def may_precede(first: Any, second: Any) -> bool:
        return first != that or second != this

    return may_precede


def _topological_sort_passes(passes: list[Any], constraints: list[_Constraint]) -> list[Any]:
    """Return the passes in an order that obeys the constraints. Raises RuntimeError if there is none."""
    if not constraints:
        return passes

    def must_follow(one: int, other: int) -> bool:
        return one != other and not all(constraint(passes[one], passes[other]) for constraint in constraints)

    places = range(len(passes))
    waits_for = [{j for j in places if must_follow(i, j)} for i in places]
    ready = deque(i for i in places if not waits_for[i])
    found = []
    while ready:
        done = ready.popleft()
        found.append(passes[done])
        for i in places:
            if done in waits_for[i]:
                waits_for[i].remove(done)
                if not waits_for[i]:
                    ready.append(i)
    cycle = [passes[i] for i in places if waits_for[i]]
    if cycle:
        raise RuntimeError(f"Circular dependency detected within the following passes: {cycle}")
    return found


def _name_of(one: Any) -> str:
    return one.__name__ if inspect.isfunction(one) else type(one).__name__


class PassManager:
    """Runs passes in an order that obeys constraints, up to `steps` times, until none changes the module.

    A constraint tells of two passes whether the first may run before the second. The checks that `add_checks` adds are
    called with the module before the first pass, and with `run_checks_after_each_pass` after each; with
    `suppress_check_failures` their errors are ignored. An error of a pass names those that ran before it.

    >>> import cygrad
    >>> from cygrad.fx.passes.infra.pass_base import PassResult
    >>> from cygrad.fx.passes.infra.pass_manager import PassManager
    >>> manager = PassManager()
    >>> manager.add_pass(lambda module: PassResult(module, module.graph.eliminate_dead_code()))
    >>> manager.add_checks(lambda module: module.graph.lint())
    >>> manager(cygrad.fx.symbolic_trace(lambda x: x + 1)).modified
    False
    """

    def __init__(
        self,
        passes: list[Callable[[Any], PassResult | None]] | None = None,
        constraints: list[_Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = list(passes or [])
        self.constraints = list(constraints or [])
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self.checks: list[Callable[[Any], None]] = []
        self._validated = False

    def add_pass(self, _pass: Callable[[Any], PassResult | None]) -> None:
        """Run a further pass behind the others, if the constraints allow it."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: _Constraint) -> None:
        """Obey a further constraint.

        >>> from cygrad.fx.passes.infra.pass_manager import PassManager, this_before_that_pass_constraint
        >>> fold, fuse = (lambda module: None), (lambda module: None)
        >>> manager = PassManager([fuse, fold])
        >>> manager.add_constraint(this_before_that_pass_constraint(fold, fuse))
        >>> manager.solve_constraints()
        >>> manager.passes == [fold, fuse]
        True
        """
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raise RuntimeError if the order of the passes violates a constraint.

        >>> from cygrad.fx.passes.infra.pass_manager import PassManager
        >>> PassManager([], [lambda first, second: False]).validate_constraints()
        """
        if self._validated:
            return
        for i, first in enumerate(self.passes):
            for j, second in enumerate(self.passes[i + 1 :], i + 1):
                if not all(constraint(first, second) for constraint in self.constraints):
                    raise RuntimeError(
                        f"pass schedule constraint violated. Expected {second} before {first} but found {first} at "
                        f"index {i} and {second} at index {j} in pass list."
                    )
        self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes into an order that obeys the constraints. Raises RuntimeError if there is none.

        >>> from cygrad.fx.passes.infra.pass_manager import PassManager
        >>> PassManager().solve_constraints()
        """
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Any], None]) -> None:
        """Call `check(module)`, which raises an error if something is wrong. Raises TypeError for other functions."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.checks.append(check)

    def check(self, module: Any) -> None:
        """Call the checks.

        >>> from cygrad.fx.passes.infra.pass_manager import PassManager
        >>> manager = PassManager()
        >>> manager.add_checks(lambda module: print(module))
        >>> manager.check("a module")
        a module
        """
        for check in self.checks:
            try:
                check(module)
            except Exception:
                if not self.suppress_check_failures:
                    raise

    def __call__(self, module: Any) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            changed_now = False
            for i, one in enumerate(self.passes):
                try:
                    result = self._run(one, module)
                except Exception as error:
                    before = [_name_of(other) for other in self.passes[:i]]
                    name = _name_of(one)
                    raise Exception(
                        f"An error occurred when running the '{name}' pass after the following passes: {before}"
                    ) from error
                module = result.graph_module
                changed_now |= result.modified
            changed |= changed_now
            if not changed_now:
                break
        return PassResult(module, changed)

    def _run(self, one: Callable[[Any], Any], module: Any) -> PassResult:
        result = one(module)
        if not isinstance(result, PassResult):
            raise TypeError(
                f"The result of the pass {_name_of(one)} should be type PassResult. Please wrap it with "
                "pass_result_wrapper()"
            )
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return result
