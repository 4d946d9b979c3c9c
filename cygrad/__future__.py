"""Settings of what conversions of modules, such as `module.half()`, do with the parameters.

By default a parameter remains the same object, and gets new data.

>>> from cygrad import __future__, nn
>>> layer = nn.Linear(2, 1)
>>> weight = layer.weight
>>> layer.double().weight is weight
True
>>> __future__.set_overwrite_module_params_on_conversion(True)
>>> layer.float().weight is weight
False
>>> __future__.set_overwrite_module_params_on_conversion(False)
"""

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_settings = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions make new parameters instead of giving new data to those that there are.

    >>> from cygrad import __future__
    >>> __future__.set_overwrite_module_params_on_conversion(False)
    """
    _settings["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether conversions make new parameters.

    >>> from cygrad import __future__
    >>> __future__.get_overwrite_module_params_on_conversion()
    False
    """
    return _settings["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions exchange what the old and the new parameter hold, as `utils.swap_tensors` does.

    >>> from cygrad import __future__
    >>> __future__.set_swap_module_params_on_conversion(False)
    """
    _settings["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Return whether conversions exchange what parameters hold.

    >>> from cygrad import __future__
    >>> __future__.get_swap_module_params_on_conversion()
    False
    """
    return _settings["swap"]
