"""Who is told whether uninitialized memory is to be filled: apart from the settings, which few programs import."""

from collections.abc import Callable

followers: list[Callable[[bool], None]] = []
