"""The ONNX forms of the functions that programs call: a table by name, in a file for each family."""

from cygrad.export._onnx_forms.table import FORMS, base_name, form_of

__all__ = ["FORMS", "base_name", "form_of"]
