"""Whether cygrad has been built with CYGRAD_SANITIZE=1, for tests to which that makes a difference."""

import ctypes
import sys

import pytest

# Such a build runs only where AddressSanitizer has been loaded before all else (tools/sanitized.py).
SANITIZED = sys.platform != "win32" and hasattr(ctypes.CDLL(None), "__asan_init")

keeps_memory = pytest.mark.skipif(SANITIZED, reason="sanitized builds keep no memory (sanitized.h)")
