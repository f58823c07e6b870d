# SPDX-License-Identifier: Apache-2.0

"""Read the definitions of benchmarks, and find one by any of its names.

The definitions are the YAML files of this package: to add a benchmark, add a
file. They are checked strictly, so that every definition that loads can be
used. Definitions that share a parser are a family: its outputs can be parsed
without naming the benchmark that wrote them.

A file with the key ``shares: NAME`` also has the keys of ``NAME.shared.yaml``;
its own keys take precedence. ``<WORD>`` stands for an entry of ``words`` of
either file.
"""

import dataclasses
import functools
import importlib.resources
import re
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt import bibliography
from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt import yaml_document
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import outcome

_FOLDER = importlib.resources.files('hpcvirt.bench.catalogue')

#: Family, which is named after its parser, to its aliases.
FAMILIES: dict[str, tuple[str, ...]] = {
    'npb': ('nas', 'nas-parallel-benchmarks'),
    'osu': ('omb', 'osu-micro-benchmarks'),
    'qe': ('quantum-espresso', 'pwscf', 'pw', 'pw.x', 'espresso'),
    'namd': ('namd2', 'namd3'),
    'wrf': (),
}

NAME = re.compile(r'[a-z][a-z0-9]*(-[a-z0-9]+)*')
_WORD = re.compile(r'<(\w+)>')


@dataclasses.dataclass(frozen=True)
class OutputSource:
    """The benchmark, or the family of benchmarks, that wrote an output.

    :ivar name: name of the definition or the family
    :ivar parser: key of :data:`hpcvirt.bench.parsers.parser.PARSERS`
    :ivar definition: None for a family
    """

    name: str
    parser: str
    definition: definitions.Definition | None

    @property
    def expect(self) -> Mapping[str, str]:
        """The parameters that every output of this source must print."""
        return {} if self.definition is None else self.definition.expect


def find(text: str) -> tuple[definitions.Definition, str | None]:
    """Find the definition for ``NAME`` or ``NAME/VARIANT``.

    :returns: the definition, and the name of the variant or None
    :raises InvalidInput: if there is no such benchmark or variant
    """
    name, slash, variant_name = text.partition('/')
    definition = get(name)
    chosen = variant_name if slash else None
    definition.variant(chosen)
    return definition, chosen


def output_source(name: str) -> OutputSource:
    """Find a benchmark or a family by name.

    :raises InvalidInput: if neither has this name
    """
    family = _family(name)
    if family is not None:
        return OutputSource(family, family, None)
    definition = get(name)
    return OutputSource(definition.name, definition.parser, definition)


def member(source: OutputSource,
           parameters: Mapping[str, str]) -> definitions.Definition | None:
    """Find the definition that an output is from.

    :param parameters: the parameters that the output printed
    :returns: None if they fit no definition, or several
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

    :raises InvalidInput: if there is none; the message lists the benchmarks
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
        name, f'no such benchmark; the benchmarks are {", ".join(candidates)}'
        + words.nearest(name, candidates))


def all_definitions() -> tuple[definitions.Definition, ...]:
    """Load all definitions, in alphabetical order."""
    return tuple(load(name) for name in names())


@functools.cache
def names() -> tuple[str, ...]:
    """List the names of all definitions, in alphabetical order."""
    return tuple(sorted(
        name for child in _FOLDER.iterdir() if child.name.endswith('.yaml')
        and NAME.fullmatch(name := child.name.removesuffix('.yaml'))))


@functools.cache
def load(name: str) -> definitions.Definition:
    """Read one definition of the package.

    :param name: one of :func:`names`
    """
    document = _read_file(name)
    if 'shares' in document:
        shared = _read_file(f'{document.pop("shares")}.shared')
        words = {**shared.pop('words', {}),
                 **document.pop('words', {})}
        document = _substitute({**shared, **document}, words)
    return read(document, f'definition {name}')


def _read_file(name: str) -> dict[str, Any]:
    text = (_FOLDER / f'{name}.yaml').read_text(encoding='utf-8')
    found: dict[str, Any] = yaml_document.value(text, f'definition {name}')
    return found


def _substitute(value: Any, words: Mapping[str, Any]) -> Any:
    """Replace each ``<WORD>``; one that is a whole value keeps its type."""
    if isinstance(value, dict):
        return {_substitute(key, words): _substitute(inner, words)
                for key, inner in value.items()}
    if isinstance(value, list):
        return [_substitute(inner, words) for inner in value]
    if not isinstance(value, str):
        return value
    alone = _WORD.fullmatch(value)
    if alone:
        return _substitute(words[alone[1]], words)
    return _WORD.sub(lambda match: str(_substitute(match[0], words)), value)


def metrics(benchmark: str) -> dict[str, definitions.MetricDefinition]:
    """Return the metrics of a benchmark or a family by name.

    :returns: empty if there is no definition
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


def read(document: object, where: str) -> definitions.Definition:
    """Turn the document of a YAML file into a definition, and check it.

    :raises InvalidInput: with the field that is wrong
    """
    definition = serialization.load(definitions.Definition, document,
                                    where)
    for fault in _faults(definition):
        raise exception.InvalidInput(where, fault)
    return definition


def _faults(definition: definitions.Definition) -> Iterator[str]:
    """Find the faults that types cannot express."""
    for name in (definition.name, *definition.aliases,
                 *(variant.name for variant in definition.variants)):
        if not NAME.fullmatch(name):
            yield f'{name!r} is not a name in lower case'
    for field in ('obtain', 'variants', 'metrics'):
        if not getattr(definition, field):
            yield f'no {field}'
    if not any(figure.primary for figure in definition.metrics):
        yield 'no metric is primary'
    placeholders = {*definitions.RUN_VALUES, *definition.size,
                    *(path.name for path in definition.paths)}
    for text in (*definition.files.values(), *definition.echo.values(), *(
            text for variant in definition.variants
            for text in variant.texts)):
        for name in definitions.PLACEHOLDER.findall(text):
            if name not in placeholders:
                yield f'no value for {{{name}}}'
    figures = {figure.name: figure for figure in definition.metrics}
    for bound in definition.bounds:
        if bound.metric not in figures:
            yield f'bound of an unknown metric {bound.metric!r}'
        else:
            yield from _bound_faults(bound, figures[bound.metric])


def _bound_faults(bound: definitions.BoundRule,
                  figure: definitions.MetricDefinition) -> Iterator[str]:
    up = figure.direction is outcome.Direction.UP
    given = [kind for kind in ('at_least', 'at_most', 'slowdown_at_most')
             if getattr(bound, kind) is not None]
    if len(given) != 1:
        yield f'bound of {bound.metric}: exactly one limit, not {given}'
    elif given == ['at_most' if up else 'at_least']:
        yield (f'bound of {bound.metric}: {given[0]} contradicts the '
               'direction of the metric')
    if bound.source not in bibliography.KEYS:
        yield (f'bound of {bound.metric}: the source {bound.source!r} is not '
               'in the bibliography')
    for field in ('line', 'conditions'):
        if not getattr(bound, field).strip():
            yield f'bound of {bound.metric}: no {field}'
    for name, value in bound.when.items():
        known = definitions.CONDITIONS.get(name)
        if known is None or not known.fullmatch(value):
            yield (f'bound of {bound.metric}: {name} {value!r} is not a '
                   'condition')
    for limit in (bound.at_least, bound.at_most, bound.slowdown_at_most):
        if limit is not None and not 0 < limit < 1000:
            yield f'bound of {bound.metric}: {limit} is not a ratio'
    if not 0 <= bound.margin < 1:
        yield f'bound of {bound.metric}: {bound.margin} is not a margin'
    if (bound.below_bytes or bound.above_bytes) and not figure.per_size:
        yield f'bound of {bound.metric}: the metric has no message sizes'
