"""The schemas and tags of PyTorch's ops, from `schemas.txt`, which `tools/record_schemas.py` writes."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import cygrad
from cygrad.ops._schema import FunctionSchema, parse_schema

_WRITES_BY_NAME = re.compile(r" \*, .*!.*->")


@cache
def _lines() -> dict[str, dict[str, tuple[str, str]]]:
    """Return {name of op: {name of overload: (tags, text of schema)}}."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for line in (Path(__file__).parent / "schemas.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            tags, _, text = line.partition("|")
            name, _, overload = text.partition("(")[0].partition(".")
            found.setdefault(name, {})[overload or "default"] = tags, text
    return found


def overloads_of(name: str) -> list[str]:
    """Return the names of an op's overloads, without those that write to `out`.

    >>> from cygrad.ops._schema_table import overloads_of
    >>> overloads_of("any"), overloads_of("add_"), overloads_of("mm_"), overloads_of("sin")
    (['default', 'dim', 'dims'], ['Tensor', 'Scalar'], ['default'], ['default'])
    """
    known = [overload for overload, (_, text) in _lines().get(name, {}).items() if not _WRITES_BY_NAME.search(text)]
    return known or ["default"]


def outs_of(name: str) -> list[str]:
    """Return the names of an op's overloads that write to `out`."""
    return [overload for overload in _lines().get(name, {}) if overload not in overloads_of(name)]


@cache
def schema_of(name: str, overload: str) -> FunctionSchema | None:
    """Return the schema of an overload, or None if PyTorch has none."""
    line = _lines().get(name, {}).get(overload)
    return None if line is None else parse_schema(f"aten::{line[1]}")


def tags_of(name: str, overload: str) -> list[Any]:
    """Return what PyTorch notes of an overload: `torch.Tag.pointwise`, for example."""
    line = _lines().get(name, {}).get(overload)
    return [] if line is None else [_tags()[int(number)] for number in line[0].split()]


@cache
def _tags() -> list[Any]:
    all_tags: Any = cygrad.Tag  # an enumeration, which its declaration hides
    return list(all_tags)
