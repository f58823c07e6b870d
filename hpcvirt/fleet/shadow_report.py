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

"""Write what shadow mode found out, as a document and as tables."""

import textwrap
from typing import Any

from hpcvirt import printable
from hpcvirt import text_table
from hpcvirt.fit import reasons
from hpcvirt.flavors import table
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import shadow

_REASONS = ('Requests', 'Hosts', 'hpcvirt', 'Nova', 'Why')
_FLAVORS = ('Flavor', 'Requests', 'Differing', 'Hosts')
_NUMBERS = {'Requests', 'Hosts', 'Differing'}

#: What hpcvirt and what Nova do.
_DECISIONS = {
    shadow.Direction.HPCVIRT_REFUSES: ('refuses', 'passes'),
    shadow.Direction.NOVA_REFUSES: ('passes', 'refuses'),
    shadow.Direction.NOVA_FAILS: ('passes', 'fails'),
}


def document(found: log_reading.Shadow) -> dict[str, Any]:
    """Turn the sums into dicts, lists, numbers and strings."""
    return {
        'requests': found.requests, 'differing': found.differing,
        'hosts': found.hosts, 'compared': found.compared,
        'only_nova_has_a_host': found.only_nova,
        'only_hpcvirt_has_a_host': found.only_hpcvirt,
        'by_reason': [
            {'direction': direction.value, 'code': code and code.value,
             'requests': kind.requests, 'hosts': kind.hosts,
             'examples': kind.examples}
            for (direction, code), kind in _sorted(found)],
        'by_flavor': [
            {'name': name, 'requests': flavor.requests,
             'differing': flavor.differing, 'hosts': flavor.hosts}
            for name, flavor in found.by_flavor.items()],
        'errors': found.errors, 'error': found.error,
    }


def text(found: log_reading.Shadow, width: int | None = None) -> str:
    """Draw the sums.

    :param width: columns of the terminal, None if there is none
    """
    room = width or table.WIDTH
    blocks = [_filled(
        f'In shadow mode, hpcvirt and Nova judged '
        f'{table.counted(found.compared, "host")} for '
        f'{table.counted(found.requests, "request")}. They disagree for '
        f'{table.counted(found.differing, "request")}. With '
        'filter_mode = enforce, '
        f'{table.counted(found.only_nova, "request")} would have found no '
        'host although Nova leaves one, and '
        f'{table.counted(found.only_hpcvirt, "request")} would have found '
        'one although Nova leaves none.', room)]
    if found.by_reason:
        blocks.append(text_table.draw(_REASONS, [
            (str(kind.requests), str(kind.hosts), *_decisions(direction, code),
             _why(code)) for (direction, code), kind in _sorted(found)],
            _NUMBERS, room))
        blocks.append(''.join(
            _filled(f'{_why(code)}, for example: {", ".join(kind.examples)}',
                    room) for (_, code), kind in _sorted(found)))
        blocks.append(text_table.draw(_FLAVORS, [
            (name, str(flavor.requests), str(flavor.differing),
             str(flavor.hosts))
            for name, flavor in sorted(
                found.by_flavor.items(),
                key=lambda item: (-item[1].differing, item[0]))],
            _NUMBERS, room))
    if found.compared < found.hosts:
        blocks.append(_filled(
            f'{table.counted(found.hosts - found.compared, "host")} not '
            "compared, because Nova's filter would have taken too long.",
            room))
    if found.error is not None:
        blocks.append(_filled(
            f'The comparison of {table.counted(found.errors, "request")} '
            f'failed: {found.error}', room))
    return '\n'.join(blocks)


def _why(code: reasons.Code | None) -> str:
    return reasons.KINDS[code] if code else 'fits by hpcvirt'


def _decisions(direction: shadow.Direction,
               code: reasons.Code | None) -> tuple[str, str]:
    ours, novas = _DECISIONS[direction]
    return ('refuses' if code else ours), novas


def _sorted(found: log_reading.Shadow) -> list[
        tuple[tuple[shadow.Direction, reasons.Code | None],
              log_reading.Kind]]:
    return sorted(found.by_reason.items(),
                  key=lambda item: (-item[1].requests, item[0][0]))


def _filled(words: str, room: int) -> str:
    return textwrap.fill(printable.escaped(words), room,
                         break_on_hyphens=False) + '\n'
