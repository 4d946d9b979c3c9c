"""Older names of what `hub` has."""

from cygrad.hub import load_state_dict_from_url as load_url
from cygrad.hub import progress_bar

__all__ = ["load_url", "tqdm"]

tqdm = progress_bar()
