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

"""The documents of a store: runs and samples as JSON.

A document says which version of the schema it has; one without is of the
first.
"""

import functools
import json
from typing import Any
from typing import TypeVar

from hpcvirt import serialization
from hpcvirt.bench.model import record

T = TypeVar('T', record.Run, record.Sample)

#: The key of a document with the version of its schema.
VERSION = 'schema_version'


def dump(value: record.Run | record.Sample) -> str:
    """Write a run or a sample."""
    return json.dumps({VERSION: record.SCHEMA_VERSION,
                       **serialization.to_plain(value)}, allow_nan=False)


@functools.lru_cache(maxsize=1024)
def run(document: str) -> record.Run:
    """Read a run; many results have the same earlier attempts.

    :raises InvalidInput: if it is none of this schema version
    """
    plain = json.loads(document)
    return _load(record.Run, plain, f'run {plain["id"]}')


def sample(document: str, run_id: str) -> record.Sample:
    """Read a sample.

    :raises InvalidInput: if it is none of this schema version
    """
    return _load(record.Sample, json.loads(document), f'sample of {run_id}')


def _load(kind: type[T], plain: dict[str, Any], where: str) -> T:
    version = plain.pop(VERSION, 1)
    serialization.require_version({VERSION: version}, record.SCHEMA_VERSION,
                                  where)
    return serialization.from_plain(kind, plain, where)
