# SPDX-License-Identifier: Apache-2.0

"""The acceptance document: what proves the hosts of a class.

The documentation shows the docstring of its class; etc/hpcvirt/acceptance has
examples.
"""

import dataclasses
from collections.abc import Mapping
from typing import Annotated

from hpcvirt import serialization
from hpcvirt.bench.model import host_pattern
from hpcvirt.bench.model import judgement

KIND = 'acceptance'
#: What a gate runs by default.
GATE_BENCHMARKS = ('hpcc', 'fio')

_Target = Annotated[str, host_pattern.check('ssh://root@{host}')]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AcceptanceDocument:
    """What is alike for all hosts of a class.

    Files are relative to the document, and ``{host}`` stands for the name of
    the host.

    :ivar kind: ``acceptance``
    :ivar schema_version: 1
    :ivar plan: the output of ``hpcvirt flavor plan -f json``, in which the
        host has its name
    :ivar flavors: flavors of the plan, which fill the host one after the other
    :ivar image: an image with the benchmarks, by its name or UUID
    :ivar network: a network on which this machine reaches instances by ssh
    :ivar user: the login name in the instances; ``root`` by default
    :ivar native: the host itself as a target (``ssh://root@{host}``), which
        the instances are compared with; without this key, hosts of the class
    :ivar benchmarks: what is run in the instances; ``[hpcc]`` by default
    :ivar settings: their sizes, ranks, threads and paths, as for ``bench run
        --set``
    :ivar bounds: the worst ratio of a metric that passes, instead of that of
        the benchmark
    :ivar pairs: the number of pairs, 16 by default, or without ``native`` of
        samples, 10 by default
    :ivar gate: the host as a target for the quick gate; ``native`` by default
    :ivar gate_benchmarks: what the quick gate runs; ``[hpcc, fio]`` by
        default, and with ``[]`` it only looks at the hardware
    :ivar gate_settings: the settings of these benchmarks
    :ivar gate_bounds: the worst ratios that pass the quick gate
    :ivar time_limit_minutes: when measuring ends; 480 by default
    :ivar audit: the output of ``hpcvirt host audit -f json`` for the host
        (``audits/{host}.json``)
    :ivar json_lines: a file to which the record is appended in a line
    """

    kind: str
    schema_version: int
    plan: str | None = None
    flavors: tuple[str, ...] = ()
    image: str | None = None
    network: str | None = None
    user: str = 'root'
    native: _Target | None = None
    benchmarks: tuple[str, ...] = ('hpcc',)
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    bounds: Mapping[str, judgement.Ratio] = dataclasses.field(
        default_factory=dict)
    pairs: Annotated[int, serialization.whole(1, 1000)] | None = None
    gate: _Target | None = None
    gate_benchmarks: tuple[str, ...] = GATE_BENCHMARKS
    gate_settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gate_bounds: Mapping[str, judgement.Ratio] = dataclasses.field(
        default_factory=dict)
    time_limit_minutes: Annotated[int, serialization.whole(
        1, 7 * 24 * 60)] = 480
    audit: Annotated[str, host_pattern.check(
        'audits/{host}.json')] | None = None
    json_lines: str | None = None


def read(plain: object, where: str) -> AcceptanceDocument:
    """Read an acceptance document, which is parsed.

    :param where: the file, for errors
    :raises InvalidInput: naming the place of the fault
    """
    return serialization.load_document(AcceptanceDocument, plain, KIND, where)
