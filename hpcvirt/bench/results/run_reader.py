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

"""Read runs and their samples, and the attempts before a run.

Of a host that is measured every day, each result has the same attempts as the
one before it, but one. So what was read of an attempt is kept.
"""

import dataclasses
from collections.abc import Iterator

import sqlalchemy

from hpcvirt.bench.model import record
from hpcvirt.bench.results import documents
from hpcvirt.bench.results import tables


class RunReader:
    """Reads runs from the tables of a store."""

    def __init__(self) -> None:
        self._attempts: dict[tuple[str, int], record.Attempt] = {}

    def runs(self, connection: sqlalchemy.Connection,
             entry_id: str) -> Iterator[record.Run]:
        """Read the runs of an invocation, with their earlier attempts."""
        query = sqlalchemy.select(tables.RUNS.c.document).where(
            tables.RUNS.c.result_id == entry_id).order_by(tables.RUNS.c.number)
        for document in connection.execute(query).scalars().all():
            bare = documents.run(document)
            before = _before(connection, bare)
            known = before[-record.KNOWN_ATTEMPTS:]
            yield dataclasses.replace(
                bare, samples=tuple(_samples(connection, bare.id)),
                earlier=tuple(self._attempt(connection, other)
                              for other in known),
                omitted=len(before) - len(known))

    def _attempt(self, connection: sqlalchemy.Connection,
                 run: record.Run) -> record.Attempt:
        """Read the evidence of a run, unless it was read before."""
        count = connection.execute(sqlalchemy.select(
            sqlalchemy.func.count()).where(
                tables.SAMPLES.c.run_id == run.id)).scalar_one()
        if (run.id, count) not in self._attempts:
            self._attempts[run.id, count] = record.Attempt(
                run.id, run.started_at, run.planned_pairs,
                tuple(_bare(sample) for sample in _samples(connection, run.id)
                      if not sample.warm_up), run.looks)
        return self._attempts[run.id, count]


def _before(connection: sqlalchemy.Connection,
            run: record.Run) -> list[record.Run]:
    """Read the runs on the subject of a run before it, oldest first."""
    if not run.subject:
        return []
    query = sqlalchemy.select(tables.RUNS.c.document).where(
        tables.RUNS.c.benchmark == run.benchmark,
        tables.RUNS.c.host == run.host,
        tables.RUNS.c.document.contains(run.subject))
    found = [other for other in map(
        documents.run, connection.execute(query).scalars())
        if other.subject == run.subject
        and (other.started_at, other.id) < (run.started_at, run.id)]
    return sorted(found, key=lambda one: (one.started_at, one.id))


def _samples(connection: sqlalchemy.Connection,
             run_id: str) -> Iterator[record.Sample]:
    query = sqlalchemy.select(tables.SAMPLES.c.document).where(
        tables.SAMPLES.c.run_id == run_id).order_by(tables.SAMPLES.c.position)
    for document in connection.execute(query).scalars():
        yield documents.sample(document, run_id)


def _bare(sample: record.Sample) -> record.Sample:
    """Leave out what the evidence of a sample does not need."""
    return dataclasses.replace(
        sample, command=(), outputs=(), environment={
            name: value for name, value in sample.environment.items()
            if name.partition('@')[0] == 'boot_id'})
