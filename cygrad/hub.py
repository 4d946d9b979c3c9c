"""Models and weights of others: `load` takes models from a folder on this machine, and weights are downloaded.

Code is never downloaded. Files are kept in the folders that PyTorch keeps them in.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Self

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # resnet18-f37072fd.pth
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
READ_DATA_CHUNK = 128 * 1024
_hub_dir: str | None = None


def __getattr__(name: str) -> Any:
    if name == "urlparse":
        from urllib.parse import urlparse  # slow to import

        return urlparse
    if name == "tqdm":
        return progress_bar()
    raise AttributeError(f"module 'cygrad.hub' has no attribute {name!r}")


# -- folders --


def _get_torch_home():
    cache = os.path.join(os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR), "torch")
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, cache))


def get_dir() -> str:
    """Return the download directory: that of `set_dir`, $TORCH_HOME/hub, or ~/.cache/torch/hub.

    >>> import cygrad
    >>> cygrad.hub.get_dir().endswith("hub")
    True
    """
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: Any) -> None:
    """Set the download directory.

    >>> import cygrad
    >>> before = cygrad.hub.get_dir()
    >>> cygrad.hub.set_dir("downloads")
    >>> cygrad.hub.get_dir()
    'downloads'
    >>> cygrad.hub.set_dir(before)
    """
    global _hub_dir
    _hub_dir = os.path.expanduser(os.fspath(d))


# -- models --


def list(
    github: Any,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: str = "check",
    verbose: bool = True,
) -> Any:
    """Raises RuntimeError: code of a repository on the internet is never run.

    >>> import cygrad
    >>> cygrad.hub.list("pytorch/vision")
    Traceback (most recent call last):
        ...
    RuntimeError: torch.hub: 'pytorch/vision' is a repository on the internet...
    """
    raise _no_download(github)


def help(
    github: Any, model: Any, force_reload: bool = False, skip_validation: bool = False, trust_repo: str = "check"
) -> Any:
    """Raises RuntimeError: code of a repository on the internet is never run.

    >>> import cygrad
    >>> cygrad.hub.help("pytorch/vision", "resnet18")
    Traceback (most recent call last):
        ...
    RuntimeError: torch.hub: 'pytorch/vision' is a repository on the internet...
    """
    raise _no_download(github)


def load(
    repo_or_dir: Any,
    model: Any,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    r"""Return `model(*args, **kwargs)`, a function of the file hubconf.py in a folder; needs `source="local"`.

    Raises RuntimeError for a repository on the internet: downloaded code is never run. Raises ValueError for another
    `source`, and RuntimeError if the file lacks the function or packages that it lists as `dependencies`.

    >>> import cygrad
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with open(os.path.join(folder.name, "hubconf.py"), "w") as file:
    ...     size = file.write("import cygrad\ndef tiny(width=2):\n    return cygrad.nn.Linear(width, 1)\n")
    >>> cygrad.hub.load(folder.name, "tiny", width=3, source="local")
    Linear(in_features=3, out_features=1, bias=True)
    >>> folder.cleanup()
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise _no_download(repo_or_dir)
    with _hubconf(os.fspath(repo_or_dir)) as module:
        return _entry(module, model)(*args, **kwargs)


def _no_download(repo):
    return RuntimeError(
        f"torch.hub: {str(repo)!r} is a repository on the internet, and cygrad runs no code from the internet\n"
        '  clone it, read it, and call torch.hub.load(folder, model, source="local"); or define the model in your own '
        "code and load its weights: model.load_state_dict(torch.hub.load_state_dict_from_url(url))"
    )


@contextmanager
def _hubconf(folder):
    """Run the file hubconf.py of a folder, which may import modules beside it, and yield the module."""
    sys.path.insert(0, folder)
    try:
        spec: Any = spec_from_file_location(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _entry(module, model):
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    missing = [name for name in getattr(module, VAR_DEPENDENCY, ()) if find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


# -- files --


def download_url_to_file(url: Any, dst: Any, hash_prefix: Any = None, progress: bool = True) -> Any:
    """Download a file; it appears at `dst` only when complete.

    With `hash_prefix`, raises RuntimeError unless the file's SHA-256 starts with it. `progress` shows a tqdm bar.

    >>> import cygrad
    >>> import os, pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> there = pathlib.Path(folder.name, "weights.pt")
    >>> size = there.write_bytes(b"weights")
    >>> here = os.path.join(folder.name, "here.pt")
    >>> cygrad.hub.download_url_to_file(there.as_uri(), here, progress=False)
    >>> pathlib.Path(here).read_bytes()
    b'weights'
    >>> folder.cleanup()
    """
    from urllib.request import urlopen  # slow to import

    target = Path(dst).expanduser()
    part = target.with_name(f"{target.name}.{os.getpid()}.partial")
    digest = hashlib.sha256()
    try:
        with urlopen(url) as source, part.open("wb") as file:
            size = source.headers.get("Content-Length")
            scale = {"unit": "B", "unit_scale": True, "unit_divisor": 1024}
            with progress_bar()(total=int(size) if size else None, disable=not progress, **scale) as bar:
                while block := source.read(READ_DATA_CHUNK):
                    file.write(block)
                    digest.update(block)
                    bar.update(len(block))
        if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


class _Faketqdm:
    """Stands for `tqdm` where that is not installed: iterates, and shows nothing."""

    def __init__(
        self, iterable: Any = None, *args: Any, total: Any = None, disable: bool = False, **kwargs: Any
    ) -> None:
        self.iterable, self.total, self.disable, self.n = iterable, total, disable, 0

    def __iter__(self) -> Any:
        return iter(() if self.iterable is None else self.iterable)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def update(self, n: int = 1) -> Any:
        """Count."""
        self.n += n

    def set_description(self, desc: Any = None, refresh: bool = True) -> Any:
        """Show nothing."""

    def close(self) -> Any:
        """Show nothing."""


def progress_bar() -> Any:
    """Return the class `tqdm`, or one that shows nothing where it is not installed."""
    try:
        from tqdm import tqdm  # optional
    except ImportError:
        return _Faketqdm
    return tqdm


def load_state_dict_from_url(
    url: Any,
    model_dir: Any = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: Any = None,
    weights_only: bool = True,
) -> Any:
    """Return the weights in a file at `url`; it is downloaded once and kept in `model_dir`, or `get_dir()`/checkpoints.

    With `check_hash`, the file name must end with a dash and the first digits of the file's SHA-256
    (`resnet18-f37072fd.pth`); RuntimeError if they differ. Reads the formats of `cygrad.load`.

    >>> import cygrad
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> there = pathlib.Path(folder.name, "weights.pt")
    >>> cygrad.save({"weight": cygrad.ones(2)}, there)
    >>> cygrad.hub.load_state_dict_from_url(there.as_uri(), model_dir=folder.name, progress=False)
    {'weight': tensor([1., 1.])}
    >>> folder.cleanup()
    """
    from urllib.parse import urlparse  # slow to import

    import cygrad  # which imports this module

    directory = Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (file_name or os.path.basename(urlparse(url).path))
    if not path.exists():
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(path.name) if check_hash else None
        download_url_to_file(url, path, found and found[1], progress)
    return cygrad.load(path, map_location=map_location, weights_only=weights_only)
