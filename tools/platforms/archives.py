"""Unpack source archives, on early releases of Python 3.11 too."""

import tarfile


def extract(archive, into):
    """Extract a tarfile.TarFile into a directory, without what could write elsewhere.

    `filter` came with 3.11.4, and the Python of Debian 12 is 3.11.2. There the archive is trusted: those that the tools
    unpack are our own or have a checksum that was compared.
    """
    if hasattr(tarfile, "data_filter"):
        archive.extractall(into, filter="data")
    else:
        archive.extractall(into)
