"""The op families: rule, row and entry point of each op, side by side (layer L3)."""
