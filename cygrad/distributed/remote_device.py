"""Devices of other processes, as text: "worker1/cpu" or "rank:1/cuda:0"."""

import cygrad

__all__: list[str] = []


class _remote_device:
    """A device, with the name of a worker or the rank of a process before it, if it is another's.

    Raises ValueError for other texts, and TypeError for what is neither a text nor a device.
    """

    def __init__(self, remote_device):
        if not isinstance(remote_device, (str, cygrad.device)):
            raise TypeError(f"Invalid type for remote_device: {type(remote_device)}")
        self._worker_name = self._rank = None
        where, slash, device = str(remote_device).rpartition("/")
        if not slash and not _is_device(device):
            where, device = device, "cpu"
        kind, colon, number = where.partition(":")
        if "/" in where or (slash and not where) or (colon and (kind != "rank" or not number.isdigit())):
            raise ValueError(
                f"Could not parse remote_device: {remote_device}. The valid format is '<workername>/<device>' or "
                "'rank:<rank>/<device>' or '<device>'"
            )
        if colon:
            self._rank = int(number)
        elif where:
            self._worker_name = where
        self._device = cygrad.device(device)

    def worker_name(self):
        """The name of the worker, or None."""
        return self._worker_name

    def rank(self):
        """The rank of the process, or None."""
        return self._rank

    def device(self):
        """The device there."""
        return self._device

    def __repr__(self):
        where = self._worker_name if self._rank is None else f"rank:{self._rank}"
        return str(self._device) if where is None else f"{where}/{self._device}"

    def __eq__(self, other):
        return isinstance(other, _remote_device) and repr(self) == repr(other)

    def __hash__(self):
        return hash(repr(self))


def _is_device(text):
    try:
        cygrad.device(text)
    except RuntimeError:
        return False
    return True
