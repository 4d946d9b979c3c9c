"""The version of cygrad: the one place where it is written."""

__version__ = "0.1.0.dev0"

cuda = hip = None  # the versions of these that it was built with, which scripts print
git_version = "unknown"  # of which commit: a version names it well enough
debug = False
