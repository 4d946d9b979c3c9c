"""Fixtures for comparisons with PyTorch."""

import pytest


@pytest.fixture
def every_warning():
    """Make PyTorch give every warning each time, including those it gives once per process."""
    torch = pytest.importorskip("torch")
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)
