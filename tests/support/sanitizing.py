"""Whether cygrad was built with CYGRAD_SANITIZE=1, for tests that behave differently then."""

import ctypes
import sys

import pytest

# Such a build runs only if AddressSanitizer is loaded before everything else (tools/sanitized.py).
SANITIZED = sys.platform != "win32" and hasattr(ctypes.CDLL(None), "__asan_init")

keeps_memory = pytest.mark.skipif(SANITIZED, reason="sanitized builds keep no memory (sanitized.h)")
