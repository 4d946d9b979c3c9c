"""Error reports of `gradcheck`: the worst entry, its error at other steps, and a diagnosis."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from cygrad._core.graph.internals import array_of

_STEPS = 10.0 ** -np.arange(1, 11)


class GradcheckError(RuntimeError):
    """A gradient disagrees with finite differences.

    `verdict` is "wrong formula", "kink in the function", "precision too low" or "not deterministic", and None if
    backward violates another requirement, which the text names; `index` is (index in the output, index in the input) of
    the worst entry.

    >>> import cygrad
    >>> class Wrong(cygrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return 3 * g
    >>> x = cygrad.ones(1, dtype=cygrad.float64, requires_grad=True)
    >>> try:
    ...     cygrad.autograd.gradcheck(Wrong.apply, x)
    ... except cygrad.autograd.GradcheckError as error:
    ...     print(error.verdict)
    wrong formula
    """

    __module__ = "cygrad.autograd.gradcheck"

    def __init__(self, text: str, verdict: Any = None, index: Any = None) -> None:
        super().__init__(text)
        self.verdict = verdict
        self.index = index


_PARTS = {
    "": "",
    "real": "While considering the real part of complex outputs only, ",
    "imaginary": "While considering the imaginary part of complex outputs only, ",
}


def mismatch(case, where, analytic, numeric, tolerances, is_forward, combined=None):
    """Return the error for a Jacobian with an entry that disagrees.

    `where` is (output, its part, input); `combined` holds the analytic and the numeric combination of all entries that
    fast mode compares.
    """
    o, part, i = where
    method = "Jacobian computed with forward mode" if is_forward else "Jacobian"
    text = f"{_PARTS[part]}{method} mismatch for output {o} with respect to input {i},\n"
    if combined is not None:
        text += (
            f"numerical:{combined[1]}\nanalytical:{combined[0]}\n"
            "  these are one random combination of all entries (fast mode); the entries themselves:\n"
        )
    details, verdict, index = _explain(case, where, analytic, numeric, tolerances)
    text += f"numerical:{_short(numeric)}\nanalytical:{_short(analytic)}\n{details}"
    return GradcheckError(text, verdict, index)


def not_deterministic(case, first_line, first, second):
    """Return the error for a backward that computes different gradients for the same input."""
    worst = np.unravel_index(np.argmax(np.abs(first - second)), first.shape)
    return GradcheckError(
        f"{first_line}\n  entry {tuple(map(int, worst))} was {first[worst]} and then {second[worst]}\n"
        "  verdict: not deterministic; raise nondet_tol above "
        f"{np.abs(first - second).max():.3g} if that is intended",
        "not deterministic",
    )


def _short(jacobian):
    text = np.array2string(jacobian, precision=6, threshold=64, edgeitems=3)
    return f"\n{text}" if "\n" in text else text


# -- the worst entry --


def _explain(case, where, analytic, numeric, tolerances):
    """Return (text, verdict, index) for the entry that disagrees most."""
    (o, part, i), (atol, rtol) = where, tolerances
    with np.errstate(invalid="ignore"):
        excess = np.abs(analytic - numeric) - rtol * np.abs(numeric)
    worst = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), excess.shape)
    a, n = analytic[worst], numeric[worst]
    out, x = case.outputs()[o], case.variables[i]
    row = tuple(int(k) for k in np.unravel_index(worst[0], tuple(out.shape))) if out.ndim else ()
    column = tuple(int(k) for k in np.unravel_index(worst[1], tuple(x.shape))) if x.ndim else ()
    curve = _Curve(case, o, part, i, row, int(worst[1]), a)
    verdict, reason = curve.verdict(n, atol, rtol, _lowest_precision(case, out))
    error = abs(a - n)
    relative = error / abs(n) if n else np.inf
    text = (
        f"  worst entry: d output[{_spell(row)}] / d input[{_spell(column)}]\n"
        f"    analytic {_number(a)}, numeric {_number(n)}, error {error:.3g}, relative {relative:.3g}\n"
        f"    error by step: {curve}\n"
        f"  verdict: {verdict}; {reason}"
    )
    return text, verdict, (row, column)


def _spell(index):
    return ", ".join(map(str, index)) or "()"


def _number(value):
    return f"{complex(value):.8g}" if isinstance(value, complex) else f"{float(value):.8g}"


def _lowest_precision(case, out):
    """Return the least precise dtype involved, as NumPy's dtype of its real numbers."""
    arrays = [array_of(out), *(movable.values for movable in case.movables)]
    return min((np.dtype(a.dtype.type(0).real.dtype) for a in arrays), key=lambda kind: kind.itemsize)


class _Curve:
    """One entry of a Jacobian for steps of all sizes: central and one-sided differences."""

    def __init__(self, case, o, part, i, row, column, analytic):
        self.analytic = analytic
        sides = [self._sides(case, o, part, i, row, column, step) for step in _STEPS]
        self.central = np.array([(left + right) / 2 for left, right, _ in sides])
        self.gaps = np.array([abs(right - left) for left, right, _ in sides])
        self.repeated = max(noise for *_, noise in sides)
        self.value = abs(self._at(case, o, part, i, row, column, 0.0))
        with np.errstate(invalid="ignore"):
            self.errors = np.abs(self.central - analytic)

    @staticmethod
    def _at(case, o, part, i, row, column, move):
        value = case.moved(i, column, move)[o][row]
        return float(value.imag if part == "imaginary" else value.real)

    def _sides(self, case, o, part, i, row, column, step):
        """Return (derivative to the left, to the right, difference of two calls at the same point)."""
        at = functools.partial(self._at, case, o, part, i, row, column)
        here, again = at(0.0), at(0.0)
        directions = (1, 1j) if case.variables[i].dtype.is_complex else (1,)
        left = sum(unit * (here - at(-unit * step)) / step for unit in directions)
        right = sum(unit * (at(unit * step) - here) / step for unit in directions)
        return left, right, abs(here - again)

    def verdict(self, numeric, atol, rtol, precision):
        """Return (diagnosis, its reason)."""
        if self.repeated > 0:
            return "not deterministic", f"two calls at the same point differ by {self.repeated:.3g}"
        scale = max(abs(self.analytic), np.nanmax(np.abs(self.central)), 1e-12)
        best = int(np.nanargmin(self.errors)) if np.isfinite(self.errors).any() else 0
        if not np.isfinite(self.analytic):
            return "wrong formula", "the analytic value is not finite"
        jump = self._jump()
        if jump:
            return "kink in the function", f"it jumps by {jump:.3g} there; move the input away from it"
        if self._has_kink(scale):
            return (
                "kink in the function",
                "the derivatives from the left and from the right differ; move the input away from it",
            )
        scale = max(abs(self.analytic), abs(self.central[best]))
        loose = max(atol, 10 * rtol * scale) if precision.itemsize < 8 else max(atol, rtol * scale)
        if self.errors[best] <= loose:
            word = "precision too low"
            if precision.itemsize < 8:
                return (
                    word,
                    f"{precision} is in use, and a step of {_STEPS[best]:g} agrees: use double for all inputs",
                )
            return word, f"a step of {_STEPS[best]:g} agrees: pass eps={_STEPS[best]:g}"
        plateau = self._plateau()
        reason = f"the steps agree on {_number(plateau)}"
        if self.analytic != 0 and plateau != 0:
            ratio = complex(plateau / self.analytic)
            if abs(ratio.imag) < 1e-3:
                reason += f", which is {ratio.real:.4g} times the analytic value"
        return "wrong formula", reason

    def _has_kink(self, scale):
        """Whether the two one-sided derivatives stay apart as the step shrinks."""
        near = self.gaps[2:6]
        return bool(np.all(np.isfinite(near)) and near.min() > 1e-2 * scale and near.max() < 3 * near.min())

    def _jump(self):
        """Return the height of a jump, if the difference of both sides does not shrink with the step; else 0."""
        changes = self.gaps[2:6] * _STEPS[2:6]
        if np.all(np.isfinite(changes)) and changes.min() > 1e-4 * self.value and changes.max() < 1.1 * changes.min():
            return changes[-1]
        return 0.0

    def _plateau(self):
        """Return the value on which neighboring steps agree best."""
        changes = np.abs(np.diff(self.central))
        return self.central[int(np.nanargmin(changes)) + 1] if np.isfinite(changes).any() else self.central[4]

    def __str__(self):
        return ", ".join(f"{step:.0e} {error:.1e}" for step, error in zip(_STEPS, self.errors, strict=True))
