"""`torch.version` after `cygrad.as_torch()`."""

from cygrad.torch_version import __version__ as __version__
from cygrad.version import cuda as cuda
from cygrad.version import debug as debug
from cygrad.version import git_version as git_version
from cygrad.version import hip as hip
from cygrad.version import rocm as rocm
from cygrad.version import xpu as xpu
