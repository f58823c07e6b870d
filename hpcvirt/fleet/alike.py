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

"""Group hosts that are alike, so that each kind is looked at once."""

from collections.abc import Iterable

from hpcvirt.fleet import state


def groups(hosts: Iterable[state.FleetHost],
           ) -> tuple[tuple[state.FleetHost, ...], ...]:
    """Group hosts that have the same left, in the order of the first ones."""
    found: dict[object, list[state.FleetHost]] = {}
    for host in hosts:
        supply = host.state.supply
        pools = tuple((pool.cell, pool.free, tuple(sorted(pool.tags.items())))
                      for pool in supply.pools or ())
        found.setdefault((supply.cells, pools, host.state.free,
                          host.state.closed, host.state.traits, host.packing),
                         []).append(host)
    return tuple(map(tuple, found.values()))
