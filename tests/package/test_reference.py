"""What the reference says of names: a signature of those that people use most, and an example, which runs as a test.

All names of tensors, functions of them, differentiation and training have an example; `test_reference_modules.py` is
about the modules around them. `test_docstrings.py` runs the examples, and finds names without a docstring.
"""

import importlib
import inspect
import re
from operator import attrgetter

from checkout import CHECKOUT, entries_of_reference

import cygrad

# Names in the package itself, methods of its classes, and modules of tensors, differentiation and training.
WITH_EXAMPLES = re.compile(
    r"cygrad\.(\w+$|[A-Z]\w*\.|dtype\.|memory_format\.|inference_mode\.|set_grad_enabled\.|"
    r"(autograd|distributions|fft|func|linalg|nn|optim|return_types|special)\.)"
)
# Copies of views are described with the view, whose arguments and errors they have.
COPIES = re.compile(r"_copy$|^unsafe_")
MOST_USED = """
autocast as_tensor compile enable_grad from_numpy inference_mode is_grad_enabled load manual_seed no_grad save
set_grad_enabled tensor Tensor.backward Tensor.clone Tensor.contiguous Tensor.copy_ Tensor.cpu Tensor.detach Tensor.dim
Tensor.expand Tensor.item Tensor.numel Tensor.numpy Tensor.register_hook Tensor.requires_grad_ Tensor.retain_grad
Tensor.size Tensor.to Tensor.tolist Tensor.type Tensor.view Tensor.zero_
autograd.Function autograd.backward autograd.functional.hessian autograd.functional.jacobian autograd.grad
autograd.gradcheck autograd.gradgradcheck autograd.graph.saved_tensors_hooks autograd.set_detect_anomaly
amp.GradScaler distributions.Categorical distributions.Normal distributions.kl_divergence
func.functional_call func.grad func.hessian func.jacfwd func.jacrev func.jvp func.vjp func.vmap
nn.Module nn.Module.eval nn.Module.load_state_dict nn.Module.named_parameters nn.Module.parameters
nn.Module.register_buffer nn.Module.state_dict nn.Module.to nn.Module.train nn.Module.zero_grad nn.Parameter
nn.AdaptiveAvgPool2d nn.AvgPool2d nn.BatchNorm1d nn.BatchNorm2d nn.Conv2d nn.ConvTranspose2d nn.Dropout nn.Embedding
nn.Flatten nn.GELU nn.GRU nn.GroupNorm nn.LSTM nn.LayerNorm nn.Linear nn.MaxPool2d nn.ModuleDict nn.ModuleList
nn.MultiheadAttention nn.RNN nn.ReLU nn.Sequential nn.Sigmoid nn.Softmax nn.Tanh nn.TransformerEncoder
nn.TransformerEncoderLayer nn.BCELoss nn.BCEWithLogitsLoss nn.CrossEntropyLoss nn.L1Loss nn.MSELoss nn.NLLLoss
nn.functional.binary_cross_entropy_with_logits nn.functional.conv2d nn.functional.cross_entropy nn.functional.dropout
nn.functional.embedding nn.functional.gelu nn.functional.interpolate nn.functional.layer_norm nn.functional.linear
nn.functional.max_pool2d nn.functional.mse_loss nn.functional.normalize nn.functional.one_hot nn.functional.pad
nn.functional.scaled_dot_product_attention nn.functional.silu
nn.init.kaiming_normal_ nn.init.normal_ nn.init.xavier_uniform_ nn.init.zeros_
nn.utils.clip_grad_norm_ nn.utils.clip_grad_value_ nn.utils.rnn.pad_sequence
optim.Adagrad optim.Adam optim.AdamW optim.LBFGS optim.Optimizer optim.Optimizer.state_dict optim.Optimizer.step
optim.Optimizer.zero_grad optim.RMSprop optim.SGD optim.lr_scheduler.CosineAnnealingLR
optim.lr_scheduler.ExponentialLR optim.lr_scheduler.LambdaLR optim.lr_scheduler.MultiStepLR
optim.lr_scheduler.OneCycleLR optim.lr_scheduler.ReduceLROnPlateau optim.lr_scheduler.StepLR
profiler.profile utils.checkpoint.checkpoint utils.data.DataLoader utils.data.Dataset utils.data.Subset
utils.data.TensorDataset utils.data.random_split
""".split()


def ops():
    """The names of all ops of docs/ops.md, as the package has them."""
    text = (CHECKOUT / "docs" / "ops.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    return [name for name in names if not COPIES.search(name) and named(name) is not None]


def named(name):
    """The object of a name below `cygrad`, whose modules may not be imported yet; None if there is none."""
    for depth in range(name.count("."), 0, -1):
        try:
            importlib.import_module(".".join(["cygrad", *name.split(".")[:depth]]))
            break
        except ImportError:
            continue
    try:
        return attrgetter(name)(cygrad)
    except AttributeError:
        return None


def test_names_have_a_signature_and_an_example():
    values = {name: named(name) for name in {*MOST_USED, *ops()}}
    assert sorted(name for name, value in values.items() if ">>> " not in (inspect.getdoc(value) or "")) == []
    assert all(inspect.signature(value) for value in values.values())


def test_all_names_of_tensors_and_training_have_an_example():
    entries = entries_of_reference()
    docs = {name: inspect.getdoc(entries[name][0]) or "" for name in filter(WITH_EXAMPLES.match, entries)}
    assert len(docs) > 1900
    assert {"cygrad.exp_", "cygrad.Tensor.t_", "cygrad.dtype.to_real", "cygrad.nn.Linear.forward"} <= set(docs)
    assert [name for name, doc in docs.items() if ">>> " not in doc] == []


def test_the_table_of_ops_is_found():
    assert len(ops()) > 400
