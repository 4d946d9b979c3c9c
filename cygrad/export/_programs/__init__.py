"""Recorded programs: the calls of public functions that a function or module makes, as data that can be run and saved.

`record` makes a `Program` of what happens for given arguments; `generalized` finds the numbers in it that follow the
lengths of the arguments. `cygrad.jit` runs and saves programs, `cygrad.export.onnx` writes them as ONNX graphs.
"""

from cygrad.export._programs.program import Call, Program, Ref
from cygrad.export._programs.recording import record
from cygrad.export._programs.sizes import Formula, generalized

__all__ = ["Call", "Formula", "Program", "Ref", "generalized", "record"]
