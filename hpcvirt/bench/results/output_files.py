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

"""Outputs that lie in files: read them, arm by arm, in the order of pairs.

A set of outputs is a directory (its files in natural order; a directory in
it stands for one sample and holds the file that the benchmark's definition
names), a quoted shell pattern, one raw output, or JSON: a result of
``hpcvirt bench run``, answers of ``hpcvirt bench parse`` as a list or one to
a line.
"""

import dataclasses
import glob
import json
import pathlib
import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.parsers import parser
from hpcvirt.bench.parsers import text
from hpcvirt.bench.results import json_format


@dataclasses.dataclass(frozen=True)
class Answer:
    """What ``hpcvirt bench parse --format json`` writes."""

    benchmark: str
    valid: bool
    reason: str | None
    metrics: Mapping[str, outcome.Metric]
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    remarks: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Set:
    """The outputs of one benchmark in one arm, in the order of pairs.

    :ivar benchmark: name of a definition or a family
    """

    benchmark: str
    variant: str
    outcomes: tuple[outcome.Outcome, ...]


def answer(benchmark: str, found: outcome.Outcome) -> Answer:
    """Put a benchmark's name to an outcome."""
    return Answer(benchmark, found.valid, found.reason, found.metrics,
                  found.parameters, found.remarks)


def read_raw(path: str) -> bytes:
    """Read an output; no more of it than a parser looks at.

    :raises InvalidInput: if there is no such file
    """
    try:
        with open(path, 'rb') as file:
            return file.read(text.LIMIT_BYTES + 1)
    except (OSError, ValueError) as exc:
        what = getattr(exc, 'strerror', None) or str(exc)
        raise exception.InvalidInput(path, what) from exc


def collect(path: str, arm: record.Arm, benchmark: str | None,
            expect: Mapping[str, str]) -> tuple[Set, ...]:
    """Read one arm.

    :param path: see the module
    :param benchmark: whose raw outputs these are; JSON says so itself
    :param expect: what the parser is to expect of raw outputs
    :returns: one set per benchmark and variant
    :raises InvalidInput: if nothing can be made of it
    """
    files = _files(path, benchmark)
    if len(files) == 1:
        raw = read_raw(str(files[0]))
        document = _json(raw)
        if document is not None:
            return _of_json(document, path, arm)
    if benchmark is None:
        raise exception.InvalidInput(
            path, 'raw outputs: say of which benchmark by --benchmark')
    known = catalogue.readable(benchmark)
    told = {**known.expect, **expect}
    return (Set(known.name, '', tuple(
        parser.parse(known.parser, read_raw(str(file)), told,
                     where=known.name) for file in files)),)


def run_of(native: Set, guest: Set, *, unpaired: bool,
           warm_ups: int) -> record.Run:
    """Make a run of two sets.

    :param warm_ups: outputs at the beginning of each arm that do not count
    :raises InvalidInput: if the arms do not go together
    """
    counts = len(native.outcomes), len(guest.outcomes)
    if not unpaired and counts[0] != counts[1]:
        raise exception.InvalidInput(
            native.benchmark, f'{counts[0]} native and {counts[1]} guest '
            'outputs are no pairs; if they never were, say --unpaired')
    samples = [record.Sample(
        arm, number if number < warm_ups else number - warm_ups,
        2 * number + place, found, warm_up=number < warm_ups)
        for place, (arm, side) in enumerate(
            ((record.Arm.NATIVE, native), (record.Arm.GUEST, guest)))
        for number, found in enumerate(side.outcomes)]
    purpose = (record.Purpose.UNPAIRED if unpaired
               else record.Purpose.COMPARE)
    return record.Run(
        id='files', benchmark=native.benchmark, variant=native.variant,
        samples=tuple(sorted(samples, key=lambda sample: sample.position)),
        purpose=purpose, planned_pairs=max(0, min(counts) - warm_ups),
        planned_warm_ups=warm_ups)


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Order names as people do: ``run2`` before ``run10``."""
    return tuple((part.isdigit(), int(part[:18]) if part.isdigit() else 0,
                  part)
                 for part in re.split(r'([0-9]+)', name) if part)


def _files(path: str, benchmark: str | None) -> list[pathlib.Path]:
    place = pathlib.Path(path)
    if not place.exists() and any(mark in path for mark in '*?['):
        found = [pathlib.Path(name) for name in glob.glob(path)]
    elif place.is_dir():
        found = [child for child in place.iterdir()
                 if not child.name.startswith('.')]
    else:
        return [place]
    if not found:
        raise exception.InvalidInput(path, 'no outputs there')
    ordered = sorted(found, key=lambda child: natural(child.name))
    return [_output(child, benchmark) if child.is_dir() else child
            for child in ordered]


def _output(folder: pathlib.Path, benchmark: str | None) -> pathlib.Path:
    """The file of one sample's directory that is parsed."""
    made = None if benchmark is None else catalogue.readable(benchmark).made
    names = ['stdout']
    if made is not None:
        names = [variant.output for variant in made.variants]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise exception.InvalidInput(
        str(folder), f'no {" or ".join(dict.fromkeys(names))} in it')


def _json(raw: bytes) -> object | None:
    """A JSON document or one document to a line; None if it is neither."""
    words = raw.decode('utf-8', 'replace').strip()
    if not words.startswith(('{', '[')):
        return None
    for lines in ([words], words.splitlines()):
        try:
            found = [json.loads(line) for line in lines if line.strip()]
        except (ValueError, RecursionError):
            continue
        return found[0] if len(found) == 1 else found
    return None


def _of_json(document: object, where: str,
             arm: record.Arm) -> tuple[Set, ...]:
    if isinstance(document, dict) and 'schema_version' in document:
        result = json_format.result_from(document, where)
        return _of_runs(result.runs, where, arm)
    answers = document if isinstance(document, list) else [document]
    groups: dict[str, list[outcome.Outcome]] = {}
    for number, item in enumerate(answers):
        said = serialization.from_plain(Answer, item, f'{where}[{number}]')
        groups.setdefault(said.benchmark, []).append(outcome.Outcome(
            said.valid, said.reason, _checked(said, f'{where}[{number}]'),
            said.parameters, said.remarks))
    if not groups:
        raise exception.InvalidInput(where, 'no answers in it')
    return tuple(Set(name, '', tuple(found))
                 for name, found in groups.items())


def _checked(said: Answer, where: str) -> Mapping[str, outcome.Metric]:
    for name, metric in said.metrics.items():
        if not metric.value > 0:
            raise exception.InvalidInput(
                f'{where}.metrics.{name}', f'{metric.value} is not above 0')
    return said.metrics


def _of_runs(runs: Iterable[record.Run], where: str,
             arm: record.Arm) -> tuple[Set, ...]:
    found = tuple(
        Set(run.benchmark, run.variant, _in_order(run.samples, arm))
        for run in runs if run.purpose is not record.Purpose.AA)
    if not any(made.outcomes for made in found):
        raise exception.InvalidInput(where, f'no {arm} samples in it')
    return tuple(made for made in found if made.outcomes)


def _in_order(samples: Sequence[record.Sample],
              arm: record.Arm) -> tuple[outcome.Outcome, ...]:
    mine = [sample for sample in samples
            if sample.arm is arm and not sample.warm_up]
    return tuple(sample.outcome
                 for sample in sorted(mine, key=lambda one: one.pair))
