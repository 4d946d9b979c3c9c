"""The version of cygrad; this is its only definition."""

__version__ = "0.1.0"

cuda = hip = rocm = xpu = None  # build versions of CUDA and others, which scripts print
git_version = "unknown"  # the commit; the version identifies it well enough
debug = False
