"""Subprocesses of a program that called `cygrad.as_torch()` find this `torch`, which turns the switch on there, too.

The folder above is on their path; nothing is imported before a program asks for `torch`.
"""

import cygrad

cygrad.as_torch()
