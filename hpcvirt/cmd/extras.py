# SPDX-License-Identifier: Apache-2.0

"""Import optional libraries, which only some commands need."""

import contextlib
import warnings
from collections.abc import Iterator

from hpcvirt import exception


@contextlib.contextmanager
def nova() -> Iterator[None]:
    """Return a context in which modules that need Nova can be imported.

    :raises NotInstalled: if Nova is missing
    """
    try:
        # Nova's libraries print warnings that only concern its developers.
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
    """Return a context for imports that need an extra, such as ``bench``.

    :raises NotInstalled: if a library of the extra is missing
    """
    try:
        yield
    except ImportError as exc:
        raise exception.NotInstalled(
            f'{exc.name} is not installed; it comes with the extra {extra} '
            '(page install/packages)'
        ) from exc


def bench() -> contextlib.AbstractContextManager[None]:
    """Return a context for imports that need the extra ``bench``."""
    return require('bench')
