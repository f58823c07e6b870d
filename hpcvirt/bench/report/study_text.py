# SPDX-License-Identifier: Apache-2.0

"""Write studies as text for a terminal, with or without results of a site."""

import textwrap
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from hpcvirt import bibliography
from hpcvirt import text_table
from hpcvirt.bench.report import text
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import study

#: Sentences are wrapped at this column on every terminal.
_WIDTH = 78
_INDENT = '  '


def listing(studies: Iterable[study.Study], width: int | None) -> str:
    """Draw a table of studies.

    :param width: columns of the terminal, None for no limit
    """
    return text_table.draw(
        ('Study', 'Title', 'Cases', 'Source'),
        [(each.id, each.title, str(len(each.cases)), each.document.citation)
         for each in studies], {'Cases'}, width)


def describe(study_: study.Study, width: int | None) -> Iterator[str]:
    """Yield the description of a study, as lines and tables.

    :param width: columns of the terminal, None for no limit
    """
    room = None if width is None else width - len(_INDENT)
    yield f'{study_.id}: {study_.title}\n'
    source = study_.document
    yield from _item(_reference(source), '  ')
    yield from _section('Set-up', study_.setup)
    yield '\nCases\n'
    yield _indented(text_table.draw(
        ('Case', 'Guests', 'Hosts', 'Description', 'Benchmarks'),
        [(case.id, case.guests.shape, str(case.hosts), case.text,
          _benchmarks(case)) for case in study_.cases], {'Hosts'}, room))
    yield (f'\nPublished figures {source.citation}; the ratio guest / '
           'native is computed\n')
    yield _indented(text_table.draw(
        ('Case', 'Figure', 'Native', 'Guest', 'Unit', 'Ratio', 'Better',
         'Place'), [_published(row) for row in study_.rows],
        {'Native', 'Guest', 'Ratio'}, room))
    yield from _section('Numbers stated without their figures', [
        _statement(study_, each) for each in study_.statements])
    yield from _section('Lessons', study_.lessons)


def _statement(study_: study.Study, each: study.Statement) -> str:
    text = f'{each.text}: {each.figure} ({each.place})'
    if each.remark:
        text += f'; {each.remark}'
    percent = study_.find_mix_percent(each)
    if percent is not None:
        text += f'; equal parts of {", ".join(each.mix)} lose {percent:.1f} %'
    return text


def format_comparisons(comparisons: Iterable[comparison.SiteComparison],
                       width: int | None) -> str:
    """Draw a table of published figures, each above the site's results."""
    rows: list[Sequence[str]] = []
    for compared in comparisons:
        row = describe_comparison(compared)
        rows.append((
            row['case'], row['title'], 'published', row['native'],
            row['guest'], row['unit'], row['ratio'], row['better'], '',
            row['benchmark'] if row['results'] else 'not yet run'))
        for result in row['results']:
            rows.append((
                '', 'mean' if result['components'] else '', result['host'],
                result['native'], result['guest'], result['unit'],
                result['ratio'], '', str(result['pairs']), '; '.join(
                    filter(None, (result['with'], result['why'])))))
            rows += [('', f'  {each["name"]}', '', each['native'],
                      each['guest'], each['unit'], each['ratio'],
                      each['better']) for each in result['components']]
    return text_table.draw(
        ('Case', 'Figure', 'Source', 'Native', 'Guest', 'Unit',
         'Guest / native', 'Better', 'Pairs', 'Measured with'), rows,
        {'Native', 'Guest', 'Pairs'}, width)


def describe_comparison(compared: comparison.SiteComparison) -> dict[str, Any]:
    """Return a published figure and the results of the site, as texts."""
    row = compared.row
    native, guest, ratio = row.figures if row else ('-', '-', '-')
    return {'case': compared.case.id,
            'title': row.title if row else 'no figure', 'native': native,
            'guest': guest, 'ratio': ratio,
            'place': row.place if row else '',
            'benchmark': row.benchmark if row else '',
            'unit': row.unit if row and row.guest is not None else '',
            'better': text.BETTER[row.direction] if row else '',
            'results': [_result(result) for result in compared.results]}


def _result(result: comparison.SiteResult) -> dict[str, Any]:
    benchmark = result.benchmark + (', a stand-in' if result.stand_in else '')
    link = ''
    if result.link_share is not None:
        link = f'{100 * result.link_share:.0f} % of the fastest link'
    return {'host': result.host, 'native': text.figure(result.native),
            'guest': text.figure(result.guest),
            'unit': '' if result.guest is None else result.unit,
            'ratio': text.interval(result.interval), 'pairs': result.pairs,
            'why': '; '.join(filter(None, (link, result.reason,
                                           *result.unmet))),
            'with': f'{benchmark} {result.shape}'.rstrip(),
            'components': [{
                'name': each.name, 'native': text.figure(each.native),
                'guest': text.figure(each.guest), 'unit': each.unit,
                'ratio': text.interval(each.interval),
                'better': text.BETTER[each.direction]}
                for each in result.components]}


def _reference(source: bibliography.Publication) -> str:
    return (f'{source.citation} {source.authors}: "{source.title}", '
            f'{source.venue}, {source.year}; {source.found}')


def _benchmarks(case: study.Case) -> str:
    variants: dict[str, list[str]] = {}
    for each in case.benchmarks:
        variants.setdefault(each.variant, []).append(each.benchmark)
    return '; '.join(f'{" ".join(names)} ({variant})'
                     for variant, names in variants.items())


def _published(row: study.PublishedComparison) -> tuple[str, ...]:
    native, guest, ratio = row.figures
    return (row.case, row.title, native, guest, row.unit, ratio,
            text.BETTER[row.direction], row.place)


def _section(title: str, sentences: Sequence[str]) -> Iterator[str]:
    if sentences:
        yield f'\n{title}\n'
        for sentence in sentences:
            yield from _item(sentence, '  - ')


def _item(sentence: str, bullet: str) -> Iterator[str]:
    yield textwrap.fill(sentence, _WIDTH, initial_indent=bullet,
                        subsequent_indent=' ' * len(bullet),
                        break_on_hyphens=False) + '\n'


def _indented(table: str) -> str:
    return textwrap.indent(table, _INDENT)
