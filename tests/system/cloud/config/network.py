# SPDX-License-Identifier: Apache-2.0

"""Write the configuration of Neutron, ML2 and the Open vSwitch agent."""

from tests.system.cloud import inifile
from tests.system.cloud import settings as cloud_settings
from tests.system.cloud.config import shared

#: The bridge with the machine's address in the guests' network, and the bridge
#: that guests are plugged into. The names avoid conflicts with other bridges.
EXTERNAL_BRIDGE = 'br-hpcvirt'
INTEGRATION_BRIDGE = 'br-hpcint'
PHYSICAL_NETWORK = 'physnet1'
HOST = 'libvirt1'


def ovsdb(settings: cloud_settings.Settings) -> str:
    """Return the connection to the database of Open vSwitch."""
    return f'tcp:{cloud_settings.IP}:{settings.port("ovsdb")}'


def write(settings: cloud_settings.Settings) -> None:
    """Write the configuration files."""
    directory = settings.etc / 'neutron'
    inifile.write(directory / 'neutron.conf', _server(settings))
    inifile.write(directory / 'ml2.ini', _ml2())
    inifile.write(directory / 'ovs-agent.ini', _agent(settings))


def _server(settings: cloud_settings.Settings) -> inifile.Sections:
    return inifile.merge(
        shared.messages(settings), shared.database(settings, 'neutron'),
        shared.token(settings, 'neutron'), {
            'DEFAULT': {
                'state_path': str(settings.run / 'neutron'),
                'core_plugin': 'ml2',
                'service_plugins': '',
                'auth_strategy': 'keystone',
                'notify_nova_on_port_status_changes': True,
                'notify_nova_on_port_data_changes': True,
                'api_workers': 1,
                'rpc_workers': 1,
                'api_paste_config': str(settings.venv / 'etc' / 'neutron'
                                        / 'api-paste.ini'),
                'dhcp_agent_notification': False,
                'global_physnet_mtu': 1400,
            },
            'nova': shared.identity(settings, 'nova'),
            'agent': {'root_helper': '""'},
        })


def _ml2() -> inifile.Sections:
    return {
        'ml2': {
            'type_drivers': 'flat,local',
            'tenant_network_types': 'local',
            'mechanism_drivers': 'openvswitch',
            'extension_drivers': 'port_security',
        },
        'ml2_type_flat': {'flat_networks': PHYSICAL_NETWORK},
        # Rules are stored but not enforced, so that the packet filter of the
        # machine does not change.
        'securitygroup': {'enable_security_group': True,
                          'firewall_driver': 'noop'},
    }


def _agent(settings: cloud_settings.Settings) -> inifile.Sections:
    return inifile.merge(shared.messages(settings), {
        'DEFAULT': {'host': HOST},
        'ovs': {
            'integration_bridge': INTEGRATION_BRIDGE,
            'bridge_mappings': f'{PHYSICAL_NETWORK}:{EXTERNAL_BRIDGE}',
            'datapath_type': 'netdev',
            'ovsdb_connection': ovsdb(settings),
            'of_listen_address': cloud_settings.IP,
            'of_listen_port': settings.port('openflow'),
        },
        'agent': {'root_helper': '', 'root_helper_daemon': ''},
        'securitygroup': {'enable_security_group': True,
                          'firewall_driver': 'noop'},
        'privsep': {'helper_command': settings.program('privsep-helper')},
    })
