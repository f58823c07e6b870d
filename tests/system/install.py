# SPDX-License-Identifier: Apache-2.0

"""Install hpcvirt as its pages describe, and use it without the clone.

The program runs the commands of the README and of the installation guide in a
fresh clone, and at last the one that plans flavors, for which the clone is
removed. Each page has its own home directory.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from demo import transcript

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ('README.rst', 'doc/source/install/packages.rst')
#: How the last command ends.
LAST = 'hpcvirt flavor plan /'
#: Variables that the environment must not contain.
ABSENT = ('nova', 'tests', 'demo')


def commands(page: pathlib.Path) -> Iterator[str]:
    """Yield the commands of a page, the one that plans flavors last.

    Other commands of hpcvirt, and those of tox, are examples.

    :raises ValueError: if the page plans no flavors
    """
    last = None
    for command, _ in transcript.commands(page):
        if command.endswith(LAST):
            last = command
        elif not command.startswith(('hpcvirt ', 'tools/tox ')):
            yield command
    if last is None:
        raise ValueError(f'{page} shows no command that ends with {LAST}')
    yield last


def install(page: str, scratch: pathlib.Path) -> None:
    """Run the commands of a page.

    :raises CalledProcessError: if one of them fails
    """
    home = scratch / 'home'
    clone = scratch / 'hpcvirt'
    (home / 'bin').mkdir(parents=True)
    subprocess.run(['git', 'clone', '--quiet', str(ROOT), str(clone)],
                   check=True)
    *before, last = commands(ROOT / page)
    # What changes the shell itself holds for the commands that follow.
    shell = ''
    for command in before:
        _run(shell + command, clone, home)
        if command.startswith(('. ', 'export ')):
            shell += f'{command}\n'
    shutil.rmtree(clone)
    if 'Flavor' not in _run(shell + last, home, home):
        raise SystemExit(f'{page}: {last!r} shows no flavors')
    program = _run(f'{shell}command -v {last.split()[0]}', home, home)
    programs = os.path.dirname(program.strip())
    for module in ABSENT:
        _run(f'{programs}/python -c "import importlib.util as i;'
             f' assert not i.find_spec(\'{module}\')"', home, home)
    # The data files, and the modules that other extras need.
    _run(f'{programs}/hpcvirt host show'
         f' {programs}/../etc/hpcvirt/topologies/opteron-4s-12c.json', home,
         home)
    _run(f'{programs}/hpcvirt bench list', home, home)


def _run(command: str, directory: pathlib.Path, home: pathlib.Path) -> str:
    # The page installs for all users, as root.
    command = command.replace('sudo ', '')
    command = command.replace('/opt/hpcvirt', f'{home}/opt')
    command = command.replace('/usr/local/bin', f'{home}/bin')
    print(f'$ {command}', flush=True)
    environment = {name: value for name, value in os.environ.items()
                   if name not in {'PYTHONPATH', 'VIRTUAL_ENV'}}
    if 'PIP_CONSTRAINT' in environment:
        environment['PIP_CONSTRAINT'] = str(without_hashes(
            ROOT / environment['PIP_CONSTRAINT'], home))
    done = subprocess.run(
        ['bash', '-e', '-u', '-c', command], cwd=directory,
        stdout=subprocess.PIPE, text=True, check=True,
        env={**environment, 'HOME': str(home)})
    print(done.stdout, flush=True)
    return done.stdout


def without_hashes(constraints: pathlib.Path,
                   directory: pathlib.Path) -> pathlib.Path:
    """Copy constraints without hashes, because the clone's wheel has none."""
    copy = directory / constraints.name
    copy.write_text(re.sub(r' \\\n +--hash=\S+', '', constraints.read_text()))
    return copy


def main() -> int:
    """Install as each page says."""
    for page in PAGES:
        print(f'{page}:')
        with tempfile.TemporaryDirectory() as scratch:
            install(page, pathlib.Path(scratch))
    return 0


if __name__ == '__main__':
    sys.exit(main())
