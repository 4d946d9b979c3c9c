"""What the programs share."""


def told(action):
    """Print what an action returns, or the built-in class and the first line of its error."""
    try:
        print(action())
    except Exception as error:
        kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
        print(kind, (str(error).splitlines() or [""])[0])
