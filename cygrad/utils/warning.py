"""Warnings that name the user's line, for modules, optimizers and other code on top of the public names."""

from cygrad._core.errors.sites import warn as warn

__all__: list[str] = []  # ours alone: not a page of the reference
