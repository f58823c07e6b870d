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

"""The template of the names of flavors, which an operator may change."""

import string

from hpcvirt import serialization

TEMPLATE = '{prefix}.{shape}.{page}{options}'
#: The fields of a template, as the operator's guide explains them.
FIELDS = ('prefix', 'shape', 'cores', 'vcpus', 'cells', 'sockets', 'threads',
          'memory', 'memory_mib', 'disk', 'page', 'options')

_LITERALS = frozenset(string.ascii_letters + string.digits + '._-')
_LONGEST = 128


def read(value: object) -> str:
    """Check the template of a profile.

    :raises ValueError: saying what is wrong
    """
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        raise serialization.expected(f'text such as {TEMPLATE}', value)
    try:
        parts = list(string.Formatter().parse(value))
    except ValueError as exc:
        raise ValueError(f'{value!r} is no template: {exc}') from None
    for literal, field, form, conversion in parts:
        if not _LITERALS.issuperset(literal):
            raise ValueError('must have only letters, digits and "._-" '
                             f'between its fields, not {literal!r}')
        if field is not None and (field not in FIELDS or form or conversion):
            raise ValueError(
                f'has the unknown field {{{field}{form and ":" + form}}}; '
                f'known: {", ".join(FIELDS)}')
    return value
