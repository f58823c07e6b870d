# SPDX-License-Identifier: Apache-2.0

"""The study document: a case of a study, and where to run it.

The documentation shows the docstring of its class; etc/hpcvirt/studies has
examples.
"""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Annotated

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.model import host_pattern
from hpcvirt.bench.model import judgement

KIND = 'study'


#: Keys of guests that exist, and of instances that are created.
_OF_GUESTS = ('native_cpus', 'this_launch')
_OF_INSTANCES = ('image', 'networks', 'user')
_check_native = host_pattern.check('ssh://{host}')


def _read_natives(value: object) -> tuple[str, ...]:
    """Read one target, or a list of them."""
    given = value if isinstance(value, list) else [value]
    return tuple(_check_native(each) for each in given)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudyDocument:
    """A case of a study, and where to run it.

    It is run in guests that exist (``where``), or in instances that are
    created on ``hosts``, or on those of a class of ``fleet``.

    :ivar kind: ``study``
    :ivar schema_version: 1
    :ivar study: the study, such as ``S1``
    :ivar case: its case, such as ``small-on``
    :ivar instead: a free benchmark that replaces one of the case
    :ivar settings: sizes, ranks, threads and paths, as for ``bench run
        --set``, instead of those of the case
    :ivar pairs: the number of pairs; by default 16, or for ``where`` as the
        bounds need
    :ivar warm_ups: the runs to discard first and after each reboot; 1 by
        default
    :ivar bounds: the worst ratio of a metric that passes, instead of that of
        the benchmark
    :ivar overhead_percent: how much slower the guests may be in other metrics
    :ivar verdict: with ``false``, it is measured although no verdict can
        follow, for want of a bound or of pairs
    :ivar where: the guests, as targets
    :ivar native: the target of the native runs; for ``where`` the host, or a
        list with the host of each guest, otherwise ``ssh://{host}`` by
        default, in which ``{host}`` stands for the name of the host
    :ivar native_cpus: for ``where``, the CPUs of native runs, once or for each
        guest; by default those of the guest
    :ivar this_launch: with ``true``, only this launch of ``where`` is judged,
        not its flavor
    :ivar hosts: hosts as ``[NAME=]PATH[*COUNT]``, where NAME is that of the
        compute service, and PATH a topology, relative to the document
    :ivar fleet: a fleet document, relative to this one
    :ivar host_class: a class of ``fleet``, of whose hosts the first ones are
        taken
    :ivar image: the image with the benchmarks, by its name or UUID
    :ivar networks: as many networks as the case needs, on the first of which
        this machine reaches instances by ssh
    :ivar user: the login name in the instances; ``root`` by default
    """

    kind: str
    schema_version: int
    study: str
    case: str
    instead: str | None = None
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    pairs: Annotated[int, serialization.whole(1, 1000)] | None = None
    warm_ups: Annotated[int, serialization.whole(0, 100)] = 1
    bounds: Mapping[str, judgement.Ratio] = dataclasses.field(
        default_factory=dict)
    overhead_percent: Annotated[float, serialization.number(
        0, judgement.LARGEST)] | None = None
    verdict: bool = True
    where: tuple[str, ...] = ()
    native: Annotated[tuple[str, ...], _read_natives] = ()
    native_cpus: tuple[str, ...] = ()
    this_launch: bool = False
    hosts: tuple[str, ...] = ()
    fleet: str | None = None
    host_class: str | None = None
    image: str | None = None
    networks: tuple[str, ...] = ()
    user: str | None = None


def read(plain: object, where: str) -> StudyDocument:
    """Read a study document, which is parsed.

    :param where: the file, for errors
    :raises InvalidInput: naming the place of the fault
    """
    document = serialization.load_document(StudyDocument, plain, KIND, where)
    for key, fault in _faults(document):
        raise exception.InvalidInput(f'{where}: {key}', fault)
    return document


def _faults(document: StudyDocument) -> Iterator[tuple[str, str]]:
    """Find contradictions: the key, and the fault."""
    yield from _find_faults_of_place(document)
    if len(document.native) > 1 and not document.where:
        yield 'native', 'must be one target, in which {host} is replaced'
    if document.where and any(
            host_pattern.HOST in target for target in document.native):
        yield 'native', 'must name the host itself, because of where'
    if not document.verdict and (
            document.bounds or document.overhead_percent is not None):
        yield 'verdict', 'contradicts bounds and overhead_percent'


def _find_faults_of_place(document: StudyDocument,
                          ) -> Iterator[tuple[str, str]]:
    """Find contradictions about where the case is run."""
    places = [key for key in ('where', 'hosts', 'fleet')
              if getattr(document, key)]
    if not places:
        yield 'where', 'is missing; give where, hosts or fleet'
    if len(places) > 1:
        yield places[1], f'contradicts {places[0]}'
    if bool(document.fleet) is not bool(document.host_class):
        missing = 'host_class' if document.fleet else 'fleet'
        yield missing, 'is missing; fleet and host_class need each other'
    for key in _OF_INSTANCES if document.where else _OF_GUESTS:
        if getattr(document, key):
            yield key, ('contradicts where, whose guests exist'
                        if document.where else 'needs where')
