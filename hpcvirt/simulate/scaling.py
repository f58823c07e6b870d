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

"""Scale the times of requests to a load."""

import dataclasses

from hpcvirt import exception
from hpcvirt.simulate import requests as requests_model

#: The part of the work after the last request that is worth telling.
_MUCH_PERCENT = 5


def load(requests: requests_model.Requests, capacity_cpus: int) -> float:
    """Return the CPUs that would be busy, if nothing were refused, / capacity.

    It is the mean from the first to the last request, if as much runs on
    after the last request as was running before the first.

    :raises InvalidInput: if all requests are made at one time
    """
    times = [arrival.time for arrival in requests.arrivals]
    span = max(times) - min(times)
    if not span:
        raise exception.InvalidInput(
            'load', 'all requests are made at one time, which has no load')
    return _work(requests) / span / capacity_cpus


def to_load(requests: requests_model.Requests, capacity_cpus: int,
            wanted: float) -> requests_model.Requests:
    """Scale the times between requests; durations stay as they are.

    :param capacity_cpus: the CPUs of the fleet for guests
    :raises InvalidInput: if all requests are made at one time
    """
    now = load(requests, capacity_cpus)
    factor = now / wanted
    scaled = dataclasses.replace(requests, arrivals=tuple(
        dataclasses.replace(arrival, time=arrival.time * factor)
        for arrival in requests.arrivals))
    after = 100 * _work_after(scaled) / _work(scaled)
    rule = [*requests.rule]
    rule.append(
        f'The times between requests are multiplied by {factor:.4g}, so '
        f'that the load is {wanted:.4g} instead of {now:.4g}.')
    if after >= _MUCH_PERCENT:
        rule.append(
            f'{after:.0f} % of the CPU-hours are after the last request, '
            'because lives are long: until then, the load is less.')
    return dataclasses.replace(scaled, rule=tuple(rule))


def _work(requests: requests_model.Requests) -> float:
    return sum(requests.flavors[arrival.flavor].cpus * arrival.count
               * arrival.duration for arrival in requests.arrivals)


def _work_after(requests: requests_model.Requests) -> float:
    """Return the work after the last request."""
    last = max(arrival.time for arrival in requests.arrivals)
    return sum(requests.flavors[arrival.flavor].cpus * arrival.count
               * min(arrival.duration,
                     max(0.0, arrival.time + arrival.duration - last))
               for arrival in requests.arrivals)
