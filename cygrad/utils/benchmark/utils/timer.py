"""Times a statement."""

import enum
import textwrap
import timeit
from collections.abc import Callable
from timeit import default_timer
from typing import Any, NoReturn

import cygrad
from cygrad.utils.benchmark.utils.common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]


def timer() -> float:
    """Return the time in seconds, once the GPU has done its work, if one is in use.

    >>> from cygrad.utils.benchmark import timer
    >>> start = timer()
    >>> timer() >= start
    True
    """
    if cygrad.cuda.is_initialized():
        cygrad.cuda.synchronize()
    return default_timer()


class Language(enum.Enum):
    """The language of a statement.

    >>> from cygrad.utils.benchmark import Language
    >>> Language.PYTHON.name
    'PYTHON'
    """

    PYTHON = 0
    CPP = 1


_PYTHON, _CPP = ("py", "python"), ("cpp", "c++")


class Timer:
    """Times the statement `stmt`, after `setup`, both with the names in `globals`; the arguments of `timeit.Timer`.

    `label`, `sub_label`, `description` and `env` are for tables (see `Compare`). `num_threads` is how many threads ops
    use, by default one.

    >>> import cygrad
    >>> from cygrad.utils.benchmark import Timer
    >>> Timer("x + x", globals={"x": cygrad.ones(4)}).timeit(10).number_per_run
    10
    >>> timer = Timer("x + x", globals={"x": cygrad.ones(4)})
    >>> timer.blocked_autorange(min_run_time=0.001).median > 0
    True
    >>> timer.adaptive_autorange(max_run_time=0.01).median > 0
    True
    """

    _timer_cls: type[timeit.Timer] = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, *_CPP):
            raise NotImplementedError(
                "only statements in Python can be timed: C++ statements need PyTorch's headers and a compiler"
            )
        if language not in (Language.PYTHON, *_PYTHON):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        self._globals = dict(globals or {})
        self._globals.setdefault("torch", cygrad)
        stmt, setup = textwrap.dedent(stmt).strip("\n").rstrip(), textwrap.dedent(setup).strip("\n").rstrip()
        self._timer = self._timer_cls(stmt, setup, timer, globals=self._globals)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)  # a clock may not have moved on

    def timeit(self, number: int = 1000000) -> Measurement:
        """Return the time of `number` executions, after a hundredth of them for warming up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Raise NotImplementedError: see `blocked_autorange`.

        >>> from cygrad.utils.benchmark import Timer
        >>> Timer("pass").repeat()
        Traceback (most recent call last):
            ...
        NotImplementedError: See `Timer.blocked_autorange.`
        """
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> NoReturn:
        """Raise NotImplementedError: see `blocked_autorange`.

        >>> from cygrad.utils.benchmark import Timer
        >>> Timer("pass").autorange()
        Traceback (most recent call last):
            ...
        NotImplementedError: See `Timer.blocked_autorange.`
        """
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise OSError: instructions cannot be counted.

        >>> from cygrad.utils.benchmark import Timer
        >>> Timer("pass").collect_callgrind()
        Traceback (most recent call last):
            ...
        OSError: Failed to collect callgrind profile: it needs Valgrind and PyTorch's own bindings
        """
        raise OSError("Failed to collect callgrind profile: it needs Valgrind and PyTorch's own bindings")

    def _block_size(self, min_run_time: float) -> int:
        """Return how many executions to time at once, so that the clock takes at most a thousandth of the time."""
        overhead = sorted(self._timeit(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._timeit(number)
            if taken and overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                return number
            if taken > min_run_time:
                return number
            number *= 10

    def _run_blocks(
        self,
        number: int,
        is_enough: Callable[[list[float]], bool],
        min_run_time: float,
        max_run_time: float,
        callback: Callable[[int, float], Any] | None,
    ) -> list[float]:
        times: list[float] = []
        total = 0.0
        with set_torch_threads(self._task_spec.num_threads):
            while total < min_run_time or (not is_enough(times) and total < max_run_time):
                taken = self._timeit(number)
                times.append(taken)
                total += taken
                if callback:
                    callback(number, taken)
        return times

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Return the times of blocks of executions, for at least `min_run_time` seconds altogether.

        Blocks are so long that the clock does not matter. `callback(number, seconds)` is called after each.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
        times = self._run_blocks(number, lambda times: True, min_run_time, min_run_time, callback)
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Do `blocked_autorange` until the times vary by less than `threshold` (see `Measurement.meets_confidence`).

        It takes `max_run_time` seconds at most.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)

        def is_enough(times: list[float]) -> bool:
            return len(times) > 3 and Measurement(number, times, self._task_spec).meets_confidence(threshold)

        times = self._run_blocks(number, is_enough, min_run_time, max_run_time, callback)
        return Measurement(number, times, self._task_spec)
