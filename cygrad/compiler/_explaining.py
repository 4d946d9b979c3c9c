"""What became of a compiled function, in words."""

from __future__ import annotations

from typing import Any

from cygrad._core.replay.guards.signature import kind_of
from cygrad.compiler._step import Step
from cygrad.compiler._watching import Reason, located


class Explanation:
    """What a compiled function does with its calls: `print` it, or read its attributes.

    `reasons` tell why calls run as they are written, `plans` has those that are replayed, `is_replayed` whether a call
    with the given arguments would be. `passes` counts the backward passes that were replayed within calls that run as
    they are written.
    """

    def __init__(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.name = getattr(step.function, "__qualname__", type(step.function).__qualname__)
        self.calls, self.captures, self.replays = step.calls, step.captures, step.replays()
        self.plans = list(step.plans.plans)
        kinds = list(step.kinds.values())
        if args or kwargs:
            key = kind_of(args, kwargs)
            self.plans = [plan for plan in self.plans if plan.key[:2] == key]
            kinds = [kind for known, kind in step.kinds.items() if known[:2] == key]
        self.reasons: list[Reason] = list(dict.fromkeys(reason for kind in kinds for reason in kind.reasons))
        self.is_replayed = any(plan.guard.holds() for plan in self.plans)
        self.is_left = bool(kinds) and all(kind.is_left for kind in kinds)
        follower = step.plans.follower
        self.passes = 0 if follower is None else follower.replays
        self._kinds_of_passes = [] if follower is None else follower.kinds
        self._pass_missed = None if follower is None else follower.missed
        self._missed = [plan.guard.why() for plan in self.plans if not plan.guard.holds()]
        self._seen = bool(kinds)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.replays} calls replayed, {self.calls} run as written, {self.captures} captured"]
        if not self.plans:
            lines.append(self._state())
        lines += [f"  not replayed: {reason}" for reason in self.reasons]
        lines += [f"    to fix it: {text}" for text in dict.fromkeys(reason.remedy for reason in self.reasons) if text]
        lines += self._lines_of_passes()
        for number, plan in enumerate(self.plans):
            lines += _plan_lines(number, plan)
        lines += [f"  the next call of this kind is not replayed: {text}" for text in self._missed]
        return "\n".join(lines)

    __repr__ = __str__

    def _lines_of_passes(self) -> list[str]:
        lines = []
        if self.passes:
            lines.append(f"  but {self.passes} backward passes of these calls were replayed")
        for kind in self._kinds_of_passes:
            if kind.program is not None and kind.replays:
                entries = len(list(kind.program.entries))
                lines.append(
                    f"    a pass: {kind.replays} replays, {entries} entries, {kind.program.memory:,} bytes of memory"
                )
            if kind.reason is not None:
                lines.append(f"    a pass is not replayed: {kind.reason}")
        if not lines and self._pass_missed is not None:
            lines.append(f"    a pass is not replayed: {self._pass_missed}")
        return lines

    def _state(self) -> str:
        if not self._seen:
            return "  no call with such arguments was made yet"
        return (
            "  its calls run as they are written" if self.is_left else "  not captured yet: the third call is compared"
        )


def _plan_lines(number: int, plan: Any) -> list[str]:
    program = plan.program
    entries = list(program.entries)
    lines = [f"  plan {number}: {plan.replays} replays, {len(entries)} entries, {program.memory:,} bytes of memory"]
    for entry in entries:
        site = f"  {located(entry.site)}" if entry.site else ""
        lines.append(
            f"    {entry.kind:10} {entry.op or '':24} reads {entry.bytes_read:,}, writes {entry.bytes_written:,}{site}"
        )
    lines += [f"    effect: {text}" for text in program.effects]
    lines += [f"    guard: {text}" for text in plan.guard.described()]
    return lines
