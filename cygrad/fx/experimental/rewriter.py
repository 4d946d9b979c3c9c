"""`RewritingTracer`: traces functions with `assert` and with annotated variables, which other tracers lose."""

import ast
import copy
import functools
import inspect
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

import cygrad
from cygrad import nn
from cygrad.fx._symbolic_trace import Tracer
from cygrad.fx.annotate import annotate
from cygrad.fx.graph import Graph

__all__ = ["AST_Rewriter", "RewritingTracer"]

_OWN = {  # what rewritten functions call
    "__fx_assert": cygrad._assert,  # type: ignore[attr-defined]
    "__fx_annotate": annotate,
}


class AST_Rewriter(ast.NodeTransformer):
    r"""Rewrites statements of functions that cannot be traced. A subclass may add methods named after kinds of nodes.

    >>> import cygrad
    >>> from cygrad.fx.experimental.rewriter import AST_Rewriter
    >>> import ast
    >>> tree = AST_Rewriter().visit(ast.parse("assert x > 0, 'negative'"))
    >>> ast.unparse(ast.fix_missing_locations(tree))
    "__fx_assert(x > 0, 'negative')"
    >>> ast.unparse(AST_Rewriter().visit_AnnAssign(ast.parse("y: int = x + 1").body[0]))
    'y = __fx_annotate(x + 1, int)'
    >>> ast.unparse(AST_Rewriter().visit_Assert(ast.parse("assert x").body[0]))
    "__fx_assert(x, '')"
    >>> ast.unparse(AST_Rewriter().visit_FunctionDef(ast.parse("@decorated\ndef f(): pass").body[0]))
    'def f():\n    pass'
    >>> import textwrap
    >>> AST_Rewriter().rewrite(textwrap.fill)("rewritten functions do the same", width=20)
    'rewritten functions\ndo the same'
    """

    def rewrite(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function with rewritten statements. Its source must be available: OSError otherwise."""
        function: Any = inspect.unwrap(fn)
        if not isinstance(function, FunctionType):
            function = function.__func__  # of a method
        source = inspect.getsource(function)
        is_inside = source[:1].isspace()
        tree = ast.parse(f"if True:\n{source}" if is_inside else source)  # lines of texts may not be indented
        statements = tree.body[0].body if is_inside else tree.body  # type: ignore[attr-defined]
        names = [*function.__code__.co_freevars, *_OWN]
        outer = ast.parse(f"def outer({', '.join(names)}):\n    pass")
        outer.body[0].body = [self.visit(statement) for statement in statements]  # type: ignore[attr-defined]
        code = compile(ast.fix_missing_locations(outer), inspect.getfile(function), "exec")
        inner = _code_named(_code_named(code, "outer"), function.__name__)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        cells |= {name: CellType(value) for name, value in _OWN.items()}
        made = FunctionType(
            inner,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            tuple(cells[name] for name in inner.co_freevars),
        )
        made.__kwdefaults__ = copy.copy(function.__kwdefaults__)
        functools.update_wrapper(made, function)
        del made.__wrapped__  # type: ignore[attr-defined]  # which a tracer would call
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave decorators out, which the function has been through."""
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """Return a call of `torch._assert`, which becomes a node."""
        called = ast.Name("__fx_assert", ast.Load())
        message = node.msg or ast.Constant("")
        return ast.copy_location(ast.Expr(ast.Call(called, [node.test, message], [])), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Return an assignment that gives the node the annotated type."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        called = ast.Name("__fx_annotate", ast.Load())
        value = ast.copy_location(ast.Call(called, [node.value, node.annotation], []), node)
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], value), node))


def _code_named(code: CodeType, name: str) -> CodeType:
    """Return the code of a function that is defined in other code."""
    return next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == name)


class RewritingTracer(Tracer):
    """Same as `Tracer`, but `assert` becomes a node, and annotations of variables become the types of nodes.

    >>> import cygrad
    >>> from cygrad.fx.experimental.rewriter import RewritingTracer
    >>> tracer = RewritingTracer()
    >>> graph = tracer.trace(cygrad.nn.Sequential(cygrad.nn.ReLU()))
    >>> [node.op for node in graph.nodes]
    ['placeholder', 'call_module', 'output']
    """

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module or a function."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(root: Any) -> Any:
    """Return a rewritten function, or a copy of a module with rewritten methods `forward`, in submodules as well."""
    if not isinstance(root, nn.Module):
        return AST_Rewriter().rewrite(root)
    made = copy.copy(root)
    kind: Any = type(root)
    if kind.__module__.partition(".")[0] != "cygrad":
        made.__class__ = type(kind.__name__, (kind,), {"forward": AST_Rewriter().rewrite(kind.forward)})
    made.__dict__["_modules"] = {
        name: None if child is None else _rewrite(child) for name, child in root._modules.items()
    }
    return made
