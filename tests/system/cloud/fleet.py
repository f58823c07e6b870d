# SPDX-License-Identifier: Apache-2.0

"""The machines that the fake compute services simulate.

Each machine has a topology that the project ships, and the settings (dedicated
CPUs, pages, reserves) that ``hpcvirt flavor plan`` proposes for it.
"""

import json
import pathlib
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from hpcvirt.model import cpuset
from tests.system.cloud import commands
from tests.system.cloud import settings as cloud_settings
from tests.system.cloud.config import compute

TOPOLOGIES = cloud_settings.REPOSITORY / 'etc' / 'hpcvirt' / 'topologies'

#: Topology file of each host. Two hosts are alike, so that instances can move;
#: the others differ in cells, sockets, SMT and page sizes.
FLEET = {
    'intel1': 'intel-2s-16c-smt.json',
    'intel2': 'intel-2s-16c-smt.json',
    'epyc1': 'epyc-2s-64c-nps4.json',
    'xeon1': 'xeon-2s-24c-snc2-1g.json',
    'opteron1': 'opteron-4s-12c.json',
}

#: The hosts that are alike. Tests wait until these have freed what moved away.
TWINS = ('intel1', 'intel2')
UPDATE_S, TWINS_UPDATE_S = 30, 5

#: Virtual functions of each SR-IOV port of a simulated host.
VFS_PER_PORT = 8


def write_topologies(settings: cloud_settings.Settings) -> None:
    """Copy the topologies under the names of the hosts."""
    for host, source in FLEET.items():
        document = json.loads((TOPOLOGIES / source).read_text())
        document['name'] = host
        _write(topology(settings, host), document)


def topology(settings: cloud_settings.Settings, host: str) -> pathlib.Path:
    """Return the path of a host's topology file."""
    return settings.etc / 'topologies' / f'{host}.json'


def machine(settings: cloud_settings.Settings, host: str) -> pathlib.Path:
    """Return the path of the file that a fake compute service reads."""
    return settings.etc / 'machines' / f'{host}.json'


#: The profile of the fleet, as the arguments of "hpcvirt flavor".
PROFILE = ('--profile', 'dense')


def plan_file(settings: cloud_settings.Settings) -> pathlib.Path:
    """Return the path of the plan for the fleet."""
    return settings.etc / 'plan.json'


def plan(settings: cloud_settings.Settings) -> dict[str, Any]:
    """Plan flavors and host settings for the fleet."""
    text = commands.output([
        settings.program('hpcvirt'), 'flavor', 'plan', '--format', 'json',
        *PROFILE, *(str(topology(settings, host)) for host in FLEET)])
    plan_file(settings).write_text(text)
    answer: dict[str, Any] = json.loads(text)
    return answer


def guest_plan_file(settings: cloud_settings.Settings) -> pathlib.Path:
    """Return the path of the plan for the libvirt host."""
    return settings.etc / 'guest-plan.json'


def plan_guests(settings: cloud_settings.Settings) -> None:
    """Plan flavors for the part of this machine that guests may use.

    Guests get an equal number of the cloud's huge pages from every cell.
    """
    hpcvirt = settings.program('hpcvirt')
    document = json.loads(commands.output([
        hpcvirt, 'host', 'show', '--format', 'json']))
    document['name'] = compute.LIBVIRT_HOST
    cells = [cell for cell in document['cells'] if cell['cpus']]
    path = topology(settings, compute.LIBVIRT_HOST)
    _write(path, document)
    profile = settings.etc / 'guest-profile.yaml'
    profile.write_text(
        'base: dense\nname_prefix: guest\nsmallest_cores: 1\n'
        'memory_step_mib: 64\ndisk_gib: 1\n')
    guest_plan_file(settings).write_text(commands.output([
        hpcvirt, 'flavor', 'plan', '--format', 'json', '--profile',
        str(profile), '--pages', f'2M:{settings.pages // len(cells)}',
        str(path)]))


def write(settings: cloud_settings.Settings) -> None:
    """Write nova.conf and the machine file of each simulated host."""
    write_topologies(settings)
    configs = plan(settings)['host_config']
    plan_guests(settings)
    for host in FLEET:
        document = json.loads(topology(settings, host).read_text())
        _write(machine(settings, host),
               simulated_machine(document, configs[host]))
        compute.write_fake(
            settings, host, configs[host],
            TWINS_UPDATE_S if host in TWINS else UPDATE_S)


def simulated_machine(document: Mapping[str, Any],
                      config: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a machine to its fake compute service.

    :param document: the topology of the machine
    :param config: the settings that the plan proposes for it
    """
    dedicated = cpuset.parse(config['cpu_dedicated_set'])
    shared = cpuset.parse(config.get('cpu_shared_set') or '')
    cells = []
    for cell in document['cells']:
        # The libvirt driver too reports only cells with CPUs.
        if not cell['cpus']:
            continue
        cells.append({
            'id': cell['id'],
            'socket': cell['socket'],
            'dedicated': [c for c in cell['cpus'] if c in dedicated],
            'shared': [c for c in cell['cpus'] if c in shared],
            'siblings': cell['siblings'],
            'memory_mib': cell['memory_mib'],
            'pages': config['pages'][str(cell['id'])],
        })
    return {'cells': cells, 'devices': _functions(document['devices'])}


def _functions(devices: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    functions = []
    for device in devices:
        if not device['total_vfs']:
            continue
        bus, _, port = device['address'].rpartition('.')
        bus = bus.rpartition(':')[0]
        shared = {'status': 'available', 'numa_node': device['cell'],
                  'vendor_id': compute.VF_VENDOR}
        functions.append({
            **shared, 'address': device['address'], 'product_id': '1528',
            'dev_type': 'type-PF', 'parent_addr': None,
            'label': f'label_{compute.VF_VENDOR}_1528'})
        functions += [{
            **shared, 'address': f'{bus}:{16 + int(port):02x}.{number}',
            'product_id': compute.VF_PRODUCT, 'dev_type': 'type-VF',
            'parent_addr': device['address'],
            'label': f'label_{compute.VF_VENDOR}_{compute.VF_PRODUCT}',
        } for number in range(min(VFS_PER_PORT, device['total_vfs']))]
    return functions


def _write(path: pathlib.Path, document: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + '\n')
