"""Captures a step on a GPU as a graph, and launches it again."""
