# SPDX-License-Identifier: Apache-2.0

"""Check the CPUs and pages of this node in local.conf.

The plugin runs this program before DevStack installs anything, with the
variables in the environment and the Python of the system. It prints a line for
each fault, which begins with the variable.
"""

import os
import pathlib
import sys
from collections.abc import Iterator
from collections.abc import Mapping

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from hpcvirt import exception
from hpcvirt.model import cpuset

try:
    import yaml

    from hpcvirt.flavors import profile as profiles
except ImportError:  # what reads profiles is not installed yet
    yaml = None

DEDICATED = 'HPCVIRT_CPU_DEDICATED_SET'
SHARED = 'HPCVIRT_CPU_SHARED_SET'
PAGES = 'HPCVIRT_HUGEPAGES_2M'
PROFILE = 'HPCVIRT_PROFILE'


def find_faults(values: Mapping[str, str],
                folder: pathlib.Path) -> Iterator[str]:
    """Find the values that would fail later, or would have no effect.

    :param folder: sysfs of the CPUs
    """
    if not (values[PAGES].isascii() and values[PAGES].isdigit()):
        yield f'{PAGES} is not a number of pages of 2 MiB, such as 1024'
    if values[PROFILE] not in ('', 'default', 'dense'):
        for fault in _find_profile_faults(values[PROFILE]):
            yield f'{PROFILE}: {fault}'
    yield from _find_list_faults(values, folder)
    if values[SHARED] and (values[SHARED] == 'plan') != (
            values[DEDICATED] == 'plan'):
        yield (f'{SHARED} does not go with {DEDICATED}={values[DEDICATED]}; '
               'let both be plan, or name the CPUs')


def _find_list_faults(values: Mapping[str, str],
                      folder: pathlib.Path) -> Iterator[str]:
    online = cpuset.parse((folder / 'online').read_text())
    sets: dict[str, frozenset[int]] = {}
    for name in (DEDICATED, SHARED):
        if values[name] in ('', 'plan'):
            continue
        try:
            sets[name] = cpuset.parse(values[name])
        except exception.InvalidInput as exc:
            yield f'{name}: {exc.what}'
            continue
        missing = sets[name] - online
        if missing:
            yield (f'{name} names CPU {cpuset.render(missing)}; this node has '
                   f'{cpuset.render(online)}')
        elif not sets[name]:
            yield f'{name} names no CPU'
    dedicated = sets.get(DEDICATED, frozenset())
    both = dedicated & sets.get(SHARED, frozenset())
    if both:
        yield f'{SHARED} and {DEDICATED} both name CPU {cpuset.render(both)}'
    for cpu in sorted(dedicated & online):
        core = cpuset.parse((folder / f'cpu{cpu}' / 'topology' /
                             'thread_siblings_list').read_text())
        if core - dedicated:
            yield (f'{DEDICATED} names CPU {cpu} but not its SMT sibling '
                   f'{cpuset.render(core - dedicated)}')
            break


def _find_profile_faults(path: str) -> Iterator[str]:
    try:
        text = pathlib.Path(path).read_text()
    except (OSError, UnicodeDecodeError) as exc:
        yield f'{path} cannot be read ({exc})'
        return
    if yaml is None:
        return
    try:
        profiles.build(yaml.safe_load(text) or {}, path)
    except (yaml.YAMLError, exception.InvalidInput) as exc:
        yield ' '.join(str(exc).split())


def main() -> int:
    """Print the faults of the environment."""
    values = {name: os.environ.get(name, '')
              for name in (DEDICATED, SHARED, PAGES, PROFILE)}
    folder = pathlib.Path(os.environ['HPCVIRT_SYSFS_CPU'])
    faults = list(find_faults(values, folder))
    for fault in faults:
        print(fault, file=sys.stderr)
    return int(bool(faults))


if __name__ == '__main__':
    sys.exit(main())
