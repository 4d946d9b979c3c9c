"""Chooses by what a call of a compiled function, or a backward pass within one, is replayed."""
