"""Layout of layered drawings.

Note [Layered layout]
---------------------
Data flows down. (1) The layer of a vertex is its longest distance from an output, so that a
parameter is placed right above the operation that uses it. (2) An edge that spans several layers
gets an invisible point in each layer in between. (3) Within a layer, vertices are ordered by the
mean position of their neighbors, sweeping down and up; the order with the fewest crossings wins.
(4) Positions then move towards the mean of their neighbors as far as the order and the minimum
distances allow: a least-squares problem with an ordering constraint, solved exactly by pooling
neighbors that would overlap. Edges from parameters hardly pull, which keeps the main path straight.

A leaf used by many distant operations (a recurrent net's weight) would fill the drawing with its edges: if long
edges need more points than CROWDED times the boxes, such a leaf is drawn again above each layer that uses it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from cygrad.viz._collect import Vertex, by_depth

GAP_X = 18.0  # between boxes of a layer
GAP_Y = 44.0  # between layers
BOX_HEIGHT = 40.0
EDGE_WIDTH = 10.0  # the width of a long edge in the layers it crosses
SWEEPS = 12
CROWDED = 4

Point = tuple[float, float]


class Item:
    """A box, or a point where a long edge crosses a layer (`vertex` is None)."""

    __slots__ = ("above", "below", "layer", "vertex", "width", "x")

    def __init__(self, vertex: Vertex | None, layer: int, width: float) -> None:
        self.vertex = vertex
        self.layer = layer
        self.width = width
        self.x = 0.0
        self.above: list[Item] = []  # sources of incoming edges
        self.below: list[Item] = []  # targets of outgoing edges

    @property
    def y(self) -> float:
        """The vertical center, increasing downwards."""
        return self.layer * (BOX_HEIGHT + GAP_Y) + BOX_HEIGHT / 2

    @property
    def height(self) -> float:
        """The height; 0 for points."""
        return BOX_HEIGHT if self.vertex is not None else 0.0


class Layout:
    """The boxes, the edges as lists of points, and the size of the drawing."""

    def __init__(self, vertices: list[Vertex], width_of: Callable[[Vertex], float]) -> None:
        self.boxes, self._layers, self._chains = _layered(vertices, width_of)
        _order(self._layers)
        _place(self._layers)
        items = [item for layer in self._layers for item in layer]
        left = min(item.x - item.width / 2 for item in items)
        for item in items:
            item.x -= left
        self.width = max(item.x + item.width / 2 for item in items)
        self.height = max(item.y for item in items) + BOX_HEIGHT / 2
        self.edges = self._route()

    def _route(self) -> list[tuple[list[Point], int]]:
        """Return the points of each edge from box to box, and the number of parallel edges it represents."""
        starts: dict[Item, list[Item]] = defaultdict(list)
        ends: dict[Item, list[Item]] = defaultdict(list)
        for chain, _ in self._chains:
            starts[chain[0]].append(chain[1])
            ends[chain[-1]].append(chain[-2])
        routes = []
        for chain, count in self._chains:
            first, last = chain[0], chain[-1]
            out = _port(first, starts[first], chain[1])
            into = _port(last, ends[last], chain[-2])
            points = [(out, first.y + BOX_HEIGHT / 2)]
            points += [(item.x, item.y) for item in chain[1:-1]]
            points.append((into, last.y - BOX_HEIGHT / 2))
            routes.append((points, count))
        return routes


def _port(box: Item, neighbours: list[Item], neighbour: Item) -> float:
    """Return the position on a box's side where an edge attaches: spread out, in the order of the neighbors."""
    order = sorted(neighbours, key=lambda item: item.x)
    spread = min(box.width * 0.6, 26.0 * (len(order) - 1))
    if len(order) < 2:
        return box.x
    return box.x - spread / 2 + spread * order.index(neighbour) / (len(order) - 1)


# --- Layers --


def _layered(vertices: list[Vertex], width_of: Callable[[Vertex], float]) -> tuple:
    depth = _depths(vertices)
    deepest = max(depth.values())
    layers: list[list[Item]] = [[] for _ in range(deepest + 1)]
    items = {}
    for vertex in vertices:
        items[vertex] = item = Item(vertex, deepest - depth[vertex], width_of(vertex))
        layers[item.layer].append(item)
    spans = sum(depth[source] - depth[vertex] - 1 for vertex in vertices for source in vertex.inputs)
    crowded = spans > CROWDED * len(vertices)
    copies: dict[tuple[Vertex, int], Item] = {}
    chains = []
    for vertex in vertices:
        counts: dict[Vertex, int] = {}
        for source in vertex.inputs:
            counts[source] = counts.get(source, 0) + 1
        for source, count in counts.items():
            start, layer = items[source], items[vertex].layer - 1
            if crowded and source.kind == "parameter" and start.layer < layer:
                if (source, layer) not in copies:
                    copies[source, layer] = Item(source, layer, start.width)
                    layers[layer].append(copies[source, layer])
                start = copies[source, layer]
            chains.append((_chain(start, items[vertex], layers), count))
    return [*(items[vertex] for vertex in vertices), *copies.values()], layers, chains


def _depths(vertices: list[Vertex]) -> dict[Vertex, int]:
    """Return the longest distance from an output, visiting every vertex after all that use it."""
    depth = dict.fromkeys(vertices, 0)
    for vertex in by_depth(vertices):
        for source in vertex.inputs:
            depth[source] = max(depth[source], depth[vertex] + 1)
    return depth


def _chain(source: Item, target: Item, layers: list[list[Item]]) -> list[Item]:
    chain = [source]
    for layer in range(source.layer + 1, target.layer):
        chain.append(Item(None, layer, EDGE_WIDTH))
        layers[layer].append(chain[-1])
    chain.append(target)
    for upper, lower in zip(chain, chain[1:]):
        upper.below.append(lower)
        lower.above.append(upper)
    return chain


# --- Order --


def _order(layers: list[list[Item]]) -> None:
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 1
        for layer in layers if downwards else reversed(layers):
            _sort_by_neighbours(layer, layers, downwards)
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    for layer, order in zip(layers, best):
        layer[:] = order


def _sort_by_neighbours(layer: list[Item], layers: list[list[Item]], downwards: bool) -> None:
    beside = layer[0].layer + (-1 if downwards else 1)
    if not 0 <= beside < len(layers):
        return
    rank = {item: i for i, item in enumerate(layers[beside])}
    means = {}
    for i, item in enumerate(layer):
        neighbours = item.above if downwards else item.below
        ranks = [rank[n] + _input_offset(item, n, downwards) for n in neighbours]
        # An item without neighbors keeps its relative position.
        means[item] = sum(ranks) / len(ranks) if ranks else i * len(rank) / len(layer)
    layer.sort(key=means.__getitem__)


def _input_offset(item: Item, neighbour: Item, downwards: bool) -> float:
    """Order the inputs of an operation from left to right like its arguments."""
    if downwards or len(neighbour.above) < 2:
        return 0.0
    return 0.5 * neighbour.above.index(item) / len(neighbour.above)


def _crossings(layers: list[list[Item]]) -> int:
    total = 0
    for upper, lower in zip(layers, layers[1:]):
        rank = {item: i for i, item in enumerate(lower)}
        ends = [rank[n] for item in upper for n in sorted(item.below, key=rank.__getitem__)]
        total += _inversions(ends)
    return total


def _inversions(values: list[int]) -> int:
    """Count the pairs in the wrong order, with a Fenwick tree."""
    size = max(values, default=0) + 2
    tree = [0] * size
    count = 0
    for seen, value in enumerate(values):
        i, not_larger = value + 1, 0
        while i > 0:
            not_larger += tree[i]
            i -= i & -i
        count += seen - not_larger
        i = value + 1
        while i < size:
            tree[i] += 1
            i += i & -i
    return count


# --- Positions --


def _place(layers: list[list[Item]]) -> None:
    for layer in layers:
        x = 0.0
        for item in layer:
            item.x = x + item.width / 2
            x += item.width + GAP_X
    for _ in range(SWEEPS):
        for layer in reversed(layers):
            _align(layer, lambda item: item.below)
        for layer in layers:
            _align(layer, lambda item: [*item.above, *item.below])
    for layer in reversed(layers):
        _align(layer, lambda item: item.below)


def _align(layer: list[Item], neighbours_of: Callable[[Item], Iterable[Item]]) -> None:
    wanted, weights = [], []
    for item in layer:
        pulls = [(_pull(item, other), other.x) for other in neighbours_of(item)]
        weight = sum(pull for pull, _ in pulls)
        if weight:
            wanted.append(sum(pull * x for pull, x in pulls) / weight)
            weights.append(weight)
        else:
            wanted.append(item.x)
            weights.append(1e-3)
    _fit(layer, wanted, weights)


def _pull(item: Item, other: Item) -> float:
    """Return the pull of an edge; weak for parameters, which would otherwise push their users and skew long graphs."""
    kinds = {box.vertex.kind for box in (item, other) if box.vertex is not None}
    return 0.01 if "parameter" in kinds or "more" in kinds else 1.0


def _fit(layer: list[Item], wanted: list[float], weights: list[float]) -> None:
    """Return the nearest positions to `wanted` that keep order and distances (pool adjacent violators)."""
    offsets = [0.0]
    for left, right in zip(layer, layer[1:]):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + GAP_X)
    pools: list[tuple[float, float, int]] = []  # mean, weight, number of items
    for target, weight, offset in zip(wanted, weights, offsets):
        mean, count = target - offset, 1
        while pools and pools[-1][0] > mean:
            other_mean, other_weight, other_count = pools.pop()
            mean = (mean * weight + other_mean * other_weight) / (weight + other_weight)
            weight += other_weight
            count += other_count
        pools.append((mean, weight, count))
    positions = (mean for mean, _, count in pools for _ in range(count))
    for item, position, offset in zip(layer, positions, offsets):
        item.x = position + offset
