# SPDX-License-Identifier: Apache-2.0

"""Read the definitions of benchmarks, and find one by any of its names.

The definitions are the YAML files of this package, and of the folders of a
site (:mod:`hpcvirt.bench.catalogue.folders`): to add a benchmark, add a file.
They are checked strictly, so that every definition that loads can be used. No
definition of a site has a name of this package, since results would not tell
them apart. Definitions that share a parser are a family: its outputs can be
parsed without naming the benchmark that wrote them.

A file with the key ``shares: NAME`` also has the keys of ``NAME.shared.yaml``;
its own keys take precedence. ``<WORD>`` stands for an entry of ``words`` of
either file.
"""

import dataclasses
import functools
import itertools
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
from hpcvirt.bench.catalogue import folders
from hpcvirt.bench.model import line_pattern
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import output_format

#: Family, which is named after its parser, to its aliases.
FAMILIES: dict[str, tuple[str, ...]] = {
    'npb': ('nas', 'nas-parallel-benchmarks'),
    'osu': ('omb', 'osu-micro-benchmarks'),
    'qe': ('quantum-espresso', 'pwscf', 'pw', 'pw.x', 'espresso'),
    'namd': ('namd2', 'namd3'),
    'wrf': (),
}

NAME = folders.NAME
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

    @property
    def output_format(self) -> output_format.OutputFormat:
        """How the output is read, and what its figures mean."""
        if self.definition is not None:
            return self.definition.output_format
        return output_format.OutputFormat(
            self.name, self.parser, tuple(metrics(self.name).values()))


def find(text: str) -> tuple[definitions.Definition, definitions.Variant]:
    """Find the definition for ``NAME`` or ``NAME/VARIANT``.

    :returns: the definition, and the variant, by default its first
    :raises InvalidInput: if there is no such benchmark or variant
    """
    name, slash, variant_name = text.partition('/')
    definition = get(name)
    return definition, definition.variant(variant_name if slash else None)


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


def names() -> tuple[str, ...]:
    """List the names of all definitions, in alphabetical order."""
    return tuple(_places(folders.list_site()))


@functools.cache
def _shipped() -> tuple[str, ...]:
    return folders.list_names(None)


@functools.cache
def _places(site: tuple[str, ...]) -> Mapping[str, str | None]:
    """Find the folder of each definition, None for the package.

    :param site: the folders of the site
    :raises InvalidInput: if a definition of the site has a name that is taken
    """
    places: dict[str, str | None] = dict.fromkeys(_shipped())
    taken = dict.fromkeys(places, 'hpcvirt')
    if site:
        for name in _shipped():
            taken |= dict.fromkeys(_load(name, None).aliases, 'hpcvirt')
        for family, aliases in FAMILIES.items():
            taken |= dict.fromkeys((family, *aliases), 'hpcvirt')
    for folder in site:
        for name in folders.list_names(folder):
            where = f'{folder}/{name}.yaml'
            definition = _load(name, folder)
            for alias in map(fold, (name, *definition.aliases)):
                if alias in taken:
                    raise exception.InvalidInput(
                        where, f'{taken[alias]} has a benchmark {alias}; '
                        'choose another name')
                taken[alias] = folder
            places[name] = folder
    return dict(sorted(places.items()))


def load(name: str) -> definitions.Definition:
    """Read one definition.

    :param name: one of :func:`names`
    """
    return _load(name, _places(folders.list_site())[name])


@functools.cache
def _load(name: str, folder: str | None) -> definitions.Definition:
    where = (f'definition {name}' if folder is None
             else f'{folder}/{name}.yaml')
    document = yaml_document.value(folders.read(folder, name), where)
    if isinstance(document, dict) and 'shares' in document:
        shares = str(document.pop('shares'))
        shared = yaml_document.value(folders.find_shared(folder, shares),
                                     f'{shares}.shared.yaml')
        document = _merge(document, shared, where)
    definition = read(document, where, of_site=folder is not None)
    if definition.name != name:
        raise exception.InvalidInput(
            where, f'has the name {definition.name!r}, not that of its file')
    return definition


def _merge(document: dict[Any, Any], shared: Any,
           where: str) -> dict[Any, Any]:
    """Add what a definition shares, and replace the words."""
    own_words = document.pop('words', {})
    shared_words = shared.pop('words', {}) if isinstance(shared, dict) else {}
    for part in (shared, own_words, shared_words):
        if not isinstance(part, dict):
            raise exception.InvalidInput(
                where, 'what it shares, and words, must be mappings')
    try:
        merged = _substitute({**shared, **document},
                             {**shared_words, **own_words})
    except KeyError as exc:
        raise exception.InvalidInput(
            where, f'no word for <{exc.args[0]}>') from exc
    except RecursionError as exc:
        raise exception.InvalidInput(
            where, 'words stand for each other') from exc
    found: dict[Any, Any] = merged
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


def metrics(benchmark: str) -> dict[str, metric_definition.MetricDefinition]:
    """Return the metrics of a benchmark or a family by name.

    :returns: empty if there is no definition
    :raises InvalidInput: if two definitions of a family contradict each other
    """
    family = _family(benchmark)
    wanted = fold(benchmark)
    found: dict[str, metric_definition.MetricDefinition] = {}
    for definition in all_definitions():
        if family != definition.parser and wanted not in (
                definition.name, *map(fold, definition.aliases)):
            continue
        for figure in definition.metrics:
            first = found.setdefault(figure.name, figure)
            if (first.unit, first.direction) != (figure.unit,
                                                 figure.direction):
                raise exception.InvalidInput(
                    definition.name, f'{figure.name} is in {figure.unit} '
                    f'({figure.direction}), but in {first.unit} '
                    f'({first.direction}) in another benchmark of {family}')
    return found


def _family(name: str) -> str | None:
    wanted = fold(name)
    for family, aliases in FAMILIES.items():
        if wanted in (family, *aliases):
            return family
    return None


def read(document: object, where: str,
         of_site: bool = False) -> definitions.Definition:
    """Turn the document of a YAML file into a definition, and check it.

    :param of_site: its bounds may have the site itself as their source
    :raises InvalidInput: with the field that is wrong
    """
    definition = serialization.load(definitions.Definition, document,
                                    where)
    for fault in (*_faults(definition, of_site=of_site),
                  *_line_faults(definition)):
        raise exception.InvalidInput(where, fault)
    return definition


def _faults(definition: definitions.Definition, *,
            of_site: bool) -> Iterator[str]:
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
    if len({figure.name for figure in definition.metrics}) < len(
            definition.metrics):
        yield 'two metrics have the same name'
    placeholders = {*definitions.RUN_VALUES, *definition.size,
                    *(path.name for path in definition.paths)}
    for text in itertools.chain(
            definition.files.values(), definition.echo.values(),
            *(variant.texts for variant in definition.variants)):
        for name in definitions.PLACEHOLDER.findall(text):
            if name not in placeholders:
                yield f'no value for {{{name}}}'
    figures = {figure.name: figure for figure in definition.metrics}
    for bound in definition.bounds:
        if bound.metric not in figures:
            yield f'bound of an unknown metric {bound.metric!r}'
        else:
            yield from _bound_faults(bound, figures[bound.metric],
                                     of_site=of_site)


def _line_faults(definition: definitions.Definition) -> Iterator[str]:
    """Find the faults of the lines that a definition describes.

    :raises InvalidInput: for a pattern that is not good
    """
    described = {'required_lines': definition.required_lines,
                 'forbidden_lines': definition.forbidden_lines,
                 'echo_patterns': definition.echo_patterns,
                 'pattern of a metric': any(
                     figure.pattern for figure in definition.metrics)}
    rules = definition.lines
    if rules is None:
        for what, value in described.items():
            if value:
                yield (f'{what}: only for the parser '
                       f'{definitions.PATTERN}')
        return
    if not rules.required:
        yield ('no required_lines: name a text of the line with which a '
               'complete output ends')
    if not all(text.strip() for text in (*rules.required,
                                         *rules.forbidden)):
        yield 'a text of required_lines or forbidden_lines is empty'
    for figure in definition.metrics:
        if figure.per_size:
            yield f'{figure.name}: a pattern finds no table of sizes'
        line_pattern.compile_pattern(figure.pattern,
                                     f'pattern of {figure.name}')
    for name, pattern in rules.parameters.items():
        line_pattern.compile_pattern(pattern, f'echo_patterns: {name}')
    for name in (*definition.expect, *definition.echo):
        if name not in rules.parameters:
            yield f'{name} is expected, but echo_patterns does not have it'


def _bound_faults(bound: definitions.BoundRule,
                  figure: metric_definition.MetricDefinition, *,
                  of_site: bool) -> Iterator[str]:
    up = figure.direction is outcome.Direction.UP
    given = [kind for kind in ('at_least', 'at_most', 'slowdown_at_most')
             if getattr(bound, kind) is not None]
    if len(given) != 1:
        yield f'bound of {bound.metric}: exactly one limit, not {given}'
    elif given == ['at_most' if up else 'at_least']:
        yield (f'bound of {bound.metric}: {given[0]} contradicts the '
               'direction of the metric')
    if bound.source not in bibliography.KEYS and not (
            of_site and bound.source == definitions.SITE):
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
