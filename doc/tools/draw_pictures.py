# SPDX-License-Identifier: Apache-2.0

"""Draw the pictures of the documentation and of the benchmarks.

::

    python -m doc.tools.draw_pictures          write the pictures
    python -m doc.tools.draw_pictures --check  compare them with the files

The hosts, flavors and refusals in them are those that the commands of hpcvirt
print for the shipped topologies, and are written to doc/source/images; the
charts are those of benchmarks/results, and are written to benchmarks/images.
"""

import argparse
import contextlib
import dataclasses
import io
import json
import pathlib
import sys
import tempfile
import textwrap
import typing
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

from doc.tools import charts
from doc.tools import picture
from hpcvirt.cmd import main as commands
from hpcvirt.model import cpuset
from hpcvirt.page import svg

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'doc' / 'source' / 'images'
OF_BENCHMARKS = ROOT / 'benchmarks' / 'images'
SHIPPED = ROOT / 'etc' / 'hpcvirt'

_LINE = 17
_COLUMNS = 59


@dataclasses.dataclass(frozen=True)
class Step:
    """A box of a flow chart.

    :ivar then: the words beside the arrow to the next box; None for no arrow,
        because the next box is another end
    """

    title: str
    text: str
    kind: str = 'step'
    then: str | None = ''


def draw_flow(label: str, steps: Sequence[Step]) -> str:
    """Draw boxes one below the other, with arrows from each to the next."""
    parts: list[str] = []
    y = 8.0
    for number, step in enumerate(steps):
        y = _box(parts, y, step)
        if number + 1 == len(steps):
            break
        if step.then is None:
            y += 8
            continue
        parts += _arrow(30, y, y + 30)
        parts.append(svg.text(44, y + 20, step.then))
        y += 30
    return picture.finish(y + 8, parts, label)


def draw_request() -> str:
    """Draw what each step decides about a request."""
    return draw_flow(
        'The way of a request through nova-api, Placement, the filter, the '
        'weighers and the claim', (
            Step('nova-api', 'The validators of hpcvirt check the extra specs '
                 'of the flavor when it is created.', then='server create'),
            Step('Placement', 'Compares sums: enough PCPU, MEMORY_MB and '
                 'devices on the whole host? It knows nothing of cells.',
                 then='allocation candidates'),
            Step('HPCTopologyFilter', 'Do the guest cells, CPUs, pages and '
                 'devices fit together on host cells? It gives the answer '
                 'that the claim will give, and a reason for each host that '
                 'it refuses.', 'good', 'hosts that take the instance'),
            Step('HPCTopologyWeigher',
                 'Which of these hosts loses least room for the instances '
                 'that are usually requested?', 'good',
                 'the best host and its alternates'),
            Step('The claim, on the compute host', "Nova's own code takes the "
                 'cells, CPUs and devices. It refuses only if another request '
                 'came first; then Nova tries an alternate.')))


def draw_modes() -> str:
    """Draw the way from a first try to an upgrade of Nova."""
    return draw_flow(
        'Shadow mode, enforcing, and an upgrade', (
            Step('1. Shadow', 'filter_mode = shadow: Nova decides as before. '
                 'The log says where HPCTopologyFilter would have decided '
                 'otherwise.', then='hpcvirt explain --scheduler-log'),
            Step('2. Enforce', 'filter_mode = enforce: the filter decides. '
                 'NUMATopologyFilter leaves enabled_filters.', 'good',
                 'a new release of Nova'),
            Step('3. Shadow during the upgrade', 'Compute hosts of two '
                 'releases answer the scheduler. Return to shadow mode, and '
                 'compare again.', then='no difference'),
            Step('4. Enforce again', 'The order is the same at every '
                 'upgrade.', 'good')))


def draw_host_life() -> str:
    """Draw the life of a host from its inspection to its quarantine."""
    return draw_flow(
        'The life of a host', (
            Step('Inspect', 'hpcvirt host show reads the host, or what '
                 'Ironic found.', then='a topology'),
            Step('Plan', 'hpcvirt flavor plan tiles the host with flavors.',
                 then='flavors and settings'),
            Step('Configure', 'hpcvirt host config writes the settings for '
                 'files, Ansible, kolla, kayobe or RHOSO.', then='reboot'),
            Step('Audit', 'hpcvirt host audit compares the host with them.',
                 then='no finding'),
            Step('Accept', 'hpcvirt bench run fills the host with '
                 'instances, and measures them.', then='PASS'),
            Step('In service', 'hpcvirt host watch exports its signs, and '
                 'hpcvirt host supervise compares them with its class.',
                 'good', 'a sign of a slow host'),
            Step('Quarantine', 'New instances stay away. Repair the host, '
                 'and accept it again.', 'bad')))


def draw_verdict() -> str:
    """Draw the way from runs to a verdict."""
    return draw_flow(
        'The way of a verdict', (
            Step('Plan', 'How many pairs of runs can decide this bound, and '
                 'how long do they take?', then='hpcvirt bench run'),
            Step('Pairs', 'The guest and its own host run in turn, in an '
                 'order drawn by lot. Each output is checked before its '
                 'figure counts.', then='ratios guest / native'),
            Step('Conditions', 'Do the runs depend on each other, do they '
                 'have two levels, do some hang or last far too long? The '
                 'interval becomes wider, or the verdict inconclusive.',
                 then='typical run and mean time'),
            Step('PASS', 'Both are surely within the bound.', 'good', None),
            Step('FAIL', 'One of them is surely beyond it.', 'bad', None),
            Step('INCONCLUSIVE', 'These runs cannot decide; the report says '
                 'why, and how many could.', 'kept')))


def draw_host() -> str:
    """Draw a host that is tiled with its planned flavors."""
    topology = SHIPPED / 'topologies' / 'hs06-2s-16c.json'
    with tempfile.TemporaryDirectory() as scratch:
        profile = pathlib.Path(scratch) / 'profile.yaml'
        profile.write_text(
            'smallest_cores: 5\ndevices:\n- {per_instance: 1, affinity: '
            "preferred, vendor_id: '8086', product_id: '10ed', "
            'vfs_per_device: 4}\n')
        plan = _read_json('flavor', 'plan', '--profile', str(profile),
                          str(topology))
    settings = plan['host_config']['hs06-2s-16c']
    flavors = {flavor['name']: flavor for flavor in plan['flavors']}
    large, small = (flavors[name] for name in ('hpc.15c1n.2m.vf1',
                                               'hpc.5c1n.2m.vf1'))
    parts: list[str] = []
    y = 8.0
    for cell, guests in zip(_read_json('host', 'show', str(topology))[
            'cells'], ([large], [small] * 3), strict=True):
        kinds = 'a' if guests == [large] else 'bcd'
        cpus: list[str] = []
        for kind, guest in zip(kinds, guests, strict=True):
            cpus += [kind] * guest['vcpus']
        pages = settings['pages'][str(cell['id'])]['2048']
        used = [(kind, guest['ram_mib'] // 2) for kind, guest in zip(
            kinds, guests, strict=True)]
        shared = cpuset.parse(settings['cpu_shared_set'])
        rows = ['kept' if cpu in shared else cpus.pop(0)
                for cpu in cell['cpus']]
        parts.append(svg.rectangle('cell', 8, y, picture.WIDTH - 16, 128))
        parts.append(picture.bold(18, y + 20, f'host cell {cell["id"]}'))
        parts.append(svg.text(picture.WIDTH - 18, y + 20,
                              f'{len(rows)} cores', 'end'))
        parts += [svg.rectangle(kind, 18 + 26.5 * number, y + 30, 22, 22)
                  for number, kind in enumerate(rows)]
        parts.append(svg.text(18, y + 74, f'{pages} pages of 2 MiB, '
                              f'{sum(count for _, count in used)} in use'))
        parts += picture.draw_bar(y + 82, pages, used)
        vfs = 'abcd' if cell['id'] == 0 else ''
        parts.append(svg.text(18, y + 117, f'{len(vfs)} VFs of the card here'
                              if vfs else 'no card'))
        parts += [svg.rectangle(kind, 180 + 26.5 * number, y + 104, 22, 18)
                  for number, kind in enumerate(vfs)]
        y += 138
    for kind, words in (
            ('kept', 'a core that is kept for the host and the emulators'),
            ('a', 'one instance of hpc.15c1n.2m.vf1'),
            ('b', 'three instances of hpc.5c1n.2m.vf1 (three colors)')):
        parts.append(svg.rectangle(kind, 18, y, 14, 14))
        parts.append(svg.text(40, y + 12, words))
        y += 21
    return picture.finish(y + 4, parts, 'Two host cells, tiled with the '
                          'flavors that hpcvirt flavor plan made for them')


def draw_refusal() -> str:
    """Draw why a host with 8 and 8 free PCPUs refuses a guest of 16."""
    answer = _read_json('explain', '--flavor', 'hpc.16c1n.2m', '--fleet',
                        str(SHIPPED / 'fleets' / 'three-hosts.json'))
    reason = next(host['reason'] for host in answer['hosts']
                  if host['name'] == 'n1')
    parts = [picture.bold(18, 22,
                          'Host n1: 16 PCPUs are free, 8 in each cell')]
    for number, kind in enumerate('ab'):
        y = 36 + 74 * number
        parts.append(svg.rectangle('cell', 8, y, picture.WIDTH - 16, 66))
        parts.append(svg.text(18, y + 20, f'host cell {number}'))
        parts += [svg.rectangle(kind if cpu < 8 else 'free', 18 + 26.5 * cpu,
                                y + 30, 22, 22) for cpu in range(16)]
    parts.append(picture.bold(18, 206, 'A guest of one cell with 16 PCPUs'))
    parts += [svg.rectangle('c', 18 + 26.5 * cpu, 216, 22, 22)
              for cpu in range(16)]
    passes = 'The host has 16 PCPU free, 16 needed: it passes.'
    y = 250.0
    for step in (Step('Placement', passes, 'good'),
                 Step('HPCTopologyFilter', f'It is refused: {reason}.',
                      'bad')):
        y = _box(parts, y, step) + 8
    return picture.finish(y, parts, 'Why 8 and 8 free PCPUs are not 16')


def _box(parts: list[str], y: float, step: Step) -> float:
    """Add a box to the parts of a drawing; return where it ends."""
    lines = textwrap.wrap(step.text, _COLUMNS)
    height = 14 + _LINE * (1 + len(lines))
    parts.append(svg.rectangle(step.kind, 8, y, picture.WIDTH - 16, height))
    parts.append(picture.bold(18, y + 19, step.title))
    parts += [svg.text(18, y + 19 + _LINE * (row + 1), line)
              for row, line in enumerate(lines)]
    return y + height


def _read_json(*words: str) -> typing.Any:
    return json.loads(_run(*words, '--format', 'json'))


def _run(*words: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), \
            contextlib.redirect_stderr(io.StringIO()):
        commands.main(list(words))
    return out.getvalue()


def _arrow(x: float, top: float, bottom: float) -> Iterator[str]:
    yield svg.path('arrow', ((x, top), (x, bottom - 2)))
    yield svg.path('arrow', ((x - 5, bottom - 9), (x, bottom - 2),
                             (x + 5, bottom - 9)))


PICTURES: dict[str, Callable[[], str]] = {
    'request': draw_request, 'modes': draw_modes, 'host-life': draw_host_life,
    'verdict': draw_verdict, 'host': draw_host, 'refusal': draw_refusal}


def main() -> int:
    """Write the pictures, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--check', action='store_true',
                        help='only compare; 1 if a picture differs')
    check = parser.parse_args().check
    status = 0
    pictures = {FOLDER / f'{name}.svg': draw
                for name, draw in PICTURES.items()}
    for name, draw in charts.CHARTS.items():
        pictures[OF_BENCHMARKS / f'{name}.svg'] = draw
    for path, draw in pictures.items():
        drawn = draw()
        if check and (not path.exists() or path.read_text() != drawn):
            print(f'{path} is not what python -m doc.tools.draw_pictures '
                  'draws', file=sys.stderr)
            status = 1
        elif not check:
            path.write_text(drawn)
    return status


if __name__ == '__main__':
    sys.exit(main())
