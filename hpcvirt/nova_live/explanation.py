# SPDX-License-Identifier: Apache-2.0

"""Explain the result of a request in a cloud."""

import dataclasses
import typing
from collections.abc import Sequence

from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import verdict
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape as shape_model
from hpcvirt.nova import adapter
from hpcvirt.nova_live import boot_request as boot_requests
from hpcvirt.nova_live import judging
from hpcvirt.nova_live import view as views

#: Refusals that no change of the guest can avoid.
_BEYOND = (reasons.Code.CLOSED, reasons.Code.QUARANTINED,
           reasons.Code.TRAIT, reasons.Code.FORBIDDEN_TRAIT,
           reasons.Code.AGGREGATE, reasons.Code.ADDRESS_BITS,
           reasons.Code.MALFORMED_HOST,
           reasons.Code.EXTRA_SPEC)


def explain_boot(view: views.View, flavor: flavor_model.Flavor,
                 image: str | None = None,
                 ports: Sequence[str] = ()) -> verdict.Explanation:
    """Explain a request for a new instance.

    :param image: name or UUID of an image
    :param ports: UUIDs of ports
    """
    wanted = None
    if flavor in view.flavors:
        wanted = boot_requests.flavor_named(view.context, flavor.name)
    return _explain(view, boot_requests.new(
        view.context, wanted or boot_requests.flavor_of(flavor),
        boot_requests.image_named(image) if image else None, ports))


def explain_move(view: views.View, uuid: str) -> verdict.Explanation:
    """Explain to which hosts an instance could be migrated."""
    return _explain(view, boot_requests.move(view.context, uuid))


def _explain(view: views.View,
             request: boot_requests.BootRequest) -> verdict.Explanation:
    guest = _guest(request)
    verdicts = judging.judge(view, request)
    codes = {item.name: item.code for item in verdicts}
    return verdict.Explanation(request.name, verdicts, guest, tuple(
        host for host in view.fleet.hosts
        if isinstance(codes[host.name], reasons.Code)
        and codes[host.name] not in _BEYOND))


def _guest(request: boot_requests.BootRequest) -> guests.Guest:
    guest = compiled_flavor.make(request.flavor)
    ports = tuple(
        _port(each) for each in adapter.pci_requests(request.spec)
        if not adapter.is_of_flavor(each))
    if not ports:
        return guest
    shape = dataclasses.replace(
        guest.shape, devices=(*guest.shape.devices, *ports))
    return dataclasses.replace(guest, shape=shape, demand=guests.compile_shape(
        shape, request.flavor.vcpus, request.flavor.ram_mib).demand)


def _port(request: typing.Any) -> shape_model.GuestDevices:
    compiled = adapter.device_request(request)
    return shape_model.GuestDevices(
        None, compiled.count, compiled.affinity,
        str(compiled.specs[0].get('physical_network', '')))
