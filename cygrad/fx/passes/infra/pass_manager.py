"""Runs several passes in turn."""

from collections.abc import Callable
from typing import Any

from cygrad.fx.passes.infra.pass_base import PassResult

__all__ = ["PassManager"]


class PassManager:
    """Runs passes in order, up to `steps` times, until none changes the module.

    `run_checks_after_each_pass` calls the checks that `add_checks` adds after each pass, not only at the end.

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
        constraints: list[Callable[[Any, Any], bool]] | None = None,
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

    def add_pass(self, _pass: Callable[[Any], PassResult | None]) -> None:
        """Run a further pass behind the others."""
        self.passes.append(_pass)

    def add_checks(self, check: Callable[[Any], None]) -> None:
        """Call `check(module)`, which raises an error if something is wrong."""
        self.checks.append(check)

    def _check(self, module: Any) -> None:
        for check in self.checks:
            check(module)

    def __call__(self, module: Any) -> PassResult:
        changed = False
        for _ in range(self.steps):
            changed_now = False
            for one in self.passes:
                result = one(module)
                if not isinstance(result, PassResult):
                    raise TypeError(f"The result of the pass {one} should be type PassResult.")
                module = result.graph_module
                changed_now |= result.modified
                if self.run_checks_after_each_pass:
                    self._check(module)
            self._check(module)
            changed |= changed_now
            if not changed_now:
                break
        return PassResult(module, changed)
