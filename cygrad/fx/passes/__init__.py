"""Passes: functions that look at the nodes of a graph or change them."""
