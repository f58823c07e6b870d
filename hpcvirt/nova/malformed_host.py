# SPDX-License-Identifier: Apache-2.0

"""Refuse a host whose data cannot be read, and warn about it once.

A compute host that reports malformed data, such as a NUMA cell without CPUs,
must not fail a request that other hosts can serve. The adapter raises
InvalidInput for what it checks. All other exceptions are caught as well, and
logged with their traceback.
"""

import typing

from oslo_log import log as logging

from hpcvirt import exception
from hpcvirt import kept_text
from hpcvirt.fit import reasons

LOG = logging.getLogger(__name__)

#: The most warnings that are remembered; then all are forgotten.
_MAX_WARNINGS = 4096
#: The most characters of an error that are shown.
_MAX_CHARACTERS = 300

#: Each warning, and a mark of the call that has remembered it.
_warned: dict[tuple[str, ...], object] = {}


def misfit(host_state: typing.Any, error: Exception) -> reasons.Misfit:
    """Return the refusal of a host; log a warning the first time.

    :param host_state: Nova's HostState
    :param error: the exception that was raised for it
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
    """Return whether there has been no such warning yet, and remember it."""
    warning = tuple([kept_text.shorten(str(text)) for text in what])
    if len(_warned) >= _MAX_WARNINGS:
        _warned.clear()
    # One step, so that only one of several threads is the first.
    mark = object()
    return _warned.setdefault(warning, mark) is mark
