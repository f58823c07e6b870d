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

"""The facts of a run that select its default bounds.

``nodes``: ``several`` if one job spans hosts. ``pages``: ``large`` if the
guest uses large pages by itself, and its host does not back them by small
ones. ``shape``: instances x vCPUs. A fact that is not known is left out.
"""

from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import record
from hpcvirt.model import cpuset


def of_run(run: record.Run,
           definition: definitions.Definition) -> dict[str, str]:
    """Find the facts of a run, by the names of its definition's conditions.

    :param definition: of the benchmark of the run
    """
    guest = [sample for sample in run.samples
             if sample.arm is record.Arm.GUEST]
    facts = {'nodes': _nodes(run, definition), 'pages': _pages(guest),
             'shape': _shape(run, guest)}
    return {name: value for name, value in facts.items() if value}


def _nodes(run: record.Run, definition: definitions.Definition) -> str:
    # Copies that run at the same time do not wait for the network.
    spans = any(variant.spans for variant in definition.variants
                if variant.name == run.variant)
    hosts = run.host.split(', ')
    return 'several' if spans and len(hosts) > 1 else 'one'


def _pages(guest: Iterable[record.Sample]) -> str:
    """Find the pages of the guest itself; ``pages`` is those behind it."""
    chosen = {value for sample in guest
              for value in _values(sample, 'pages.thp')}
    behind = {value for sample in guest for value in _values(sample, 'pages')}
    if not chosen:
        return ''
    is_large = all('[always]' in value for value in chosen)
    return 'large' if is_large and 'small' not in behind else 'small'


def _shape(run: record.Run, guest: Iterable[record.Sample]) -> str:
    if definitions.CONDITIONS['shape'].fullmatch(run.shape):
        return run.shape
    shapes = {(len(list(_values(sample, 'place'))), text)
              for sample in guest for text in _values(sample, 'cpu.online')}
    if len(shapes) != 1:
        return ''
    instances, text = shapes.pop()
    try:
        return f'{instances}x{len(cpuset.parse(text, "cpu.online"))}'
    except exception.InvalidInput:
        return ''


def _values(sample: record.Sample, name: str) -> Iterator[str]:
    """List a fact of a sample, which is ``NAME@GUEST`` if guests differ."""
    return (value for key, value in sample.environment.items()
            if key.partition('@')[0] == name)
