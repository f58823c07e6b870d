# SPDX-License-Identifier: Apache-2.0

"""Create flavors with pasted commands and with ``flavor apply``.

Both must give the same flavors, and a second time must change nothing. A
pasted command takes seconds, so that only some are pasted.
"""

import json
import os
import subprocess
from collections.abc import Collection
from typing import Any

from tests.system.cloud import errors
from tests.system.cloud import fleet
from tests.system.cloud import progress
from tests.system.cloud import settings as cloud_settings

#: Of how many pasted commands one is run.
PASTED = 4

#: The fields by which flavors are compared; the cloud chooses their ids.
FIELDS = ('name', 'vcpus', 'ram', 'disk', 'swap', 'OS-FLV-EXT-DATA:ephemeral',
          'os-flavor-access:is_public', 'properties')


def check(settings: cloud_settings.Settings) -> None:
    """Create the fleet's flavors in both ways and compare them.

    :raises CloudError: if they differ, or a second run changes something
    """
    hosts = [str(fleet.topology(settings, host)) for host in fleet.FLEET]
    names = [flavor['name'] for flavor in json.loads(
        fleet.plan_file(settings).read_text())['flavors']]
    _delete(settings, names)
    with progress.step('created the flavors with pasted commands'):
        script = _run(settings, [
            settings.program('hpcvirt'), 'flavor', 'plan', '--format',
            'shell', *fleet.PROFILE, *hosts])
        commands = [line for line in script.splitlines()
                    if not line.startswith('#')]
        _run(settings, ['bash', '-e', '-u', '-c',
                        '\n'.join(commands[::PASTED])])
    pasted = _listed(settings, {*names} & {*_flavors(settings)})
    if len(pasted) != len(commands[::PASTED]):
        raise errors.CloudError(f'the commands created only {sorted(pasted)}')
    apply = [settings.program('hpcvirt'), 'flavor', 'apply', '--apply',
             *fleet.PROFILE, *hosts]
    with progress.step('applied the plan to them'):
        _run(settings, apply)
    both = _listed(settings, names)
    _check_planned(settings, both)
    _check_same('flavor apply after the commands', pasted, both)
    ids = _ids(settings, names)
    _delete(settings, names)
    with progress.step('created the flavors with flavor apply'):
        _run(settings, apply)
    applied = _listed(settings, names)
    _check_same('flavor apply', both, applied)
    new_ids = _ids(settings, names)
    if set(new_ids.values()) & set(ids.values()):
        raise errors.CloudError('flavor apply did not create new flavors')
    _run(settings, apply)
    _check_same('flavor apply, a second time', applied,
                _listed(settings, names))
    if _ids(settings, names) != new_ids:
        raise errors.CloudError('a second run created flavors again')
    progress.say(f'{len(pasted)} flavors are the same both ways')


def _check_planned(settings: cloud_settings.Settings,
                   flavors: dict[str, Any]) -> None:
    for flavor in json.loads(fleet.plan_file(settings).read_text())['flavors']:
        created = flavors[flavor['name']]
        planned = (flavor['vcpus'], flavor['ram_mib'], flavor['extra_specs'])
        if (created['vcpus'], created['ram'],
                created['properties']) != planned:
            raise errors.CloudError(
                f'{flavor["name"]} is not as planned: {created}')


def _listed(settings: cloud_settings.Settings,
            names: Collection[str]) -> dict[str, Any]:
    flavors = _flavors(settings)
    missing = set(names) - set(flavors)
    if missing:
        raise errors.CloudError(f'flavors that were not created: {missing}')
    return {name: {field: flavors[name].get(field) for field in FIELDS}
            for name in names}


def _ids(settings: cloud_settings.Settings,
         names: list[str]) -> dict[str, str]:
    flavors = _flavors(settings)
    return {name: flavors[name]['id'] for name in names}


def _flavors(settings: cloud_settings.Settings) -> dict[str, Any]:
    script = ('import json, openstack\n'
              'cloud = openstack.connect()\n'
              'cloud.compute.default_microversion = "2.86"\n'
              'answer = cloud.compute.get("/flavors/detail?is_public=None",'
              ' microversion="2.86").json()["flavors"]\n'
              'for flavor in answer:\n'
              '    flavor["properties"] = flavor.pop("extra_specs", {})\n'
              'print(json.dumps({f["name"]: f for f in answer}))\n')
    answer: dict[str, Any] = json.loads(
        _run(settings, [settings.program('python'), '-c', script]))
    return answer


def _delete(settings: cloud_settings.Settings, names: list[str]) -> None:
    script = ('import sys, openstack\n'
              'cloud = openstack.connect()\n'
              'for flavor in list(cloud.compute.flavors(is_public=None)):\n'
              '    if flavor.name in sys.argv[1:]:\n'
              '        cloud.compute.delete_flavor(flavor)\n')
    _run(settings, [settings.program('python'), '-c', script, *names])


def _check_same(what: str, before: dict[str, Any],
                after: dict[str, Any]) -> None:
    changed = [name for name in before if before[name] != after[name]]
    if changed:
        name = changed[0]
        raise errors.CloudError(
            f'{what} gives other flavors: {changed}; {name} was '
            f'{before[name]} and is {after[name]}')


def _run(settings: cloud_settings.Settings, words: list[str]) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=900,
        env={**os.environ, **settings.credentials(),
             'PATH': f'{settings.venv / "bin"}:{os.environ["PATH"]}'})
    if done.returncode:
        raise errors.CloudError(
            f'{words[0]} ended with status {done.returncode}: '
            f'{done.stdout[-500:]}{done.stderr[-1500:]}')
    return done.stdout
