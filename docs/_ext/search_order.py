"""Lists names of tensors, layers and optimizers first in the results of a search.

Without this, `retain_grad` would first lead to tensors that are spread over processes: all names count the same, and
their alphabetical order decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain

FIRST = re.compile(r"reference/api/(cygrad(\.(Tensor|autograd|func|nn|nn\.functional|optim))?|ops\..*)$")
IMPORTANT, USUAL = 0, 1


class Domain(PythonDomain):
    def get_objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        for name, shown, kind, page, anchor, priority in super().get_objects():
            yield name, shown, kind, page, anchor, IMPORTANT if priority == USUAL and FIRST.match(page) else priority


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_domain(Domain, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
