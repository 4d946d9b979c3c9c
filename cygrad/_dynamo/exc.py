"""The exceptions of PyTorch's compiler, for programs that catch them. Only `InvalidBackend` is ever raised."""


class TorchDynamoException(RuntimeError):
    """The base of all of them."""


class InternalTorchDynamoError(TorchDynamoException):
    """A fault of the compiler."""


class Unsupported(TorchDynamoException):
    """Python code that the compiler does not understand."""


class UserError(Unsupported):
    """A program that cannot be compiled."""


class RecompileLimitExceeded(Unsupported):
    """A function that was compiled anew too often."""


class BackendCompilerFailed(TorchDynamoException):
    """A back end that failed."""


class InvalidBackend(TorchDynamoException):
    """The name of a back end that is not there."""

    def __init__(self, name):
        super().__init__(
            f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.\n"
            "  the name of any of PyTorch's means the same here: calls are replayed, see `cygrad.compile`"
        )
