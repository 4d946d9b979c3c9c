"""Every op has a batching rule, or its row declares that it has none; the rule is defined in the family of the op."""

import sys

from cygrad._core.graph.opdef import registry, variant

registry.import_families()
registry.batching_rules()
rules = sys.modules["cygrad._ops.base.batching.rules"]
FUNCTIONS = {
    name for module in list(sys.modules) if module.startswith("cygrad._ops.") for name in vars(sys.modules[module])
}


def is_settled(row):
    key, rule = rules.rule_of(row)
    return rule is not None or key in rules.RULES


def family(module):
    """The family of a module: `elementwise` of cygrad._ops.elementwise.rounding."""
    return module.split(".")[2]


def test_rows_have_a_rule_or_declare_none():
    """`vmap` cannot apply an op that fails to all samples at once.

    Define a rule below its entry point, or state `batching=None` in its row.
    """
    assert [name for name in sorted(registry) if not is_settled(registry[name])] == []


def test_missing_rules_are_found():
    assert not is_settled(variant(registry["tril"], name="an_op_without_a_rule"))


def entry_of(name):
    """The entry point of an op, or None if it has no row of its own."""
    row = registry.get(name.partition(".")[0])
    return row and row.entry


OF_COMPILED_OPS = [
    rules.RULES[name] for name in rules.RULES if (f := entry_of(name)) and family(f.__module__) == "base"
]


def test_rules_belong_to_ops_of_their_family():
    for name, rule in rules.RULES.items():
        op = name.partition(".")[0]
        assert name in registry or {op, f"{op}_"} & FUNCTIONS, f"no op is named {name}"
        entry = entry_of(name)
        if rule is not None and entry is not None and rule.__module__ != rules.__name__:
            assert family(rule.__module__) == family(entry.__module__) or rule in OF_COMPILED_OPS, name
