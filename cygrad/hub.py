"""Downloads of weights. Code is never downloaded: `hub.load` raises and suggests an alternative."""

import hashlib
import os
import re
import sys
from pathlib import Path

__all__ = ["download_url_to_file", "get_dir", "load", "load_state_dict_from_url", "set_dir"]

_HASH_IN_NAME = re.compile(r"-([a-f0-9]*)\.")  # resnet18-f37072fd.pth
_chosen: list = []


def get_dir():
    """Return the download directory: that of `set_dir`, $TORCH_HOME/hub, or ~/.cache/torch/hub.

    >>> import cygrad
    >>> cygrad.hub.get_dir().endswith("hub")
    True
    """
    if _chosen:
        return _chosen[0]
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    home = os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))
    return os.path.join(home, "hub")


def set_dir(d):
    """Set the download directory."""
    _chosen[:] = [os.path.expanduser(os.fspath(d))]


def load(repo_or_dir, model, *args, **kwargs):
    """Raises RuntimeError: downloaded code is never run."""
    raise RuntimeError(
        f"torch.hub.load({str(repo_or_dir)!r}, {model!r}): cygrad runs no code from the internet\n"
        "  define the model in your own code and load its weights: "
        "model.load_state_dict(torch.hub.load_state_dict_from_url(url))"
    )


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Download a file; it appears at `dst` only when complete.

    With `hash_prefix`, raises RuntimeError unless the file's SHA-256 starts with it. `progress` shows a tqdm bar.
    """
    from urllib.request import urlopen  # slow to import

    target = Path(dst).expanduser()
    part = target.with_name(f"{target.name}.{os.getpid()}.partial")
    digest = hashlib.sha256()
    try:
        with urlopen(url) as source, part.open("wb") as file:
            with _bar(source.headers.get("Content-Length"), progress) as bar:
                while block := source.read(1 << 17):
                    file.write(block)
                    digest.update(block)
                    bar.update(len(block))
        if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


class _NoBar:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def update(self, n):
        """Show nothing."""


def _bar(size, progress):
    if progress:
        try:
            from tqdm import tqdm  # optional
        except ImportError:
            return _NoBar()
        return tqdm(total=int(size) if size else None, unit="B", unit_scale=True, unit_divisor=1024)
    return _NoBar()


def load_state_dict_from_url(
    url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=True
):
    """Return the weights in a file at `url`; it is downloaded once and kept in `model_dir`, or `get_dir()`/checkpoints.

    With `check_hash`, the file name must end with a dash and the first digits of the file's SHA-256
    (`resnet18-f37072fd.pth`); RuntimeError if they differ. Reads the formats of `cygrad.load`.
    """
    from urllib.parse import urlparse  # few programs need it

    import cygrad  # which imports this module

    directory = Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (file_name or os.path.basename(urlparse(url).path))
    if not path.exists():
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = _HASH_IN_NAME.search(path.name) if check_hash else None
        download_url_to_file(url, path, found and found[1], progress)
    return cygrad.load(path, map_location=map_location, weights_only=weights_only)
