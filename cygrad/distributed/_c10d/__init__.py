"""Process groups, their stores and collectives: what `torch.distributed` itself names, and `distributed_c10d`.

A group has an engine for each kind of device, which moves and reduces arrays between processes: `mpi.py`, `nccl.py`,
`single.py` for a group of one process, `fake.py` for threads that stand for processes. Nothing above them knows which.
"""
