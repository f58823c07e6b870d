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

"""Find a benchmark by any of its names.

The definitions are the YAML files of this package: to add a benchmark, add a
file. Several definitions may share a parser; they are a family, whose outputs
can be read without naming the benchmark that wrote them.
"""

import dataclasses
import functools
import importlib.resources
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import yaml_document
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.catalogue import definition_reader

_FOLDER = importlib.resources.files('hpcvirt.bench.catalogue')

#: A family has the name of its parser, and these aliases.
FAMILIES: dict[str, tuple[str, ...]] = {
    'npb': ('nas', 'nas-parallel-benchmarks'),
    'osu': ('omb', 'osu-micro-benchmarks'),
    'qe': ('quantum-espresso', 'pwscf', 'pw', 'pw.x', 'espresso'),
    'namd': ('namd2', 'namd3'),
    'wrf': (),
}


@dataclasses.dataclass(frozen=True)
class OutputSource:
    """The benchmark, or the family of benchmarks, that wrote an output.

    :ivar name: of the definition or the family, as answers spell it
    :ivar parser: key of :data:`hpcvirt.bench.parsers.parser.PARSERS`
    :ivar definition: None for a family
    """

    name: str
    parser: str
    definition: definitions.Definition | None

    @property
    def expect(self) -> Mapping[str, str]:
        """The parameters that every output of this name must echo."""
        return {} if self.definition is None else self.definition.expect


def find(text: str) -> tuple[definitions.Definition, str | None]:
    """Find the definition that ``NAME`` or ``NAME/VARIANT`` stands for.

    :returns: the definition, and the variant if one is named
    :raises InvalidInput: if there is no such benchmark or variant
    """
    name, slash, variant_name = text.partition('/')
    definition = get(name)
    chosen = variant_name if slash else None
    definition.variant(chosen)
    return definition, chosen


def output_source(name: str) -> OutputSource:
    """Find the benchmark or family whose output is to be read.

    :raises InvalidInput: if there is none of this name
    """
    family = _family(name)
    if family is not None:
        return OutputSource(family, family, None)
    definition = get(name)
    return OutputSource(definition.name, definition.parser, definition)


def member(source: OutputSource,
           parameters: Mapping[str, str]) -> definitions.Definition | None:
    """Find the definition whose output this is.

    :param parameters: what the output echoed
    :returns: None if the output does not tell
    """
    if source.definition is not None:
        return source.definition
    fitting = [definition for definition in all_definitions()
               if definition.parser == source.parser and definition.expect
               and definition.expect.items() <= parameters.items()]
    return fitting[0] if len(fitting) == 1 else None


def fold(name: str) -> str:
    """Normalize the spelling of a name: lower case, hyphens."""
    return '-'.join(name.lower().replace('_', '-').split())


def get(name: str) -> definitions.Definition:
    """Load a definition by its name or an alias.

    :raises InvalidInput: if there is none; the message lists what there is
    """
    wanted = fold(name)
    if wanted in names():
        return load(wanted)
    for definition in all_definitions():
        if wanted in map(fold, definition.aliases):
            return definition
    family = _family(name)
    candidates = [definition.name for definition in all_definitions()
                  if family in (None, definition.parser)]
    raise exception.InvalidInput(
        name, f'no such benchmark; there is {", ".join(candidates)}')


def all_definitions() -> tuple[definitions.Definition, ...]:
    """Load all definitions, in alphabetical order."""
    return tuple(load(name) for name in names())


@functools.cache
def names() -> tuple[str, ...]:
    """List the names of all definitions, in alphabetical order."""
    return tuple(sorted(
        child.name.removesuffix('.yaml') for child in _FOLDER.iterdir()
        if child.name.endswith('.yaml')))


@functools.cache
def load(name: str) -> definitions.Definition:
    """Read one definition of the package.

    :param name: one of :func:`names`
    """
    text = (_FOLDER / f'{name}.yaml').read_text(encoding='utf-8')
    where = f'definition {name}'
    return definition_reader.read(yaml_document.value(text, where), where)


def metrics(benchmark: str) -> dict[str, definitions.Figure]:
    """List the figures of a benchmark or a family by their names.

    :returns: nothing for a benchmark that has no definition
    """
    family = _family(benchmark)
    wanted = fold(benchmark)
    return {figure.name: figure for definition in all_definitions()
            if family == definition.parser or wanted in (
                definition.name, *map(fold, definition.aliases))
            for figure in definition.metrics}


def _family(name: str) -> str | None:
    wanted = fold(name)
    for family, aliases in FAMILIES.items():
        if wanted in (family, *aliases):
            return family
    return None
