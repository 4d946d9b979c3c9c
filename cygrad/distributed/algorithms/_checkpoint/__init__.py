"""Checkpointing of whole modules."""
