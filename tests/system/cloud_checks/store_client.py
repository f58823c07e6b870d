# SPDX-License-Identifier: Apache-2.0

"""A client of a store of benchmark results.

The cloud's Python environment runs it, with the database in ``STORE_URL`` and
the directory of outputs in ``STORE_RAW``. The arguments are ``exercise``; or
``write``, a name and the number of samples; or ``count``, the number of
writers and the number of samples of each; or
``refused``.
"""

import dataclasses
import os
import sys
import time

import sqlalchemy

from hpcvirt import exception
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.results import tables

#: Longer than MariaDB's TEXT, with characters of one to four bytes.
LONG = 'x\u00e9\u20ac\U0001f680' * 30000
PLAN = 'p' * 64
#: How each document begins.
VERSION = '{"schema_version": 1, '


def main(verb, *words):
    """Run one command; an exception says what is wrong."""
    VERBS[verb](*words)


def exercise():
    """Write results, resume after an interruption, read everything."""
    store = _open()
    entry = store.open_entry(_entry('one'), {'hpcvirt': LONG})
    _same('one', entry.id)
    store.add_run(entry.id, 0, _run('one-0', LONG))
    store.add_sample('one-0', _sample(store, 'one-0', 0, LONG))
    store.close()
    # After a kill, the same plan resumes its entry.
    store = _open()
    entry = store.open_entry(_entry('two'), {})
    _same('one', entry.id)
    store.add_run(entry.id, 0, _run('one-0', LONG))
    _refused('a sample twice', exception.InvalidInput, lambda:
             store.add_sample('one-0', _sample(store, 'one-0', 0, 'other')))
    store.add_sample('one-0', _sample(store, 'one-0', 1, 'short'))
    store.finish(entry.id, '2026-01-01T00:00:00+00:00')
    result = store.result('one')
    _same({'hpcvirt': LONG}, result.software)
    (run,) = result.runs
    _same(dataclasses.replace(_run('one-0', LONG), samples=run.samples), run)
    _same([LONG, 'short'],
          [sample.environment['text'] for sample in run.samples])
    # A finished entry is not resumed.
    _same('three', store.open_entry(_entry('three'), {}).id)
    _same([True, False], [entry.finished_at is not None
                          for entry in store.entries()])
    _refused('a result that is not there', exception.InvalidInput,
             lambda: store.result('none'))
    store.close()


def write(name, count):
    """Write an entry with many samples, as a long run does."""
    store = _open()
    entry = store.open_entry(dataclasses.replace(_entry(name), plan=name), {})
    store.add_run(entry.id, 0, _run(f'{name}-0', name))
    for position in range(int(count)):
        store.add_sample(f'{name}-0', _sample(store, f'{name}-0', position,
                                              name))
    store.finish(entry.id, time.strftime('%Y-%m-%dT%H:%M:%S+00:00'))
    store.close()


def count(writers, samples):
    """Check that no writer lost samples, and all documents have versions."""
    store = _open()
    engine = sqlalchemy.create_engine(os.environ['STORE_URL'])
    with engine.begin() as connection:
        for table in (tables.RUNS, tables.SAMPLES):
            for document in connection.execute(
                    sqlalchemy.select(table.c.document)).scalars():
                _same(VERSION, document[:len(VERSION)])
    engine.dispose()
    entries = store.entries()
    _same(int(writers), len(entries))
    for entry in entries:
        (run,) = store.result(entry.id).runs
        _same(list(range(int(samples))),
              [sample.position for sample in run.samples])
        _same({entry.id},
              {sample.environment['text'] for sample in run.samples})
    store.close()


def refused():
    """Check that a wrong password gives one line without the password."""
    try:
        _open()
    except exception.Unreachable as exc:
        text = str(exc)
        if '\n' in text or 'secret' in text or 'cloud' not in text:
            sys.exit(f'not one line without the password: {text!r}')
        return
    sys.exit('a wrong password was accepted')


def _open():
    return stores.Store(os.environ['STORE_URL'], os.environ['STORE_RAW'])


def _entry(name):
    return stores.Entry(name, PLAN, f'2026-01-01T00:00:00+00:00-{name}', None)


def _run(name, text):
    return record.Run(id=name, benchmark='hpcc', variant='mpi', samples=(),
                      parameters={'text': text}, host='host')


def _sample(store, run_id, position, text):
    output = store.keep_raw(run_id, position, 'stdout', text.encode())
    found = outcome.Outcome(True, None, {'figure': outcome.Metric(
        1.25e-300, 'GUP/s', outcome.Direction.UP)})
    return record.Sample(record.Side.GUEST, position, position, found,
                         environment={'text': text}, outputs=(output,))


def _same(wanted, found):
    if wanted != found:
        raise AssertionError(f'{str(wanted)[:300]} is {str(found)[:300]}')


def _refused(what, kind, act):
    try:
        act()
    except kind as exc:
        if '\n' in str(exc):
            raise AssertionError(f'{what}: {exc}') from exc
        return
    raise AssertionError(f'{what} was accepted')


VERBS = {'exercise': exercise, 'write': write, 'count': count,
         'refused': refused}

if __name__ == '__main__':
    main(*sys.argv[1:])
