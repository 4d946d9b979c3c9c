"""Suggests the name that was meant where a program misspells one."""

MANY = 100  # of more names, only those that begin alike are compared


def suggestion(name, names):
    """Return a line for an error text that suggests the most similar one of `names`, or an empty text.

    This must be fast, because programs also ask for names that may be missing, as `hasattr` does.
    """
    if name.startswith("_"):
        return ""
    start, lengths = name[:1] if len(names) > MANY else "", range(len(name) - 2, len(name) + 3)
    near = [each for each in names if each.startswith(start) and len(each) in lengths]
    if not near:
        return ""
    from difflib import get_close_matches  # needed only here

    found = get_close_matches(name, near, 1, 0.65)
    return f"\n  did you mean {found[0]!r}?" if found else ""
