"""Settings of PyTorch's ahead-of-time autograd. They are kept and nothing reads them, since nothing is compiled."""

from cygrad.utils._config_module import install_config_module

activation_memory_budget = 1.0
donated_buffer = True
enable_autograd_cache = True
functionalize_rng_ops = False
recompute_views = False

install_config_module(__name__)
