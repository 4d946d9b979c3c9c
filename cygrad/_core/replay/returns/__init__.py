"""Compares what a captured step reads of Python with what it was."""
