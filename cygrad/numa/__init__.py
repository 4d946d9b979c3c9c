"""Processes and the memory next to their processors: `binding` has the options of launchers."""
