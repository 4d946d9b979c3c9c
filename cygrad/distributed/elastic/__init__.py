"""What programs that `torchrun` starts import: errors of child processes, and how they are reported."""

from cygrad.distributed.elastic import multiprocessing as multiprocessing
