# SPDX-License-Identifier: Apache-2.0

"""Write the text of the demonstration, at most 100 columns wide."""

import textwrap
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from demo import fleet
from demo import strategies
from demo import workload
from hpcvirt import text_table

WIDTH = 100


def heading(text: str) -> list[str]:
    """Return a heading between empty lines."""
    return ['', text, '=' * len(text), '']


def hosts() -> list[str]:
    """Describe the hosts of the fleet."""
    lines = []
    for names in fleet.kinds(list(fleet.HOSTS)).values():
        host = fleet.read(names[0])
        memory_gib = sum(cell.memory_mib for cell in host.cells) // 1024
        devices = sorted({
            str(each.cell) for each in host.devices if each.total_vfs})
        lines.append(
            f'  {", ".join(names):16}{len(host.sockets)} sockets,'
            f' {len(host.cells)} cells, {len(host.cpus):3} CPUs'
            f' ({host.threads_per_core} threads per core),'
            f' {memory_gib} GiB, SR-IOV on cell {" and ".join(devices)}')
        lines.append(f'  {"":16}{fleet.path(names[0]).name}')
    return lines


def flavors(fillings: Mapping[str, Any]) -> Iterator[str]:
    """Show the commands, and count the flavors that they created."""
    for plan in fleet.PLANS:
        filling = fillings[plan.profile]
        options = ' '.join(plan.arguments()[:2])
        yield f'  $ hpcvirt flavor apply --apply {options} \\'
        for argument in plan.arguments()[2:]:
            yield f'      {argument}'
        created = sum(step['action'] == 'create' and step['done']
                      for step in filling['steps'])
        again = [step['action'] for step in filling['again']]
        yield (f'  {created} flavors created through the API; when applied'
               f' again, {again.count("same")} of {len(again)} are as planned')
        yield ''


def fills(fillings: Mapping[str, Any]) -> Iterator[str]:
    """Show how many guests of each flavor fill a host."""
    rows: list[Mapping[str, Any]] = []
    for filling in fillings.values():
        rows += filling['rows']
    yield from _table(
        ('Flavor', 'Host', 'Planned', 'Booted', 'PCPUs left', 'One more'),
        [(row['flavor'], row['host'], str(row['planned']),
          str(row['booted']), str(row['left_pcpus']),
          'refused' if row['one_more'] == 'ERROR' else 'NOT REFUSED')
         for row in rows],
        {'Planned', 'Booted', 'PCPUs left'})
    whys = [row['why'] for row in rows]
    yield ''
    yield '  Reasons why one more was refused:'
    for why in dict.fromkeys(whys):
        yield from _wrap(f'{whys.count(why)} x {why}', 4)


def drawings(fillings: Mapping[str, Any]) -> Iterator[str]:
    """Draw the hosts that are filled with a mixture of flavors."""
    yield ('  One character is a core with its SMT siblings: a letter is an'
           ' instance, . is free.')
    for filling in fillings.values():
        for drawn in filling['drawings']:
            yield ''
            yield from (f'  {line}' for line in drawn['text'])
            sizes = ', '.join(f'{label} {flavor}' for label, flavor
                              in drawn['guests'].items())
            yield from _wrap(sizes, 4)
            for flavor, why in drawn['refused'].items():
                yield from _wrap(f'refused {flavor}: {why}', 4)


def about_requests(seed: int, places: Mapping[str, Any]) -> Iterator[str]:
    """Explain the requests."""
    answers = next(iter(places.values()))['answers']
    late = sum(each['late'] for each in answers)
    yield from _wrap(
        f'{len(answers) - late} small guests start and end at random times'
        f' (seed {seed}). They are of the flavors of which some host holds'
        f' more than {workload.LARGE}; each of these flavors requests as many'
        f' CPUs in total, and all together request {workload.LOAD:.0%} of the'
        f' fleet on average. Then {late} large guests are requested, one of'
        ' each other flavor; each is deleted before the next one is'
        ' requested. All requests are generated before the first one is'
        ' placed, see demo/workload.py. IoOpsWeigher of Nova is off in all'
        ' strategies: the embedded Nova lacks the periodic task after which'
        ' guests that have started no longer count as building.', 2)
    yield ''


def comparison(places: Mapping[str, Any]) -> Iterator[str]:
    """Compare the strategies."""
    yield from _table(('Strategy', 'Meaning'), [
        (strategy.title, strategy.meaning)
        for name, strategy in strategies.STRATEGIES.items()
        if name in places])
    yield ''
    titles = [strategies.STRATEGIES[name].title for name in places]
    yield from _table(
        ('Figure', *titles),
        [(title, *cells) for title, cells in _figures(places)], titles)


def other_seeds(document: Mapping[str, Any]) -> Iterator[str]:
    """Count the other seeds by the results of their sequences."""
    seeds = document['others']
    yield from _wrap(
        f'The same comparison with {len(seeds)} other seeds ({seeds[0]} to'
        f' {seeds[-1]}), by benchmarks/seeds.py, which models Nova. A seed is'
        ' better if more guests start with hpcvirt.', 2)
    yield ''
    yield from _table(
        ('Guests', 'Compared with', 'Better', 'Equal', 'Worse'),
        [(size, strategies.STRATEGIES[other].title, *map(str, counts))
         for other, size, *counts in document['verdicts']],
        ('Better', 'Equal', 'Worse'))


def _figures(places: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    def row(title: str, figure: Any) -> tuple[str, list[str]]:
        return title, [figure(each) for each in places.values()]

    yield row('small guests that started, of those requested',
              lambda each: _started(each, late=False))
    yield row('  vCPUs refused', lambda each: str(sum(
        answer['vcpus'] for answer in each['answers']
        if not answer['late'] and not answer['host'])))
    yield row('guests in the fleet after that',
              lambda each: str(each['state']['guests']))
    yield row('  free PCPUs', lambda each: str(each['state']['free_pcpus']))
    yield row('  of these in cells that are partly in use (stranded)',
              lambda each: str(each['state']['unused_pcpus']))
    yield row('  unused cells', lambda each: str(each['state']['whole_cells']))
    yield row('  unused hosts', lambda each: str(each['state']['whole_hosts']))
    yield row('  guests for one socket that are in two',
              lambda each: str(len(each['state']['split'])))
    yield row('  guests whose VF is on none of their cells',
              lambda each: (f'{len(each["state"]["far"])} of'
                            f' {each["state"]["devices"]}'))
    yield row('large guests that started, of those requested then',
              lambda each: _started(each, late=True))


def _started(place: Mapping[str, Any], late: bool) -> str:
    answers = [each for each in place['answers'] if each['late'] is late]
    return (f'{sum(bool(each["host"]) for each in answers)}'
            f' of {len(answers)}')


def maps(places: Mapping[str, Any]) -> Iterator[str]:
    """Draw the fleet under each strategy, before the large guests."""
    cells = {name: place['state']['hosts'] for name, place in places.items()}
    first = next(iter(cells.values()))
    rows = []
    for host, own in first.items():
        for number, cell in enumerate(own):
            rows.append((
                host if not number else '', str(cell),
                *(of_place[host][cell] for of_place in cells.values())))
    yield from _table(
        ('Host', 'Cell', *(strategies.STRATEGIES[name].title
                           for name in cells)), rows, {'Cell'})


def large(places: Mapping[str, Any]) -> Iterator[str]:
    """Show where each large guest started."""
    answers = zip(*([each for each in place['answers'] if each['late']]
                    for place in places.values()), strict=True)
    yield from _table(
        ('Requested', *(strategies.STRATEGIES[name].title
                        for name in places)),
        [(row[0]['flavor'], *(each['host'] or 'refused' for each in row))
         for row in answers])


def refusals(place: Mapping[str, Any], plans: Iterable[Mapping[str, Any]],
             ) -> Iterator[str]:
    """Show what hpcvirt refused on each host, and why."""
    takes = {}
    for plan in plans:
        for flavor in plan['flavors']:
            takes[flavor['name']] = flavor['per_host']
    refused = [each for each in place['answers'] if not each['host']]
    if not refused:
        yield '  hpcvirt refused nothing.'
    for answer in refused:
        yield f'  {answer["label"]}  {answer["flavor"]}'
        reasons = [line for line in answer['why']
                   if takes[answer['flavor']].get(line.partition(',')[0])]
        for line in reasons:
            host, _, why = line.partition(' refused: ')
            yield from _wrap(f'{host.partition(",")[0]}: {why}', 7)
        if not reasons:
            yield ('       Placement has no host of this kind with enough free'
                   ' PCPUs')


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]],
           numbers: Collection[str] = ()) -> list[str]:
    return [f'  {line}' for line in text_table.draw(
        headings, rows, numbers, WIDTH - 2).splitlines()]


def _wrap(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, WIDTH - 2, initial_indent=' ' * indent,
                         subsequent_indent=' ' * (indent + 2))


def checks(found: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """List the checks with their violations."""
    for title, against in found:
        yield f'  {"ok" if not against else "FAILED":8}{title}'
        for line in against:
            yield from _wrap(line, 10)
