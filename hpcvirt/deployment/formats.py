# SPDX-License-Identifier: Apache-2.0

"""The forms in which the configuration of hosts can be had."""

from collections.abc import Callable
from collections.abc import Mapping

from hpcvirt.deployment import ansible
from hpcvirt.deployment import edpm
from hpcvirt.deployment import host_files
from hpcvirt.deployment import kolla
from hpcvirt.deployment import tree
from hpcvirt.flavors import planned as plans


def write_hosts(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the files of each host, below a folder of its name."""
    return tuple(
        tree.File(f'{planned.name}/{file.path}', file.text, file.activate)
        for planned in plan.hosts
        for file in host_files.files(planned, plan))


FORMATS: Mapping[str, Callable[[plans.Plan], tuple[tree.File, ...]]] = {
    'files': write_hosts,
    'kolla': kolla.files,
    'kayobe': kolla.kayobe_files,
    'edpm': edpm.files,
    'ansible': ansible.files,
}
