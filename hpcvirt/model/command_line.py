# SPDX-License-Identifier: Apache-2.0

"""The command line of the Linux kernel."""

import re

_WORD = re.compile(r'(?:[^\s"]|"[^"]*"?)+')


def split(text: str) -> tuple[str, ...]:
    """Divide a command line into its parameters, as the kernel does.

    Double quotes, which are removed, hold spaces. What follows ``--`` is for
    init.
    """
    found = []
    for word in _WORD.findall(text):
        if word == '--':
            break
        found.append(word.replace('"', ''))
    return tuple(found)
