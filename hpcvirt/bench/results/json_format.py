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

"""Records as JSON and back.

Strict both ways: no NaN or infinity is written, and what is read must have
exactly the fields of :mod:`hpcvirt.bench.model.record`, of the right types. A field
with a default may be missing, so that older files of the same schema version
stay readable.
"""

import json
import typing
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.model import record

to_plain = serialization.to_plain
from_plain = serialization.from_plain


def dumps(result: record.Result) -> str:
    """Write a result as JSON text, keys in the order of the fields."""
    return json.dumps(serialization.to_plain(result), indent=2, allow_nan=False,
                      ensure_ascii=False) + '\n'


def loads(text: str, where: str = 'result') -> record.Result:
    """Read what :func:`dumps` wrote.

    :param where: what to name in the error
    :raises InvalidInput: for anything else
    """
    try:
        read = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as exc:
        raise exception.InvalidInput(where, f'not JSON: {exc}') from exc
    return result_from(read, where)


def result_from(read: object, where: str = 'result') -> record.Result:
    """Make a result of what a JSON reader returned.

    :raises InvalidInput: if it is not a result of this schema version
    """
    version = None
    if isinstance(read, Mapping):
        version = read.get('schema_version')
    if version != record.SCHEMA_VERSION:
        raise exception.InvalidInput(
            where, f'schema_version is {version!r}; this version of hpcvirt '
            f'reads {record.SCHEMA_VERSION}')
    return serialization.from_plain(record.Result, read, where)


def _no_constant(name: str) -> typing.NoReturn:
    raise ValueError(f'{name} is no number in JSON')
