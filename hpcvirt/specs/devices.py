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

"""Read and write the PCI devices that a flavor requests."""

from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import key
from hpcvirt.specs import vocabulary

_MAX_COUNT = 10 ** 9


def read(specs: Mapping[str, str]) -> tuple[shape.DeviceRequest, ...]:
    """Read the requests of ``pci_passthrough:alias``.

    :raises InvalidInput: for a malformed list or affinity policy
    """
    policy_row = vocabulary.PCI_NUMA_AFFINITY_POLICY
    word = specs.get(policy_row.name, '')
    if word:
        policy_row.check(word)
    affinity = shape.PCIAffinity(word) if word else None
    text = specs.get(vocabulary.PCI_ALIAS.name, '')
    if not text:
        return ()
    requests = []
    for term in text.split(','):
        alias, count = _term(term)
        if count:
            requests.append(shape.DeviceRequest(alias, count, affinity))
    return tuple(requests)


def write(devices: Sequence[shape.DeviceRequest]) -> dict[str, str]:
    """Write the requests.

    :raises InvalidInput: for Neutron ports, which a flavor cannot request,
        and for requests with different affinity policies
    """
    if not devices:
        return {}
    terms = []
    for device in devices:
        if device.alias is None or device.physnet is not None:
            raise exception.InvalidInput(
                'shape', 'a flavor cannot request Neutron ports')
        term = f'{device.alias}:{device.count}'
        if _parse(term) != (device.alias, device.count) or device.count < 1:
            raise exception.InvalidInput(
                'shape', f'{term[:64]!r} is not a PCI alias and a count')
        terms.append(term)
    specs = {vocabulary.PCI_ALIAS.name: ','.join(terms)}
    affinities = {device.affinity for device in devices}
    if len(affinities) > 1:
        raise exception.InvalidInput(
            'shape', 'all devices of a flavor must have the same affinity '
            'policy')
    affinity = affinities.pop()
    if affinity is not None:
        specs[vocabulary.PCI_NUMA_AFFINITY_POLICY.name] = affinity.value
    return specs


def _term(text: str) -> tuple[str, int]:
    found = _parse(text)
    if found is None:
        raise exception.InvalidInput(
            vocabulary.PCI_ALIAS.name,
            f'{text[:64]!r} is not of the form alias:count')
    return found


def _parse(text: str) -> tuple[str, int] | None:
    alias, colon, count = text.partition(':')
    alias, number = alias.strip(), key.integer(count)
    if (not alias or ',' in alias or not colon or number is None
            or not 0 <= number <= _MAX_COUNT):
        return None
    return alias, number
