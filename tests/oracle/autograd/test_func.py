"""`cygrad.func` and `vmap` against PyTorch's: results, structures, recorded history, and errors."""

import re

import numpy as np
import pytest

import cygrad
from helpers import class_of, first_line

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Attempted to insert"),
]

EXPRESSIONS = """
    F.grad(lambda a:(a**2).sum())(x)
    F.grad(lambda a:a**2)(x)
    F.grad(lambda a:a**2)(x[:1])
    F.grad(lambda a:3.)(x)
    F.grad(lambda a:(a.sum(),a))(x)
    F.grad(lambda a:a.sum())(lib.tensor([1,2]))
    F.grad(lambda a:a*2)(3.)
    F.grad(lambda a,b:(a*b).sum(), argnums=(0,1))(x,y)
    F.grad(lambda a,b:(a*b).sum(), argnums=1)(x,y)
    F.grad(lambda a,b:(a*b).sum(), argnums=-1)(x,y)
    F.grad(lambda a,b:(a*b).sum(), argnums=2)(x,y)
    F.grad(lambda a,b:(a*b).sum(), argnums="a")(x,y)
    F.grad(lambda a,b:(a*b).sum(), argnums=(0,0))(x,y)
    F.grad(lambda a,b:(a*b).sum(), argnums=())(x,y)
    F.grad(lambda a,b:(a*b).sum(), argnums=(0,-2))(x,y)
    F.grad(lambda a,b:(a*b).sum(), argnums=(0,-3))(x,y)
    F.grad(lambda a:((a**2).sum(),a*3), has_aux=True)(x)
    F.grad(lambda a:(a**2).sum(), has_aux=True)(x)
    F.grad(lambda a:((a**2).sum(),1,2), has_aux=True)(x)
    F.grad_and_value(lambda a:(a**2).sum())(x)
    F.grad_and_value(lambda a:((a**2).sum(),{"k":a*3}), has_aux=True)(x)
    F.grad(lambda a,b:(a**2).sum(), argnums=(0,1))(x,y)
    F.grad(lambda p:(p["a"]*p["b"][0]).sum())({"a":x,"b":[y]})
    F.grad(F.grad(lambda a:a**3))(s)
    F.grad(lambda a,*,k:(a*k).sum())(x,k=y)
    F.grad(lambda a: s*1)(x)
    F.functionalize(lambda a:a.mul_(2))(x)
    F.functionalize(lambda a:a.mul_(2))(x+0) is x
    F.functionalize(lambda a:(a.exp(),a.view(-1,1)), remove="mutations_and_views")(x)
    F.functionalize(lambda a:a, remove="foo")
    F.functionalize(lambda a,k=None:{"r":k.mul_(a)})(x,k=y)
    F.functionalize(3)(x)
    F.functionalize(lambda:3)()
    F.functionalize(lambda a:a.mul_(2))(lib.ones(3,requires_grad=True))
    F.grad(F.functionalize(lambda a:(lambda b:b.mul_(b.sum()))(a.exp()).sum()))(x)
    F.vmap(F.functionalize(lambda a:a.clone().add_(1)))(A)
    F.vjp(lambda a:a**2, x)[1](y)
    F.vjp(lambda a,b:a*b, x,y)[1](y)
    F.vjp(lambda a:(a**2,{"k":a}), x)[0]
    F.vjp(lambda a:(a**2,{"k":a}), x)[1]((y,{"k":y}))
    F.vjp(lambda a:(a**2,{"k":a}), x)[1]((y,y))
    F.vjp(lambda a:a**2, x)[1](s)
    F.vjp(lambda a:3, x)
    F.vjp(lambda a:a**2, x)[1](y, create_graph=True)[0].requires_grad
    F.vjp(lambda a:a*z, x)[1](y, create_graph=True)[0].requires_grad
    F.vjp(lambda a:(a**2,a), x, has_aux=True)[2]
    F.vjp(lambda a:a**2, x, has_aux=True)[2]
    F.vjp(lambda a:(a**2,3), x, has_aux=True)
    F.grad(lambda a:(a.sum(),(a,1.5)), has_aux=True)(x)
    F.grad(lambda a:(a.sum(),{"k":None}), has_aux=True)(x)
    F.jacrev(lambda a:(a**2,"s"), has_aux=True)(x)
    F.jacfwd(lambda a:(a**2,[a,True]), has_aux=True)(x)
    F.jvp(lambda a:(a**2,{'k':[a,0]}), (x,),(y,),has_aux=True)
    F.jvp(lambda a:a**2, (x,),(y,))
    F.jvp(lambda a:a**2, x,y)
    F.jvp(lambda a:a**2, (x,),y)
    F.jvp(lambda a:a**2, (x,),(y,y))
    F.jvp(lambda a:a**2, (x,),(s,))
    F.jvp(lambda :s, (),())
    F.jvp(lambda a:a**2, (x,),(lib.tensor([1,2]),))
    F.jvp(lambda a:3, (x,),(y,))
    F.jvp(lambda p:{"o":p["a"]*p["b"][0]}, ({"a":x,"b":[y]},),({"a":x,"b":[y]},))
    F.jvp(lambda a:s*1, (x,),(y,), strict=True)
    F.jvp(lambda a:s*1, (x,),(y,))
    F.jvp(lambda a:(a**2,a), (x,),(y,),has_aux=True)
    F.jvp(lambda a:F.jvp(lambda b:b**3,(a,),(y,))[1], (x,),(y,))
    F.jvp(F.grad(lambda a:(a**3).sum()), (x,),(y,))
    F.grad(lambda a: F.jvp(lambda b:(b**3).sum(),(a,),(y,))[1])(x)
    F.linearize(lambda a:a**2, x)[1](y)
    F.linearize(lambda a:a**2, x)[0]
    F.linearize(lambda a:a**2, x)[1](s)
    F.linearize(lambda p:{"o":p["a"]**2}, {"a":x})[1]({"a":y})
    F.linearize(lambda a:(a*2, {"b": 3.0, "c": "c"}), x)[0]
    F.linearize(lambda a:(a*2, {"b": 3.0, "c": "c"}), x)[1](y)
    F.linearize(lambda a:3.0, x)[1](y)
    F.jacrev(lambda a:a**2)(x)
    F.jacfwd(lambda a:a**2)(x)
    F.jacrev(lambda a,b:a*b, argnums=(0,1))(x,y)
    F.jacfwd(lambda a,b:a*b, argnums=(0,1))(x,y)
    F.jacrev(lambda p:{"o":p["a"]**2,"q":p["a"].sum()})({"a":x})
    F.jacfwd(lambda p:{"o":p["a"]**2,"q":p["a"].sum()})({"a":x})
    F.jacrev(lambda a:(a**2,a.sum()), has_aux=True)(x)
    F.jacfwd(lambda a:(a**2,a.sum()), has_aux=True)(x)
    F.jacrev(lambda a:(a**2,a.sum()))(x)
    F.jacrev(lambda a:a**2, chunk_size=1)(x)
    F.jacrev(lambda a:a**2, chunk_size=0)(x)
    F.jacrev(lambda a:3)(x)
    F.jacrev(lambda a:y*1)(x)
    F.jacfwd(lambda a:y*1)(x)
    F.hessian(lambda a:(a**3).sum())(x)
    F.hessian(lambda a,b:(a**3*b).sum(), argnums=(0,1))(x,y)
    F.jacrev(F.jacrev(lambda a:(a**3).sum()))(x)
    F.jacfwd(F.jacfwd(lambda a:(a**3).sum()))(x)
    F.jacrev(F.jacfwd(lambda a:(a**3).sum()))(x)
    F.grad(lambda a:(a**3).sum())(z).requires_grad
    F.grad(lambda a:(a*z).sum())(x).requires_grad
    lib.autograd.grad((F.grad(lambda a:(a*z).sum())(x)*x).sum(), z)
    F.grad(lambda a:(a**3).sum())(x).requires_grad
    F.grad(lambda a:((a**3).sum(),a*2),has_aux=True)(x)[1].requires_grad
    F.vjp(lambda a:a**2,x)[0].requires_grad
    V(lambda a:a*2)(A)
    V(lambda a:a.sum())(A)
    V(lambda a:a.sum(), in_dims=1)(A)
    V(lambda a:a*2, out_dims=1)(A)
    V(lambda a,b:a*b, in_dims=(0,None))(A,lib.ones(3))
    V(lambda p:{"s":p["a"].sum(),"t":(p["a"],)}, in_dims=({"a":0},))({"a":A})
    V(lambda a,b:a*b)(A,lib.ones(3))
    V(lambda a:a)(s)
    V(lambda a:a, in_dims=2)(A)
    V(lambda a:a, in_dims=-1)(A)
    V(lambda a:a, in_dims=None)(A)
    V(lambda :s)()
    V(lambda a:a)(3)
    V(lambda a,b:a*b,in_dims=(0,None))(A,3)
    V(lambda a:3)(A)
    V(lambda a:None)(A)
    V(lambda a:a,in_dims=(0,0))(A)
    V(lambda a:a,in_dims="x")(A)
    V(lambda a:(a,a.sum()),out_dims=(1,0))(A)
    V(lambda a:(a,a.sum()),out_dims=(1,0,0))(A)
    V(lambda a:lib.ones(2),out_dims=None)(A)
    V(lambda a:a,out_dims=None)(A)
    V(lambda a:a.sum(),out_dims=1)(A)
    V(lambda a:a+lib.rand(3))(A)
    V(lambda a:a, randomness="x")(A)
    V(lambda a:a, chunk_size=0)(A)
    V(lambda a:a, chunk_size=1)(A)
    V(lambda a:a*2)(lib.zeros(0,3))
    V(V(lambda a:a*2))(A)
    V(F.grad(lambda a:(a**2).sum()))(A)
    F.grad(lambda a:V(lambda b:(b**2).sum())(a).sum())(A)
    F.jacrev(V(lambda b:b.sum()))(A)
    F.stack_module_state([])
    F.functional_call(lib.nn.Linear(2, 1), 3, A)
    F.functional_call(lib.nn.Sequential(lib.nn.Linear(2, 1)), {"0": A}, A)
    F.functional_call(lib.nn.Sequential(lib.nn.Linear(2, 1)), {"0.weight.x": A}, A)
    V(lambda a,*,k: a*k)(A,k=lib.ones(3))
    V(lambda a,b:a, in_dims=(None,None))(A,A)
    V(lambda a:a, in_dims=(0.5,))(A)
    V(lambda a:a, out_dims='x')(A)
    V(lambda a:a, in_dims=1, out_dims=-1)(A)
    V(lambda a:a*2, chunk_size=2)(lib.arange(10.0).reshape(5,2))
    V(lambda a:a.sum().item())(A)
    V(lambda a:float(a.sum()))(A)
    V(lambda a:a if a.sum()>1 else -a)(A)
    V(lambda a:a.nonzero())(A)
    V(lambda a:a[a>1])(A)
    V(lambda a:a.tolist())(A)
    V(lambda a:a.numpy())(A)
    V(lambda a,b:b.mul_(a), in_dims=(0,None))(A,lib.ones(3))
    V(lambda a:lib.zeros(3).copy_(a))(A)
    V(lambda a,b:b.mul_(a))(A,A.clone())
    V(lambda a,b:lib.add(a,a,out=b), in_dims=(0,None))(A,lib.ones(3))
    (V(lambda a:a.add_(1))(A), A)[1]
    (V(lambda a:a[0].mul_(5))(A), A)[1]
    V(lambda a:a.sum().backward())(A.clone().requires_grad_())
    F.grad(lambda a:(a.sum().backward(), a.sum())[1])(x)
    F.jvp(lambda a:(z.sum().backward(), a)[1], (x,), (y,))
    F.jacfwd(lambda a:(z.sum().backward(), a)[1])(x)
    F.grad(lambda a:(a*lib.ones(2).requires_grad_()).sum())(x)
    V(lambda a:lib.ones(2).requires_grad_(False)+a)(x)
    F.vjp(lambda a:lib.autograd.functional.vjp(lib.sin, a, a)[1], x)
    F.grad(lambda a:(a*lib.ones(2, requires_grad=True)).sum())(x).tolist()
    V(lambda a:lib.rand(2).shape[0]*a, randomness="same")(A)
    V(lambda a:lib.bernoulli(a/9), randomness="same")(A)
    V(lambda a:lib.bernoulli((a>2).float()), randomness="different")(A)
    V(lambda a:lib.normal(a, 1.0), randomness="same")(A)
    V(lambda a:lib.normal(a, a+1))(A)
    V(lambda a:lib.multinomial((a==a.max()).float(), 1), randomness="different")(A)
    V(lambda a:a.clone().bernoulli_(a/9), randomness="same")(A)
    V(lambda a:lib.zeros(3).bernoulli_(a/9), randomness="different")(A)
    V(lambda a:a.double()*lib.ones(2), in_dims=0)(lib.ones(3))
    V(lambda a:a+lib.ones(2), in_dims=0)(lib.ones(3, dtype=lib.float64))
    V(lambda a:a*lib.tensor(2.0, dtype=lib.float64))(A)
    V(lambda a:a*2.5)(lib.arange(3))
    V(lambda a:a@a)(lib.zeros(0,2,2))
    V(lambda i:A.reshape(-1)[i])(lib.tensor([[0,1],[5,2]]))
    V(lambda a:A.reshape(-1)[a.long()])(lib.tensor([9.0]))
    V(lambda a:V(lambda b:a*b)(A))(A)
    V(lambda a:V(lambda b:(a*b).sum(), in_dims=1)(A), out_dims=1)(lib.ones(3,2))
    V(lambda a:V(lambda b:b*2, in_dims=None)(a))(A)
    V(F.jacrev(lambda a:a**2))(A)
    V(F.jacfwd(lambda a:a**2))(A)
    V(F.hessian(lambda a:(a**3).sum()))(A)
    V(lambda a:F.jvp(lambda b:b**3,(a,),(lib.ones(3),)))(A)
    F.jvp(V(lambda a:(a**3).sum()),(A,),(A,))
    V(lambda v:F.jvp(lambda b:(b**3).sum(),(x,),(v,))[1])(lib.eye(2))
    V(F.vjp(lambda a:a**3,x)[1])(lib.eye(2))
    F.grad(lambda w:V(lambda a:(a*w).sum())(A).sum())(lib.ones(3))
    V(F.grad(lambda w,a:(a*w*w).sum()), in_dims=(None,0))(lib.ones(3),A)
    V(F.grad(F.grad(lambda a:a**4)))(x)
    V(lambda a:(a*z.sum()).sum())(A).requires_grad
    lib.autograd.grad(V(lambda a:(a[:2]*z).sum())(A).sum(), z)
    lib.autograd.grad(V(F.grad(lambda a:(a[:2]**2*z).sum()))(A).sum(), z)
    lib.autograd.grad(V(F.grad(lambda a:(a**3).sum()))(z.view(2,1)).sum(), z)
    V(lambda a:a.detach()*2)(z).requires_grad
    V(lambda a:lib.nn.functional.softmax(a,-1))(A)
    V(lambda a:lib.nn.functional.linear(a,lib.ones(2,3),lib.ones(2)))(A)
    V(lambda a:lib.nn.functional.linear(lib.ones(3),a))(A.reshape(1,2,3))
    V(lambda a:lib.nn.functional.conv1d(a,lib.ones(1,1,2)))(A.reshape(2,1,1,3))
    V(lambda a:lib.nn.functional.conv1d(lib.ones(1,1,4),a))(A.reshape(2,1,1,3))
    V(lambda a:lib.nn.functional.one_hot(a,6))(A.long())
    V(lambda a:lib.cat([a,lib.ones(1)]))(A)
    V(lambda a:lib.stack([a,lib.ones(3)]))(A)
    V(lambda a:lib.where(a>2,a,0.0))(A)
    V(lambda a:a.sort(descending=True)[0])(A)
    V(lambda a:a.max(0))(A)
    V(lambda a:lib.linalg.inv(a+lib.eye(2)))(lib.ones(3,2,2))
""".strip().splitlines()


def outcome(lib, expression):
    names = {"lib": lib, "F": lib.func, "V": lib.vmap, "s": lib.tensor(2.0)}
    names |= {"x": lib.tensor([1.0, 2.0]), "y": lib.tensor([3.0, 4.0]), "A": lib.arange(6.0).reshape(2, 3)}
    names["z"] = names["x"].clone().requires_grad_()
    try:
        return repr(eval(expression, names))
    except (RuntimeError, ValueError, TypeError, AttributeError, IndexError) as error:
        # structures are printed by Python
        return class_of(error), re.split("(with )?structure (TreeSpec|[(])", first_line(error))[0]


@pytest.mark.parametrize("expression", [line.strip() for line in EXPRESSIONS])
def test_same_as_pytorch(expression):
    assert outcome(cygrad, expression) == outcome(torch, expression)


def test_batch_norms_without_statistics():
    """Per-sample results and gradients; batch norms with statistics cannot be mapped."""
    x = np.random.default_rng(0).standard_normal((4, 5, 2))
    results = []
    for library in (cygrad, torch):
        nn, func = library.nn, library.func
        model = nn.Sequential(
            nn.Linear(2, 3), nn.BatchNorm1d(3), nn.InstanceNorm1d(3, track_running_stats=True)
        ).double()
        for i, parameter in enumerate(model.parameters()):
            parameter.data = library.linspace(i, 1, parameter.numel(), dtype=library.float64).view(parameter.shape)
        assert func.replace_all_batch_norm_modules_(model) is model
        first = model[:2]

        def loss(parameters, sample, first=first, func=func):
            return func.functional_call(first, parameters, (sample,)).tanh().sum()

        gradients = func.vmap(func.grad(loss), in_dims=(None, 0))(dict(first.named_parameters()), library.tensor(x))
        results.append((repr(model), list(model.state_dict()), {k: v.detach().numpy() for k, v in gradients.items()}))
    assert results[0][:2] == results[1][:2]
    for name, expected in results[1][2].items():
        np.testing.assert_allclose(results[0][2][name], expected, rtol=1e-9, atol=1e-9)
