# SPDX-License-Identifier: Apache-2.0

"""Log why no host passes for a request.

If a request creates several instances, nova-scheduler calls the filter for
each of them, and once more to find alternates for the last one. If no host is
left in this last call, nothing is logged, because every instance has a host.
"""

import datetime
import typing
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Sequence

from oslo_context import context as oslo_context
from oslo_log import log as logging

from hpcvirt.fit import decision_log
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons

LOG = logging.getLogger(__name__)

#: The attribute of a HostState with the instance for which it passed last, if
#: the request creates several.
_PASSED = 'hpcvirt_passed'

#: A value that is the UUID of no instance.
_NEVER = object()

_Key = typing.TypeVar('_Key', bound=Hashable)


def log(spec: typing.Any,
        refused: Sequence[tuple[typing.Any, reasons.Misfit]],
        demand: demands.Demand | None) -> None:
    """Log a line for each kind of refusal.

    :param refused: each HostState, and why it is refused
    :param demand: what the instance needs; None if that is unknown
    """
    if not LOG.isEnabledFor(logging.INFO) or any(
            is_for_alternates(spec, host_state) for host_state, _ in refused):
        return
    # An error in the log must not fail the request.
    try:
        asked = decision_log.describe_needs(
            _field(spec.flavor, 'vcpus', 0),
            _field(spec.flavor, 'memory_mb', 0), demand, count_instances(spec))
        request = identify(spec)
        for (code, root), hosts in group(
                ((misfit.code, misfit.root), host_state, misfit)
                for host_state, misfit in refused):
            LOG.info('%s', decision_log.write(decision_log.RefusedHosts(
                **request, **hosts, of=len(refused), code=code, root=root,
                asked=asked)))
    except Exception:
        LOG.warning('The refusal of instance %s cannot be summarized',
                    read_instance(spec), exc_info=True)


def group(hosts: Iterable[tuple[_Key, typing.Any, object]],
          ) -> list[tuple[_Key, dict[str, typing.Any]]]:
    """Group hosts that share a line, the largest groups first.

    :param hosts: the key of the group, a HostState, and the reason
    :returns: at most ``MAX_KINDS`` groups, with the fields of their lines
    """
    groups: dict[_Key, list[tuple[typing.Any, object]]] = {}
    for key, host_state, reason in hosts:
        groups.setdefault(key, []).append((host_state, reason))
    largest = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [(key, {
        'hosts': len(members),
        'examples': ', '.join(
            state.host for state, _ in members[:decision_log.EXAMPLES]),
        'reason': str(members[0][1]),
    }) for key, members in largest[:decision_log.MAX_KINDS]]


def read_instance(spec: typing.Any) -> str | None:
    """Return the UUID of the instance of a RequestSpec, None if unset."""
    return spec.instance_uuid if 'instance_uuid' in spec else None


def count_instances(spec: typing.Any) -> int:
    """Return how many instances a request creates.

    A RequestSpec keeps the number of its first request, even for later moves.
    Only a move has a Nova cell as destination.
    """
    destination = (spec.requested_destination
                   if 'requested_destination' in spec else None)
    if 'num_instances' not in spec or (
            destination is not None and 'cell' in destination
            and destination.cell is not None):
        return 1
    return int(spec.num_instances)


def note_passed(spec: typing.Any, host_state: typing.Any) -> None:
    """Note that a host has passed for an instance."""
    setattr(host_state, _PASSED, read_instance(spec))


def is_for_alternates(spec: typing.Any, host_state: typing.Any) -> bool:
    """Return whether the instance of a request already has a host."""
    return bool(getattr(host_state, _PASSED, _NEVER) == read_instance(spec))


def identify(spec: typing.Any) -> dict[str, typing.Any]:
    """Return the fields that identify a request in the log."""
    context = oslo_context.get_current()
    return {
        'time': datetime.datetime.now(datetime.UTC).isoformat(
            timespec='milliseconds'),
        **{name: getattr(context, name, None)
           for name in ('request_id', 'global_request_id')},
        'instance': read_instance(spec),
        'flavor': _field(spec.flavor, 'name', '')}


def _field(flavor: typing.Any, name: str, otherwise: typing.Any) -> typing.Any:
    """Return a field of a flavor, which may lack it."""
    return getattr(flavor, name) if name in flavor else otherwise
