# ruff: noqa: E501
"""Functions to compile, each with a change of what it reads: the source of a module, and that of the change.

Each module defines `step(x)`. `REFUSED` are those that may never be replayed, with a word of the reason.
"""

SCALED = "def step(x): return x * {}"

GUARDED = {
    "global": ("scale = 2.0\ndef step(x): return x * scale", "scale = 3.0"),
    "global of another type": ("scale = 2\ndef step(x): return x * scale", "scale = 2.5"),
    "negative zero": ("scale = 0.0\ndef step(x): return x * scale", "scale = -0.0"),
    "closure": (
        "def make(scale):\n def step(x): return x * scale\n def change(): nonlocal scale; scale = 3.0\n"
        " return step, change\nstep, change = make(2.0)",
        "change()",
    ),
    "cell": (
        "def make(scale):\n return lambda x: x * scale\nstep = make(2.0)",
        "step.__closure__[0].cell_contents = 3.0",
    ),
    "default argument": ("def step(x, scale=2.0): return x * scale", "step.__defaults__ = (3.0,)"),
    "list as default": ("def step(x, scales=[2.0]): return x * scales[0]", "step.__defaults__[0][0] = 3.0"),
    "keyword default": ("def step(x, *, scale=2.0): return x * scale", "step.__kwdefaults__['scale'] = 3.0"),
    "code": ("def step(x): return x * 2", "def other(x): return x * 3\nstep.__code__ = other.__code__"),
    "list element": ("scales = [1.0, 2.0]\ndef step(x): return x * scales[1]", "scales[1] = 3.0"),
    "length of a list": ("scales = [1.0, 2.0]\ndef step(x): return x * len(scales)", "scales.append(3.0)"),
    "list in a list": ("scales = [[2.0]]\ndef step(x): return x * scales[0][0]", "scales[0][0] = 3.0"),
    "list in a tuple": ("scales = ([2.0],)\ndef step(x): return x * scales[0][0]", "scales[0][0] = 3.0"),
    "dictionary": ("config = {'scale': 2.0}\ndef step(x): return x * config['scale']", "config['scale'] = 3.0"),
    "new key": (
        "config = {}\ndef step(x): return x * config.get('scale', 2.0)",
        "config['scale'] = 3.0",
    ),
    "order of a dictionary": (
        "config = {'a': 2.0, 'b': 3.0}\ndef step(x): return x * next(iter(config.values()))",
        "config['a'] = config.pop('a')",
    ),
    "order of an OrderedDict": (
        "import collections\nconfig = collections.OrderedDict(a=2.0, b=3.0)\n"
        "def step(x): return x * next(iter(config.values()))",
        "config.move_to_end('a')",
    ),
    "defaultdict": (
        "import collections\nconfig = collections.defaultdict(float, a=2.0)\ndef step(x): return x * config['a']",
        "config['a'] = 3.0",
    ),
    "set": ("names = {'a'}\ndef step(x): return x * (2 if 'b' in names else 3)", "names.add('b')"),
    "empty set": ("names = set()\ndef step(x): return x * (2 if names else 3)", "names.add('b')"),
    "deque": ("import collections\nd = collections.deque([2.0])\ndef step(x): return x * d[0]", "d.appendleft(3.0)"),
    "attribute": (
        "class Config: pass\nconfig = Config(); config.scale = 2.0\ndef step(x): return x * config.scale",
        "config.scale = 3.0",
    ),
    "attribute of an attribute": (
        "class Config: pass\na = Config(); a.b = Config(); a.b.scale = 2.0\ndef step(x): return x * a.b.scale",
        "a.b.scale = 3.0",
    ),
    "attribute by getattr": (
        "class Config: pass\nconfig = Config(); config.scale = 2.0; name = 'scale'\n"
        "def step(x): return x * getattr(config, 'sc' + 'ale')",
        "config.scale = 3.0",
    ),
    "attribute by vars": (
        "class Config: pass\nconfig = Config(); config.scale = 2.0\ndef step(x): return x * config.__dict__['sc' + 'ale']",
        "config.scale = 3.0",
    ),
    "attribute of self": (
        "class Trainer:\n def __init__(self): self.scale = 2.0\n def step(self, x): return self.scaled(x)\n"
        " def scaled(self, x): return x * self.scale\ntrainer = Trainer()\nstep = trainer.step",
        "trainer.scale = 3.0",
    ),
    "attribute that hides a method": (
        "class Trainer:\n def step(self, x): return self.scaled(x)\n def scaled(self, x): return x * 2\n"
        "trainer = Trainer()\nstep = trainer.step",
        "trainer.scaled = lambda x: x * 3",
    ),
    "class attribute": (
        "class Config: scale = 2.0\ndef step(x): return x * Config.scale",
        "Config.scale = 3.0",
    ),
    "attribute of a base class": (
        "class Base: scale = 2.0\nclass Config(Base): pass\nconfig = Config()\ndef step(x): return x * config.scale",
        "Base.scale = 3.0",
    ),
    "list of a class": (
        "class Config: scale = [2.0]\ndef step(x): return x * Config.scale[0]",
        "Config.scale[0] = 3.0",
    ),
    "method of a class": (
        "class Config:\n def scale(self): return 2.0\nconfig = Config()\ndef step(x): return x * config.scale()",
        "Config.scale = lambda self: 3.0",
    ),
    "class of an object": (
        "class A:\n def scale(self): return 2.0\nclass B:\n def scale(self): return 3.0\n"
        "a = A()\ndef step(x): return x * a.scale()",
        "a.__class__ = B",
    ),
    "dictionary of an object": (
        "class Config: pass\nconfig = Config(); config.scale = 2.0\ndef step(x): return x * config.scale",
        "config.__dict__ = {'scale': 3.0}",
    ),
    "slot": (
        "class Config: __slots__ = ('scale',)\nconfig = Config(); config.scale = 2.0\ndef step(x): return x * config.scale",
        "config.scale = 3.0",
    ),
    "dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass Config:\n scale: float = 2.0\n"
        "config = Config()\ndef step(x): return x * config.scale",
        "config.scale = 3.0",
    ),
    "enum": (
        "import enum\nclass Mode(enum.Enum):\n A = 2.0\n B = 3.0\nmode = Mode.A\ndef step(x): return x * mode.value",
        "mode = Mode.B",
    ),
    "property": (
        "class Config:\n @property\n def scale(self): return self.a * factor\nfactor = 2.0\nconfig = Config(); config.a = 1\n"
        "def step(x): return x * config.scale",
        "factor = 3.0",
    ),
    "static method": (
        "class Config:\n @staticmethod\n def scale(): return factor\nfactor = 2.0\ndef step(x): return x * Config.scale()",
        "factor = 3.0",
    ),
    "operator of a class": (
        "class Scale:\n def __init__(self, by): self.by = by\n def __rmul__(self, x): return x * self.by\n"
        "scale = Scale(2.0)\ndef step(x): return x * 1 * scale if False else scale.__rmul__(x)",
        "scale.by = 3.0",
    ),
    "context manager": (
        "import contextlib\nscale = [1.0]\n@contextlib.contextmanager\ndef doubled():\n"
        " scale[0] = factor\n try: yield\n finally: scale[0] = 1.0\nfactor = 2.0\n"
        "def step(x):\n with doubled(): return x * scale[0]",
        "factor = 3.0",
    ),
    "helper": ("def helper(x): return x * 2\ndef step(x): return helper(x)", "def helper(x): return x * 3"),
    "global of a helper": (
        "scale = 2.0\ndef helper(x): return x * scale\ndef step(x): return helper(x)",
        "scale = 3.0",
    ),
    "wrapped helper": (
        "import functools\ndef twice(f):\n @functools.wraps(f)\n def g(x): return f(f(x))\n return g\nscale = 2.0\n"
        "@twice\ndef step(x): return x * scale",
        "scale = 3.0",
    ),
    "function in a list": (
        "def a(x): return x * 2\ndef b(x): return x * 3\nhelpers = [a]\ndef step(x): return helpers[0](x)",
        "helpers[0] = b",
    ),
    "lambda in a map": ("scale = 2.0\ndef step(x): return sum(map(lambda y: y * scale, [x, x]))", "scale = 3.0"),
    "generator": ("scale = 2.0\ndef step(x): return sum(x * scale for _ in range(2))", "scale = 3.0"),
    "inner function": ("scale = 2.0\ndef step(x):\n def inner(y): return y * scale\n return inner(x)", "scale = 3.0"),
    "two functions of one code": (
        "def make(scale):\n def inner(x): return x * scale\n return inner\none = make(2.0)\n"
        "def step(x): return one(x) + make(1.0)(x)",
        "one.__closure__[0].cell_contents = 3.0",
    ),
    "partial": (
        "import functools\ndef scaled(scale, x): return x * scale[0]\nscale = [2.0]\nstep = functools.partial(scaled, scale)",
        "scale[0] = 3.0",
    ),
    "keywords of a partial": (
        "import functools\ndef scaled(x, scale): return x * scale\nhelper = functools.partial(scaled, scale=2.0)\n"
        "def step(x): return helper(x)",
        "helper.keywords['scale'] = 3.0",
    ),
    "callable object": (
        "class Step:\n scale = 2.0\n def __call__(self, x): return x * self.scale\nstep = Step()",
        "step.scale = 3.0",
    ),
    "attribute of a function": ("def step(x): return x * step.scale\nstep.scale = 2.0", "step.scale = 3.0"),
    "name of a builtin": ("def step(x): return x * max(2, 1)", "max = lambda a, b: 3"),
    "module": (
        "import types\nconfig = types.ModuleType('config'); config.scale = 2.0\ndef step(x): return x * config.scale",
        "config.scale = 3.0",
    ),
    "module in a variable": (
        "import types\nconfig = types.ModuleType('config'); config.scale = 2.0\n"
        "def step(x):\n c = config\n return x * c.scale",
        "config.scale = 3.0",
    ),
    "imported module": (
        "import sys, types\nsys.modules['cygrad_test_config'] = config = types.ModuleType('cygrad_test_config')\n"
        "config.scale = 2.0\ndef step(x):\n import cygrad_test_config as c\n return x * c.scale",
        "config.scale = 3.0",
    ),
    "NumPy's array": ("import numpy as np\na = np.array([2.0])\ndef step(x): return x * float(a[0])", "a[0] = 3.0"),
    "function of the package": (
        "import cygrad\nF = cygrad.nn.functional\ndef step(x): return F.relu(x)",
        "class F: relu = staticmethod(lambda x: x * 3)",
    ),
    "shape of another tensor": (
        "import cygrad\nother = cygrad.ones(2)\ndef step(x): return x * other.shape[0]",
        "other = cygrad.ones(3)",
    ),
    "resized tensor": (
        "import cygrad\nother = cygrad.ones(2)\ndef step(x): return x * other.shape[0]",
        "other.data = cygrad.ones(3)",
    ),
    "requires_grad of another tensor": (
        "import cygrad\nother = cygrad.ones(2)\ndef step(x): return x * (2 if other.requires_grad else 3)",
        "other.requires_grad_()",
    ),
    "attribute of a tensor": (
        "import cygrad\nother = cygrad.ones(2); other.scale = 2.0\ndef step(x): return x * other.scale",
        "other.scale = 3.0",
    ),
    "deleted global": (
        "scale = 2.0\ndef step(x):\n try: return x * scale\n except NameError: return x * 3",
        "del scale",
    ),
}

REFUSED = {
    "random": ("import random\ndef step(x): return x * (random.random() > 2)", "random"),
    "random by name": ("from random import random\ndef step(x): return x * (random() > 2)", "random"),
    "random in map": ("import random\ndef step(x): return x * (max(map(random.uniform, [0], [1])) > 2)", "random"),
    "own generator": ("import random\ng = random.Random(1)\ndef step(x): return x * (g.random() > 2)", "Random"),
    "NumPy's random": ("import numpy as np\ndef step(x): return x * float(np.random.rand() > 2)", "rand"),
    "NumPy's generator": (
        "import numpy as np\ng = np.random.default_rng(1)\ndef step(x): return x * float(g.random() > 2)",
        "Generator",
    ),
    "time": ("import time\ndef step(x): return x * (time.time() > 0)", "time"),
    "time that nobody reads": ("import time\ndef step(x):\n time.time()\n return x * 2", "time"),
    "time by name": ("from time import perf_counter\ndef step(x): return x * (perf_counter() > 0)", "perf_counter"),
    "date": ("import datetime\ndef step(x): return x * (datetime.datetime.now().year > 2000)", "datetime"),
    "print": ("def step(x):\n print('step')\n return x * 2", "print"),
    "standard output": ("import sys\ndef step(x):\n sys.stdout.write('')\n return x * 2", "sys.stdout"),
    "iterator": (
        "it = iter([2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])\ndef step(x): return x * next(it)",
        "list_iterator",
    ),
    "count": ("import itertools\nc = itertools.count()\ndef step(x): return x * next(c)", "count"),
    "file": ("f = open(__file__)\ndef step(x): return x * len(f.readline())", "TextIOWrapper"),
    "opened file": ("def step(x):\n with open(__file__) as f: return x * len(f.readline())", "open"),
    "counter in a global": ("n = 0\ndef step(x):\n global n\n n += 1\n return x * n", "n was"),
    "counter that nobody reads": ("n = 0\ndef step(x):\n global n\n n += 1\n return x * 2", "n was"),
    "counter in a closure": (
        "def make():\n n = 0\n def step(x):\n  nonlocal n\n  n += 1\n  return x * n\n return step\nstep = make()",
        "n was",
    ),
    "counter in an attribute": (
        "class T:\n n = 0\n def step(self, x):\n  self.n += 1\n  return x * self.n\nt = T()\nstep = t.step",
        "self.n was",
    ),
    "counter in a class": ("class T: n = 0\ndef step(x):\n T.n += 1\n return x * T.n", "class T"),
    "counter in a function": ("def step(x):\n step.n += 1\n return x * step.n\nstep.n = 0", "step.n was"),
    "counter in a dictionary": ("d = {}\ndef step(x):\n d['n'] = d.get('n', 0) + 1\n return x * d['n']", 'd["n"] was'),
    "growing list": ("losses = []\ndef step(x):\n losses.append(x)\n return x * len(losses)", "losses["),
    "growing default": ("def step(x, seen=[]):\n seen.append(1)\n return x * len(seen)", "seen"),
    "growing set": ("seen = set()\ndef step(x):\n seen.add(len(seen))\n return x * len(seen)", "seen"),
    "growing array": ("import numpy as np\na = np.zeros(1)\ndef step(x):\n a[0] += 1\n return x * float(a[0])", "a"),
    "kept result": ("last = None\ndef step(x):\n global last\n last = x * 2\n return last", "last was"),
    "slot that changes": (
        "class T:\n __slots__ = ('n',)\nt = T(); t.n = 0\ndef step(x):\n t.n += 1\n return x * t.n",
        "t.n was",
    ),
    "cache": (
        "import functools\nscale = 2.0\n@functools.lru_cache\ndef cached(): return scale\ndef step(x): return x * cached()",
        "_lru_cache_wrapper",
    ),
    "weak reference": (
        "import weakref\nclass C: pass\nc = C(); r = weakref.ref(c)\ndef step(x): return x * (2 if r() is None else 3)",
        "ReferenceType",
    ),
    "lock": ("import threading\nlock = threading.Lock()\ndef step(x):\n with lock: return x * 2", "lock"),
    "thread's values": (
        "import threading\nlocal = threading.local(); local.n = 2\ndef step(x): return x * local.n",
        "local",
    ),
    "context variable": (
        "import contextvars\nv = contextvars.ContextVar('v', default=2.0)\ndef step(x): return x * v.get()",
        "ContextVar",
    ),
    "identity": ("def step(x): return x * (id(x) > 0)", "id"),
    "globals": ("scale = 2.0\ndef step(x): return x * globals()['sca' + 'le']", "globals"),
    "eval": ("scale = 2.0\ndef step(x): return x * eval('sca' + 'le')", "eval"),
    "frame": ("import sys\ndef step(x): return x * (sys._getframe().f_lineno > 0)", "_getframe"),
    "seed": ("import cygrad\ndef step(x):\n cygrad.manual_seed(3)\n return x * 2", "manual_seed"),
    "threads": ("import cygrad\ndef step(x):\n cygrad.set_num_threads(1)\n return x * 2", "set_num_threads"),
    "default dtype": (
        "import cygrad\ndef step(x):\n cygrad.set_default_dtype(cygrad.float32)\n return x * 2",
        "set_default_dtype",
    ),
    "new class": ("def step(x):\n class C: pass\n return x * 2", "__build_class__"),
    "coroutine": (
        "async def inner(x): return x * 2\ndef step(x):\n try: inner(x).send(None)\n"
        " except StopIteration as e: return e.value",
        "coroutine",
    ),
    "new object": ("class Out:\n def __init__(self, x): self.x = x\ndef step(x): return Out(x * 2)", "new object"),
    "disabled": (
        "import cygrad\n@cygrad.compiler.disable\ndef f(x): return x * 2\ndef step(x): return f(x)",
        "disabled",
    ),
}
