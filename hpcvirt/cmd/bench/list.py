# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench list``: print the catalogue."""

import argparse
import shlex
import textwrap
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import judgement
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.cmd.bench import catalogue_arguments

_EPILOG = """\
Names may be written in any case, with hyphens or underscores. In "parse" and
"compare", npb, osu, qe, namd and wrf stand for any benchmark of that program.
With --vcpus and --memory-mib, the sizes are computed for a guest, and the
command and its input files are printed as they would be run there.
"""


class ListBenchmarks(command.Report):
    """List the benchmarks, or describe one.

    With NAME, print how the benchmark is installed, sized, run and judged.
    """

    epilog = _EPILOG
    fields = ('name', 'title', 'obtain', 'variants')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('name', metavar='NAME', nargs='?',
                            help='the benchmark to describe')
        parser.add_argument(
            '--variant', metavar='VARIANT',
            help='a variant such as mpi or openmp (default: the first)')
        count = command.whole_number(1, 10 ** 12)
        parser.add_argument('--vcpus', type=count, metavar='N', dest='cpus',
                            help='CPUs of the guest')
        parser.add_argument('--memory-mib', type=count, metavar='N',
                            help='memory of the guest in MiB')
        catalogue_arguments.add(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Load the benchmarks, or one."""
        catalogue_arguments.choose(args)
        if args.name is not None:
            return _describe(args)
        for option, given in (('--variant', args.variant),
                              ('--vcpus', args.cpus),
                              ('--memory-mib', args.memory_mib)):
            if given is not None:
                raise exception.InvalidInput(option, 'needs NAME')
        listed = catalogue.all_definitions()
        rows = [(definition.name, definition.title, _obtain(definition),
                 ' '.join(variant.name for variant in definition.variants),
                 ' '.join(figure.name for figure in definition.metrics
                          if figure.primary)) for definition in listed]
        return command.CommandResult(
            [_plain(definition) for definition in listed],
            lambda: text_table.draw(
                ('Name', 'What', 'From', 'Variants', 'Figure'), rows,
                width=output.width()))

    def make_rows(self, document: Any) -> Sequence[Mapping[str, Any]]:
        """Return a row for each benchmark, or that of the described one."""
        if isinstance(document, list):
            return document
        return [serialization.dump(_plain(catalogue.get(document['name'])))]


def _describe(args: argparse.Namespace) -> command.CommandResult:
    # Importing the parsers takes long, and the list does not need them.
    from hpcvirt.bench.parsers import parser as parsers
    definition = catalogue.get(args.name)
    variant = definition.variant(args.variant)
    example = _example(args, definition, variant)
    keys = parsers.get(definition.parser, definition.lines).keys
    document = serialization.dump(definition)
    document['expect_keys'] = [key.name for key in keys]
    if example is not None:
        document['example'] = example

    def text() -> str:
        parts = list(_text(definition))
        parts.append('\nKeys for bench parse --expect KEY=VALUE\n')
        parts.append(_table(('Key', 'Kind', 'Meaning'),
                            [(key.name, key.kind, key.help) for key in keys]))
        if example is not None:
            parts += _example_text(variant, example)
        return ''.join(parts)

    return command.CommandResult(document, text)


def _plain(definition: definitions.Definition) -> dict[str, object]:
    return {
        'name': definition.name, 'title': definition.title,
        'aliases': definition.aliases,
        'obtain': [source.by for source in definition.obtain],
        'licence': definition.licence,
        'variants': [variant.name for variant in definition.variants],
        'metrics': {figure.name: {
            'unit': figure.unit, 'direction': figure.direction,
            'primary': figure.primary, 'per_size': figure.per_size}
            for figure in definition.metrics},
    }


def _obtain(definition: definitions.Definition) -> str:
    return ' '.join(dict.fromkeys(source.by for source in definition.obtain))


def _example(args: argparse.Namespace, definition: definitions.Definition,
             variant: definitions.Variant) -> dict[str, object] | None:
    if args.cpus is None or args.memory_mib is None:
        return None
    from hpcvirt.bench.catalogue import sizing
    from hpcvirt.bench.run import run_request as requests
    from hpcvirt.bench.run import run_spec
    request = requests.RunRequest(definition, variant, {
        path.name: f'<{path.name}>' for path in definition.paths})
    spec = run_spec.make(request, sizing.Machine(args.cpus, args.memory_mib))
    return {
        'variant': variant.name, 'values': spec.values,
        'environment': spec.environment, 'command': spec.command,
        'files': {name: content.decode()
                  for name, content in spec.inputs.items()},
        'expect': spec.expect,
    }


def _text(definition: definitions.Definition) -> Iterator[str]:
    yield f'{definition.name}: {definition.title}\n'
    yield from _wrapped(definition.summary)
    if definition.aliases:
        yield from _wrapped(f'Also called {", ".join(definition.aliases)}.')
    yield '\nInstallation\n'
    for source in definition.obtain:
        what = ' '.join((*source.packages, source.url)).strip()
        yield from _wrapped(f'{source.by}: {what}')
        yield from _wrapped(source.note, 4)
    yield from _wrapped(f'Licence: {definition.licence}')
    for path in definition.paths:
        yield from _wrapped(f'{path.name}: {path.help}')
    yield '\nVariants\n'
    for variant in definition.variants:
        yield from _wrapped(f'{variant.name}: {shlex.join(variant.command)}')
        yield from _wrapped(f'ranks {variant.ranks}, threads '
                            f'{variant.threads}; {variant.binding}', 4)
    if definition.size:
        yield '\nSize, the same on both sides\n'
        for name, size in definition.size.items():
            yield from _wrapped(f'{name} ({size.rule}): {size.help}')
    yield '\nValidity\n'
    yield from _wrapped(definition.validity)
    yield from _wrapped(f'Exit status {definition.exit_status}.')
    yield '\nFigures\n'
    rows = [(('* ' if figure.primary else '  ') + figure.name
             + ('[BYTES]' if figure.per_size else ''),
             figure.unit, figure.direction, figure.help)
            for figure in definition.metrics]
    yield _table(('Figure', 'Unit', 'Better', 'Meaning'), rows)
    if definition.bounds:
        yield '\nDefault bounds on guest / native\n'
        for rule in definition.bounds:
            yield from _wrapped(f'{rule.metric}: {_limit(rule)}')
            yield from _wrapped(f'{rule.kind}: [{rule.source}], {rule.line}',
                                4)
            yield from _wrapped(rule.conditions, 4)
        if any(rule.kind is not judgement.BoundKind.EXPECTED
               for rule in definition.bounds):
            yield from _wrapped(
                f'A guest may lose {bounds.STUDY_MARGIN:.0%} more than in the '
                'study, so that one exactly as in the study passes.')


def _limit(rule: definitions.BoundRule) -> str:
    limits = {'at least': rule.at_least, 'at most': rule.at_most,
              'slowdown at most': rule.slowdown_at_most}
    text = next(f'{words} {round(limit, 3):g}'
                for words, limit in limits.items() if limit is not None)
    if rule.margin:
        text += f' within {rule.margin:.0%}'
    if rule.below_bytes:
        text += f', below {rule.below_bytes} bytes'
    if rule.above_bytes:
        text += f', above {rule.above_bytes} bytes'
    when = ', '.join(f'{key} {value}' for key, value in rule.when.items())
    return f'{text} ({when})' if when else text


def _example_text(variant: definitions.Variant,
                  example: dict[str, object]) -> Iterator[str]:
    yield f'\nFor this guest ({variant.name})\n'
    for title in ('values', 'environment', 'expect'):
        words = example[title]
        if isinstance(words, dict) and words:
            yield from _wrapped(title + ': ' + ' '.join(
                f'{name}={value}' for name, value in words.items()))
    command = example['command']
    if isinstance(command, tuple):
        yield from _wrapped(shlex.join(command))
    files = example['files']
    if isinstance(files, dict):
        for name, content in files.items():
            yield f'  {name}:\n'
            yield textwrap.indent(content, '    ')


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    width = output.width()
    return textwrap.indent(text_table.draw(
        headings, rows, width=width and width - 2), '  ')


def _wrapped(text: str, indent: int = 2) -> Iterator[str]:
    for line in textwrap.wrap(text, 78 - indent, break_long_words=False,
                              break_on_hyphens=False):
        yield ' ' * indent + line + '\n'
