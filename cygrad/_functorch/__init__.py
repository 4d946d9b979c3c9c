"""PyTorch's private package of function transforms; the public names are in `cygrad.func`.

>>> import cygrad
>>> from cygrad._functorch.apis import vmap
>>> vmap is cygrad.func.vmap
True
"""
