"""How masked tensors are shown: `--` stands for an element that the mask leaves out."""

from __future__ import annotations

from typing import Any

import cygrad

__all__ = ["text"]

_WIDTH = 8
_MISSING = "--"


def text(data: Any, mask: Any) -> str:
    """Return the text of a masked tensor with this data and mask."""
    if data.layout != cygrad.strided:
        data, mask = data.to_dense(), mask.to_dense()
    if data.dim() == 0:
        shown = _element(data.item()) if mask.item() else _MISSING
        return f"MaskedTensor({shown}, {mask.item()})"
    return f"MaskedTensor(\n{_indented(_rows(data, mask))}\n)"


def _element(value: Any) -> str:
    return f"{value:{_WIDTH}.4f}" if isinstance(value, float) else str(value)


def _indented(lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines.split("\n"))


def _rows(data: Any, mask: Any) -> str:
    if data.dim() > 1:
        inner = ",\n".join(_indented(_rows(part, kept)) for part, kept in zip(data, mask))
        return f"[\n{inner}\n]"
    kept = mask.tolist()
    elements = [_element(value) for value in data.tolist()]
    width = max((len(shown) if is_kept else _WIDTH for shown, is_kept in zip(elements, kept)), default=0)
    missing = _MISSING.rjust(width)
    return f"[{', '.join(shown if is_kept else missing for shown, is_kept in zip(elements, kept))}]"
