"""Scripts, which run as plain Python: there is no compiler, and what is "compiled" is returned as it is."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from cygrad.nn import Module

_HOW_TO_SAVE = "save the weights, torch.save(model.state_dict(), path), and keep the Python code that makes the model"


class Error(Exception):
    """What TorchScript raises for an exception in a script. A script that runs as Python raises its own exception."""


class ScriptModule(Module):
    """A module with methods marked by `script_method`: an ordinary `nn.Module` here.

    >>> import cygrad
    >>> class Double(cygrad.jit.ScriptModule):
    ...     @cygrad.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Double()(cygrad.ones(2))
    tensor([2., 2.])
    """

    def define(self, src):
        """Raises RuntimeError: methods given as text in TorchScript cannot be run."""
        raise _lacking("ScriptModule.define", "write the method in Python")

    def save(self, f: Any, **kwargs: Any) -> None:
        """Raises RuntimeError: there are no compiled programs to save."""
        raise _lacking("ScriptModule.save", _HOW_TO_SAVE)


class RecursiveScriptModule(ScriptModule):
    """The class of modules that PyTorch's compiler returns. Here `script` returns the module it is given."""


class ScriptFunction:
    """The class of functions that PyTorch's compiler returns. Here `script` returns the function it is given."""

    def __new__(cls, *args, **kwargs):
        raise TypeError(
            "ScriptFunction: No constructor defined!\n  `torch.jit.script(function)` is the function itself"
        )


class CompilationUnit:
    """Functions given as text in TorchScript. Only an empty one can be made; text raises RuntimeError."""

    def __init__(self, lang: Any = None, _frames_up: int = 0) -> None:
        if lang is not None:
            self.define(lang)

    def define(self, lang: Any, rcb: Any = None, _frames_up: int = 0) -> Any:
        """Raises RuntimeError: programs given as text cannot be run."""
        raise _lacking("CompilationUnit", "write the functions in Python")


def _lacking(name, advice):
    return RuntimeError(f"torch.jit.{name}: cygrad has no TorchScript\n  {advice}")


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """Return the function, class or module unchanged: it behaves the same, and there is no compiler.

    >>> import cygrad
    >>> @cygrad.jit.script
    ... def double(x):
    ...     return 2 * x
    >>> double(cygrad.ones(2))
    tensor([2., 2.])
    """
    return obj


def script_method(fn: Any) -> Any:
    """Mark a method of a `ScriptModule` to be compiled: returns it unchanged."""
    return fn


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """Return a module unchanged. PyTorch makes its weights constants of the compiled program.

    Raises RuntimeError if the module is in training mode.
    """
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """Return a module unchanged."""
    return mod


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> Any:
    """Leave a module as it is."""


@contextmanager
def optimized_execution(should_optimize: bool) -> Any:
    """Context in which compiled programs are optimized or not: without effect."""
    yield


@contextmanager
def fuser(name: str) -> Any:
    """Context in which compiled programs use the fuser of this name ("fuser0" to "fuser3"): without effect."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """Context that reports ops which could not be fused in compiled programs: without effect."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


_fusion = [[("STATIC", 2), ("DYNAMIC", 10)]]


def set_fusion_strategy(strategy: Any) -> Any:
    """Keep a list of (kind, how often) pairs, and return the previous list. Nothing reads it."""
    before = _fusion[0]
    _fusion[0] = strategy
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Let compiled programs use oneDNN: without effect."""


def onednn_fusion_enabled() -> bool:
    """Whether compiled programs use oneDNN: always False."""
    return False


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Raises RuntimeError: there are no compiled programs to save."""
    raise _lacking("save", _HOW_TO_SAVE)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Raises RuntimeError: TorchScript programs cannot be run."""
    raise _lacking(
        "load",
        "make the model in Python and load its weights: with PyTorch, "
        "torch.save(torch.jit.load(path).state_dict(), new_path); here, model.load_state_dict(torch.load(new_path))",
    )
