# SPDX-License-Identifier: Apache-2.0

"""Refuse a host whose data cannot be read, and warn about it once.

A compute host that reports a NUMA cell without CPUs or memory, for example,
must not abort a request that other hosts can serve.
"""

import threading
import typing

from oslo_log import log as logging

from hpcvirt import exception
from hpcvirt.fit import reasons

LOG = logging.getLogger(__name__)

#: Warnings that are remembered; all are forgotten when there are more.
_MAX_WARNINGS = 4096

_warned: set[tuple[str, str, str]] = set()
_lock = threading.Lock()


def misfit(host_state: typing.Any,
           error: exception.InvalidInput) -> reasons.Misfit:
    """Refuse a host, with a warning when it is seen for the first time.

    :param host_state: Nova's HostState
    :param error: what cannot be read
    """
    what = str(error)
    key = host_state.host, host_state.nodename, what
    with _lock:
        first = key not in _warned
        if len(_warned) >= _MAX_WARNINGS:
            _warned.clear()
        _warned.add(key)
    if first:
        LOG.warning('%(host)s, %(node)s reports malformed data and gets no '
                    'guest that depends on it: %(what)s',
                    {'host': key[0], 'node': key[1], 'what': what})
    return reasons.Misfit(reasons.Code.MALFORMED_HOST, {'what': what})
