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

"""Read definitions strictly: every definition that loads can be used."""

import re
from collections.abc import Iterator

from hpcvirt import bibliography
from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import outcome

NAME = re.compile(r'[a-z][a-z0-9]*(-[a-z0-9]+)*')


def read(document: object, where: str) -> definitions.Definition:
    """Turn the values of a YAML file into a definition, and check it.

    :raises InvalidInput: naming the field at fault
    """
    definition = serialization.from_plain(definitions.Definition, document,
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
    for text in _texts(definition):
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
                  figure: definitions.Figure) -> Iterator[str]:
    up = figure.direction is outcome.Direction.UP
    given = [kind for kind in ('at_least', 'at_most', 'slowdown_at_most')
             if getattr(bound, kind) is not None]
    if len(given) != 1:
        yield f'bound of {bound.metric}: exactly one limit, not {given}'
    elif given == ['at_most' if up else 'at_least']:
        yield f'bound of {bound.metric}: {given[0]} is the wrong way round'
    if bound.source not in bibliography.KEYS:
        yield (f'bound of {bound.metric}: the source {bound.source!r} is not '
               'in the bibliography')
    for field in ('line', 'conditions'):
        if not getattr(bound, field).strip():
            yield f'bound of {bound.metric}: no {field}'
    for name, value in bound.when.items():
        known = definitions.CONDITIONS.get(name)
        if known is None or not known.fullmatch(value):
            yield (f'bound of {bound.metric}: {name} {value!r} is no '
                   'condition')
    for limit in (bound.at_least, bound.at_most, bound.slowdown_at_most):
        if limit is not None and not 0 < limit < 1000:
            yield f'bound of {bound.metric}: {limit} is not a ratio'
    if not 0 <= bound.margin < 1:
        yield f'bound of {bound.metric}: {bound.margin} is not a margin'
    if (bound.below_bytes or bound.above_bytes) and not figure.per_size:
        yield f'bound of {bound.metric}: the metric has no message sizes'


def _texts(definition: definitions.Definition) -> Iterator[str]:
    """List all texts that may have placeholders."""
    yield from definition.files.values()
    yield from definition.echo.values()
    for variant in definition.variants:
        yield from (word for word in variant.command
                    if word != definitions.HOSTS)
        yield from variant.environment.values()
        for command in variant.prepare:
            yield from command
        if variant.build is not None:
            yield from variant.build.products
            for command in variant.build.commands:
                yield from command
