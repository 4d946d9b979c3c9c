"""The tape: notes the loops that a step runs, and runs them again without Python."""
