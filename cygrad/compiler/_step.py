"""A compiled function: which of its calls run as they are written, are captured, or are replayed.

For each kind of call (`kind_of`): the first runs and is watched (`Watch`), the second is captured, the third is
compared with the program; from then on calls are replayed as long as all guards hold. What cannot be guarded, or is not
captured, runs as it is written, always.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from cygrad import Generator, Tensor, default_generator, is_grad_enabled, is_inference_mode_enabled
from cygrad._core.errors.classes import GraphBreak
from cygrad._core.replay.calls.following import Follower
from cygrad._core.replay.calls.plans import MISS, Plan, Plans, entered
from cygrad._core.replay.calls.plans import watching as _watching
from cygrad._core.replay.capture import capture
from cygrad._core.replay.casts import are_cold, situation
from cygrad._core.replay.gpu.steps import are_on_gpu
from cygrad._core.replay.gpu.steps import capture as capture_on_gpu
from cygrad._core.replay.guards.signature import Signature, kind_of
from cygrad._core.replay.parts import Refusal
from cygrad._core.replay.program import MISS as UNFIT
from cygrad._core.replay.program import Program
from cygrad._core.replay.returns.returned import Numbers
from cygrad._core.replay.situation import resting_collector
from cygrad.compiler import _settings
from cygrad.compiler._state import Survey, changed_line
from cygrad.compiler._values import Value, leaves
from cygrad.compiler._watching import Reason, Watch, current_watch, is_ours
from cygrad.nn import Module
from cygrad.utils.warning import warn

_KINDS = 64  # kinds of calls that are remembered
_TRIES = 3  # captures of a kind of calls before it is left alone
_FRUITLESS = 12  # kinds of calls, with few replays, before a function is left alone for a while
_CAPTURES = 8  # captures, with few replays, before it is
_OUTDATED = 16  # calls that a plan did not fit, since it did, before a newer one takes its place
_LAYOUTS = 8  # of gradients from outside, for one kind of calls
_REST = 256  # calls: the first such while; each is twice as long as the last one

_alone = threading.Lock()  # one call is watched at a time


class Kind:
    """A kind of calls of one function, on the way to a plan."""

    def __init__(self) -> None:
        self.tries = 0
        self.watch: Watch | None = None
        self.survey: Survey | None = None
        self.program: Any = None
        self.value: Value | None = None
        self.reasons: list[Reason] = []
        self.is_seen_twice = False
        self.is_left = False  # calls of this kind run as they are written, for good
        self.layouts: tuple[Any, ...] = ()  # of gradients of later backward passes
        self.casts: list[Tensor] = []  # parameters that the last program casts, if autocast is on
        self.joins = True  # kernels that follow each other, on GPUs: no more once a graph differed from its call

    def begin_again(self, reasons: list[Reason]) -> None:
        """Note why a capture failed; after some tries the kind is left alone."""
        self.reasons = reasons
        self.survey = self.program = self.value = None
        self.casts = []
        self.tries += 1
        if self.tries >= _TRIES:
            self.leave(reasons)

    def leave(self, reasons: list[Reason]) -> None:
        """Give up."""
        self.reasons, self.is_left = reasons, True
        self.watch = self.survey = self.program = self.value = None
        self.casts = []


class Step:
    """The state of one compiled function."""

    def __init__(self, function: Callable[..., Any], fullgraph: bool, every: int) -> None:
        self.function = function
        self._codes = _codes_of(function)
        self.fullgraph = fullgraph
        self.plans = Plans(function, every)
        self.plans.follower = Follower(every) if _settings.has_lock else None
        self.kinds: OrderedDict[Any, Kind] = OrderedDict()
        self.captures = 0
        self._rested = 0
        self._has_warned = False
        _settings.steps.add(self)

    # -- calls --

    def run_as_written(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do a call that is not to be replayed."""
        return self.plans.as_written(args, kwargs)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do a call that was not replayed."""
        stance = _settings.stance.name
        if stance == "force_eager" or current_watch() is not None:
            return self.plans.as_written(args, kwargs)
        if stance == "fail_on_recompile" and (self.kinds or len(self.plans)):
            raise RuntimeError(f"Detected recompile when torch.compile stance is 'fail_on_recompile'\n  {self.miss()}")
        if stance == "eager_on_recompile" or not _alone.acquire(blocking=False):
            return self.plans.as_written(args, kwargs)
        try:
            return self._advance(args, kwargs)
        finally:
            _alone.release()

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        entered(1)
        try:
            return self.function(*args, **kwargs)
        finally:
            entered(-1)

    @property
    def calls(self) -> int:
        """How many calls were not replayed."""
        return self.plans.calls

    def _advance(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        key = (*kind_of(args, kwargs), self._mode())
        kind = self.kinds.get(key)
        if kind is None:
            kind = self.kinds[key] = Kind()
            self._limit(args, kwargs)
        self.kinds.move_to_end(key)
        if kind.is_left and self.fullgraph:
            raise graph_break(kind.reasons)
        if kind.is_left and not len(self.plans) and all(other.is_left for other in self.kinds.values()):
            self._rest(None)
        if kind.is_left or _settings.is_traced() or not are_cold(kind.casts):
            return self.plans.as_written(args, kwargs)
        plan = self._plan_to_check(args, kwargs)
        if plan is not None:
            return self._check(plan, kind, args, kwargs)
        if not _settings.has_lock:
            kind.leave([Reason("this Python has no global lock, without which guards cannot be compared")])
            self._break_off(kind)
            return self.plans.as_written(args, kwargs)
        if kind.watch is None:
            return self._watch(kind, args, kwargs)
        if kind.program is not None and kind.survey is not None and kind.survey.still_holds(_objects_in(args, kwargs)):
            return self._compare(key, kind, args, kwargs)
        return self._capture(kind, args, kwargs)

    def _mode(self) -> tuple[Any, ...]:
        """Return what usually makes a function another one: grad mode, and whether its module is being trained."""
        module = getattr(self.function, "__self__", self.function)
        training = module.training if isinstance(module, Module) else None
        return is_grad_enabled(), is_inference_mode_enabled(), training, situation()

    def _watched(self, watch: Watch | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = functools.partial(self.function, *args, **kwargs)
        before = _settings.modes()
        _watching(True)
        entered(1)
        try:
            value = call() if watch is None else watch.run(call)
            if watch is not None and _settings.modes() != before:
                watch.note("it changes a mode of the thread, or a setting", "do it outside of the compiled function")
            return value
        finally:
            entered(-1)
            _watching(False)

    def _captured(
        self, watch: Watch | None, by: Callable[..., Any], signature: Signature, args: Any, kwargs: Any
    ) -> Any:
        """Have a call captured or checked, which does it in between, once or twice; return the numbers of it, too."""
        self.plans.calls += 1
        root = Step._watched.__code__ if watch is None else Watch.run.__code__
        takes_numbers = not _is_for_gpu(by)
        with Numbers(self._codes if takes_numbers else (), root) as numbers:
            call = functools.partial(self._watched, watch, args, kwargs)
            further = (numbers.tensors_of,) if takes_numbers else ()
            return *by(call, signature.match(args, kwargs), leaves, *further), numbers

    def _watch(self, kind: Kind, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The first call: see which functions run."""
        self.plans.calls += 1
        watch = Watch()
        value = self._watched(watch, args, kwargs)
        if watch.reasons:
            kind.begin_again(watch.reasons)
            self._break_off(kind)
        else:
            kind.watch = watch
        return value

    def _capture(self, kind: Kind, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The second call: note what it launches."""
        if self.captures >= _CAPTURES and self.replays() < 4 * self.captures:
            self.captures = 0
            self._rest(self._changing_state(kind))
            return self.plans.as_written(args, kwargs)
        survey = self._surveyed(kind, args, kwargs)
        signature = _signature(survey, args, kwargs)
        if survey.reasons:
            if not kind.is_seen_twice:  # the first call may have made something that later ones use
                kind.is_seen_twice = True
                return self._watch(kind, args, kwargs)
            kind.leave(survey.reasons)
            self._break_off(kind)
            return self.plans.as_written(args, kwargs)
        assert kind.watch is not None
        if not are_cold(survey.tensors.values()):
            return self.plans.as_written(args, kwargs)
        kind.casts = list(survey.tensors.values())
        self.captures += 1
        watch = Watch()
        value, made, numbers = self._captured(watch, _capturer(kind, survey, signature), signature, args, kwargs)
        reasons = self._reasons_after(kind, survey, signature, watch, args, kwargs)
        after = Value(value, survey.seen, numbers)
        if after.is_strange:
            name = type(after.strange).__qualname__
            reasons.append(Reason(f"it returns a new object of class `{name}`", None, _REMEDY_VALUE))
        if isinstance(made, Refusal) and not (reasons and reasons[0] == _OTHER_FUNCTIONS):
            kind.leave([*reasons, _reason_of(made)])
        elif reasons:
            kind.begin_again(reasons)
            kind.watch = watch if not watch.reasons and not kind.is_left else None
        else:
            survey.release(made.live)
            kind.watch, kind.survey, kind.program, kind.value = watch, survey, made, after
            return value
        self._break_off(kind)
        return value

    def _compare(self, key: Any, kind: Kind, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The third call: do it both ways. All that the survey of the second call has found is as it was."""
        program, before, survey = kind.program, kind.value, kind.survey
        assert survey is not None and before is not None
        signature = _signature(survey, args, kwargs)
        watch = Watch()
        value, difference, numbers = self._captured(watch, program.check, signature, args, kwargs)
        reasons = self._reasons_after(kind, survey, signature, watch, args, kwargs)
        after = Value(value, survey.seen, numbers)
        if isinstance(difference, Refusal):
            kind.leave([*reasons, _reason_of(difference)])
            self._break_off(kind)
            return value
        if difference is not None:
            kind.joins = False
            reasons.append(Reason(f"two calls did not do the same: {difference}"))
        elif not reasons and not before.is_like(after):
            reasons.append(Reason("two calls returned different numbers or objects"))
        if reasons:
            kind.begin_again(reasons)
            self._break_off(kind)
            return value
        survey.guard.leave_out(program.externals)  # the program tests them itself
        kind.casts = getattr(program, "values", [])
        signature.release()
        for plan in self.plans.plans:
            if plan.key == key and plan.failures > _OUTDATED:
                self.plans.drop(plan)
        plan = Plan(key, signature, survey.guard, program, after.maker(), UNFIT)
        if program.history is not None:
            program.history.bind(self._run, survey.guard, functools.partial(self._learn, kind, weakref.ref(plan)))
        self.plans.first(plan)
        kind.survey = kind.program = kind.value = None
        kind.tries, kind.reasons = 0, []
        return value

    def _learn(self, kind: Kind, plan: weakref.ref[Plan], layout: Any) -> None:
        """Have the next calls captured with a further layout of the gradients that come from outside."""
        outdated = plan()
        if outdated is not None and layout not in kind.layouts and len(kind.layouts) < _LAYOUTS:
            kind.layouts = (*kind.layouts, layout)
            self.captures = 0
            self.plans.drop(outdated)

    def _surveyed(self, kind: Kind, args: Any, kwargs: Any) -> Survey:
        assert kind.watch is not None
        try:
            with resting_collector():
                return Survey(self.function, _objects_in(args, kwargs), kind.watch)
        except Exception as error:  # of an object that cannot be looked at
            survey = Survey(None, [], Watch())
            survey.reasons.append(Reason(f"its state cannot be followed: {type(error).__name__}: {error}"))
            return survey

    def _reasons_after(
        self, kind: Kind, survey: Survey, signature: Signature, watch: Watch, args: Any, kwargs: Any
    ) -> list[Reason]:
        """Return what a call did that a replay would not do, or that was not looked at before the call."""
        assert kind.watch is not None
        reasons = list(watch.reasons)
        if not kind.watch.covers(watch):
            reasons.insert(0, _OTHER_FUNCTIONS)
        if not survey.guard.holds():
            text, keys = survey.guard.where()
            site = changed_line(watch, keys[0] if keys and keys[0] is not None else text.rpartition(".")[2])
            reasons.append(
                Reason(f"its state is changed by the call itself: {survey.guard.why()}", site, _REMEDY_STATE)
            )
        elif signature.match(args, kwargs) is None:
            reasons.append(Reason("it changes its arguments", None, _REMEDY_STATE))
        return reasons

    # -- checks on demand --

    def _plan_to_check(self, args: Any, kwargs: Any) -> Plan | None:
        if not self.plans.every:
            return None
        for plan in self.plans.plans:
            if plan.since_check >= self.plans.every and plan.signature.match(args, kwargs) is not None:
                return plan if plan.guard.holds() else None
        return None

    def _check(self, plan: Plan, kind: Kind, args: Any, kwargs: Any) -> Any:
        plan.since_check = 0
        value, difference, _ = self._captured(None, plan.program.check, plan.signature, args, kwargs)
        if difference is None and not plan.guard.holds():
            difference = f"its state is changed by the call itself: {plan.guard.why()}"
        if difference is not None:
            self.plans.drop(plan)
            kind.leave([Reason(f"a call differed from its program: {difference}")])
            warn(f"a compiled function runs as it is written from now on\n  {difference}")
        return value

    # -- limits --

    def _limit(self, args: Any, kwargs: Any) -> None:
        """Forget the kind of calls that was not used for longest; rest if calls are of ever new kinds."""
        if len(self.kinds) > _KINDS:
            self.kinds.popitem(last=False)
        if len(self.kinds) >= _FRUITLESS and self.replays() < 2 * len(self.kinds):
            self._rest(
                self.plans.plans[0].signature.difference(args, kwargs) if len(self.plans) else _changing(self.kinds)
            )

    def _break_off(self, kind: Kind) -> None:
        """After a failure: raise GraphBreak if asked for, and rest if captures lead nowhere."""
        if self.fullgraph and (kind.is_left or any(_is_final(reason) for reason in kind.reasons)):
            kind.leave(kind.reasons)
            raise graph_break(kind.reasons)

    def _rest(self, name: str | None) -> None:
        self.plans.rests = _REST << min(self._rested, 12)
        self._rested += 1
        if name is not None and not self._has_warned:
            self._has_warned = True
            own = getattr(self.function, "__qualname__", type(self.function).__qualname__)
            warn(
                f"compiled function {own}: hardly two calls are alike, because {name} keeps changing; it runs as it is "
                "written\n"
                "  pass what changes as a tensor, or call the function that was compiled"
            )

    def _changing_state(self, kind: Kind) -> str | None:
        """Return the path of what differs from what the last capture saw."""
        guards = [plan.guard for plan in self.plans.plans] if kind.survey is None else [kind.survey.guard]
        for guard in guards:
            if not guard.holds():
                kind.reasons = [Reason(f"its state changes between calls: {guard.why()}")]
                text, keys = guard.where()
                return f"{text}[{keys[0]!r}]" if keys and keys[0] is not None else text
        return None

    def replays(self) -> int:
        """Return how many calls were replayed by the plans that are kept."""
        return sum(plan.replays for plan in self.plans.plans)

    def miss(self) -> str:
        """Return why the last plan did not fit the last call."""
        for plan in self.plans.plans:
            if plan.failures:
                return plan.program.why_missed() if plan.missed == "program" else plan.guard.why()
        return "no call before had such arguments"

    def reset(self) -> None:
        """Forget everything."""
        self.plans.clear()
        self.kinds.clear()
        self.plans.rests = self._rested = 0
        self._has_warned = False


_OTHER_FUNCTIONS = Reason("it ran other functions than in the call before")
_REMEDY_VALUE = "return tensors, numbers, tuples, lists or dictionaries"
_REMEDY_STATE = "return what changes, or change it outside of the compiled function"


def _codes_of(function: Any) -> tuple[CodeType, ...]:
    """Return the code of a function, and of the package's functions around it that enter modes, from the outside."""
    codes: list[CodeType] = []
    while True:
        function = getattr(function, "__func__", function)
        if type(function) is not FunctionType or codes and not is_ours(codes[-1]):
            return tuple(codes)
        codes.append(function.__code__)
        function = getattr(function, "__wrapped__", None)


def _objects_in(args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    return Signature(args, kwargs, lambda tensor: False).objects


def _signature(survey: Survey, args: Any, kwargs: Any) -> Signature:
    return Signature(args, kwargs, lambda tensor: id(tensor) in survey.tensors)


def _reason_of(refusal: Any) -> Reason:
    text = f"`{refusal.op}` {refusal.reason}" if refusal.op else refusal.reason
    is_value = "reads" in refusal.reason and "noted loop" not in refusal.reason and "unknown" not in refusal.reason
    return Reason(text, refusal.site, "return the tensor, and read it outside" if is_value else "")


def _capturer(kind: Kind, survey: Survey, signature: Signature) -> Callable[..., Any]:
    """Return the function that has a call captured: on the GPU if a tensor there is given or can be reached."""
    assert kind.watch is not None
    sees_grads, reachable = kind.watch.sees_grads, tuple(survey.tensors.values())
    if are_on_gpu((*signature.tensors, *reachable)):
        return functools.partial(
            capture_on_gpu,
            sees_grads=sees_grads,
            reachable=reachable,
            joins=kind.joins,
            positions=_positions(survey),
            layouts=kind.layouts,
        )
    return functools.partial(capture, sees_grads=sees_grads, reads_grads=kind.watch.reads_grads, layouts=kind.layouts)


def _is_for_gpu(by: Callable[..., Any]) -> bool:
    if isinstance(by, functools.partial):
        return by.func is capture_on_gpu
    return not isinstance(getattr(by, "__self__", None), Program)


def _positions(survey: Survey) -> Callable[[], list[bytes]]:
    """Return a function that tells where the random numbers stand that are drawn in main memory."""
    others = [found for found in survey.seen.values() if isinstance(found, Generator) and found.device.type == "cpu"]
    return lambda: [generator.get_state().numpy().tobytes() for generator in (default_generator, *others)]


def _is_final(reason: Reason) -> bool:
    return "is called" in reason.text or "is disabled" in reason.text


def graph_break(reasons: list[Reason]) -> GraphBreak:
    """Return the error of `fullgraph=True`."""
    lines = ["this step cannot be replayed without Python", *(f"  {reason}" for reason in reasons)]
    lines += [f"  to fix it: {text}" for text in dict.fromkeys(reason.remedy for reason in reasons) if text]
    error = GraphBreak("\n".join([*lines, "  or leave out fullgraph=True: then it runs as it is written"]))
    error.note(reasons)
    return error


def _changing(kinds: OrderedDict[Any, Kind]) -> str | None:
    """Return which argument differs between the two kinds of calls that were seen last."""
    *_, ((_, args), (_, named), _), ((_, other), (_, other_named), _) = kinds
    for i, (a, b) in enumerate(zip(args, other)):
        if a != b:
            return f"argument {i}"
    for a, b in zip(named, other_named):
        if a != b:
            return f"argument {a[0][1]}"
    return None if len(args) == len(other) else "the number of arguments"


def compiled(function: Callable[..., Any], fullgraph: bool, every: int) -> tuple[Callable[..., Any], Step]:
    """Return a function that replays calls of another one, and its state."""
    step = Step(function, fullgraph, every)
    replayed, call = step.plans.run, step.call

    def compiled_function(*args: Any, **kwargs: Any) -> Any:
        value = replayed(args, kwargs)
        return call(args, kwargs) if value is MISS else value

    return compiled_function, step
