# SPDX-License-Identifier: Apache-2.0

"""Refuse a host whose data cannot be read, and warn about it once.

A compute host that reports a NUMA cell without CPUs or memory, for example,
must not abort a request that other hosts can serve. What the adapter checks is
an InvalidInput. Whatever else is raised for a host is caught as well, because
no host may fail a request, and is logged with its traceback.
"""

import threading
import typing

from oslo_log import log as logging

from hpcvirt import exception
from hpcvirt.fit import reasons

LOG = logging.getLogger(__name__)

#: Warnings that are remembered; all are forgotten when there are more.
_MAX_WARNINGS = 4096
#: The most that is said of an error.
_MAX_CHARACTERS = 300

_warned: set[tuple[str, ...]] = set()
_lock = threading.Lock()


def misfit(host_state: typing.Any, error: Exception) -> reasons.Misfit:
    """Refuse a host, with a warning when it is seen for the first time.

    :param host_state: Nova's HostState
    :param error: what was raised for it
    """
    checked = isinstance(error, exception.InvalidInput)
    what = str(error) if checked else f'{type(error).__name__}: {error}'
    what = what[:_MAX_CHARACTERS]
    host, node = host_state.host, host_state.nodename
    if is_first(host, node, what):
        LOG.warning('%(host)s, %(node)s reports malformed data and gets no '
                    'guest that depends on it: %(what)s',
                    {'host': host, 'node': node, 'what': what},
                    exc_info=None if checked else error)
    return reasons.Misfit(reasons.Code.MALFORMED_HOST, {'what': what})


def is_first(*what: str) -> bool:
    """Tell whether there has been no warning about this yet."""
    with _lock:
        first = what not in _warned
        if len(_warned) >= _MAX_WARNINGS:
            _warned.clear()
        _warned.add(what)
    return first
