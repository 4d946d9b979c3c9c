"""The types of results with named items, such as those of `max` and `min` along a dimension."""

from cygrad._core.return_types import (
    aminmax,
    cummax,
    cummin,
    frexp,
    kthvalue,
    linalg_slogdet,
    max,
    median,
    min,
    mode,
    nanmedian,
    slogdet,
    sort,
    topk,
)

__all__ = [
    "aminmax",
    "cummax",
    "cummin",
    "frexp",
    "kthvalue",
    "linalg_slogdet",
    "max",
    "median",
    "min",
    "mode",
    "nanmedian",
    "slogdet",
    "sort",
    "topk",
]
