"""Pictures of graphs: contents, absence of overlaps, and formats."""

import itertools
import re
import time
import xml.etree.ElementTree as ElementTree

import pytest

import cygrad as torch
from cygrad import nn, viz
from cygrad.viz._layout import BOX_HEIGHT, GAP_Y, Layout
from helpers import fails, leaf, line_marked


def network():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, nn.CrossEntropyLoss()(model(torch.ones(3, 4)), torch.tensor([0, 1, 0]))


def residual():
    """A graph with long edges beside a chain, and one leaf used by every node."""
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
    with pytest.raises(RuntimeError, match=r"(?s)there is no graph.*\n  cut by detach at .*test_viz.py"):
        viz.graph((leaf(1.0) * 2).detach())
    for value in (3, [3]):
        with fails(TypeError, "graph() takes tensors, not int"):
            viz.graph(value)
    for params in (3, "ab", [torch.ones(1)]):
        with fails(TypeError, "params of graph() is a module..."):
            viz.graph(leaf(1.0), params=params)


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
    with fails(ValueError, "a graph can be saved as .svg, .html, .dot, .txt, not as 'graph.png'"):
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


# ------------------------------------------------------------------ annotations beside the names


def test_views_hooks_bytes_and_lines_are_told():
    w = leaf(1.0, 2.0)
    y = w * 2
    z = y.exp().view(2, 1)  # here
    y.register_hook(lambda grad: None)
    picture = viz.graph(z, params={"w": w})
    assert picture.text() == (
        "output (2, 1)\n└─ ViewBackward0 (2, 1) [view]\n   └─ ExpBackward0 (2,)\n"
        "      └─ MulBackward0 (2,) [hook]\n         └─ w (2,)"
    )
    lines, here = picture.text(details=True).splitlines(), line_marked("here")
    assert re.fullmatch(rf".*ExpBackward0 \(2,\) \[saves 8 bytes, {here}\]", lines[2])
    root = ElementTree.fromstring(picture.svg())
    descriptions = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(re.fullmatch(rf"ExpBackward0\nsaves 8 bytes\n{here}", text) for text in descriptions)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 1
    assert "saves 8 bytes" in picture.dot()


def test_saved_bytes_of_custom_functions_and_of_freed_graphs():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    y = Square.apply(leaf(1.0, 2.0)).exp()
    assert sorted(v.saved for v in viz.graph(y).vertices) == [0, 0, 8, 8]
    y.sum().backward()
    assert sum(v.saved for v in viz.graph(y).vertices) == 0


def test_saved_values_behind_hooks_are_left_alone():
    def unpack(packed):
        raise AssertionError("unpacked")

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = leaf(1.0).exp()
    assert viz.graph(y).vertices[1].saved == 0


# ------------------------------------------------------------------ collapsing by module


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))

    def forward(self, x):
        return x + self.layers(x)


def test_each_module_is_one_box():
    model = nn.Sequential(Block(), Block(), nn.Linear(4, 2))
    picture = viz.graph(model(torch.ones(3, 4)).sum(), params=model)
    small = picture.collapse(1)
    boxes = {v.name: v for v in small.vertices if v.kind == "module"}
    assert set(boxes) == {"0", "1", "2"}
    assert boxes["0"].count == 3
    assert "0.layers.0.weight 4 × 4" in boxes["0"].detail
    assert not [v for v in small.vertices if v.kind == "parameter"]
    assert sum(v.saved for v in small.vertices) == sum(v.saved for v in picture.vertices)
    deeper = {v.name for v in picture.collapse(3).vertices if v.kind == "module"}
    assert {"0.layers.0", "0.layers.2", "1.layers.0", "2"} <= deeper
    assert any(v.title == "Relu" for v in viz.graph(model(torch.ones(3, 4)), params=model).vertices)
    with fails(ValueError, "collapse() keeps at least one level of names, not 0"):
        picture.collapse(0)


def test_modules_whose_input_goes_on_beside_them():
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
    small = viz.graph(layer(torch.ones(2, 3, 4)).sum(), params=layer).collapse(1)
    assert {v.name for v in small.vertices if v.kind == "module"} == set(
        "self_attn norm1 linear1 linear2 norm2".split()
    )
    assert not [v for v in small.vertices if v.kind == "parameter"]


def test_a_module_that_is_used_again_and_again():
    layer, other = nn.Linear(4, 4), nn.Linear(4, 4)
    h = torch.ones(2, 4)
    for _ in range(5):
        h = other(layer(h).tanh())
    picture = viz.graph(h, params={"a.w": layer.weight, "a.b": layer.bias, "b.w": other.weight, "b.b": other.bias})
    small = picture.collapse()
    assert [v.name for v in small.vertices if v.kind == "module"].count("a") == 5
    assert len(small.text().splitlines()) < len(picture.text().splitlines())
    assert small.svg()


def test_page():
    model, loss = network()
    page = viz.graph(loss, params=model).html("Three <layers>")
    assert page.startswith("<!DOCTYPE html>")
    assert "Three &lt;layers&gt;" in page
    assert page.count("<svg") == 2
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "AddmmBackward0" in page
    assert viz.graph(loss).html().count("<svg") == 1


def test_each_picture_of_a_page_has_arrowheads_of_its_own():
    model, loss = network()
    page = viz.graph(loss, params=model).html()
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    named = [re.findall(r'<marker id="(\w+)"', picture) for picture in pictures]
    assert len(pictures) > 1 and len({name for (name,) in named}) == len(pictures)
    for picture, (name,) in zip(pictures, named, strict=True):
        assert set(re.findall(r"url\(#(\w+)\)", picture)) == {name}


# ------------------------------------------------------------------ large graphs


def test_a_leaf_that_many_use_is_drawn_near_each_use():
    w, h = leaf(1.0), leaf(1.0)
    for _ in range(60):
        h = (h * w).exp().sin()
    picture = viz.graph(h, params={"w": w})
    layout = Layout(picture.vertices, lambda vertex: 70.0)
    assert len([box for box in layout.boxes if box.vertex.name == "w"]) == 60
    assert all(len(points) == 2 for points, _ in layout.edges)
    assert layout.width < 400


def test_two_thousand_nodes_take_a_moment():
    w, h = leaf(1.0), leaf(1.0)
    for _ in range(500):
        h = ((h * w).tanh() + h) * 0.5
    picture = viz.graph(h, max_nodes=3000)
    assert len(picture.vertices) > 2000
    before = time.process_time()
    picture.svg()
    assert time.process_time() - before < 30


def test_text_of_a_deep_graph_stays_narrow():
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(300):
        y = (y * x).tanh()
    lines = viz.graph(y, params={"x": x}, max_nodes=1000).text().splitlines()
    assert max(map(len, lines)) < 3 * 32 + 40
    assert len(lines) == 1 + 4 * 300 - 299  # tanh, mul and x for each step, and x once more
    deep = [line for line in lines if "…" in line]
    assert deep[0].startswith("16 … │") and deep[0].endswith("└─ MulBackward0 (2,)")
    assert max(int(line.split(" … ")[0]) for line in deep) >= 560


def test_programs_of_compiled_functions():
    double = torch.compile(lambda x: x.exp() * 2)
    assert viz.show(double).text() == "output: no plan yet"
    for _ in range(4):
        double(torch.ones(2))
    picture = viz.show(double)
    lines = picture.text(details=True).splitlines()
    assert lines[0] == "output: plan 0" and "1 arguments" in lines[-1] and len(lines) == 4
    assert picture.svg().startswith("<svg") and "test_viz.py" in picture.dot()
    with pytest.raises(TypeError, match=r"show\(\) takes a function compiled by cygrad.compile, not builtin"):
        viz.show(len)
