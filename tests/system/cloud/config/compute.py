# SPDX-License-Identifier: Apache-2.0

"""Write nova.conf for each service of Nova.

hpcvirt is enabled as an operator enables it: its filter in
``available_filters`` and ``enabled_filters``, its weighers in
``weight_classes``. The validators need no option, because nova-api finds them
by their entry point.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from tests.system.cloud import inifile
from tests.system.cloud import settings as cloud_settings
from tests.system.cloud.config import network
from tests.system.cloud.config import shared

LIBVIRT_HOST = 'libvirt1'

#: The virtual functions of the simulated hosts, and the alias for them.
ALIAS = 'hpc-vf'
VF_VENDOR = '8086'
VF_PRODUCT = '1515'

FILTERS = ('ComputeFilter', 'ComputeCapabilitiesFilter',
           'ImagePropertiesFilter', 'ServerGroupAntiAffinityFilter',
           'ServerGroupAffinityFilter')


def write(settings: cloud_settings.Settings) -> None:
    """Write the files of the API, the conductor and both schedulers."""
    directory = settings.etc / 'nova'
    control = inifile.merge(_common(settings), _data(settings))
    paste = settings.venv / 'etc' / 'nova' / 'api-paste.ini'
    directory.mkdir(parents=True, exist_ok=True)
    (directory / 'api-paste.ini').write_text(paste.read_text())
    inifile.write(directory / 'nova-api.conf', control)
    inifile.write(directory / 'nova-conductor.conf', control)
    for name in ('nova-scheduler', 'nova-scheduler-2'):
        inifile.write(directory / f'{name}.conf', inifile.merge(
            control, {'DEFAULT': {'host': name}}))


def write_fake(settings: cloud_settings.Settings, name: str,
               host_config: Mapping[str, Any], update_s: int) -> None:
    """Write the file of a simulated host.

    :param host_config: the settings that the plan proposes for the host
    :param update_s: how often it counts its resources again
    """
    dedicated = host_config['cpu_dedicated_set']
    shared_set = host_config.get('cpu_shared_set')
    sections = inifile.merge(_common(settings), _state(settings, name), {
        'DEFAULT': {
            'host': name,
            'compute_driver': 'hpcvirt_fake.TopologyDriver',
            'update_resources_interval': update_s,
            'reserved_host_memory_mb':
                host_config['reserved_host_memory_mb'],
        },
        'compute': {'cpu_dedicated_set': dedicated},
    })
    if shared_set:
        sections['compute']['cpu_shared_set'] = shared_set
    if host_config.get('reserved_huge_pages'):
        sections['DEFAULT']['reserved_huge_pages'] = [
            f'node:{item["node"]},size:{item["size"]},count:{item["count"]}'
            for item in host_config['reserved_huge_pages']]
    inifile.write(settings.etc / 'nova' / f'{name}.conf', sections)
    # A compute service that is restarted must find its identity. Nova writes
    # this file for the libvirt driver only.
    identity = settings.run / 'nova' / name / 'compute_id'
    identity.write_text(node_uuid(name))


def node_uuid(name: str) -> str:
    """Return the identity of a simulated host, the same at every start."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f'{name}.hpcvirt.test'))


def write_libvirt(settings: cloud_settings.Settings, dedicated: str) -> None:
    """Write the file of the host with real guests."""
    inifile.write(
        settings.etc / 'nova' / f'{LIBVIRT_HOST}.conf',
        inifile.merge(_common(settings), _state(settings, LIBVIRT_HOST), {
            'DEFAULT': {
                'host': LIBVIRT_HOST,
                'compute_driver': 'libvirt.LibvirtDriver',
                'force_config_drive': True,
                'vif_plugging_is_fatal': True,
                'vif_plugging_timeout': 120,
                'reserved_host_memory_mb': 512,
            },
            'libvirt': {
                'virt_type': settings.virt_type,
                'connection_uri': settings.libvirt_uri,
                'images_type': 'qcow2',
                **_processor(settings),
            },
            'compute': {'cpu_dedicated_set': dedicated},
            # An emulated CPU need not match the CPU of this machine.
            'workarounds': {'skip_cpu_compare_at_startup':
                            settings.virt_type == 'qemu'},
            'os_vif_ovs': {'ovsdb_connection': network.ovsdb(settings)},
        }))


def _processor(settings: cloud_settings.Settings) -> dict[str, Any]:
    if settings.virt_type == 'kvm':
        return {'cpu_mode': 'host-model'}
    # The model that DevStack uses. The default model of QEMU makes OpenBLAS
    # choose code that QEMU cannot run.
    return {'cpu_mode': 'custom', 'cpu_models': 'Nehalem'}


def _common(settings: cloud_settings.Settings) -> inifile.Sections:
    paste = settings.etc / 'nova' / 'api-paste.ini'
    helper = {'helper_command': settings.program('privsep-helper')}
    return inifile.merge(
        shared.messages(settings), shared.token(settings, 'nova'), {
            'DEFAULT': {
                'state_path': str(settings.run / 'nova'),
                'debug': True,
                'my_ip': cloud_settings.IP,
                'osapi_compute_workers': 1,
                'rootwrap_config': str(settings.venv / 'etc' / 'nova'
                                       / 'rootwrap.conf'),
                'service_down_time': 60,
                'report_interval': 10,
                'update_resources_interval': 30,
                # Otherwise the scheduler finds new hosts up to a minute late.
                'periodic_fuzzy_delay': 0,
                'shutdown_timeout': 5,
                'default_log_levels':
                    'amqp=WARN,amqplib=WARN,sqlalchemy=WARN,stevedore=WARN,'
                    'oslo.messaging=WARN,oslo_messaging=WARN,'
                    'oslo_concurrency=WARN,oslo_db=WARN,oslo_policy=WARN,'
                    'oslo_service=WARN,keystoneauth=WARN,'
                    'keystonemiddleware=WARN,urllib3=WARN,requests=WARN,'
                    'routes=WARN,dogpile=WARN,glanceclient=WARN,iso8601=WARN,'
                    'openstack=WARN,os_brick=WARN,vif_plug_ovs=WARN,'
                    'ovsdbapp=WARN,nova.privsep=WARN',
            },
            'wsgi': {'api_paste_config': str(paste)},
            'api': {'auth_strategy': 'keystone'},
            'service_user': {'send_service_user_token': True,
                             **shared.identity(settings, 'nova')},
            'placement': {'valid_interfaces': 'public',
                          **shared.identity(settings, 'placement')},
            'glance': shared.identity(settings, 'glance'),
            'neutron': {
                'valid_interfaces': 'public',
                'ovs_bridge': network.INTEGRATION_BRIDGE,
                **shared.identity(settings, 'neutron'),
            },
            'conductor': {'workers': 1},
            'scheduler': {'workers': 1,
                          'discover_hosts_in_cells_interval': 5},
            'filter_scheduler': _scheduling(settings),
            'quota': {'driver': 'nova.quota.NoopQuotaDriver'},
            'pci': {
                'device_spec': json.dumps({'vendor_id': VF_VENDOR,
                                           'product_id': VF_PRODUCT}),
                'alias': json.dumps({
                    'vendor_id': VF_VENDOR, 'product_id': VF_PRODUCT,
                    'device_type': 'type-VF', 'name': ALIAS}),
            },
            'vnc': {'enabled': False},
            'nova_sys_admin': helper,
            'privsep_osbrick': helper,
            'vif_plug_ovs_privileged': helper,
            'vif_plug_linux_bridge_privileged': helper,
        })


def _scheduling(settings: cloud_settings.Settings) -> dict[str, inifile.Value]:
    if settings.filter == 'upstream':
        return {'enabled_filters': ','.join(
            [*FILTERS, 'NUMATopologyFilter', 'PciPassthroughFilter'])}
    return {
        'available_filters': ['nova.scheduler.filters.all_filters',
                              'hpcvirt.nova.filters.all_filters'],
        'enabled_filters': ','.join([*FILTERS, 'HPCTopologyFilter']),
        'weight_classes': 'nova.scheduler.weights.all_weighers,'
                          'hpcvirt.nova.weights.all_weighers',
    }


def _data(settings: cloud_settings.Settings) -> inifile.Sections:
    # Not for compute services: Nova does not run them with a database.
    cell = shared.database(settings, 'nova_cell1')
    return inifile.merge(cell, {
        'api_database': shared.database(settings, 'nova_api')['database']})


def _state(settings: cloud_settings.Settings, name: str) -> inifile.Sections:
    directory = settings.run / 'nova' / name
    (directory / 'instances').mkdir(parents=True, exist_ok=True)
    return {'DEFAULT': {'state_path': str(directory),
                        'instances_path': str(directory / 'instances')}}
