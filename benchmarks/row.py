"""One row of the table: two statements to compare.

A statement is a string, so that `timeit` compiles it into its loop. `setup(torch)` makes the names in it, from cygrad
or PyTorch. `numpy` is a statement and setup that do the same by hand; it takes PyTorch's place where that is not
installed. `peer` is the statement and setup for libraries with other interfaces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import Any

Names = dict[str, Any]
Library = Any  # cygrad or torch: the same names
PEERS = {"JAX": "jax", "autograd": "autograd", "MyGrad": "mygrad"}  # and their import names


@dataclass(frozen=True)
class Row:
    """One comparison. `rival` is "PyTorch", "NumPy", one of `PEERS`, or "cygrad" for two of its own statements."""

    name: str
    statement: str
    setup: Callable[[Library], Names]
    target: float | None  # None: no target
    rival: str = "PyTorch"
    rival_statement: str | None = None  # None: the same statement
    numpy: tuple[str, Callable[[], Names]] | None = None
    peer: tuple[str, Callable[[], Names]] | None = None

    def is_installed(self) -> bool:
        """Whether the row can run: NumPy can replace PyTorch, but other rivals must be installed."""
        if self.rival not in PEERS:
            return True
        spec = find_spec(PEERS[self.rival])
        return spec is not None and spec.origin is not None  # not just a folder with that name

    def for_rival(self, cygrad: ModuleType, torch: ModuleType | None) -> tuple | None:
        """Return the rival's name, statement and names, or None if there is nothing to compare with."""
        statement = self.rival_statement or self.statement
        if self.rival == "cygrad":
            return "cygrad", statement, self.setup(cygrad)
        if self.rival == "PyTorch" and torch is not None:
            return "PyTorch", statement, self.setup(torch)
        if self.peer is not None:
            peer_statement, peer_names = self.peer
            return self.rival, peer_statement, peer_names()
        if self.numpy is not None:
            numpy_statement, names = self.numpy
            return "NumPy", numpy_statement, names()
        return None


def as_function(statement: str) -> tuple[str, str]:
    """Return the source of a function `step` that does the statement, and what clears gradients at its end.

    The function returns the last value and leaves gradients: a compiled step computes nothing that nobody sees.
    """
    kept, cleared = statement.strip("\n").splitlines(), list[str]()
    while len(kept) > 1 and (_clears(kept[-1]) or (cleared and kept[-1].startswith("for "))):
        cleared.insert(0, kept.pop())
    if _is_expression(kept[-1]):
        kept[-1] = f"return {kept[-1]}"
    return "def step():\n" + "\n".join(f"    {line}" for line in kept), "\n".join(cleared)


def _clears(line: str) -> bool:
    return line.replace(" ", "").endswith("grad=None") or line.strip() == "optimizer.zero_grad()"


def _is_expression(line: str) -> bool:
    try:
        compile(line, "", "eval")
    except SyntaxError:
        return False
    return True
