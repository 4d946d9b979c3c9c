"""The forms in which a function can be called: its parameters and result, with types."""

import ast
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, NamedTuple

from cygrad import Tensor
from cygrad._core.registry import signatures
from stubs.forms import FORMS
from stubs.parameters import type_of
from stubs.results import result_of

POSITIONAL, KEYWORD_ONLY = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY


class Form(NamedTuple):
    """One way to call a function; annotations are source text."""

    parameters: list[Parameter]
    result: str


def forms_of(function: Callable[..., Any], owner: str, name: str, default: str) -> list[Form]:
    """Return the forms of a function of a module, or of a method of a class, of the name `owner`.

    `default` is the type of results and parameters that no table names.
    """
    is_method = not owner.startswith("cygrad")
    texts = FORMS.get(f"{owner}.{name}") or FORMS.get(name)
    viewed = getattr(Tensor, name.removesuffix("_copy"), None) if name.endswith("_copy") else None
    if viewed:
        return [as_copy(form, is_method) for form in forms_of(viewed, "Tensor", name.removesuffix("_copy"), default)]
    if texts:
        shapes = [of_text(text) for text in texts]
    else:
        shapes = [Form(form, "") for form in of_signature(function)]
    forms = []
    for parameters, result in shapes:
        if not result:
            result = "Self" if is_method and is_inplace(name) else result_of(owner, name, default)
            if result.startswith("return_types") and len(shapes) > 1 and not has(parameters, "dim", "axis"):
                result = "Tensor"
        forms.append(Form([typed(p, name, result, default) for p in parameters], result))
    if is_method:
        forms = [as_method(form) for form in forms]
    return [one for form in forms for one in by_literal(form)]


def is_inplace(name: str) -> bool:
    """Whether a method returns the tensor that it has changed."""
    return name.endswith("_") and not name.endswith("__")


def has(parameters: list[Parameter], *names: str) -> bool:
    """Whether one of the parameters has one of the names."""
    return any(p.name in names for p in parameters)


def of_text(text: str) -> Form:
    """Return parameters and result of a form as `forms.py` writes it."""
    text, _, result = text.partition(" -> ")
    arguments = ast.parse(f"def f({text}): ...").body[0].args  # type: ignore[attr-defined]
    found = []
    places = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(places) - len(arguments.defaults)), *arguments.defaults]
    rows: list[tuple[Any, Any, Any]] = [
        (argument, value, Parameter.POSITIONAL_ONLY if argument in arguments.posonlyargs else POSITIONAL)
        for argument, value in zip(places, defaults)
    ]
    if arguments.vararg:
        rows.append((arguments.vararg, None, Parameter.VAR_POSITIONAL))
    rows += [(argument, value, KEYWORD_ONLY) for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        rows.append((arguments.kwarg, None, Parameter.VAR_KEYWORD))
    for argument, value, kind in rows:
        default = Parameter.empty if value is None else ast.literal_eval(value)
        annotation = ast.unparse(argument.annotation) if argument.annotation else Parameter.empty
        found.append(Parameter(argument.arg, kind, default=default, annotation=annotation))
    return Form(found, result)


def of_signature(function: Callable[..., Any]) -> list[list[Parameter]]:
    """Return the parameters of each form of a function, from what its signature tells."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [of_text("self, *args: Any, **kwargs: Any").parameters]
    by_kind = {p.kind: p for p in parameters}
    several, named = by_kind.get(Parameter.VAR_POSITIONAL), by_kind.get(Parameter.VAR_KEYWORD)
    if several and named and several.name != "args":  # sizes, one by one or together
        together = several.replace(kind=POSITIONAL, annotation="Sequence[int]")
        parameters.remove(named)
        return [
            [p.replace(annotation="int") if p is several else p for p in parameters],
            [together if p is several else p for p in parameters],
        ]
    forms = signatures.forms(parameters)
    numpys = [p.name for p in parameters if p.name in signatures.NUMPY_NAMES and p.default is None]
    if "axis" in numpys and len(forms) > 1:
        forms.append([under_numpys_name(p) for p in forms[-1]])
    elif numpys:
        forms[0] += [Parameter(name, KEYWORD_ONLY, default=None) for name in numpys]
    return [sorted(form, key=lambda p: p.kind) for form in forms]


def under_numpys_name(parameter: Parameter) -> Parameter:
    """Return `axis` for `dim`, and other parameters as they are, all but the first by keyword."""
    if parameter.name in ("dim", "keepdim"):
        return parameter.replace(name={"dim": "axis", "keepdim": "keepdims"}[parameter.name], kind=KEYWORD_ONLY)
    return parameter


def typed(parameter: Parameter, function: str, result: str, default: str) -> Parameter:
    """Return a parameter with its type."""
    if parameter.annotation is not Parameter.empty:
        known = parameter.annotation
        return parameter.replace(
            annotation=known if isinstance(known, str) else inspect.formatannotation(known, "typing")
        )
    if parameter.kind is Parameter.VAR_KEYWORD or parameter.name == "args":
        return parameter.replace(annotation="Any")
    if parameter.name == "out":
        return parameter.replace(annotation=f"{'Tensor' if 'Tensor' == result else 'Sequence[Tensor]'} | None")
    return parameter.replace(annotation=type_of(function, parameter, default))


def as_method(form: Form) -> Form:
    """Return a form as a method has it: after `self`, and without `out`, as in PyTorch."""
    first = form.parameters[0].replace(name="self", annotation=Parameter.empty)
    return Form([first, *(p for p in form.parameters[1:] if p.name != "out")], form.result)


def as_copy(form: Form, is_method: bool) -> Form:
    """Return the form of a view as the function has it that copies."""
    if is_method:
        return form
    first = form.parameters[0].replace(name="input", annotation="Tensor")
    out = Parameter("out", KEYWORD_ONLY, default=None)
    return Form([first, *form.parameters[1:], typed(out, "", form.result, "")], form.result)


def by_literal(form: Form) -> list[Form]:
    """Return a form once for each value of a flag that adds indices to the result."""
    flag = next((p for p in form.parameters if p.name == "return_indices" and p.default is False), None)
    if flag is None or form.result != "Tensor":
        return [form]
    without = flag.replace(annotation="Literal[False]")
    whole = [p for p in form.parameters if p is not flag]
    chosen = flag.replace(annotation="Literal[True]", default=Parameter.empty, kind=KEYWORD_ONLY)
    either = flag.replace(annotation="bool")
    return [
        Form([without if p is flag else p for p in form.parameters], "Tensor"),
        Form(sorted([*whole, chosen], key=lambda p: p.kind), "tuple[Tensor, Tensor]"),
        Form([either if p is flag else p for p in form.parameters], "Any"),
    ]
