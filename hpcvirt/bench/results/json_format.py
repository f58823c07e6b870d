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

"""Write records as JSON, and read them back.

Both are strict: no NaN or infinity is written, and what is read must have
exactly the fields of :mod:`hpcvirt.bench.model.record`, of the right types. A
field with a default may be missing, so that older files of the same schema
version stay readable.
"""

import json

from hpcvirt import serialization
from hpcvirt.bench.model import record


def dumps(result: record.Result) -> str:
    """Write a result as JSON text, keys in the order of the fields."""
    return json.dumps(serialization.to_plain(result), indent=2,
                      allow_nan=False) + '\n'


def loads(text: str, where: str = 'result') -> record.Result:
    """Read what :func:`dumps` wrote.

    :param where: what to name in the error
    :raises InvalidInput: for anything else
    """
    return result_from(serialization.json_value(text, where), where)


def result_from(plain: object, where: str = 'result') -> record.Result:
    """Make a result from the values of a JSON document.

    :raises InvalidInput: if it is not a result of this schema version
    """
    serialization.require_version(plain, record.SCHEMA_VERSION, where)
    return serialization.from_plain(record.Result, plain, where)
