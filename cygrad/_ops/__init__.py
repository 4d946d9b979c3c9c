"""The op families: the rule, row, and entry point of each op, side by side (layer L3)."""
