# SPDX-License-Identifier: Apache-2.0

"""Libraries that only some verbs need, and that may be missing."""

import contextlib
import warnings
from collections.abc import Iterator

from hpcvirt import exception


@contextlib.contextmanager
def nova() -> Iterator[None]:
    """Import modules that need Nova.

    :raises NotInstalled: if it is missing, naming where it is
    """
    try:
        # The libraries of Nova warn of what concerns its developers.
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    except ImportError as exc:
        raise exception.NotInstalled(
            f'{exc.name} is not installed; run the command on a controller, '
            'with the Python of Nova, or name the hosts with --fleet'
        ) from exc


@contextlib.contextmanager
def require(extra: str) -> Iterator[None]:
    """Import modules that need a library of an extra, such as ``bench``.

    :raises NotInstalled: if it is missing, naming what to install
    """
    try:
        yield
    except ImportError as exc:
        raise exception.NotInstalled(
            f'{exc.name} is not installed; pip install hpcvirt[{extra}]'
        ) from exc


def bench() -> contextlib.AbstractContextManager[None]:
    """Import modules that need a library of ``hpcvirt[bench]``."""
    return require('bench')
