# SPDX-License-Identifier: Apache-2.0

"""A target is a machine that runs jobs, and the facts known about it."""

import dataclasses
from collections.abc import Mapping

from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import reboot
from hpcvirt.model import cpuset


@dataclasses.dataclass(frozen=True)
class Target:
    """A machine that jobs are started on.

    :ivar place: runs programs on the machine
    :ivar label: its name, unique among the targets of a side
    :ivar address: by which other targets reach it, empty if unknown
    :ivar host: the compute host, empty if unknown
    :ivar flavor: the name of the flavor, empty if it is no instance
    :ivar host_cpus: host CPUs that the instance is pinned to, None if unknown
    :ivar facts: added to the environment of each sample
    :ivar rebooter: reboots the machine, None if it is no instance
    :ivar prefix: words before each command, which confine it to ``cpus``
    :ivar cpus: CPUs that commands are confined to; empty for no confinement
    :ivar cpu_count: number of CPUs that commands can use, None if unknown
    :ivar directory: parent of the directories of runs, an absolute path;
        empty for ``hpcvirt`` in the state home of the user
    :ivar named: its name on the command line, empty if there is none
    """

    place: executor.Executor
    label: str
    address: str = ''
    host: str = ''
    flavor: str = ''
    host_cpus: frozenset[int] | None = None
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rebooter: reboot.Rebooter | None = None
    prefix: tuple[str, ...] = ()
    cpus: frozenset[int] = frozenset()
    cpu_count: int | None = None
    directory: str = ''
    named: str = ''


def instance_facts(server_id: str, flavor: str, page_kib: int,
                   host_cpus: frozenset[int] | None) -> dict[str, str]:
    """Return the facts of an instance that are stored with each sample.

    :param page_kib: page size of its memory, 0 if unknown
    :param host_cpus: host CPUs that it is pinned to, None or empty if it is
        not pinned
    """
    facts = {'server.id': server_id, 'server.flavor': flavor}
    if page_kib:
        facts['pages'] = 'large' if page_kib >= 2048 else 'small'
    if host_cpus:
        facts['server.host_cpus'] = cpuset.render(host_cpus)
    return facts
