"""The version of PyTorch whose names and semantics cygrad has, in a form that programs can compare.

`torch.__version__` is this after `cygrad.as_torch()`; `cygrad.__version__` is cygrad's own version.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion"]

# PEP 440: release, pre-release, post-release, development release, and what somebody built (the local version).
_FORM = re.compile(
    r"\s*v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<stage>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre>\d*))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*)|-(?P<bare_post>\d+))?"
    r"(?:[-_.]?dev[-_.]?(?P<dev>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*",
    re.IGNORECASE,
)
_STAGES = {"alpha": "a", "beta": "b", "preview": "rc", "pre": "rc", "c": "rc"}
_END: Any = (2,)  # sorts behind every pre-release


def _sort_key(version):
    """Return what orders versions as PEP 440 says, or None if a text is no version."""
    match = _FORM.fullmatch(version)
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    post = match["post"] if match["post"] is not None else match["bare_post"]
    if match["stage"]:
        stage = match["stage"].lower()
        pre: Any = (1, _STAGES.get(stage, stage), int(match["pre"] or 0))
    elif match["dev"] is not None and post is None:
        pre = (0,)  # 1.0.dev1 comes before 1.0a1
    else:
        pre = _END
    local = re.split(r"[-_.]", match["local"].lower()) if match["local"] else []
    return (
        release,
        pre,
        -1 if post is None else int(post or 0),
        (1,) if match["dev"] is None else (0, int(match["dev"] or 0)),
        [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in local],
    )


class TorchVersion(str):
    """A version that compares with texts, tuples of numbers and `packaging`'s versions by the rules of PEP 440.

    >>> from cygrad.torch_version import TorchVersion
    >>> TorchVersion("2.13.0+cygrad") >= "2.9"
    True
    >>> TorchVersion("2.13.0+cygrad") < (2, 14)
    True
    """

    def _keys(self, other):
        """Return what to compare: sort keys, or the texts themselves if the other is no version."""
        text = ".".join(map(str, other)) if isinstance(other, (tuple, list)) else str(other)
        mine, others = _sort_key(self), _sort_key(text)
        return (str(self), text) if mine is None or others is None else (mine, others)

    def __eq__(self, other: Any) -> bool:
        mine, others = self._keys(other)
        return mine == others

    def __lt__(self, other: Any) -> bool:
        mine, others = self._keys(other)
        return mine < others

    def __le__(self, other: Any) -> bool:
        return self == other or self < other

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    __hash__ = str.__hash__


__version__ = TorchVersion("2.13.0+cygrad")
