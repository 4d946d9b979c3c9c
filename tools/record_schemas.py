"""Write `cygrad/ops/schemas.txt`: the schemas of PyTorch's ops that have a name here, as PyTorch tells them.

    python tools/record_schemas.py [--check]

Run it where PyTorch and cygrad are installed (tox -e oracle). Each line holds the numbers of the op's tags
(`cygrad.Tag`), a bar, and the schema without the namespace. Ops on Python's numbers and lists, which only TorchScript
calls, are left out.
"""

import sys
from pathlib import Path

import torch

import cygrad

PATH = Path(__file__).parents[1] / "cygrad" / "ops" / "schemas.txt"
HEAD = "# The schemas of PyTorch's ops, with the numbers of their tags: written by tools/record_schemas.py\n"


def is_of_tensors(schema):
    """Whether a schema takes or returns a tensor, and nothing that only TorchScript knows."""
    kinds = [str(each.type) for each in [*schema.arguments, *schema.returns]]
    is_script = any(kind.startswith("Dict") for kind in kinds) or "..." in str(schema)
    return any("Tensor" in kind for kind in kinds) and not is_script


def lines():
    """Yield the lines of the file."""
    schemas: dict[str, list] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten" and hasattr(cygrad.ops.aten, name) and is_of_tensors(schema):
            schemas.setdefault(name, []).append(schema)
    for name in sorted(schemas):
        for schema in schemas[name]:
            op = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default")
            tags = " ".join(str(int(tag)) for tag in sorted(op.tags, key=int))
            yield f"{tags}|{str(schema).removeprefix('aten::')}\n"


def main():
    """Write the file, or with `--check` compare it."""
    text = HEAD + "".join(lines())
    if "--check" not in sys.argv:
        PATH.write_text(text, encoding="utf-8")
    elif PATH.read_text(encoding="utf-8") != text:
        sys.exit(f"{PATH} is not what PyTorch {torch.__version__} says: run python tools/record_schemas.py")


if __name__ == "__main__":
    main()
