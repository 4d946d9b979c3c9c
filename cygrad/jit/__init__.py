"""Traces, which can be saved and run without their code, and scripts, which run as plain Python; see docs/export.md."""

from typing import Final

from cygrad.futures import Future
from cygrad.jit import _recursive as _recursive
from cygrad.jit import _state as _state
from cygrad.jit._async import fork, wait
from cygrad.jit._script import (
    CompilationUnit,
    Error,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    enable_onednn_fusion,
    freeze,
    fuser,
    load,
    onednn_fusion_enabled,
    optimize_for_inference,
    optimized_execution,
    run_frozen_optimizations,
    save,
    script,
    script_method,
    set_fusion_strategy,
    strict_fusion,
)
from cygrad.jit._trace import (
    TopLevelTracedModule,
    TracedModule,
    TracerWarning,
    TracingCheckError,
    is_tracing,
    script_if_tracing,
    trace,
    trace_module,
)
from cygrad.jit.annotations import (
    Attribute,
    annotate,
    export,
    ignore,
    interface,
    is_scripting,
    isinstance,
    unused,
)
from cygrad.jit.annotations import _drop as _drop
from cygrad.jit.annotations import _overload as _overload
from cygrad.jit.annotations import _overload_method as _overload_method

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction",
    "ScriptModule", "TopLevelTracedModule", "TracedModule", "TracerWarning", "TracingCheckError", "annotate",
    "enable_onednn_fusion", "export", "fork", "freeze", "fuser", "ignore", "interface", "is_scripting",
    "is_tracing", "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution",
    "run_frozen_optimizations", "save", "script", "script_if_tracing", "script_method", "set_fusion_strategy",
    "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

_script_if_tracing = script_if_tracing
