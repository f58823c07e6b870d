# SPDX-License-Identifier: Apache-2.0

"""Write records as JSON, and read them back.

Both are strict: no NaN or infinity is written, and what is read must have
exactly the fields of :mod:`hpcvirt.bench.model.record`, of the right types. A
field with a default may be missing, so that older files of the same schema
version stay readable. The runs and samples of a store are documents of their
own; one without a version of its schema is of the first.
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


def dumps(result: record.Result) -> str:
    """Write a result as JSON text, keys in the order of the fields."""
    return json.dumps(serialization.dump(result), indent=2,
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
    return serialization.load(record.Result, plain, where)


def dump_document(value: record.Run | record.Sample) -> str:
    """Write a run or a sample."""
    return json.dumps({VERSION: record.SCHEMA_VERSION,
                       **serialization.dump(value)}, allow_nan=False)


@functools.lru_cache(maxsize=1024)
def load_run(document: str) -> record.Run:
    """Read a run; many results have the same earlier attempts.

    :raises InvalidInput: if it is none of this schema version
    """
    plain = json.loads(document)
    return _load(record.Run, plain, f'run {plain["id"]}')


def load_sample(document: str, run_id: str) -> record.Sample:
    """Read a sample.

    :raises InvalidInput: if it is none of this schema version
    """
    return _load(record.Sample, json.loads(document), f'sample of {run_id}')


def _load(kind: type[T], plain: dict[str, Any], where: str) -> T:
    version = plain.pop(VERSION, 1)
    serialization.require_version({VERSION: version}, record.SCHEMA_VERSION,
                                  where)
    return serialization.load(kind, plain, where)
