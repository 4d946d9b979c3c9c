"""Passes for graphs whose functions do not change their arguments."""
