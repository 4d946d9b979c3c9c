"""Pictures of graphs: what they show, that nothing overlaps, and the formats."""

import itertools
import xml.etree.ElementTree as ElementTree

import pytest

import cygrad as torch
from cygrad import nn, viz
from cygrad.viz._layout import BOX_HEIGHT, GAP_Y, Layout
from helpers import fails, leaf


def network():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, nn.CrossEntropyLoss()(model(torch.ones(3, 4)), torch.tensor([0, 1, 0]))


def residual():
    """Long edges beside a chain, and one leaf that everybody uses."""
    w = leaf(1.0, 2.0)
    h = w * 1
    for _ in range(4):
        h = h + torch.tanh(torch.exp(h * w) * w)
    return w, (h * h).sum()


def titles(picture, kind):
    return sorted(v.title for v in picture.vertices if v.kind == kind)


# ------------------------------------------------------------------ contents


def test_text_is_a_tree_with_shapes_and_names():
    w = leaf(1.0, 2.0)
    y = w * 3
    assert viz.graph((y * y.exp()).sum(), params={"w": w}).text() == (
        "output ()\n"
        "└─ SumBackward0 ()\n"
        "   └─ MulBackward0 (2,)\n"
        "      ├─ MulBackward0 (2,)\n"
        "      │  └─ w (2,)\n"
        "      └─ ExpBackward0 (2,)\n"
        "         └─ MulBackward0 (2,) (see above)"
    )


def test_parameters_have_the_names_a_module_gives_them():
    model, loss = network()
    picture = viz.graph(loss, params=model)
    assert titles(picture, "parameter") == ["0.bias", "0.weight", "2.bias", "2.weight"]
    assert {"Relu", "NllLoss", "LogSoftmax"} <= set(titles(picture, "op"))
    assert titles(viz.graph(loss), "parameter") == ["leaf"] * 4
    assert titles(viz.graph(loss, params=model.named_parameters()), "parameter")[0] == "0.bias"
    assert repr(picture).startswith(f"<cygrad.viz.Graph: {len(picture.vertices)} vertices, ")


def test_several_outputs_and_a_leaf_of_its_own():
    w = leaf(1.0)
    picture = viz.graph([w * 2, w.exp(), torch.ones(1)], params={"w": w})
    assert titles(picture, "output") == ["output 0", "output 1", "output 2"]
    assert titles(picture, "parameter") == ["w"]
    assert viz.graph(w).text() == "output (1,)"


def test_what_has_no_graph_is_refused():
    with fails(RuntimeError, "there is no graph: the tensor does not require grad..."):
        viz.graph(torch.ones(1))
    with fails(TypeError, "graph() takes tensors, not int"):
        viz.graph([3])


def test_large_graphs_are_cut_off():
    x = y = leaf(1.0)
    for _ in range(1000):
        y = y * x
    picture = viz.graph(y, max_nodes=50)
    assert len(picture.vertices) <= 53 and titles(picture, "more") == ["…"]
    assert "…" in picture.text() and "…" in picture.svg()


def test_deep_graphs_do_not_recurse():
    y = leaf(1.0)
    for _ in range(5000):
        y = y.exp()
    picture = viz.graph(y, max_nodes=10_000)
    assert len(picture.vertices) == 5002
    assert len(picture.text().splitlines()) == 5002


# ------------------------------------------------------------------ layout


@pytest.mark.parametrize("make", [network, residual])
def test_boxes_do_not_overlap_and_data_flows_down(make):
    _, output = make()
    picture = viz.graph(output)
    layout = Layout(picture.vertices, lambda vertex: 70.0)
    for a, b in itertools.combinations(layout.boxes, 2):
        apart_x = abs(a.x - b.x) >= (a.width + b.width) / 2
        assert apart_x or abs(a.y - b.y) >= BOX_HEIGHT
    of_vertex = {box.vertex: box for box in layout.boxes}
    for vertex in picture.vertices:
        for source in vertex.inputs:
            assert of_vertex[vertex].y - of_vertex[source].y >= BOX_HEIGHT + GAP_Y
    for box in layout.boxes:
        assert box.width / 2 <= box.x + 1e-6 and box.x + box.width / 2 <= layout.width + 1e-6
        assert box.y + BOX_HEIGHT / 2 <= layout.height


@pytest.mark.parametrize("make", [network, residual])
def test_edges_run_from_box_to_box_and_pass_no_other(make):
    _, output = make()
    layout = Layout(viz.graph(output).vertices, lambda vertex: 70.0)

    def box_at(x, y):
        for box in layout.boxes:
            if abs(box.x - x) <= box.width / 2 and abs(box.y - y) <= BOX_HEIGHT / 2:
                return box
        return None

    assert layout.edges
    for points, _ in layout.edges:
        assert box_at(*points[0]) is not None and box_at(*points[-1]) is not None
        assert all(box_at(*point) is None for point in points[1:-1])


def test_a_chain_is_drawn_straight():
    y = leaf(1.0)
    for _ in range(6):
        y = y.exp()
    layout = Layout(viz.graph(y).vertices, lambda vertex: 70.0)
    assert len({round(box.x, 6) for box in layout.boxes}) == 1


# ------------------------------------------------------------------ formats


def test_svg_is_complete_and_escaped():
    w = leaf(1.0)
    picture = viz.graph(w * w, params={"a<b&c": w})
    root = ElementTree.fromstring(picture.svg())
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a<b&c", "Mul", "output", "×2"} <= set(texts)
    assert picture._repr_svg_() == picture.svg()
    assert "http" not in picture.svg().replace("http://www.w3.org/2000/svg", "")


def test_dot_lists_vertices_and_edges():
    w = leaf(1.0)
    dot = viz.graph(w * w, params={'a "b"': w}).dot()
    assert dot.startswith("digraph {") and dot.endswith("}")
    assert dot.count("->") == 3 and '\\"b\\"' in dot


def test_save_writes_by_ending(tmp_path):
    picture = viz.graph(network()[1])
    for ending, start in ((".svg", "<svg"), (".dot", "digraph"), (".txt", "output ()")):
        picture.save(tmp_path / f"graph{ending}")
        assert (tmp_path / f"graph{ending}").read_text(encoding="utf-8").startswith(start)
    with fails(ValueError, "a graph is saved as .svg, .dot, .txt, not as 'graph.png'"):
        picture.save(tmp_path / "graph.png")


def test_draw_into_a_figure():
    figures = pytest.importorskip("matplotlib.figure", reason="draws into matplotlib's axes")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = figures.Figure(figsize=(4, 6))
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    model, loss = network()
    viz.graph(loss, params=model).draw(axes)
    labels = {text.get_text() for text in axes.texts}
    assert {"0.weight", "Relu", "output", "scalar"} <= labels
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
