"""Errors: their classes, their texts, and the lines of a program that they name."""

from cygrad._library import later

messages = later("cygrad._core.errors.messages")  # needed only when an error is raised
