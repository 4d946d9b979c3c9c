"""The back end of a group of one process: what all processes send is what this one sends."""

from cygrad.autograd.grad_mode import no_grad

__all__ = ["SingleProcess"]


class SingleProcess:
    """Moves tensors within this process. Shapes and dtypes are the caller's to check.

    A back end for several processes has the same methods, which then also move and reduce.
    """

    name = "single"

    def all_reduce(self, tensors, op):
        """Reduce over all processes: over one, a tensor stays as it is."""

    def reduce(self, tensors, root, op):
        """Reduce over all processes, into the tensors of `root`."""

    def broadcast(self, tensors, root):
        """Send the tensors of `root` to all."""

    def all_gather(self, outputs, tensor):
        """Gather the tensors of all processes into the list `outputs`."""
        _copy(outputs[0], tensor)

    def gather(self, outputs, tensor, root):
        """Gather the tensors of all processes into the list `outputs` of `root`."""
        _copy(outputs[0], tensor)

    def scatter(self, output, inputs, root):
        """Send each process its tensor of the list of `root`."""
        _copy(output, inputs[0])

    def reduce_scatter(self, output, inputs, op):
        """Reduce a list over all processes, and leave each process its tensor."""
        _copy(output, inputs[0])

    def all_to_all(self, outputs, inputs):
        """Send the i-th tensor of each process to process i."""
        _copy(outputs[0], inputs[0])

    def barrier(self):
        """Wait until all processes are here."""


def _copy(target, source):
    """Copy what autograd does not see, as the memory is written from elsewhere."""
    with no_grad():
        target.detach().copy_(source.detach())
