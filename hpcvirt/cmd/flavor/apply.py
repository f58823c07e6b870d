# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt flavor apply``: create the planned flavors in a cloud."""

import argparse
import collections
import dataclasses
import typing
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import words
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import hosts
from hpcvirt.cmd import output
from hpcvirt.cmd import planning
from hpcvirt.flavors import diff

if typing.TYPE_CHECKING:
    from hpcvirt.cloud import aggregates

_EPILOG = hosts.EPILOG + """
Exit status: 0 if the cloud has all planned flavors, or without --apply; 1 if a
flavor is not as planned; 2 if the input or the cloud cannot be used.
"""

_NOT_ISOLATED = (
    'Warning: isolated classes ({}) take all instances until their hosts are '
    'in aggregates of their own, which --aggregates creates.')
#: The state of a flavor before and after its step, for the summary.
_STATES = {
    diff.Action.CREATE: ('to create', 'created'),
    diff.Action.COMPLETE: ('to complete', 'completed'),
    diff.Action.SAME: ('as planned', 'as planned'),
    diff.Action.DIFFERS: ('different from the plan', 'replaced'),
    diff.Action.FOREIGN: ('not created by hpcvirt', 'not created by hpcvirt'),
}


class ApplyFlavors(command.Report):
    """Create the planned flavors in a cloud.

    Compare the planned flavors with those of a cloud, and print the steps.
    With --apply, carry them out. The command never changes a flavor that
    hpcvirt did not create, changes flavors of hpcvirt only with --replace, and
    deletes flavors of earlier plans only with --prune.
    """

    epilog = _EPILOG
    rows = 'steps'
    fields = ('name', 'action', 'differences', 'done', 'error')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        planning.add_arguments(parser)
        cloud_arguments.add_apply(parser)
        parser.add_argument(
            '--replace', action='store_true',
            help='also change flavors that hpcvirt created and that differ '
            'from the plan')
        parser.add_argument(
            '--prune', action='store_true',
            help='also delete flavors that hpcvirt created for an earlier '
            'plan and that no instance has')
        parser.add_argument(
            '--aggregates', action='store_true',
            help='also create the host aggregates of the classes, or add what '
            'they lack')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Compare the plan with the cloud, and carry it out with --apply."""
        # The client libraries take half a second to load.
        from hpcvirt.cloud import aggregates
        from hpcvirt.cloud import flavors as cloud_flavors
        plan = planning.plan(args)
        own = aggregates.list_wanted(plan) if args.aggregates else []
        if args.aggregates and not own:
            raise exception.InvalidInput(
                '--aggregates', 'needs a fleet document (--fleet) with a '
                'class that names an aggregate or is isolated')
        wanted = [item.flavor for item in plan.flavors]
        nova = cloud_arguments.connect(args)
        existing = cloud_flavors.read(nova, {item.name for item in wanted})
        hosts.warn(plan.warnings)
        if plan.isolated and not own:
            output.warn(_NOT_ISOLATED.format(', '.join(plan.isolated)))
        steps = diff.steps(wanted, existing)
        changes = aggregates.compare(nova, own) if own else ()
        left_over = diff.find_left_over(wanted, existing)
        prunable = left_over if args.prune else ()
        kept = () if args.prune else left_over
        used = {item.flavor.name for item in prunable
                if cloud_flavors.is_used(nova, item)}
        done = {step.flavor.name: _apply_step(nova, step, args)
                for step in steps}
        changed = {change.wanted.name: _change(nova, change, args)
                   for change in changes}
        pruned = {item.flavor.name: _prune(nova, item, used, args)
                  for item in prunable}
        is_as_planned = (
            all(_is_as_planned(step, done[step.flavor.name])
                for step in steps)
            and all(change.action is aggregates.AggregateAction.SAME
                    or changed[change.wanted.name].done for change in changes)
            and not any(outcome.error for outcome in pruned.values()))
        document = _document(steps, done, kept)
        if args.prune:
            document['pruned'] = [
                {'name': name, 'used': name in used,
                 **dataclasses.asdict(outcome)}
                for name, outcome in pruned.items()]
        if changes:
            document['aggregates'] = [
                _describe(change, changed[change.wanted.name])
                for change in changes]
        return command.CommandResult(
            document,
            lambda: _text(steps, done, kept, args) + printable.lines([
                *_draw_pruned(pruned, used),
                *_draw_aggregates(changes, changed)]),
            status=0 if is_as_planned or not args.apply else 1)


@dataclasses.dataclass(frozen=True)
class _Outcome:
    """What became of a change.

    :ivar done: whether it was made
    :ivar error: why it could not be made; None if it could, or was not to be
    """

    done: bool = False
    error: str | None = None

    @property
    def ending(self) -> str:
        """The end of the line of the change."""
        if self.error is not None:
            return f': FAILED: {self.error}'
        return ': done' if self.done else ''


def _attempt(act: Callable[[], None]) -> _Outcome:
    try:
        act()
    except exception.Unreachable as exc:
        return _Outcome(error=str(exc))
    return _Outcome(done=True)


def _apply_step(nova: Any, step: diff.FlavorChange,
                args: argparse.Namespace) -> _Outcome:
    """Carry out a step with --apply, if there is something to do."""
    from hpcvirt.cloud import flavors as cloud_flavors
    if not args.apply:
        return _Outcome()
    if step.action is diff.Action.CREATE:
        return _attempt(lambda: cloud_flavors.create(nova, step.flavor))
    if step.action is diff.Action.COMPLETE:
        return _attempt(lambda: cloud_flavors.complete(nova, step))
    if step.action is diff.Action.DIFFERS and args.replace:
        return _attempt(lambda: cloud_flavors.replace(nova, step))
    return _Outcome()


def _change(nova: Any, change: 'aggregates.AggregateChange',
            args: argparse.Namespace) -> _Outcome:
    """Create or complete an aggregate with --apply, if that is to be done."""
    from hpcvirt.cloud import aggregates
    if not args.apply or change.action not in (
            aggregates.AggregateAction.CREATE,
            aggregates.AggregateAction.COMPLETE):
        return _Outcome()
    return _attempt(lambda: aggregates.carry_out(nova, change))


def _prune(nova: Any, existing: diff.Existing, used: Collection[str],
           args: argparse.Namespace) -> _Outcome:
    """Delete a flavor of an earlier plan with --apply, unless it is used."""
    from hpcvirt.cloud import flavors as cloud_flavors
    if not args.apply or existing.flavor.name in used:
        return _Outcome()
    return _attempt(lambda: cloud_flavors.delete(nova, existing))


def _is_as_planned(step: diff.FlavorChange, outcome: _Outcome) -> bool:
    """Whether the cloud has the flavor as planned after the step."""
    if step.action is diff.Action.FOREIGN:
        return not step.differences
    return step.action is diff.Action.SAME or outcome.done


def _draw_pruned(pruned: Mapping[str, _Outcome],
                 used: Collection[str]) -> Iterator[str]:
    """Write a line for each flavor of an earlier plan."""
    if pruned:
        yield ''
        yield 'Created by hpcvirt for an earlier plan:'
    for name, outcome in pruned.items():
        if name in used:
            yield f'keep     {name}: instances have it'
        else:
            yield f'delete   {name}{outcome.ending}'


def _describe(change: 'aggregates.AggregateChange',
              outcome: _Outcome) -> dict[str, Any]:
    return {'name': change.wanted.name, 'action': change.action.value,
            'hosts': list(change.wanted.hosts),
            'metadata': dict(change.wanted.metadata),
            'missing_hosts': list(change.missing_hosts),
            'missing_metadata': dict(change.missing_metadata),
            'other_hosts': list(change.other_hosts),
            **dataclasses.asdict(outcome)}


def _draw_aggregates(changes: Sequence['aggregates.AggregateChange'],
                     done: Mapping[str, _Outcome]) -> Iterator[str]:
    """Write a line for each aggregate, and what stands in its way."""
    if changes:
        yield ''
    for change in changes:
        wanted = change.wanted
        facts = [words.count_noun(len(wanted.hosts), 'host')]
        facts += [f'{key}={value}' for key, value in wanted.metadata.items()]
        yield (f'{change.action:9}aggregate {wanted.name} '
               f'({", ".join(facts)}){done[wanted.name].ending}')
        if change.other_hosts:
            others = words.join_names(change.other_hosts, 'hosts')
            what = ('its metadata would keep instances off these; take them '
                    'out, or name an aggregate of the class alone'
                    if wanted.metadata else 'they are left there')
            yield f'         also has the hosts {others}: {what}'


def _document(steps: tuple[diff.FlavorChange, ...],
              done: Mapping[str, _Outcome],
              left_over: Sequence[diff.Existing]) -> dict[str, Any]:
    return {
        'schema_version': 1,
        'steps': [{
            'name': step.flavor.name,
            'action': step.action.value,
            'differences': list(step.differences),
            'edited': step.edited,
            'kept': list(step.kept),
            'new_id': step.action is diff.Action.DIFFERS
            and step.needs_new_flavor,
            **dataclasses.asdict(done[step.flavor.name]),
        } for step in steps],
        'left_over': [item.flavor.name for item in left_over],
    }


def _text(steps: tuple[diff.FlavorChange, ...], done: Mapping[str, _Outcome],
          left_over: Sequence[diff.Existing],
          args: argparse.Namespace) -> str:
    lines = []
    for step in steps:
        name = step.flavor.name
        lines.append(f'{step.action:9}{name}{done[name].ending}')
        lines += [f'         {text}' for text in _remarks(step)]
    if left_over:
        lines.append('')
        lines.append('Created by hpcvirt for an earlier plan, and left alone '
                     '(see --prune): '
                     + ', '.join(item.flavor.name for item in left_over))
    states = collections.Counter(
        _state(step.action, done[step.flavor.name]) for step in steps)
    counts = ', '.join(f'{number} {state}' for state, number
                       in states.items())
    lines += ['', f'{words.count_noun(len(steps), "flavor")}: {counts}.'
              + _hint(steps, done, args)]
    return printable.lines(lines)


def _state(action: diff.Action, outcome: _Outcome) -> str:
    """Describe a flavor after its step: ``to create``, ``created``."""
    before, after = _STATES[action]
    if outcome.error is not None:
        return 'failed'
    return after if outcome.done else before


def _remarks(step: diff.FlavorChange) -> list[str]:
    remarks = list(step.differences)
    if step.action is diff.Action.FOREIGN:
        remarks.insert(0, 'hpcvirt did not create this flavor and leaves it '
                       'alone' if step.differences else
                       'hpcvirt did not create this flavor, but it is as '
                       'planned')
    if step.kept and step.existing is not None:
        specs = step.existing.flavor.extra_specs
        remarks.append('hpcvirt did not set, and leaves: ' + ', '.join(
            f'{key}={specs[key]}' for key in step.kept))
    if (step.action is diff.Action.DIFFERS and step.needs_new_flavor
            and step.existing is not None):
        remarks.append(
            'Nova cannot change this: --replace deletes the flavor and '
            f'creates it again with a new id instead of {step.existing.id}; '
            'instances keep the old flavor, and references to the old id must '
            'be changed')
    if step.edited:
        remarks.insert(0, 'it was changed after hpcvirt created it')
    return remarks


def _hint(steps: tuple[diff.FlavorChange, ...], done: Mapping[str, _Outcome],
          args: argparse.Namespace) -> str:
    actions = {step.action for step in steps}
    if any(outcome.error for outcome in done.values()):
        return ' Fix the causes of the failures and repeat the command.'
    if not args.apply and actions & {diff.Action.CREATE,
                                     diff.Action.COMPLETE}:
        return f' {output.NOT_APPLIED}'
    if diff.Action.DIFFERS in actions and not args.replace:
        return ' Use --replace to change the flavors that differ.'
    return '' if args.apply else ' Nothing was changed.'
