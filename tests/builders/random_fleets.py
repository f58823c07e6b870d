# SPDX-License-Identifier: Apache-2.0

"""Random fleets of several classes."""

import dataclasses

from hpcvirt.flavors import fleet_plan
from hpcvirt.fleet import class_plans
from hpcvirt.fleet import document as documents
from hpcvirt.model import host as host_model
from hpcvirt.topology import snapshot
from tests.builders import hosts
from tests.builders import wired

_VFS = {'vendor_id': '15b3', 'product_id': '101e'}
_GPUS = {'kind': 'whole', 'vendor_id': '10de', 'product_id': '20b0',
         'alias': 'gpu'}
_SETS = {'kind': 'whole', 'vendor_id': '10de', 'product_id': '2330',
         'alias': 'set', 'sets': 'link', 'sizes': [1, 2, 4]}


def make_document(dice, pack_cells=False):
    """Create a fleet document of two to five classes."""
    classes = {}
    for number in range(dice.randint(2, 5)):
        name = f'c{number}'
        classes[name] = _a_class(dice, name)
        classes[name]['profile']['pack_cells'] = pack_cells
    return documents.read({'schema_version': 1, 'classes': classes}, 'fleet')


def _a_class(dice, name):
    kind = dice.choice(('plain', 'plain', 'vfs', 'gpus', 'sets'))
    cores, threads = dice.choice((2, 4, 6)), dice.choice((1, 2))
    mib = dice.choice((4096, 8192))
    profile = {'base': dice.choice(('default', 'dense')),
               'memory_step_mib': 64, 'smallest_cores': 1,
               'host_reserve_mib_per_cell': 256}
    affinity = dice.choice(('preferred', 'required'))
    if kind == 'sets':
        host = wired.tree(links=dice.choice(('all', 'cell', 'none')), cores=4,
                          name=name)
        profile['devices'] = [{**_SETS, 'alias': f'set{name}',
                               'affinity': affinity}]
    else:
        cells = dice.choice((1, 2, 2, 4))
        vfs = {0: 4} if kind == 'vfs' else None
        gpus = {0: 2, cells - 1: 2} if kind == 'gpus' else None
        host = hosts.build(cells=cells, cores=cores, threads=threads, mib=mib,
                           vfs=vfs, gpus=gpus, name=name)
        if vfs:
            profile['devices'] = [{**_VFS, 'alias': f'vf{name}',
                                   'affinity': affinity}]
        elif gpus:
            profile['devices'] = [{**_GPUS, 'alias': f'gpu{name}',
                                   'per_instance': dice.choice((1, 'share')),
                                   'affinity': affinity}]
    if dice.random() < 0.3:
        profile['extra_specs'] = {f'trait:CUSTOM_{name.upper()}': 'required'}
    own = {'hosts': [{'topology': snapshot.make_json(_with_pages(dice, host)),
                      'name': name, 'count': dice.choice((1, 2))}],
           'profile': profile, 'name_prefix': f'f{name}'}
    if dice.random() < 0.4:
        own['settings'] = 'current'
    if dice.random() < 0.3:
        own['traits'] = ['CUSTOM_SITE']
        own['isolated'] = dice.random() < 0.6
    return own


def _with_pages(dice, host):
    """Let a host have some huge pages now."""
    cells = []
    for cell in host.cells:
        huge = cell.memory_mib // 2 * dice.choice((0, 40, 80, 95)) // 100
        small = (cell.memory_mib - 2 * huge) * 256
        cells.append(dataclasses.replace(cell, pages=(
            host_model.PagePool(4, small), host_model.PagePool(2048, huge))))
    return dataclasses.replace(host, cells=tuple(cells))


def plan(document):
    """Plan all classes of a document."""
    machines = {name: own.list_topologies()
                for name, own in document.classes.items()}
    return fleet_plan.merge_plans(
        class_plans.plan_classes(document, machines))
