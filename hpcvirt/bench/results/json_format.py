# SPDX-License-Identifier: Apache-2.0

"""Write records as JSON, and read them back.

The format is strict: no NaN or infinity is written, and a document must have
exactly the fields of :mod:`hpcvirt.bench.model.record` with their types. A
field with a default may be missing. In a store, each run and each sample is a
document with a schema version.
"""

import functools
import json
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import TypeVar

from hpcvirt import child_environment
from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import record

T = TypeVar('T', record.Run, record.Sample)

#: The key of the schema version of a document.
VERSION = 'schema_version'


def dumps(result: record.Result) -> str:
    """Write a result as JSON text, keys in the order of the fields."""
    return json.dumps(serialization.dump(result), indent=2,
                      allow_nan=False) + '\n'


def loads(text: str, where: str = 'result') -> record.Result:
    """Read what :func:`dumps` wrote.

    :param where: the subject of an error
    :raises InvalidInput: for any other text
    """
    return result_from(serialization.json_value(text, where), where)


def result_from(plain: object, where: str = 'result') -> record.Result:
    """Make a result from a parsed JSON document.

    :raises InvalidInput: if it is not a result of this schema version
    """
    serialization.require_version(plain, record.SCHEMA_VERSION, where)
    return serialization.load(record.Result, plain, where)


def dump_document(value: record.Run | record.Sample) -> str:
    """Write a run or a sample as JSON text."""
    return json.dumps({VERSION: record.SCHEMA_VERSION,
                       **serialization.dump(value)}, allow_nan=False)


@functools.lru_cache(maxsize=1024)
def load_run(document: str, run_id: str) -> record.Run:
    """Read a run. The cache serves results with the same earlier attempts.

    :raises InvalidInput: if it is not a run of this schema version, or its
        benchmark has no definition
    """
    run = _load(record.Run, document, f'run {run_id}')
    if run.id != run_id:
        raise exception.InvalidInput(f'run {run_id}: id', f'is {run.id!r}')
    if run.benchmark not in catalogue.names():
        raise exception.InvalidInput(
            f'run {run_id}: benchmark',
            f'{run.benchmark[:64]!r} has no definition; if it is of a site, '
            f'name its folder with ${child_environment.CATALOGUE}')
    return run


def load_samples(rows: Iterable[Any], run_id: str,
                 ) -> tuple[record.Sample, ...]:
    """Read the samples of a run.

    :param rows: the document and the position of each sample
    :raises InvalidInput: if one is not a sample of this schema version, has
        another position, or is the second of its pair and side
    """
    samples = []
    seen: set[tuple[record.Side, int]] = set()
    for document, position in rows:
        where = f'sample {position} of {run_id}'
        sample = _load(record.Sample, document, where)
        if sample.position != position:
            raise exception.InvalidInput(f'{where}: position',
                                         f'is {sample.position}')
        if sample.outcome.metrics and not (sample.warm_up or sample.control):
            if (sample.side, sample.pair) in seen:
                raise exception.InvalidInput(
                    f'{where}: pair', f'has another {sample.side} sample')
            seen.add((sample.side, sample.pair))
        samples.append(sample)
    return tuple(samples)


def load_software(document: str, entry_id: str) -> dict[str, str]:
    """Read the versions of the software that measured a result.

    :raises InvalidInput: if the document has another form
    """
    where = f'result {entry_id}: software'
    found: Any = serialization.load(
        Mapping[str, str],  # type: ignore[type-abstract]
        _mapping(document, where), where)
    return dict(found)


def _mapping(document: Any, where: str) -> dict[str, Any]:
    """Parse a document, which may have any type in a damaged SQLite file."""
    try:
        plain = json.loads(document)
        if r'\ud' in document.lower():
            # Refuse unpaired surrogates, which are not text.
            json.dumps(plain, ensure_ascii=False).encode()
    except (ValueError, TypeError, AttributeError,
            RecursionError) as exc:
        raise exception.InvalidInput(
            where, f'is damaged in the store ({exc})') from exc
    if not isinstance(plain, dict):
        raise exception.InvalidInput(where, 'is damaged in the store')
    return plain


def _load(kind: type[T], document: str, where: str) -> T:
    plain = _mapping(document, where)
    serialization.require_version(plain, record.SCHEMA_VERSION, where)
    del plain[VERSION]
    return serialization.load(kind, plain, where)
