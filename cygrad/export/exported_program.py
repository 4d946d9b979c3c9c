"""The classes of exported programs, which nothing makes here."""


def no_export(name):
    """Return the error of a function that needs an exported program."""
    return RuntimeError(
        f"torch.export.{name}: cygrad exports no programs\n"
        "  save model.state_dict(), and keep the Python code that makes the model"
    )


class ExportedProgram:
    """The class of exported programs. Making one raises RuntimeError."""

    def __new__(cls, *args, **kwargs):
        raise no_export("ExportedProgram")


class UnflattenedModule:
    """The class of modules made from exported programs. Making one raises RuntimeError."""

    def __new__(cls, *args, **kwargs):
        raise no_export("UnflattenedModule")
