# SPDX-License-Identifier: Apache-2.0

"""Create the users, services and endpoints of the cloud in Keystone.

The cloud's Python environment runs it, as one process instead of thirty client
commands. The arguments are the name, type and URL of each service. The users
of the services get the password in ``OS_PASSWORD``.
"""

import os
import sys

import openstack


def main(*words: str) -> None:
    """Create what does not exist."""
    password = os.environ['OS_PASSWORD']
    identity = openstack.connect().identity
    admin = identity.find_role('admin')
    service_role = (identity.find_role('service')
                    or identity.create_role(name='service'))
    project = (identity.find_project('service')
               or identity.create_project(name='service', domain_id='default'))
    for name, kind, url in zip(words[::3], words[1::3], words[2::3],
                               strict=True):
        user = identity.find_user(name) or identity.create_user(
            name=name, password=password, domain_id='default',
            default_project_id=project.id)
        for role in (admin, service_role):
            identity.assign_project_role_to_user(project, user, role)
        if identity.find_service(name):
            continue
        service = identity.create_service(name=name, type=kind)
        for interface in ('public', 'internal', 'admin'):
            identity.create_endpoint(
                service_id=service.id, interface=interface,
                region_id='RegionOne', url=url)


if __name__ == '__main__':
    main(*sys.argv[1:])
