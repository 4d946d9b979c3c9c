import sys, warnings

warnings.simplefilter("ignore")
if "cyg" in sys.argv[1]:
    import cygrad

    cygrad.as_torch()
import torch, numpy as np

nan = float("nan")
inf = float("inf")
for line in open(sys.argv[2]).read().splitlines():
    if not line.strip() or line[0] == "#":
        continue
    try:
        if line.startswith("!"):
            exec(line[1:])
            r = "ok"
        else:
            r = eval(line)
        r = repr(r).replace("\n", " ")
    except BaseException as e:
        r = type(e).__name__ + ": " + str(e).split("\n")[0][:220]
    print(line, "\t", r)
