"""Loggers of launchers."""

import logging
import os
import sys

from cygrad.distributed.elastic.utils.log_level import get_log_level

__all__ = ["get_logger"]


def get_logger(name=None):
    """A logger with the level that the variable `LOGLEVEL` names, by default for warnings.

    name: by default that of the module that calls.

    >>> from cygrad.distributed.elastic.utils.logging import get_logger
    >>> get_logger("training").name
    'training'
    """
    logger = logging.getLogger(name or sys._getframe(1).f_globals.get("__name__"))
    logger.setLevel(os.environ.get("LOGLEVEL", get_log_level()))
    return logger
