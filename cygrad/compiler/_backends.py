"""Names of back ends, modes and options, as programs for `torch.compile` give them."""

from __future__ import annotations

from typing import Any

# What PyTorch lists without marks, and its marked ones. Each is taken, and means that calls are replayed.
LISTED = ("cudagraphs", "cygrad", "inductor", "openxla", "tvm")
_MARKED = (
    *("aot_eager", "aot_eager_decomp_partition", "aot_eager_decomp_partition_with_mode"),
    *("aot_eager_default_partitioner", "aot_ts", "eager", "eager_debug", "eager_noexcept", "invoke_subgraph"),
    *("openxla_eval", "pre_dispatch_eager", "ts"),
)
_AS_WRITTEN = ("eager", "eager_debug", "eager_noexcept")  # for who looks for faults: nothing is replayed
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_OWN_OPTIONS = {"check": 0, "exact": True}

registered: dict[str, Any] = {}  # by `register_backend`


def names(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of all back ends; those for debugging only if they are not excluded."""
    return sorted({*LISTED, *registered} if exclude_tags else {*LISTED, *_MARKED, *registered})


def replays(backend: Any) -> bool:
    """Whether calls are replayed with that back end. Raises InvalidBackend for an unknown name."""
    if isinstance(backend, str) and backend not in (*LISTED, *_MARKED, *registered):
        from cygrad._dynamo.exc import InvalidBackend  # which imports this package

        raise InvalidBackend(backend)
    return backend not in _AS_WRITTEN


def check_mode(mode: str | None, options: dict[str, Any] | None) -> None:
    """Raise RuntimeError for a mode that PyTorch does not know, and for a mode beside options."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")


def checked_options(options: dict[str, Any] | None) -> dict[str, Any]:
    """Return our options with their defaults. Those of PyTorch's back end are taken, without effect.

    Raises RuntimeError for an unknown option, or a value of the wrong kind.
    """
    found = dict(_OWN_OPTIONS)
    for name, value in (options or {}).items():
        if name not in found:
            _check_name(name)
        elif type(value) is not type(found[name]) or name == "check" and value < 0:
            raise RuntimeError(
                f"Unexpected type of attr {name}, got {type(value).__name__} should be {type(found[name]).__name__}"
                + ("\n  it is the number of calls from one check to the next; 0: none" if name == "check" else "")
            )
        else:
            found[name] = value
    return found


def _check_name(name: str) -> None:
    from cygrad._inductor import config, list_options  # which imports this package

    known = list_options()
    first, *_ = name.replace("-", "_").split(".")
    if not hasattr(config, first):
        raise RuntimeError(f"Unexpected optimization option {name}, known options are {[*_OWN_OPTIONS, *known]}")
