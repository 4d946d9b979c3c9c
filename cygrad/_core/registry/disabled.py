"""The `__torch_function__` of classes that see no calls, such as that of parameters, which every program has."""


class _Disabled:
    """As a class's `__torch_function__`: no call is dispatched to the class, and results are plain tensors."""

    __name__ = "_disabled_torch_function_impl"

    def __call__(self, function, types, args=(), kwargs=None):
        from cygrad._core.registry.torch_function import Handling  # which few programs need

        with Handling():
            return function(*args, **(kwargs or {}))


disabled = _Disabled()
