"""How modules convert their parameters: in place, or by new tensors; PyTorch's `torch.__future__`.

>>> import cygrad
>>> cygrad.__future__.get_overwrite_module_params_on_conversion()
False
"""

_overwrites = False
_swaps = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of modules (`to`, `double`, `cpu`, ...) make new parameters.

    By default they change the data of the parameters. An optimizer that was made before keeps the former ones.

    >>> import cygrad
    >>> model = cygrad.nn.Linear(1, 1)
    >>> former = model.weight
    >>> cygrad.__future__.set_overwrite_module_params_on_conversion(True)
    >>> model.double().weight is former
    False
    >>> cygrad.__future__.set_overwrite_module_params_on_conversion(False)
    """
    global _overwrites
    _overwrites = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether conversions of modules make new parameters.

    >>> import cygrad
    >>> cygrad.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return _overwrites


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of modules and `load_state_dict` use `utils.swap_tensors`.

    This goes before the other setting. The parameters remain the same objects. `load_state_dict` gives them what their
    method `module_load` returns, so that classes of tensors can decide how they are loaded.

    >>> import cygrad
    >>> model = cygrad.nn.Linear(1, 1)
    >>> former = model.weight
    >>> cygrad.__future__.set_swap_module_params_on_conversion(True)
    >>> model.double().weight is former
    True
    >>> cygrad.__future__.set_swap_module_params_on_conversion(False)
    """
    global _swaps
    _swaps = value


def get_swap_module_params_on_conversion() -> bool:
    """Return whether conversions of modules and `load_state_dict` use `utils.swap_tensors`.

    >>> import cygrad
    >>> cygrad.__future__.get_swap_module_params_on_conversion()
    False
    """
    return _swaps
