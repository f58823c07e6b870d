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

"""Leave out the hosts that must not become alternates.

It is what :mod:`hpcvirt.nova.alternates` does for HPCTopologyFilter: a guest
whose cells differ is not sent where it would be misplaced if it had failed to
start on another host. Nova is assumed to try several hosts
(``[scheduler]max_attempts``), as it does by default.
"""

import collections

import numpy as np

from hpcvirt.fit import demand as demands
from hpcvirt.fit import retry_check
from hpcvirt.simulate import answers
from hpcvirt.simulate import host_table


def sift(known: answers.Answers, number: int, demand: demands.Demand,
         hosts: host_table.Integers, several: bool) -> host_table.Integers:
    """Return the hosts on which the guest may start.

    :param number: of the demand
    :param hosts: those on which it fits
    :param several: the request is for several guests
    """
    if not demand.cells or not retry_check.matters(demand) or not (
            several or len(hosts) > 1):
        return hosts
    pages = [known.placement(number, host).pages_kib
             for host in hosts.tolist()]
    counts = collections.Counter(pages)
    safe = [_is_safe(known, number, demand, host, frozenset(
        sizes for sizes, count in counts.items()
        if several or count > (sizes == own)))
        for host, own in zip(hosts.tolist(), pages, strict=True)]
    if not several and not any(safe):
        return hosts[:1]
    return hosts[np.array(safe, dtype=np.bool_)]


def _is_safe(known: answers.Answers, number: int, demand: demands.Demand,
             host: int, possible: frozenset[retry_check.Pages]) -> bool:
    def check(host: int) -> float:
        return retry_check.check(
            demand, known.table.supplies[host], known.packing,
            possible) is None
    return bool(known.figures(('safe', number, possible), np.array([host]),
                              check)[0])
