# SPDX-License-Identifier: Apache-2.0

"""The hosts that the filter refuses for a request, and the lines about them.

They are collected only as long as none has passed. The lines are written only
if none passes at all, so that requests that pass cost nothing.

When nova-scheduler places several guests of one request, it calls the filter
for each, and once more to find alternates for the last. That no host is left
then is no refusal: all guests have one.
"""

import datetime
import typing
from collections.abc import Sequence

from oslo_context import context as oslo_context
from oslo_log import log as logging

from hpcvirt.fit import decision_log
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons

LOG = logging.getLogger(__name__)

#: The attribute of a HostState that names the instance for which it has
#: passed last, if the request is for several.
_PASSED = 'hpcvirt_passed'

#: A value that is the UUID of no instance.
_NEVER = object()


class NoValidHostLog:
    """The hosts that were refused for an instance.

    Why they were refused is read only if there is something to write, because
    it takes longer than to find out that they are.
    """

    def __init__(self, spec: typing.Any) -> None:
        self._spec = spec
        self._hosts: list[tuple[typing.Any, reasons.Misfit]] = []

    def add(self, host_state: typing.Any, misfit: reasons.Misfit) -> None:
        """Add a host."""
        self._hosts.append((host_state, misfit))

    def log(self, demand: demands.Demand | None) -> None:
        """Write a line for each kind of refusal.

        :param demand: what the instance needs; None if that is unknown
        """
        if not self._hosts or not LOG.isEnabledFor(logging.INFO):
            return
        if any(is_for_alternates(self._spec, host_state)
               for host_state, _misfit in self._hosts):
            return
        # The log must not decide about the request.
        try:
            self._log(demand)
        except Exception:
            LOG.warning('The refusal of instance %s cannot be summarized',
                        read_instance(self._spec), exc_info=True)

    def _log(self, demand: demands.Demand | None) -> None:
        kinds: dict[tuple[reasons.Code, reasons.Code],
                    list[tuple[typing.Any, reasons.Misfit]]] = {}
        for host_state, misfit in self._hosts:
            kinds.setdefault((misfit.code, misfit.root), []).append(
                (host_state, misfit))
        largest = sorted(kinds.items(), key=lambda item: -len(item[1]))[
            :decision_log.MAX_KINDS]
        flavor = self._spec.flavor
        asked = decision_log.describe_needs(
            _field(flavor, 'vcpus', 0), _field(flavor, 'memory_mb', 0),
            demand, count_instances(self._spec))
        request = identify(self._spec)
        for number, ((code, root), hosts) in enumerate(largest, 1):
            LOG.info('%s', decision_log.write(decision_log.RefusedHosts(
                **request, kind=number, kinds=len(largest), hosts=len(hosts),
                of=len(self._hosts), code=code, root=root,
                examples=name_examples([host for host, _ in hosts]),
                asked=asked, reason=hosts[0][1].message)))


def name_examples(host_states: Sequence[typing.Any]) -> str:
    """Name the first of some hosts."""
    return ', '.join(decision_log.clip(state.host) for state
                     in host_states[:decision_log.EXAMPLES])


def read_instance(spec: typing.Any) -> str | None:
    """Return the instance that a RequestSpec is about."""
    return spec.instance_uuid if 'instance_uuid' in spec else None


def count_instances(spec: typing.Any) -> int:
    """Return how many guests a request creates.

    The number of a RequestSpec is that of the first creation for ever. Only
    a move has a Nova cell as destination.
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
    """Whether the instance of a request has a host already."""
    return bool(getattr(host_state, _PASSED, _NEVER) == read_instance(spec))


def identify(spec: typing.Any) -> dict[str, typing.Any]:
    """Return what identifies a request in the log."""
    context = oslo_context.get_current()
    return {
        'time': datetime.datetime.now(datetime.UTC).isoformat(
            timespec='seconds'),
        **{name: getattr(context, name, None)
           for name in ('request_id', 'global_request_id')},
        'instance': read_instance(spec),
        'flavor': _field(spec.flavor, 'name', '')}


def _field(flavor: typing.Any, name: str, otherwise: typing.Any) -> typing.Any:
    """Return a field of a flavor, which it has unless it is a mere part."""
    return getattr(flavor, name) if name in flavor else otherwise
