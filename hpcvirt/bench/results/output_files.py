# SPDX-License-Identifier: Apache-2.0

"""Read the outputs of both sides from files, in the order of pairs.

The outputs of a side are a directory, a quoted shell pattern, one raw output,
or JSON. A directory has a file for each sample, in natural order, or a
directory with the file that the benchmark's definition names. JSON is a result
of ``hpcvirt bench run``, or answers of ``hpcvirt bench parse``: a list, or one
per line. Files may also be run reports of ReFrame, one for each launch.
"""

import dataclasses
import glob
import itertools
import json
import os
import pathlib
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.parsers import parser
from hpcvirt.bench.parsers import text
from hpcvirt.bench.results import json_format
from hpcvirt.bench.results import reframe_reports


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParsedOutput(outcome.Outcome):
    """An outcome with its benchmark: what ``hpcvirt bench parse`` prints.

    :ivar launch: identifies the guest launch of the output, None if it is
        unknown
    """

    benchmark: str
    launch: str | None = None


@dataclasses.dataclass(frozen=True)
class SideOutputs:
    """The outputs of a benchmark on one side, in the order of pairs.

    :ivar benchmark: name of a definition or a family
    :ivar launches: guest launch of each output; empty if unknown
    """

    benchmark: str
    variant: str
    outcomes: tuple[outcome.Outcome, ...]
    launches: tuple[str, ...] = ()


def make_output(benchmark: str, result: outcome.Outcome) -> ParsedOutput:
    """Add the name of the benchmark to an outcome."""
    return ParsedOutput(**vars(result), benchmark=benchmark)


def read_raw(path: str) -> bytes:
    """Read an output, or its beginning if it is longer than a parser accepts.

    :raises InvalidInput: if there is no such file
    """
    return input_file.beginning(path, text.LIMIT_BYTES + 1)


def collect(path: str, side: record.Side, benchmark: str | None,
            expect: Mapping[str, str]) -> tuple[SideOutputs, ...]:
    """Read the outputs of one side.

    :param path: see the module
    :param benchmark: benchmark of raw outputs; JSON names its own
    :param expect: parameters that raw outputs must print
    :returns: one element per benchmark and variant
    :raises InvalidInput: if the path has no readable outputs
    """
    first, *others = _files(path, benchmark)
    # Standard input and pipes can be read only once.
    raw = read_raw(str(first))
    where = input_file.name(path)
    document = _json(raw)
    if reframe_reports.is_report(document):
        found = reframe_reports.read([(document, str(first)), *(
            (_json(read_raw(str(file))), str(file)) for file in others)])
        if not found:
            raise exception.InvalidInput(where,
                                         'has no performance variables')
        return tuple(SideOutputs(*key, *zip(*outputs, strict=True))
                     for key, outputs in found.items())
    # Raw outputs may be JSON, too.
    is_own = isinstance(document, list) or (
        isinstance(document, dict)
        and not {'schema_version', 'benchmark'}.isdisjoint(document))
    if not others and is_own:
        return _from_json(document, where, side)
    if benchmark is None:
        raise exception.InvalidInput(
            where, 'has raw outputs; name their benchmark with --benchmark')
    source = catalogue.output_source(benchmark)
    raws = itertools.chain((raw,), (read_raw(str(file)) for file in others))
    return (SideOutputs(source.name, '', tuple(
        parser.parse(source.output_format, raw, {**source.expect, **expect})
        for raw in raws)),)


def run_of(native: SideOutputs, guest: SideOutputs, *, in_turn: bool,
           warm_ups: int) -> record.Run:
    """Combine two sides into a run.

    :param in_turn: the outputs are pairs that were measured in turn
    :param warm_ups: number of warm-ups at the beginning of each side
    :raises InvalidInput: if pairs are incomplete
    """
    counts = len(native.outcomes), len(guest.outcomes)
    if in_turn and counts[0] != counts[1]:
        raise exception.InvalidInput(
            native.benchmark, f'{counts[0]} native and {counts[1]} guest '
            'outputs are not pairs; leave out --in-turn if they were not '
            'measured in pairs')
    samples: list[record.Sample] = []
    for turn, (side, outputs) in enumerate(
            ((record.Side.NATIVE, native), (record.Side.GUEST, guest))):
        for number, result in enumerate(outputs.outcomes):
            is_warm_up = number < warm_ups
            launch_id = outputs.launches[number] if outputs.launches else ''
            samples.append(record.Sample(
                side, number if is_warm_up else number - warm_ups,
                2 * number + turn, result, warm_up=is_warm_up,
                launch_id=launch_id))
    purpose = (record.Purpose.COMPARE if in_turn
               else record.Purpose.UNPAIRED)
    return record.Run(
        id='files', benchmark=native.benchmark, variant=native.variant,
        samples=tuple(sorted(samples, key=lambda sample: sample.position)),
        purpose=purpose, planned_pairs=max(0, min(counts) - warm_ups),
        planned_warm_ups=warm_ups)


def _files(path: str, benchmark: str | None) -> list[pathlib.Path]:
    if not os.path.exists(path) and any(mark in path for mark in '*?['):
        files = [pathlib.Path(name) for name in glob.glob(path)]
    elif os.path.isdir(path):
        files = [child for child in pathlib.Path(path).iterdir()
                 if not child.name.startswith('.')]
    else:
        return [pathlib.Path(path)]
    if not files:
        raise exception.InvalidInput(path, 'has no outputs')
    ordered = sorted(files, key=lambda child: words.natural_order(child.name))
    return [_output(child, benchmark) if child.is_dir() else child
            for child in ordered]


def _output(folder: pathlib.Path, benchmark: str | None) -> pathlib.Path:
    """Return the file to parse in the directory of a sample."""
    names = ['stdout']
    if benchmark is not None:
        definition = catalogue.output_source(benchmark).definition
        if definition is not None:
            names = [variant.output for variant in definition.variants]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise exception.InvalidInput(
        str(folder), f'has no {" or ".join(dict.fromkeys(names))}')


def _json(raw: bytes) -> object | None:
    """Read a JSON document or one document per line; None if neither."""
    content = raw.decode('utf-8', 'replace').strip()
    if not content.startswith(('{', '[')):
        return None
    for lines in ([content], content.splitlines()):
        try:
            documents = [json.loads(line) for line in lines if line.strip()]
        except (ValueError, RecursionError):
            continue
        return documents[0] if len(documents) == 1 else documents
    return None


def _from_json(document: object, where: str,
               side: record.Side) -> tuple[SideOutputs, ...]:
    if isinstance(document, dict) and 'schema_version' in document:
        result = json_format.result_from(document, where)
        return _from_runs(result.runs, where, side)
    outputs = serialization.load(
        tuple[ParsedOutput, ...],
        document if isinstance(document, list) else [document], where)
    groups: dict[str, list[ParsedOutput]] = {}
    for number, output in enumerate(outputs):
        _check_figures(output, f'{where}: [{number}]')
        groups.setdefault(output.benchmark, []).append(output)
    if not groups:
        raise exception.InvalidInput(where, 'has no outputs')
    for name, group in groups.items():
        _check_launches(name, group, where)
    return tuple(SideOutputs(
        name, '', tuple(group),
        tuple(output.launch for output in group if output.launch))
        for name, group in groups.items())


def _check_figures(output: ParsedOutput, where: str) -> None:
    """Refuse figures whose unit or direction contradicts the definition.

    The ratio of MB/s to GB/s, or of a time taken for a rate, would look sound.
    """
    declared = catalogue.metrics(output.benchmark)
    for name, metric in output.metrics.items():
        figure = declared.get(metric_definition.split(name)[0])
        for what in ('unit', 'direction') if figure else ():
            found, wanted = getattr(metric, what), getattr(figure, what)
            if found != wanted:
                raise exception.InvalidInput(
                    f'{where}.metrics[{name!r}].{what}',
                    f'is {str(found)!r}, but {str(wanted)!r} in the '
                    f'definition of {output.benchmark}')


def _check_launches(benchmark: str, group: Sequence[ParsedOutput],
                    where: str) -> None:
    known = sum(1 for output in group if output.launch)
    if known not in (0, len(group)):
        raise exception.InvalidInput(
            where, f'{known} of {len(group)} outputs of {benchmark} have a '
            'launch: all or none must have one')


def _from_runs(runs: Iterable[record.Run], where: str,
               side: record.Side) -> tuple[SideOutputs, ...]:
    sides = [SideOutputs(run.benchmark, run.variant,
                         *_in_order(run.samples, side))
             for run in runs if run.purpose is not record.Purpose.AA]
    filled = tuple(outputs for outputs in sides if outputs.outcomes)
    if not filled:
        raise exception.InvalidInput(where, f'has no {side} samples')
    return filled


def _in_order(samples: Sequence[record.Sample], side: record.Side,
              ) -> tuple[tuple[outcome.Outcome, ...], tuple[str, ...]]:
    """Return the outcomes of a side, and their launches if all have one."""
    counted = sorted((sample for sample in samples
                      if sample.side is side and not sample.warm_up),
                     key=lambda sample: sample.pair)
    launches = tuple(sample.launch_id for sample in counted)
    return (tuple(sample.outcome for sample in counted),
            launches if all(launches) else ())
