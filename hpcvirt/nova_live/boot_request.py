# SPDX-License-Identifier: Apache-2.0

"""Make the RequestSpec that nova-scheduler would receive.

For a new instance it is made as in nova-api, and for an existing instance as
in nova-conductor for a migration.
"""

import dataclasses
import typing
from collections.abc import Mapping
from collections.abc import Sequence
from urllib import parse

import nova.conf
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.network import neutron
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova.virt import hardware
from oslo_utils import uuidutils

from hpcvirt import exception
from hpcvirt.model import flavor as flavor_model
from hpcvirt.nova_live import cell_hosts
from hpcvirt.nova_live import cloud_flavors
from hpcvirt.nova_live import masking
from hpcvirt.nova_live import providers


@dataclasses.dataclass(frozen=True)
class BootRequest:
    """A request to nova-scheduler.

    :ivar spec: the RequestSpec
    :ivar name: the flavor or the server, for messages
    :ivar flavor: the flavor, with the properties of the image that matter
    """

    spec: typing.Any
    name: str
    flavor: flavor_model.Flavor


def flavor_named(context: typing.Any, name: str) -> typing.Any:
    """Read a flavor of the cloud; None if it does not exist."""
    try:
        return objects.Flavor.get_by_name(context, name)
    except nova_exception.FlavorNotFoundByName:
        return None


def flavor_of(flavor: flavor_model.Flavor) -> typing.Any:
    """Make a Flavor object of Nova, which need not exist in the cloud."""
    return objects.Flavor(
        id=0, name=flavor.name, flavorid=flavor.name, vcpus=flavor.vcpus,
        memory_mb=flavor.ram_mib, root_gb=flavor.disk_gib, ephemeral_gb=0,
        swap=0, vcpu_weight=0, rxtx_factor=1.0, disabled=False,
        is_public=True, extra_specs=dict(flavor.extra_specs))


def new(context: typing.Any, flavor: typing.Any,
        image: Mapping[str, typing.Any] | None = None,
        ports: Sequence[str] = ()) -> BootRequest:
    """Make the request for a new instance.

    :param flavor: a Flavor of Nova, see :func:`flavor_named` and
        :func:`flavor_of`
    :param image: see :func:`image_named`
    :param ports: UUIDs of ports
    :raises InvalidInput: if Nova would refuse the request
    :raises Unreachable: if a service cannot be used
    """
    # Any host takes an image of this format.
    found = image or {'disk_format': 'raw', 'properties': {}}
    meta = objects.ImageMeta.from_dict(found)
    try:
        policy = hardware.get_pci_numa_policy_constraint(flavor, meta)
        topology = hardware.numa_get_constraints(flavor, meta)
        requests = pci_request.get_pci_requests_from_flavor(flavor, policy)
        networks, groups, level = _networks(context, ports, requests, policy)
        spec = objects.RequestSpec.from_components(
            context, uuidutils.generate_uuid(), meta, flavor, topology,
            requests, {}, None, nova.conf.CONF.default_schedule_zone,
            project_id=context.project_id or '', user_id='',
            port_resource_requests=groups, request_level_params=level)
    except (nova_exception.NovaException, ValueError) as exc:
        raise exception.InvalidInput(
            f'flavor {flavor.name}', 'is refused by Nova: '
            + masking.mask(exc)) from None
    if networks:
        spec.network_metadata = networks
    spec.is_bfv = False
    spec.requested_networks = objects.NetworkRequestList(objects=[
        objects.NetworkRequest(port_id=port) for port in ports])
    return BootRequest(spec, flavor.name, cloud_flavors.translate(
        flavor, found['properties']))


def move(context: typing.Any, uuid: str) -> BootRequest:
    """Make the request for a cold migration of an instance.

    :raises InvalidInput: if there is no such instance, or it is on no host
    :raises Unreachable: if a database or Neutron cannot be used
    """
    if not uuidutils.is_uuid_like(uuid):
        raise exception.InvalidInput('--server', f'{uuid[:64]!r} is not a '
                                     'UUID')
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(context, uuid)
        if mapping.cell_mapping is None:
            raise exception.InvalidInput('--server', f'{uuid} is on no host')
        spec = objects.RequestSpec.get_by_instance_uuid(context, uuid)
        with nova_context.target_cell(context,
                                      mapping.cell_mapping) as targeted:
            instance = objects.Instance.get_by_uuid(
                targeted, uuid, expected_attrs=[
                    'flavor', 'system_metadata', 'info_cache'])
            _prepare(context, spec, instance, mapping.cell_mapping)
    except nova_exception.NotFound:
        raise exception.InvalidInput(
            '--server', f'the cloud has no server {uuid}') from None
    except cell_hosts.UNREADABLE as exc:
        raise exception.Unreachable(
            f'server {uuid} cannot be read: {masking.mask(exc)}') from None
    properties = spec.image.properties if spec.image else None
    return BootRequest(spec, f'server {uuid}', cloud_flavors.translate(
        instance.flavor, cloud_flavors.image_properties(
            instance.system_metadata) if properties else {}))


def _prepare(context: typing.Any, spec: typing.Any, instance: typing.Any,
             cell: typing.Any) -> None:
    """Prepare the RequestSpec as nova-conductor does."""
    spec.reset_forced_destinations()
    spec.retry = None
    spec.ignore_hosts = [instance.host] if instance.host else []
    spec.flavor = instance.flavor
    spec.numa_topology = hardware.numa_get_constraints(
        instance.flavor, instance.image_meta)
    utils.setup_instance_group(context, spec)
    groups, level = neutron.API().get_requested_resource_for_instance(
        context, instance.uuid)
    spec.requested_resources = groups
    spec.request_level_params = level
    spec.generate_request_groups_from_pci_requests()
    spec.requested_destination = objects.Destination(cell=cell)
    spec.ensure_project_and_user_id(instance)
    spec.ensure_network_information(instance)
    if 'is_bfv' not in spec:
        spec.is_bfv = not instance.image_ref


def _networks(context: typing.Any, ports: Sequence[str],
              requests: typing.Any, policy: str | None) -> typing.Any:
    if not ports:
        return None, [], None
    try:
        return neutron.API().create_resource_requests(
            context, objects.NetworkRequestList(objects=[
                objects.NetworkRequest(port_id=port) for port in ports]),
            requests, affinity_policy=policy)
    except nova_exception.PortNotFound as exc:
        raise exception.InvalidInput('--port', masking.mask(exc)) from None
    except neutron.neutron_client_exc.NeutronClientException as exc:
        raise exception.Unreachable(
            f'Neutron cannot be used: {masking.mask(exc)}') from None


def image_named(name: str) -> dict[str, typing.Any]:
    """Read an image from Glance, with the credentials of ``[placement]``.

    :param name: its name or UUID
    :raises InvalidInput: if there is none, or more than one
    :raises Unreachable: if Glance cannot be used
    """
    if uuidutils.is_uuid_like(name):
        found = providers.get_of('image', f'/v2/images/{name}')
        images = [found] if found else []
    else:
        images = providers.get_of('image', '/v2/images?name='
                                  + parse.quote(name))['images']
    if len(images) != 1:
        raise exception.InvalidInput(
            '--image', f'the cloud has {len(images) or "no"} images '
            f'{name[:64]!r}' + (': give the UUID of one' if images else ''))
    image = images[0]
    return {'id': image['id'], 'disk_format': image.get('disk_format'),
            'properties': {key: value for key, value in image.items()
                           if isinstance(value, str)}}
