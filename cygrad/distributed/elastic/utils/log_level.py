"""How much launchers log."""

__all__ = ["get_log_level"]


def get_log_level():
    """The level of loggers, unless the variable `LOGLEVEL` says otherwise.

    >>> from cygrad.distributed.elastic.utils.log_level import get_log_level
    >>> get_log_level()
    'WARNING'
    """
    return "WARNING"
