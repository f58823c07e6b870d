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

"""Explain what becomes of a request in a cloud."""

import dataclasses
import typing
from collections.abc import Sequence

from hpcvirt.fit import reasons
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state
from hpcvirt.fleet import verdict
from hpcvirt.model import shape as shape_model
from hpcvirt.nova import adapter
from hpcvirt.nova.controller import judging
from hpcvirt.nova.controller import request as requests
from hpcvirt.nova.controller import view as views

#: What no change of the guest helps against.
_BEYOND = (reasons.Code.CLOSED, reasons.Code.QUARANTINED,
           reasons.Code.MALFORMED_HOST, reasons.Code.EXTRA_SPEC)


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The verdicts, and from where smaller changes can be looked for.

    :ivar name: what was asked for
    :ivar hosts: those that refuse the guest by what it needs
    """

    name: str
    verdicts: tuple[verdict.Verdict, ...]
    guest: guests.Guest
    hosts: tuple[state.FleetHost, ...]


def of_flavor(view: views.View, flavor: catalogue.Flavor,
              image: str | None = None,
              ports: Sequence[str] = ()) -> Explanation:
    """Explain a request for a new instance.

    :param image: name or UUID of an image
    :param ports: UUIDs of ports
    """
    wanted = None
    if flavor in view.flavors:
        wanted = requests.flavor_named(view.context, flavor.name)
    return _explain(view, requests.new(
        view.context, wanted or requests.flavor_of(flavor),
        requests.image_named(image) if image else None, ports))


def of_server(view: views.View, uuid: str) -> Explanation:
    """Explain to which hosts an instance could be migrated."""
    return _explain(view, requests.move(view.context, uuid))


def _explain(view: views.View, request: requests.Request) -> Explanation:
    guest = _guest(request)
    verdicts = judging.judge(view, request)
    codes = {item.name: item.code for item in verdicts}
    return Explanation(request.name, verdicts, guest, tuple(
        host for host in view.fleet.hosts
        if isinstance(codes[host.name], reasons.Code)
        and codes[host.name] not in _BEYOND))


def _guest(request: requests.Request) -> guests.Guest:
    guest = guests.of_flavor(request.flavor)
    ports = tuple(
        _port(each) for each in adapter.pci_requests(request.spec)
        if not adapter.is_of_flavor(each))
    if not ports:
        return guest
    shape = dataclasses.replace(
        guest.shape, devices=(*guest.shape.devices, *ports))
    return guests.of_shape(shape, request.flavor.vcpus,
                           request.flavor.ram_mib)


def _port(request: typing.Any) -> shape_model.DeviceRequest:
    compiled = adapter.device_request(request)
    return shape_model.DeviceRequest(
        None, compiled.count, compiled.affinity,
        str(compiled.specs[0].get('physical_network', '')))
