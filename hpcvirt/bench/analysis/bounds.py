# SPDX-License-Identifier: Apache-2.0

"""Choose the bounds by which outputs are judged.

The definition of a benchmark has default bounds, selected by facts of a run:
``nodes`` is ``several`` if one job spans hosts; ``pages`` is ``large`` if the
guest itself uses large pages and its host does not back them with small ones;
``shape`` is instances x vCPUs. Unknown facts are left out.

An overhead that the user allows replaces the bounds of the run or of the
definition. Bounds that the user gives for metrics also replace all of these;
together with an overhead, they hold for their metrics and the overhead for the
others. If the user states facts, the default bounds are selected again.
"""

import dataclasses
import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import bibliography
from hpcvirt import exception
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.model import cpuset

#: The source of the bounds that a user gives.
OF_USER = 'given by the user'


def find_facts(run: record.Run,
               definition: definitions.Definition) -> dict[str, str]:
    """Find the facts of a run that can select bounds.

    :param definition: the definition of the run's benchmark
    :returns: name of a condition -> value
    """
    guest = [sample for sample in run.samples
             if sample.side is record.Side.GUEST]
    facts = {'nodes': _nodes(run, definition), 'pages': _pages(guest),
             'shape': _shape(run, guest)}
    return {name: value for name, value in facts.items() if value}


def _nodes(run: record.Run, definition: definitions.Definition) -> str:
    # Concurrent copies do not wait for the network.
    spans = any(variant.spans for variant in definition.variants
                if variant.name == run.variant)
    hosts = run.host.split(', ')
    return 'several' if spans and len(hosts) > 1 else 'one'


def _pages(guest: Sequence[record.Sample]) -> str:
    """Find the guest's own page size; the fact ``pages`` is its backing."""
    chosen = list(record.list_facts(guest, 'pages.thp'))
    behind = list(record.list_facts(guest, 'pages'))
    if not chosen:
        return ''
    is_large = all('[always]' in value for value in chosen)
    return 'large' if is_large and 'small' not in behind else 'small'


def _shape(run: record.Run, guest: Iterable[record.Sample]) -> str:
    if definitions.CONDITIONS['shape'].fullmatch(run.shape):
        return run.shape
    shapes: set[tuple[int, str]] = set()
    for sample in guest:
        instances = len(sample.facts('place'))
        for text in sample.facts('cpu.online'):
            shapes.add((instances, text))
    if len(shapes) != 1:
        return ''
    instances, text = shapes.pop()
    try:
        return f'{instances}x{len(cpuset.parse(text, "cpu.online"))}'
    except exception.InvalidInput:
        return ''


def find_bounds(run: record.Run) -> dict[str, judgement.Bound]:
    """Find the bounds of all metrics that a run measured.

    They are those of its overhead, or else the default bounds.

    :raises InvalidInput: if its benchmark has no definition
    """
    if run.overhead_percent is not None:
        return _of_overhead(run, run.overhead_percent)
    definition = catalogue.get(run.benchmark)
    return find_defaults(definition, run.figures, find_facts(run, definition))


#: What a guest may lose more than in the study that its bound comes from. With
#: a smaller margin, a guest as in the study would need many pairs to pass.
STUDY_MARGIN = 0.03
#: The message sizes that are assumed before a benchmark runs.
_SIZES = tuple(2 ** exponent for exponent in range(23))


def foresee(run: record.Run) -> dict[str, judgement.Bound]:
    """Find the bounds of a run that has no samples yet.

    Message sizes are powers of two up to the largest that is measured.

    :raises InvalidInput: if its benchmark has no definition
    """
    definition = catalogue.get(run.benchmark)
    most = run.parameters.get('max_size', '')
    sizes = [size for size in _SIZES
             if not most.isdecimal() or size <= int(most)]
    names: dict[str, metric_definition.MetricDefinition] = {}
    for figure in definition.metrics:
        if figure.per_size:
            names |= {f'{figure.name}[{size}]': figure for size in sizes}
        else:
            names[figure.name] = figure
    percent = run.overhead_percent
    if percent is None:
        found = find_defaults(definition, names, find_facts(run, definition))
    else:
        found = {name: _make_overhead(percent, figure.direction)
                 for name, figure in names.items() if figure.primary}
    # The user may have bounded figures of other benchmarks.
    known = {figure.name for figure in definition.metrics}
    return {**found, **{name: bound for name, bound in run.bounds.items()
                        if metric_definition.split(name)[0] in known}}


def find_defaults(definition: definitions.Definition, metrics: Iterable[str],
                  context: Mapping[str, str]) -> dict[str, judgement.Bound]:
    """Find the default bound of each metric that has one.

    :param metrics: names as the parser gives them, with message sizes
    :param context: facts about the run, see :func:`find_facts`
    """
    directions = {figure.name: figure.direction
                  for figure in definition.metrics}
    bounds = {}
    for metric in metrics:
        name, size = metric_definition.split(metric)
        for rule in definition.bounds:
            if rule.metric == name and _applies(rule, size, context):
                bounds[metric] = _bound(rule, directions[name])
                break
    return bounds


def parse(text: str) -> tuple[str, judgement.Bound]:
    """Read ``METRIC=RATIO``, as a user writes it.

    :raises InvalidInput: for anything else
    """
    metric, equals, ratio = text.rpartition('=')
    if not equals or not metric.strip():
        raise exception.InvalidInput(text, 'is not METRIC=RATIO')
    return metric.strip(), judgement.Bound(_number(ratio, text),
                                           source=OF_USER)


def parse_overhead(text: str, direction: outcome.Direction) -> judgement.Bound:
    """Read an overhead in percent and convert it to a bound.

    :param text: ``5`` or ``5%``: the guest may take 1.05 times as long
    :raises InvalidInput: if it is not a number of at least 0
    """
    return _make_overhead(read_overhead(text), direction)


def read_overhead(text: str) -> float:
    """Read an overhead in percent.

    :param text: ``5`` or ``5%``
    :raises InvalidInput: if it is not a number of at least 0
    """
    return _number(text.strip().removesuffix('%'), text, 0)


def _make_overhead(percent: float,
                   direction: outcome.Direction) -> judgement.Bound:
    slowdown = 1 + percent / 100
    return judgement.Bound(
        slowdown if direction is outcome.Direction.DOWN else 1 / slowdown,
        source=OF_USER)


def _bound(rule: definitions.BoundRule,
           direction: outcome.Direction) -> judgement.Bound:
    slowdown = rule.slowdown_at_most
    if slowdown is not None and direction is outcome.Direction.UP:
        slowdown = 1 / slowdown
    ratio = next(limit for limit in (slowdown, rule.at_least, rule.at_most)
                 if limit is not None)
    source = ('the site' if rule.source == definitions.SITE
              else bibliography.get(rule.source).citation)
    margin = rule.margin
    if not margin and rule.kind is not judgement.BoundKind.EXPECTED:
        margin = STUDY_MARGIN
    return judgement.Bound(ratio, margin, f'{source}, {rule.line}', rule.kind,
                           rule.conditions)


def _applies(rule: definitions.BoundRule, size: int | None,
             context: Mapping[str, str]) -> bool:
    least, most = rule.above_bytes, rule.below_bytes
    return ((least is None or (size is not None and size > least))
            and (most is None or (size is not None and size < most))
            and rule.when.items() <= context.items())


def _number(text: str, where: str,
            least: float = judgement.SMALLEST) -> float:
    try:
        number = float(text)
    except ValueError as exc:
        raise exception.InvalidInput(
            where, f'{text!r} is not a number') from exc
    if not math.isfinite(number) or not (
            least <= number <= judgement.LARGEST):
        raise exception.InvalidInput(where, f'{text!r} is out of range')
    return number


def set_bounds(run: record.Run, given: Mapping[str, judgement.Bound],
               overhead: str | None,
               context: Mapping[str, str]) -> record.Run:
    """Set the bounds of a run.

    :param given: the bounds that the user gives, by metric
    :param overhead: the overhead that the user allows, in percent
    :param context: facts that the user states, which take precedence over
        those of the run
    :raises InvalidInput: if the overhead is not a number
    """
    if overhead is not None:
        chosen = {**_of_overhead(run, read_overhead(overhead)), **given}
    elif given or (run.bounds and not context):
        chosen = dict(given or run.bounds)
    else:
        own = {metric: bound for metric, bound in run.bounds.items()
               if bound.kind is None}
        chosen = {**_default(run, context), **own}
    return dataclasses.replace(run, bounds=chosen)


def _default(run: record.Run,
             context: Mapping[str, str]) -> dict[str, judgement.Bound]:
    definition = _definition(run)
    if definition is None:
        return {}
    metrics = sample_pairs.metrics(run) or [
        figure.name for figure in definition.metrics if not figure.per_size]
    return find_defaults(definition, metrics, {
        **find_facts(run, definition), **context})


def _of_overhead(run: record.Run,
                 percent: float) -> dict[str, judgement.Bound]:
    """Bound the primary metrics, or all metrics of an unknown benchmark."""
    definition = _definition(run)
    primary = None if definition is None else {
        figure.name for figure in definition.metrics if figure.primary}
    return {name: _make_overhead(percent, metric.direction)
            for name, metric in run.figures.items()
            if primary is None or metric_definition.split(name)[0] in primary}


def _definition(run: record.Run) -> definitions.Definition | None:
    """Find the definition of a run, None for a test of ReFrame."""
    parameters: Mapping[str, str] = next(
        (sample.outcome.parameters for sample in run.samples
         if sample.outcome.parameters), {})
    try:
        source = catalogue.output_source(run.benchmark)
    except exception.InvalidInput:
        return None
    return catalogue.member(source, parameters)
