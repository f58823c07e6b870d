# SPDX-License-Identifier: Apache-2.0

"""Compare the servers in Nova with the hosts and with Placement.

The cloud's Python environment runs it. The arguments are the plan of the fleet
and prefixes of server names. It prints one JSON object: ``servers`` by status,
``messages`` of servers in error, ``silent`` (the hosts of servers in error
without a message), ``faults`` (sentences), and ``pinned`` and ``allocated``
PCPUs by host.
"""

import collections
import json
import sys

import openstack

#: It has server topologies with pins.
VERSION = '2.86'


def main(plan_file, *prefixes):
    """Print the state of the servers with these name prefixes."""
    with open(plan_file) as file:
        plan = json.load(file)
    cloud = openstack.connect()
    servers = [server for server in _all_servers(cloud)
               if server['name'].startswith(prefixes)]
    faults, pinned = _check_pins(cloud, servers)
    faults += _check_pages(servers, plan)
    allocated, more, hosts = _check_placement(
        cloud, servers, pinned, set(plan['host_config']))
    print(json.dumps({
        'servers': collections.Counter(s['status'] for s in servers),
        'messages': collections.Counter(
            s.get('fault', {}).get('message', '')[:120] for s in servers
            if s['status'] == 'ERROR'),
        # A server that was scheduled to a host whose compute service was
        # killed has no host in Nova, but it has allocations.
        'silent': sorted({s['OS-EXT-SRV-ATTR:host'] or hosts.get(s['id'], '')
                          for s in servers
                          if s['status'] == 'ERROR'
                          and not s.get('fault', {}).get('message')}),
        'faults': faults + more, 'allocated': allocated,
        'pinned': {host: len(cpus) for host, cpus in pinned.items()},
    }))


def _all_servers(cloud):
    servers = []
    marker = ''
    while True:
        page = cloud.compute.get(
            f'/servers/detail?all_tenants=1&limit=500{marker}',
            microversion=VERSION).json()['servers']
        servers += page
        if len(page) < 500:
            return servers
        marker = f'&marker={page[-1]["id"]}'


def _topology(cloud, server):
    return cloud.compute.get(f'/servers/{server["id"]}/topology',
                             microversion=VERSION).json()['nodes']


def _check_pins(cloud, servers):
    faults = []
    pinned = collections.defaultdict(dict)
    for server in servers:
        host = server['OS-EXT-SRV-ATTR:host']
        if server['status'] != 'ACTIVE' or not host:
            continue
        server['nodes'] = _topology(cloud, server)
        cpus = [cpu for node in server['nodes']
                for cpu in node['cpu_pinning'].values()]
        if len(cpus) != server['flavor']['vcpus']:
            faults.append(f'{server["name"]} has {len(cpus)} pins')
        for cpu in cpus:
            if cpu in pinned[host]:
                faults.append(f'{host}: CPU {cpu} is pinned by '
                              f'{server["name"]} and {pinned[host][cpu]}')
            pinned[host][cpu] = server['name']
    return faults, pinned


def _check_pages(servers, plan):
    used = collections.Counter()
    for server in servers:
        for node in server.get('nodes', ()):
            size = node.get('pagesize_kb') or 2048
            used[server['OS-EXT-SRV-ATTR:host'], node['host_node'],
                 size] += node['memory_mb'] * 1024 // size
    faults = []
    for (host, cell, size), pages in used.items():
        pool = plan['host_config'][host]['pages'][str(cell)].get(str(size), 0)
        if pages > pool:
            faults.append(f'{host}: cell {cell} has {pool} pages of '
                          f'{size} KiB, its servers use {pages}')
    return faults


def _check_placement(cloud, servers, pinned, hosts):
    faults = []
    allocated = {}
    host_of = {}
    server_ids = {server['id'] for server in servers}
    placement = cloud.placement
    for provider in placement.get(
            '/resource_providers').json()['resource_providers']:
        host = provider['name']
        if host not in hosts:
            continue
        found = placement.get(
            f'/resource_providers/{provider["uuid"]}/allocations'
        ).json()['allocations']
        allocated[host] = sum(item['resources'].get('PCPU', 0)
                              for item in found.values())
        if allocated[host] != len(pinned.get(host, ())):
            faults.append(f'{host}: Placement has {allocated[host]} PCPUs, '
                          f'{len(pinned.get(host, ()))} are pinned')
        host_of.update(dict.fromkeys(found, host))
        faults += [f'{host}: allocation of unknown consumer {consumer}'
                   for consumer in set(found) - server_ids]
    return allocated, faults, host_of


if __name__ == '__main__':
    main(*sys.argv[1:])
