"""Captures a step as a list of loops, and replays it on tensors."""
