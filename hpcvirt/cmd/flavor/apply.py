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

"""``hpcvirt flavor apply``: create the planned flavors in a cloud."""

import argparse
import collections
import dataclasses
import json
import sys
from typing import Any

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import fleet_arguments
from hpcvirt.flavors import diff
from hpcvirt.flavors import planner
from hpcvirt.flavors import table

_ABOUT = """\
Compare the planned flavors with those of a cloud and print what is to be done;
with --apply, do it. Flavors that hpcvirt did not create are never changed, its
own are changed only with --replace, and no flavor is deleted because it is no
longer planned.
"""

_EPILOG = fleet_arguments.EPILOG + """
The cloud is chosen as by every OpenStack client: clouds.yaml (OS_CLOUD or
--os-cloud), or the other OS_* variables. Exit status: 0 if the cloud has all
planned flavors, or without --apply if the comparison succeeded; 1 if after
--apply a flavor is not as planned; 2 if the input or the cloud cannot be used.
"""

#: What the summary calls a flavor before and after its step.
_STATES = {
    diff.Action.CREATE: ('to create', 'created'),
    diff.Action.COMPLETE: ('to complete', 'completed'),
    diff.Action.SAME: ('as planned', 'as planned'),
    diff.Action.DIFFERS: ('different from the plan', 'replaced'),
    diff.Action.FOREIGN: ('not created by hpcvirt', 'not created by hpcvirt'),
}


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    add_arguments(verbs.add_parser(
        'apply', help='create the planned flavors in a cloud'))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _ABOUT
    parser.epilog = _EPILOG
    fleet_arguments.add(parser)
    cloud_arguments.add(parser)
    parser.add_argument('--apply', action='store_true',
                        help='change the cloud; without it the steps are only '
                        'printed')
    parser.add_argument(
        '--replace', action='store_true',
        help='also change flavors that hpcvirt created and that differ from '
        'the plan')
    parser.add_argument(
        '--private', action='store_true',
        help='create private flavors, which a project can use only after it '
        'is given access')
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='text for people (the '
                        'default) or a document for programs')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare the plan with the cloud, and with --apply carry it out."""
    # The client libraries take half a second to load, which "plan" saves.
    from hpcvirt.cloud import flavors as cloud_flavors
    hosts, profile, part = fleet_arguments.read(args)
    if args.private and profile.projects is None:
        profile = dataclasses.replace(profile, projects=())
    plan = planner.plan(hosts, profile, part)
    wanted = [item.flavor for item in plan.flavors]
    nova = cloud_arguments.connect(args)
    existing = cloud_flavors.read(nova, {item.name for item in wanted})
    steps = diff.steps(wanted, existing)
    done = {step.flavor.name: _act(nova, step, args)
            for step in steps} if args.apply else {}
    left_over = diff.left_over(wanted, existing)
    if args.format == 'json':
        sys.stdout.write(json.dumps(
            _document(steps, done, left_over), indent=1) + '\n')
    else:
        sys.stdout.write(_text(steps, done, left_over, args))
        if plan.warnings:
            sys.stdout.write(
                f'"hpcvirt flavor plan" prints '
                f'{table.counted(len(plan.warnings), "warning")} about these '
                'hosts.\n')
    as_planned = all(
        step.action is diff.Action.SAME
        or done.get(step.flavor.name) == ''
        or (step.action is diff.Action.FOREIGN and not step.differences)
        for step in steps)
    return 0 if as_planned or not args.apply else 1


def _act(nova: Any, step: diff.Step, args: argparse.Namespace) -> str | None:
    """Carry out a step.

    :returns: an empty text on success, the cause of a failure, or None if
        there was nothing to do
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


def _document(steps: tuple[diff.Step, ...], done: dict[str, str | None],
              left_over: tuple[str, ...]) -> dict[str, Any]:
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


def _text(steps: tuple[diff.Step, ...], done: dict[str, str | None],
          left_over: tuple[str, ...], args: argparse.Namespace) -> str:
    lines = []
    for step in steps:
        result = done.get(step.flavor.name)
        ending = '' if result is None else (
            ': done' if result == '' else f': FAILED: {result}')
        lines.append(f'{step.action:9}{step.flavor.name}{ending}')
        lines += [f'         {text}' for text in _remarks(step)]
    if left_over:
        lines.append('')
        lines.append('Created by hpcvirt for an earlier plan, and left alone: '
                     + ', '.join(left_over))
    states = collections.Counter(
        _state(step.action, done.get(step.flavor.name)) for step in steps)
    counts = ', '.join(f'{number} {state}' for state, number
                       in states.items())
    lines += ['', f'{table.counted(len(steps), "flavor")}: {counts}.'
              + _hint(steps, done, args)]
    return printable.lines(lines)


def _state(action: diff.Action, result: str | None) -> str:
    """Describe a flavor after its step: ``to create``, ``created``."""
    before, after = _STATES[action]
    return before if result is None else 'failed' if result else after


def _remarks(step: diff.Step) -> list[str]:
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
            f'creates it again. It gets a new id in place of '
            f'{step.existing.id}; instances keep the old flavor, and whatever '
            'names the old id must be changed')
    if step.edited:
        remarks.insert(0, 'it was changed after hpcvirt created it')
    return remarks


def _hint(steps: tuple[diff.Step, ...], done: dict[str, str | None],
          args: argparse.Namespace) -> str:
    actions = {step.action for step in steps}
    if any(done.values()):
        return ' Remove the causes of the failures and run this again.'
    if not args.apply and actions & {diff.Action.CREATE,
                                     diff.Action.COMPLETE}:
        return ' Nothing was changed; use --apply to do it.'
    if diff.Action.DIFFERS in actions and not args.replace:
        return ' Use --replace to change those that differ.'
    return '' if args.apply else ' Nothing was changed.'
