# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The hosts that the filter refuses for a request, and the line about them.

They are collected only as long as none has passed. The line is written only
if none passes at all, so that requests that pass cost nothing.

When nova-scheduler places several guests of one request, it calls the filter
for each, and once more to find alternates for the last. That no host is left
then is no refusal: all guests have one.
"""

import datetime
import typing
from collections.abc import Iterator

from oslo_context import context as oslo_context
from oslo_log import log as logging

from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.fleet import refusal

LOG = logging.getLogger(__name__)

#: The attribute of a HostState that names the instance for which it has
#: passed last, if the request is for several.
_PASSED = 'hpcvirt_passed'

#: What is no instance.
_NEVER = object()

#: A kind of refusal, and that of most of its causes.
_Key = tuple[reasons.Code, reasons.Code]


class _Group:
    """Hosts that fail alike."""

    __slots__ = ('hosts', 'misfit', 'names')

    def __init__(self, misfit: reasons.Misfit) -> None:
        self.misfit = misfit
        self.hosts = 0
        self.names: list[str] = []


class Refused:
    """The hosts that were refused for an instance.

    Why they were refused is read only if there is something to write, because
    it takes longer than to find out that they are.
    """

    def __init__(self, spec: typing.Any) -> None:
        self._spec = spec
        self._uuid = instance_of(spec)
        self._hosts: list[tuple[typing.Any, reasons.Misfit]] = []

    def add(self, host_state: typing.Any, misfit: reasons.Misfit) -> None:
        """Add a host."""
        self._hosts.append((host_state, misfit))

    def log(self, demand: demands.Demand | None) -> None:
        """Write the line, if there is something to write.

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
                        self._uuid, exc_info=True)

    def _log(self, demand: demands.Demand | None) -> None:
        groups = tuple(self._read_groups())
        counts = refusal.total(groups)
        hosts = sum(counts.values())
        flavor = self._spec.flavor
        LOG.info('No host of %(hosts)d can take the guest: %(reasons)s; '
                 'instance %(instance)s; %(document)s', {
                     'hosts': hosts, 'reasons': reasons.tally(counts),
                     'instance': self._uuid, 'document': refusal.text(
                         refusal.Refusal(
                             **identity(self._spec), hosts=hosts,
                             groups=groups, asked=refusal.asked(
                                 _field(flavor, 'vcpus', 0),
                                 _field(flavor, 'memory_mb', 0), demand,
                                 instances(self._spec))))})

    def _read_groups(self) -> Iterator[refusal.Group]:
        groups: dict[_Key, _Group] = {}
        for host_state, misfit in self._hosts:
            key = misfit.code, misfit.root
            group = groups.get(key)
            if group is None:
                group = groups[key] = _Group(misfit)
            group.hosts += 1
            if len(group.names) < refusal.MOST_NAMES:
                group.names.append(host_state.host)
        for (code, root), group in groups.items():
            yield refusal.Group(
                code=code, root=root, hosts=group.hosts,
                names=tuple(group.names), reason=group.misfit.message)


def instance_of(spec: typing.Any) -> str | None:
    """Return the instance that a RequestSpec is about."""
    return spec.instance_uuid if 'instance_uuid' in spec else None


def instances(spec: typing.Any) -> int:
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
    setattr(host_state, _PASSED, instance_of(spec))


def is_for_alternates(spec: typing.Any, host_state: typing.Any) -> bool:
    """Whether the instance of a request has a host already."""
    return bool(getattr(host_state, _PASSED, _NEVER) == instance_of(spec))


def identity(spec: typing.Any) -> dict[str, typing.Any]:
    """Return what identifies a request in the log."""
    context = oslo_context.get_current()
    return {
        'time': datetime.datetime.now(datetime.UTC).isoformat(
            timespec='seconds'),
        **{name: getattr(context, name, None)
           for name in ('request_id', 'global_request_id')},
        'instance': instance_of(spec),
        'flavor': _field(spec.flavor, 'name', '')}


def _field(flavor: typing.Any, name: str, otherwise: typing.Any) -> typing.Any:
    """Return a field of a flavor, which it has unless it is a mere part."""
    return getattr(flavor, name) if name in flavor else otherwise
