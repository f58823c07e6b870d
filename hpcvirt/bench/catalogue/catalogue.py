# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The benchmarks that hpcvirt knows, found by any of their names.

The definitions are files of this package. The list is explicit: a file that
is not listed is not a benchmark.
"""

import dataclasses
import functools
import importlib.resources
from collections.abc import Mapping

import yaml

from hpcvirt import exception
from hpcvirt.bench.catalogue import definition
from hpcvirt.bench.catalogue import definition_reader

NAMES: tuple[str, ...] = (
    'hpcc',
    'stream',
    'npb-ep', 'npb-cg', 'npb-mg', 'npb-ft', 'npb-is', 'npb-lu', 'npb-bt',
    'npb-sp',
    'osu-latency', 'osu-bandwidth', 'osu-bibandwidth',
    'netpipe',
    'mpi4py-pingpong',
    'qe-small', 'qe-ausurf112',
    'gromacs',
    'lammps',
    'namd-stmv',
    'wrf-conus12km',
    'hepscore',
    'hs06',
)

#: Parsers that read the output of more than one definition, by the names
#: under which ``parse`` and ``compare`` know them.
FAMILIES = {
    'npb': ('npb', ('nas', 'nas-parallel-benchmarks')),
    'osu': ('osu', ('omb', 'osu-micro-benchmarks')),
    'qe': ('qe', ('quantum-espresso', 'pwscf', 'pw', 'pw.x', 'espresso')),
    'namd': ('namd', ('namd2', 'namd3')),
    'wrf': ('wrf', ()),
}


@dataclasses.dataclass(frozen=True)
class Readable:
    """A name whose outputs can be read: a definition or a family.

    :ivar name: as it stands in answers
    :ivar parser: key of :data:`hpcvirt.bench.parsers.parser.PARSERS`
    :ivar made: None for a family
    """

    name: str
    parser: str
    made: definition.Definition | None

    @property
    def expect(self) -> Mapping[str, str]:
        """What the name itself promises of every output."""
        return {} if self.made is None else self.made.expect


def named(text: str) -> tuple[definition.Definition, str | None]:
    """Find what ``NAME`` or ``NAME/VARIANT`` stands for.

    :returns: the definition, and the variant if one is named
    :raises InvalidInput: if there is no such benchmark or variant
    """
    name, slash, variant = text.partition('/')
    made = get(name)
    chosen = variant if slash else None
    made.variant(chosen)
    return made, chosen


def readable(name: str) -> Readable:
    """Find whose output is to be read.

    :raises InvalidInput: if the name is none that is known
    """
    family = family_of(name)
    if family is not None:
        return Readable(family, FAMILIES[family][0], None)
    made = get(name)
    return Readable(made.name, made.parser, made)


def member(family: Readable,
           parameters: Mapping[str, str]) -> definition.Definition | None:
    """The definition whose output this is; None if the output does not tell.

    :param parameters: what the output echoed
    """
    if family.made is not None:
        return family.made
    fitting = [made for made in every()
               if made.parser == family.parser and made.expect
               and made.expect.items() <= parameters.items()]
    return fitting[0] if len(fitting) == 1 else None


def fold(name: str) -> str:
    """Spell a name the one way: lower case, hyphens."""
    return '-'.join(name.lower().replace('_', '-').split())


def get(name: str) -> definition.Definition:
    """Load a definition by its name or an alias.

    :raises InvalidInput: if there is none; the message says what there is
    """
    wanted = fold(name)
    if wanted in NAMES:
        return load(wanted)
    for made in every():
        if wanted in map(fold, made.aliases):
            return made
    family = family_of(name)
    members = NAMES
    if family is not None:
        members = tuple(made.name for made in every()
                        if made.parser == FAMILIES[family][0])
    raise exception.InvalidInput(
        name, f'no such benchmark; there is {", ".join(members)}')


def family_of(name: str) -> str | None:
    """The family that goes by this name, None if there is none."""
    wanted = fold(name)
    for family, (_, aliases) in FAMILIES.items():
        if wanted in (family, *aliases):
            return family
    return None


def every() -> tuple[definition.Definition, ...]:
    """All definitions in the order of :data:`NAMES`."""
    return tuple(load(name) for name in NAMES)


@functools.cache
def load(name: str) -> definition.Definition:
    """Read one definition of the package.

    :param name: one of :data:`NAMES`
    """
    folder = importlib.resources.files('hpcvirt.bench.catalogue')
    text = (folder / f'{name}.yaml').read_text(encoding='utf-8')
    return definition_reader.read(yaml.safe_load(text),
                                  f'definition {name}')
