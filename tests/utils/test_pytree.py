"""Trees of containers: `utils._pytree`."""

import dataclasses
import enum
import pickle
import time
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import cygrad as torch
from cygrad.utils import _pytree as trees
from cygrad.utils._pytree import (
    GetAttrKey,
    LeafSpec,
    MappingKey,
    SequenceKey,
    TreeSpec,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
    treespec_dumps,
    treespec_loads,
)

Pair = namedtuple("Pair", "first second")


@pytest.fixture
def registered():
    """Takes classes out of the registry again after the test."""
    before = set(trees.SUPPORTED_NODES)
    yield
    for cls in set(trees.SUPPORTED_NODES) - before:
        trees._deregister_pytree_node(cls)


CASES = [
    (1, [1], [""], "*"),
    (None, [None], [""], "*"),
    ([], [], [], "[]"),
    (
        (1, [2, {"b": 3, "a": 4}]),
        [1, 2, 3, 4],
        ["[0]", "[1][0]", "[1][1]['b']", "[1][1]['a']"],
        "(*, [*, {'b': *, 'a': *}])",
    ),
    (Pair(1, (2,)), [1, 2], [".first", ".second[0]"], "Pair(first=*, second=(*,))"),
    (OrderedDict(b=1, a=2), [1, 2], ["['b']", "['a']"], None),
    (defaultdict(list, {"k": [1]}), [1], ["['k'][0]"], "defaultdict(<class 'list'>, {'k': [*]})"),
    (deque([1, 2], maxlen=3), [1, 2], ["[0]", "[1]"], "deque([*, *], maxlen=3)"),
    ({1, 2}, [{1, 2}], [""], "*"),
]


@pytest.mark.parametrize(("tree", "leaves", "paths", "text"), CASES)
def test_containers(tree, leaves, paths, text):
    found, spec = tree_flatten(tree)
    assert found == leaves == tree_leaves(tree) == list(trees.tree_iter(tree))
    assert [keystr(path) for path, _ in tree_flatten_with_path(tree)[0]] == paths
    assert [trees.key_get(tree, path) for path, _ in tree_flatten_with_path(tree)[0]] == leaves
    again = tree_unflatten(found, spec)
    assert again == tree and type(again) is type(tree)
    assert spec.num_leaves == len(leaves) and spec == tree_structure(tree) and hash(spec) == hash(tree_structure(tree))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert text is None or trees.treespec_pprint(spec) == text
    if not isinstance(tree, Pair):
        assert treespec_loads(treespec_dumps(spec)) == spec


def test_limits_and_factories_are_kept():
    assert tree_map(lambda x: x, deque([1], maxlen=3)).maxlen == 3
    assert tree_map(lambda x: x, defaultdict(list, a=1)).default_factory is list


def test_results_of_ops():
    found = tree_map(lambda t: t + 1, torch.tensor([1.0, 3.0]).max(0))
    assert type(found) is torch.return_types.max and (found.values.item(), found.indices.item()) == (4.0, 2)
    assert trees.is_structseq_instance(found) and trees.is_structseq_instance(time.localtime())
    assert not trees.is_structseq_instance((1,)) and not trees.is_structseq_instance(Pair(1, 2))
    assert tree_leaves(torch.Size([2, 3])) == [2, 3]


def test_subclasses_are_leaves():
    class Own(list):
        pass

    assert tree_leaves([Own([1])]) == [Own([1])] and trees.tree_is_leaf(Own())


def test_kinds():
    assert trees._get_node_type(Pair(1, 2)) is namedtuple and trees._get_node_type([]) is list
    assert trees.is_namedtuple_instance(Pair(1, 2)) and trees.is_namedtuple_class(Pair)
    assert not trees.is_namedtuple_instance((1, 2))
    assert trees.SUPPORTED_NODES[dict].flatten_fn({"a": 1}) == ([1], ["a"]) == trees._dict_flatten({"a": 1})
    assert trees._dict_flatten_with_keys({"a": 1}) == ([(MappingKey("a"), 1)], ["a"])
    assert trees._dict_unflatten([1], ["a"]) == {"a": 1} and trees._list_unflatten((1,), None) == [1]
    assert trees._list_flatten([1]) == ([1], None)
    assert trees._list_flatten_with_keys([1]) == ([(SequenceKey(0), 1)], None)


def test_structures():
    spec = tree_structure((1, {"a": 2}))
    assert repr(spec) == "TreeSpec(tuple, None, [*,\n  TreeSpec(dict, ['a'], [*])])"
    assert (spec.type, spec.context, spec.num_nodes, spec.num_children) == (tuple, None, 4, 2)
    assert not spec.is_leaf() and spec.child(0).is_leaf() and spec.children() == spec.children_specs
    assert LeafSpec() == trees.treespec_leaf() and isinstance(LeafSpec(), TreeSpec) and repr(LeafSpec()) == "*"
    assert spec == TreeSpec(tuple, None, [LeafSpec(), TreeSpec(dict, ["a"], [LeafSpec()])])
    assert spec == trees.treespec_tuple([LeafSpec(), trees.treespec_dict({"a": LeafSpec()})])
    assert tree_structure([1]) != tree_structure((1,)) != tree_structure((1, 2))
    assert spec.flatten_up_to((3, {"a": [4, 5]})) == [3, [4, 5]]


def test_paths():
    path = SequenceKey(0), MappingKey("a"), GetAttrKey("real")
    assert keystr(path) == "[0]['a'].real" and trees.key_get([{"a": 2 + 3j}], path) == 2.0
    assert repr(path) == "(SequenceKey(idx=0), MappingKey(key='a'), GetAttrKey(name='real'))"
    found = trees.tree_map_with_path(lambda p, x, y: (keystr(p), x + y), {"a": [1, 2]}, {"a": [10, 20]})
    assert found == {"a": [("['a'][0]", 11), ("['a'][1]", 22)]}


def test_maps_of_several_trees():
    both = tree_map(lambda x, y: (x, y), {"x": 1, "y": 2}, {"y": 20, "x": 10})
    assert both == {"x": (1, 10), "y": (2, 20)}
    assert tree_map(lambda x, y: (x, y), OrderedDict(a=1), {"a": 2}) == OrderedDict(a=(1, 2))
    assert tree_map(lambda x, y: (x, y), [1, 2], [3, [4, 5]]) == [(1, 3), (2, [4, 5])]


@pytest.mark.parametrize(
    ("tree", "other", "text"),
    [
        ([1, 2], (1, 2), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>."),
        ([1, 2], [1], "Node arity mismatch; expected 2, but got 1."),
        ({"a": 1}, {"b": 1}, "Node keys mismatch"),
        (Pair(1, 2), namedtuple("Other", "a b")(1, 2), "Node context mismatch"),
    ],
)
def test_trees_that_do_not_fit(tree, other, text):
    with pytest.raises(ValueError, match=text):
        tree_map(lambda x, y: x, tree, other)


def test_leaves_by_a_predicate():
    assert tree_leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    assert tree_map(lambda x: len(x), [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]
    assert trees.tree_map_only(int, lambda x: x + 1, [1, "a", 2.0]) == [2, "a", 2.0]
    assert trees.tree_map_only((int, float), lambda x: x + 1, [1, "a", 2.0]) == [2, "a", 3.0]
    assert trees.tree_map_only(int | str, lambda x: x * 2, [1, "a", 2.0]) == [2, "aa", 2.0]
    assert trees.tree_map_only(lambda x: x == 1, lambda x: 9, [1, "a"]) == [9, "a"]
    with pytest.raises(TypeError, match=r"Argument must be a type, a tuple of types, or a callable."):
        trees.tree_map_only(3, lambda x: x, [1])
    assert trees.tree_any(lambda x: x > 1, [1, 2]) and not trees.tree_all(lambda x: x > 1, [1, 2])
    assert trees.tree_all_only(int, lambda x: x >= 1, [1, "a"]) and not trees.tree_any_only(
        int, lambda x: x > 1, [1, "a"]
    )
    assert trees.arg_tree_leaves(1, [2], k={"a": 3}) == [1, 2, 3]


def test_maps_in_place():
    lists = [[1], [2]]

    def is_inner(tree):
        return tree in lists

    assert trees.tree_map_(lambda each: each.append(0), lists, is_leaf=is_inner) is lists == [[1, 0], [2, 0]]
    found = trees.tree_map_only_(lambda each: each[0] == 1, lambda each: each.clear(), lists, is_leaf=is_inner)
    assert found is lists == [[], [2, 0]]


def test_broadcasting():
    spec = tree_structure([1, [2, 3]])
    assert trees._broadcast_to_and_flatten(1, spec) == [1, 1, 1]
    assert trees._broadcast_to_and_flatten([1, 2], spec) == [1, 2, 2]
    assert trees._broadcast_to_and_flatten([1], spec) is None


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


def test_registration(registered):
    assert tree_leaves(Point(1, 2)) != [1, 2]
    trees.register_pytree_node(Point, lambda p: ([p.x, p.y], None), lambda children, _: Point(*children))
    moved = tree_map(lambda x: x + 1, [Point(1, [2])])[0]
    assert (moved.x, moved.y) == (2, [3]) and Point in trees.SUPPORTED_NODES
    with pytest.raises(ValueError, match=r"Point'> is already registered as pytree node."):
        trees.register_pytree_node(Point, lambda p: ([], None), lambda children, _: None)
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
        tree_flatten_with_path(Point(1, 2))
    with pytest.raises(NotImplementedError, match="No registered serialization name"):
        treespec_dumps(tree_structure(Point(1, 2)))
    with pytest.warns(UserWarning, match="Overwriting the previous registration"):
        trees._register_pytree_node(
            Point,
            lambda p: ([p.x], p.y),
            lambda children, y: Point(*children, y),
            serialized_type_name="tests.Point",
            to_dumpable_context=str,
            from_dumpable_context=int,
            flatten_with_keys_fn=lambda p: ([(GetAttrKey("x"), p.x)], p.y),
        )
    assert tree_leaves(Point(1, 2)) == [1] and keystr(tree_flatten_with_path(Point(1, 2))[0][0][0]) == ".x"
    spec = tree_structure(Point(1, 2))
    assert '"tests.Point", "context": "2"' in treespec_dumps(spec) and treespec_loads(treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="must be None or registered"):
        trees.register_pytree_node(set, list, set, to_dumpable_context=str)
    assert set not in trees.SUPPORTED_NODES


def test_dataclasses(registered):
    @dataclasses.dataclass
    class Options:
        a: int
        b: int
        c: int | None = 3

    assert len(tree_leaves(Options(1, 2))) == 1
    trees.register_dataclass(Options)
    assert tree_map(lambda x: x + 1, Options(1, [2])) == Options(2, [3], 4)
    assert tree_map(lambda x: x + 1, Options(1, 2, None)) == Options(2, 3, None)
    assert [keystr(path) for path, _ in tree_flatten_with_path(Options(1, 2))[0]] == [".a", ".b", ".c"]
    trees.register_dataclass(Options)

    @dataclasses.dataclass
    class Other:
        a: int
        b: int = 2

    with pytest.raises(ValueError, match="field_names does not include all dataclass fields"):
        trees.register_dataclass(Other, field_names=["a"])
    trees.register_dataclass(Other, field_names=["a"], drop_field_names=["b"])
    assert tree_leaves(Other(1)) == [1]
    with pytest.raises(ValueError, match="field_names must be specified"):
        trees.register_dataclass(int)


def test_constants(registered):
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    trees.register_constant(Mode)
    leaves, spec = tree_flatten([Mode("a"), 1])
    assert leaves == [1] and tree_unflatten([2], spec) == [Mode("a"), 2] and trees.is_constant_class(Mode)
    assert spec != tree_structure([Mode("b"), 1])
    with pytest.raises(TypeError, match="to have a non-default `__eq__` implementation"):
        trees.register_constant(Point)


class Color(enum.Enum):
    RED = 1


def test_files():
    spec = tree_structure({Color.RED: 1})
    with pytest.raises(TypeError, match="TreeSpec|Expected `treespec` to be an instance of PyTreeSpec"):
        treespec_dumps([1])
    assert treespec_dumps(tree_structure([1])) == (
        '[1, {"type": "builtins.list", "context": "null", "children_spec": '
        '[{"type": null, "context": null, "children_spec": []}]}]'
    )
    assert treespec_loads(treespec_dumps(spec)).context == [Color.RED]
    for call in (lambda: treespec_loads("[2, {}]"), lambda: treespec_dumps(LeafSpec(), 5)):
        with pytest.raises(ValueError, match="Unknown protocol"):
            call()
    with pytest.raises(NotImplementedError, match="Can't serialize TreeSpec of namedtuple class"):
        treespec_dumps(tree_structure(Pair(1, 2)))
    trees._register_namedtuple(Pair, serialized_type_name="tests.Pair")
    assert treespec_loads(treespec_dumps(tree_structure(Pair(1, 2)))) == tree_structure(Pair(1, 2))
    del trees.SUPPORTED_SERIALIZED_TYPES[Pair], trees.SERIALIZED_TYPE_TO_PYTHON_TYPE["tests.Pair"]


def test_wrong_numbers_of_leaves():
    for leaves in ([1], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"`leaves` has length {len(leaves)} but .* that holds 2"):
            tree_unflatten(leaves, tree_structure([1, 2]))
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of PyTreeSpec but got item of type"):
        tree_unflatten([1], 3)
    assert tree_unflatten(iter([1, 2]), tree_structure([0, 0])) == [1, 2]


class _Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


@pytest.fixture
def pair():
    trees.register_pytree_node(_Pair, lambda x: ([x.first, x.second], None), lambda children, _: _Pair(*children))
    yield _Pair
    trees._deregister_pytree_node(_Pair)


def test_transforms_of_functions_know_registered_classes(pair):
    x, y, func = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0]), torch.func

    def product(p):
        return (p.first * p.second).sum()

    mapped = func.vmap(lambda p: pair(p.first * 2, p.first + p.second))(pair(x, y))
    assert type(mapped) is pair and torch.equal(mapped.first, x * 2) and torch.equal(mapped.second, x + y)
    assert torch.equal(func.grad(product)(pair(x, y)).first, y)
    assert torch.equal(func.jacrev(lambda p: p.first * p.second)(pair(x, y)).second, torch.diag(x))
    assert torch.equal(func.hessian(product)(pair(x, y)).first.second, torch.eye(3))
    _, tangents = func.jvp(lambda p: pair(product(p), p.first), (pair(x, y),), (pair(y, x),))
    assert torch.equal(tangents.first, (x * x + y * y).sum()) and torch.equal(tangents.second, y)
    shared = func.vmap(lambda p, scale: p.first * scale, in_dims=(0, None))(pair(x, y), {"a": 2.0}["a"])
    assert torch.equal(shared, x * 2)


def test_transforms_of_functions_keep_kinds_of_containers():
    x, vmap = torch.tensor([1.0, 2.0]), torch.func.vmap
    row = vmap(lambda d: d)(deque([x], 3))
    assert type(row) is deque and row.maxlen == 3 and torch.equal(row[0], x)
    named = vmap(lambda d: d)(defaultdict(list, a=x))
    assert type(named) is defaultdict and named.default_factory is list and torch.equal(named["a"], x)
    assert type(vmap(lambda d: d)(OrderedDict(a=x))) is OrderedDict
