# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt flavor apply``: create the planned flavors in a cloud."""

import argparse
import collections
import dataclasses
import typing
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
from hpcvirt.cmd import planning
from hpcvirt.flavors import diff

if typing.TYPE_CHECKING:
    from hpcvirt.cloud import aggregates

_EPILOG = hosts.EPILOG + """
Exit status: 0 if the cloud has all planned flavors, or without --apply; 1 if a
flavor is not as planned; 2 if the input or the cloud cannot be used.
"""

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
        steps = diff.steps(wanted, existing)
        changes = aggregates.compare(nova, own) if own else ()
        done = {step.flavor.name: _act(nova, step, args)
                for step in steps} if args.apply else {}
        changed = {change.wanted.name: _change(nova, change)
                   for change in changes} if args.apply else {}
        left_over = diff.find_left_over(wanted, existing)
        pruned = [_prune(nova, item, args.apply) for item in left_over
                  if args.prune]
        as_planned = all(
            step.action is diff.Action.SAME
            or done.get(step.flavor.name) == ''
            or (step.action is diff.Action.FOREIGN and not step.differences)
            for step in steps) and all(
                change.action is aggregates.AggregateAction.SAME
                or changed.get(change.wanted.name) == ''
                for change in changes) and not any(
                    item.error for item in pruned)
        kept = [item.flavor.name for item in left_over if not args.prune]
        document = _document(steps, done, kept)
        if args.prune:
            document['pruned'] = [
                dataclasses.asdict(item) for item in pruned]
        if changes:
            document['aggregates'] = [
                _describe(change, changed) for change in changes]
        return command.CommandResult(
            document,
            lambda: _text(steps, done, kept, args) + printable.lines([
                *_draw_pruned(pruned), *_draw_aggregates(changes, changed)]),
            status=0 if as_planned or not args.apply else 1)


def _act(nova: Any, step: diff.FlavorChange,
         args: argparse.Namespace) -> str | None:
    """Carry out a step.

    :returns: empty on success, the cause of a failure, or None if there was
        nothing to do
    """
    from hpcvirt.cloud import flavors as cloud_flavors
    try:
        if step.action is diff.Action.CREATE:
            cloud_flavors.create(nova, step.flavor)
        elif step.action is diff.Action.COMPLETE:
            cloud_flavors.complete(nova, step)
        elif step.action is diff.Action.DIFFERS and args.replace:
            cloud_flavors.replace(nova, step)
        else:
            return None
    except exception.Unreachable as exc:
        return str(exc)
    return ''


def _change(nova: Any, change: 'aggregates.AggregateChange') -> str | None:
    """Create or complete an aggregate.

    :returns: as :func:`_act`
    """
    from hpcvirt.cloud import aggregates
    if change.action not in (aggregates.AggregateAction.CREATE,
                             aggregates.AggregateAction.COMPLETE):
        return None
    try:
        aggregates.carry_out(nova, change)
    except exception.Unreachable as exc:
        return str(exc)
    return ''


@dataclasses.dataclass(frozen=True)
class _PrunedFlavor:
    """A flavor of an earlier plan that is deleted if no instance has it.

    :ivar used: whether an instance has it, so that it stays
    :ivar done: whether it was deleted
    :ivar error: why it could not be deleted; None if it could or was not to be
    """

    name: str
    used: bool
    done: bool = False
    error: str | None = None


def _prune(nova: Any, existing: diff.Existing, apply: bool) -> _PrunedFlavor:
    """Delete a flavor with ``apply``, unless an instance has it."""
    from hpcvirt.cloud import flavors as cloud_flavors
    name = existing.flavor.name
    if cloud_flavors.is_used(nova, existing):
        return _PrunedFlavor(name, used=True)
    if not apply:
        return _PrunedFlavor(name, used=False)
    try:
        cloud_flavors.delete(nova, existing)
    except exception.Unreachable as exc:
        return _PrunedFlavor(name, used=False, error=str(exc))
    return _PrunedFlavor(name, used=False, done=True)


def _draw_pruned(pruned: Sequence[_PrunedFlavor]) -> Iterator[str]:
    """Write a line for each flavor of an earlier plan."""
    if pruned:
        yield ''
        yield 'Created by hpcvirt for an earlier plan:'
    for item in pruned:
        if item.used:
            yield f'keep     {item.name}: instances have it'
            continue
        ending = ': done' if item.done else ''
        if item.error:
            ending = f': FAILED: {item.error}'
        yield f'delete   {item.name}{ending}'


def _describe(change: 'aggregates.AggregateChange',
              done: Mapping[str, str | None]) -> dict[str, Any]:
    name = change.wanted.name
    return {'name': name, 'action': change.action.value,
            'hosts': list(change.wanted.hosts),
            'metadata': dict(change.wanted.metadata),
            'missing_hosts': list(change.missing_hosts),
            'missing_metadata': dict(change.missing_metadata),
            'other_hosts': list(change.other_hosts),
            'done': done.get(name) == '', 'error': done.get(name) or None}


def _draw_aggregates(changes: Sequence['aggregates.AggregateChange'],
                     done: Mapping[str, str | None]) -> Iterator[str]:
    """Write a line for each aggregate, and what stands in its way."""
    if changes:
        yield ''
    for change in changes:
        wanted = change.wanted
        facts = [words.count_noun(len(wanted.hosts), 'host')]
        facts += [f'{key}={value}' for key, value in wanted.metadata.items()]
        result = done.get(wanted.name)
        ending = ''
        if result is not None:
            ending = f': FAILED: {result}' if result else ': done'
        yield (f'{change.action:9}aggregate {wanted.name} '
               f'({", ".join(facts)}){ending}')
        if change.other_hosts:
            others = words.join_names(change.other_hosts, 'hosts')
            what = ('its metadata would keep instances off these; take them '
                    'out, or name an aggregate of the class alone'
                    if wanted.metadata else 'they are left there')
            yield f'         also has the hosts {others}: {what}'


def _document(steps: tuple[diff.FlavorChange, ...],
              done: dict[str, str | None],
              left_over: Sequence[str]) -> dict[str, Any]:
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
            'done': done.get(step.flavor.name) == '',
            'error': done.get(step.flavor.name) or None,
        } for step in steps],
        'left_over': list(left_over),
    }


def _text(steps: tuple[diff.FlavorChange, ...], done: dict[str, str | None],
          left_over: Sequence[str], args: argparse.Namespace) -> str:
    lines = []
    for step in steps:
        result = done.get(step.flavor.name)
        ending = ''
        if result is not None:
            ending = f': FAILED: {result}' if result else ': done'
        lines.append(f'{step.action:9}{step.flavor.name}{ending}')
        lines += [f'         {text}' for text in _remarks(step)]
    if left_over:
        lines.append('')
        lines.append('Created by hpcvirt for an earlier plan, and left alone '
                     '(see --prune): ' + ', '.join(left_over))
    states = collections.Counter(
        _state(step.action, done.get(step.flavor.name)) for step in steps)
    counts = ', '.join(f'{number} {state}' for state, number
                       in states.items())
    lines += ['', f'{words.count_noun(len(steps), "flavor")}: {counts}.'
              + _hint(steps, done, args)]
    return printable.lines(lines)


def _state(action: diff.Action, result: str | None) -> str:
    """Describe a flavor after its step: ``to create``, ``created``."""
    before, after = _STATES[action]
    if result is None:
        return before
    return 'failed' if result else after


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


def _hint(steps: tuple[diff.FlavorChange, ...], done: dict[str, str | None],
          args: argparse.Namespace) -> str:
    actions = {step.action for step in steps}
    if any(done.values()):
        return ' Fix the causes of the failures and repeat the command.'
    if not args.apply and actions & {diff.Action.CREATE,
                                     diff.Action.COMPLETE}:
        return ' Nothing was changed; use --apply to do it.'
    if diff.Action.DIFFERS in actions and not args.replace:
        return ' Use --replace to change the flavors that differ.'
    return '' if args.apply else ' Nothing was changed.'
