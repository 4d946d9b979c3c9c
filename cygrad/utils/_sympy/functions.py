"""Integer division and remainders as functions of SymPy: `FloorDiv(x, 2)`. Needs SymPy."""

try:
    import sympy  # optional
    from sympy.printing.precedence import PRECEDENCE
except ImportError:
    raise ImportError(
        "cygrad.utils._sympy.functions needs the package SymPy, which is not installed\n  pip install sympy"
    ) from None

__all__ = ["CeilDiv", "CleanDiv", "FloorDiv", "Mod", "ModularIndexing", "PythonMod"]


def _check_divisor(divisor):
    if divisor.is_zero:
        raise ZeroDivisionError("division by zero")


class FloorDiv(sympy.Function):
    """The quotient of integers, rounded down: `x // y`.

    Raises ZeroDivisionError if y is 0.
    """

    nargs = (2,)
    is_integer = True
    precedence = 35

    @property
    def base(self):
        """What is divided."""
        return self.args[0]

    @property
    def divisor(self):
        """What it is divided by."""
        return self.args[1]

    @classmethod
    def eval(cls, base, divisor):
        _check_divisor(divisor)
        if base.is_zero:
            return sympy.S.Zero
        if base.is_integer and divisor == 1:
            return base
        if base == divisor:
            return sympy.S.One
        if base.is_Integer and divisor.is_Integer:
            return sympy.Integer(int(base) // int(divisor))
        if isinstance(base, FloorDiv):
            return FloorDiv(base.args[0], base.args[1] * divisor)
        common = sympy.gcd(base, divisor)
        if common not in (0, 1):
            return FloorDiv(sympy.simplify(base / common), sympy.simplify(divisor / common))
        return None

    def _sympystr(self, printer):
        base, divisor = (printer.parenthesize(each, PRECEDENCE["Atom"] - 0.5) for each in self.args)
        return f"({base}//{divisor})"


class CleanDiv(FloorDiv):
    """A quotient of integers without a remainder."""


class CeilDiv(sympy.Function):
    """The quotient of integers, rounded up."""

    is_integer = True

    def __new__(cls, base, divisor):
        base, divisor = sympy.sympify(base), sympy.sympify(divisor)
        if sympy.gcd(base, divisor) == divisor:
            return CleanDiv(base, divisor)
        return FloorDiv(base + (divisor - 1), divisor)


class PythonMod(sympy.Function):
    """The remainder of integers with the sign of the divisor: `x % y` in Python. Raises ZeroDivisionError if y is 0."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, p, q):
        _check_divisor(q)
        if p.is_zero or p == q or q == 1:
            return sympy.S.Zero
        if p.is_Integer and q.is_Integer:
            return sympy.Integer(int(p) % int(q))
        if sympy.Mod(p, q) == 0:
            return sympy.S.Zero
        return None


class Mod(PythonMod):
    """The remainder of integers of 0 or more."""

    is_nonnegative = True


class ModularIndexing(sympy.Function):
    """`x // divisor % modulus`, the index along one of several dimensions that are counted in one."""

    nargs = (3,)
    is_integer = True

    @classmethod
    def eval(cls, base, divisor, modulus):
        if base == 0 or modulus == 1:
            return sympy.S.Zero
        if base.is_Integer and divisor.is_Integer and modulus.is_Integer:
            return sympy.Integer(int(base) // int(divisor) % int(modulus))
        return None
