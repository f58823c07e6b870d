# SPDX-License-Identifier: Apache-2.0

"""Read what a gate must know of the compute hosts of a cloud."""

import itertools
from collections.abc import Mapping
from typing import Any

from hpcvirt.cloud import session
from hpcvirt.health import gate
from hpcvirt.model import quarantine

#: Counting further instances of a host would take long.
_MOST = 1000


@session.one_line_errors()
def read(nova: Any) -> Mapping[str, gate.GatedCompute]:
    """Read all compute hosts, by name.

    :param nova: a client of :func:`hpcvirt.cloud.session.compute`
    :raises Unreachable: if Nova does not answer
    """
    aggregates: dict[str, list[Mapping[str, str]]] = {}
    for aggregate in nova.aggregates.list():
        for host in aggregate.hosts:
            aggregates.setdefault(host, []).append(aggregate.metadata)
    return {each.host: gate.GatedCompute(
        holds=quarantine.read_holds(each.host, aggregates.get(each.host, ())),
        is_up=each.state == 'up')
        for each in nova.services.list(binary='nova-compute')}


@session.one_line_errors()
def count_instances(nova: Any, host: str) -> int:
    """Count the instances of a host, of all projects.

    :raises Unreachable: if Nova does not answer
    """
    found = session.list_all(nova.servers, search_opts={
        'all_tenants': True, 'host': host})
    return sum(1 for _ in itertools.islice(found, _MOST))
