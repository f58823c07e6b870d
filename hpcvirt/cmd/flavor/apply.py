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

"""``hpcvirt flavor apply``: make the planned flavors in a cloud."""

import argparse
import importlib
import json
import sys
from typing import Any

from hpcvirt import exception
from hpcvirt.cmd import fleet_arguments
from hpcvirt.flavors import diff
from hpcvirt.flavors import planner

_ABOUT = """\
Compare the planned flavors with those of a cloud and say what would be done;
with --apply, do it. Flavors that hpcvirt did not make are never touched, its
own are changed only with --replace, and none is deleted because it is no
longer planned.
"""

_EPILOG = fleet_arguments.EPILOG + """
The cloud is found as by every OpenStack client: clouds.yaml (OS_CLOUD or
--os-cloud), or the other OS_* variables. Status 0: the cloud has what was
planned, or without --apply the comparison was made; 1: with --apply, some
flavor is not as planned; 2: the cloud cannot be used.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'apply', help='create the planned flavors in a cloud',
        description=_ABOUT, epilog=_EPILOG)
    fleet_arguments.add(parser)
    add_cloud(parser)
    parser.add_argument('--apply', action='store_true',
                        help='act; without it the plan is only shown')
    parser.add_argument(
        '--replace', action='store_true',
        help='also change flavors that hpcvirt made and that differ from '
        'the plan')
    parser.add_argument(
        '--private', action='store_true',
        help='create flavors that no project may use before it is given '
        'access')
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='lines for people (the '
                        'default) or a document for programs')
    parser.set_defaults(run=run)


def add_cloud(parser: argparse.ArgumentParser) -> None:
    """Add --os-cloud."""
    parser.add_argument('--os-cloud', metavar='NAME',
                        help='an entry of clouds.yaml (default: OS_CLOUD)')


def run(args: argparse.Namespace) -> int:
    """Compare, and act if told to."""
    planned = planner.plan(*fleet_arguments.read(args))
    wanted = [item.flavor for item in planned.flavors]
    # The client libraries take half a second to load: not for "plan".
    cloud = importlib.import_module('hpcvirt.cloud.flavors')
    session = importlib.import_module('hpcvirt.cloud.session')
    nova = session.compute(args.os_cloud)
    existing = cloud.read(nova)
    steps = diff.steps(wanted, existing)
    done = {step.flavor.name: _act(cloud, nova, step, args)
            for step in steps} if args.apply else {}
    left_over = diff.left_over(wanted, existing)
    if args.format == 'json':
        sys.stdout.write(json.dumps(
            _document(steps, done, left_over), indent=1) + '\n')
    else:
        sys.stdout.write(_text(steps, done, left_over, args))
        if planned.notices:
            count = len(planned.notices)
            sys.stdout.write(
                f'"hpcvirt flavor plan" has {count} '
                f'warning{"" if count == 1 else "s"} about these hosts.\n')
    as_planned = all(
        step.action is diff.Action.SAME
        or done.get(step.flavor.name) == ''
        or (step.action is diff.Action.FOREIGN and not step.differences)
        for step in steps)
    return 0 if as_planned or not args.apply else 1


def _act(cloud: Any, nova: Any, step: diff.Step,
         args: argparse.Namespace) -> str | None:
    """Do what a step asks for.

    :returns: an empty text if it is done, why it could not be done, or None
        if there was nothing to do
    """
    try:
        if step.action is diff.Action.CREATE:
            cloud.create(nova, step.flavor, not args.private)
        elif step.action is diff.Action.COMPLETE:
            cloud.complete(nova, step)
        elif step.action is diff.Action.DIFFERS and args.replace:
            cloud.replace(nova, step)
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
        lines.append('Made by hpcvirt earlier, not in this plan, and left '
                     'alone: ' + ', '.join(left_over))
    counts = ', '.join(
        f'{number} {action}' for action in diff.Action
        if (number := sum(step.action is action for step in steps)))
    lines += ['', f'{counts}.{_hint(steps, done, args)}']
    return '\n'.join(lines) + '\n'


def _remarks(step: diff.Step) -> list[str]:
    remarks = list(step.differences)
    if step.action is diff.Action.FOREIGN:
        remarks.insert(0, 'hpcvirt did not make this flavor and leaves it '
                       'alone' if step.differences else
                       'hpcvirt did not make this flavor, but it is as '
                       'planned')
    if step.edited:
        remarks.insert(0, 'it was changed after hpcvirt made it')
    return remarks


def _hint(steps: tuple[diff.Step, ...], done: dict[str, str | None],
          args: argparse.Namespace) -> str:
    actions = {step.action for step in steps}
    if any(done.values()):
        return ' Some could not be done; run again when the cause is gone.'
    if not args.apply and actions & {diff.Action.CREATE,
                                     diff.Action.COMPLETE}:
        return ' Nothing was changed; --apply does it.'
    if diff.Action.DIFFERS in actions and not args.replace:
        return ' --replace changes those that differ.'
    return '' if args.apply else ' Nothing was changed.'
