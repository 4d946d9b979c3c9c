"""What holds for comparisons with PyTorch."""

import pytest


@pytest.fixture
def every_warning():
    """PyTorch gives some of its warnings once in a process; now each time."""
    torch = pytest.importorskip("torch")
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)
