"""Parameters without gradients: who lacks which, and the error that says so, in the same step and in all processes."""

import os
import sys

import cygrad

__all__ = ["caller", "unused_error"]

_PACKAGE = os.path.dirname(cygrad.__file__) + os.sep


def caller():
    """The file and line of the innermost frame outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def unused_error(names, lacking, group, forward_at, gather):
    """The error for parameters without gradients. All processes call this together.

    names: of all parameters. lacking: the numbers of those that this process lacks. gather: as `all_gather_object`.
    """
    by_rank = gather((lacking, forward_at))
    unused = sorted({number for numbers, _ in by_rank for number in numbers})
    everyone = len(by_rank)
    lines = []
    for number in unused[:20]:
        ranks = [rank for rank, (numbers, _) in enumerate(by_rank) if number in numbers]
        where = "on every rank" if len(ranks) == everyone else f"on rank{'s' * (len(ranks) > 1)} {_listed(ranks)}"
        lines.append(f"  {names[number]}: {where}")
    if len(unused) > 20:
        lines.append(f"  and {len(unused) - 20} more")
    site = by_rank[group.rank()][1]
    return RuntimeError(
        "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates "
        "that your module has parameters that were not used in producing loss.\n"
        f"These parameters of the step that ends here have no gradient:\n{chr(10).join(lines)}\n"
        + (f"  the forward call of rank {group.rank()}: {site[0]}:{site[1]}\n" if site else "")
        + "  to fix it: pass `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, or let all "
        "outputs of `forward` take part in the loss"
    )


def _listed(ranks):
    return ", ".join(map(str, ranks[:10])) + (", ..." if len(ranks) > 10 else "")
