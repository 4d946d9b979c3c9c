"""Where custom ops are kept: by qualified name, and as attributes of `torch.ops.<namespace>`."""

from typing import Any

from cygrad import ops
from cygrad.library._operator import Operator, Packet, operators
from cygrad.ops._schema import FunctionSchema, parse_schema


def parse_name(qualname: str) -> tuple[str, str]:
    """Return namespace and name. Raises ValueError unless the name is of the form "namespace::name"."""
    parts = qualname.split("::")
    if len(parts) != 2 or not all(parts):
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the '
            "torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def _key(namespace: str, name: str, overload: str) -> str:
    return f"{namespace}::{name}" + (f".{overload}" if overload and overload != "default" else "")


def define_operator(namespace: str, text: str, replace: bool = False) -> Operator:
    """Make the op that a schema describes. Raises RuntimeError if there is one of its name, unless `replace`."""
    schema = parse_schema(text)
    own = schema.name.rpartition("::")[2]
    key = _key(namespace, own, schema.overload_name)
    if key in operators and not replace:
        raise RuntimeError(
            f"Tried to register an operator ({namespace}::{text}) with the same name and overload name multiple times. "
            "Each overload's schema should only be registered with a single call to def(). "
            f"Original registration: {operators[key].schema}"
        )
    schema = FunctionSchema(f"{namespace}::{own}", schema.overload_name, schema.arguments, schema.returns, schema.text)
    space = getattr(ops, namespace)
    packet = vars(space).get(own)
    if not isinstance(packet, Packet) or (replace and not schema.overload_name):
        packet = Packet(namespace, own)
        setattr(space, own, packet)
    overload = schema.overload_name or "default"
    operator = Operator(packet, schema, overload)
    setattr(packet, overload, operator)
    operators[key] = operator
    return operator


def remove_operator(operator: Operator) -> None:
    """Forget an op."""
    packet = operator.overloadpacket
    operators.pop(_key(operator.namespace, operator._opname, operator._overloadname), None)
    if vars(packet).get(operator._overloadname) is operator:
        delattr(packet, operator._overloadname)
    space = getattr(ops, operator.namespace)
    if not packet.overloads() and vars(space).get(operator._opname) is packet:
        delattr(space, operator._opname)


def operator_of(op: Any) -> Operator:
    """Return the op of a qualified name, a CustomOpDef or an overload. Raises RuntimeError if there is none."""
    if isinstance(op, Operator):
        return op
    if hasattr(op, "_opoverload"):
        return op._opoverload
    if isinstance(op, Packet):
        return op.default  # type: ignore[return-value]
    if not isinstance(op, str):
        raise ValueError(f"expected the name of a custom op, the op itself, or a CustomOpDef, but got {type(op)}")
    namespace, name = parse_name(op)
    own, _, overload = name.partition(".")
    found = operators.get(_key(namespace, own, overload))
    if found is None:
        raise RuntimeError(f"operator {op} does not exist")
    return found
