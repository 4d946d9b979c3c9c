"""Process groups, their stores and collectives: what `torch.distributed` itself names, and `distributed_c10d`.

A group holds a back end, which moves and reduces tensors between processes. For now there is one back end, for a group
of one process (`single.py`); everything above it does not know how many processes there are.
"""
