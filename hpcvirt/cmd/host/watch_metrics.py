# SPDX-License-Identifier: Apache-2.0

"""What ``hpcvirt host watch`` tells Prometheus."""

from collections.abc import Iterator

from prometheus_client import core
from prometheus_client import registry

from hpcvirt.cmd.fleet import exporter
from hpcvirt.fleet import metrics
from hpcvirt.health import host_sample
from hpcvirt.health import host_watch
from hpcvirt.health import readings


class WatchCollector(registry.Collector):
    """Shows what the last samples said; what is not known is missing.

    :param watch: its attributes are replaced as a whole
    """

    def __init__(self, watch: host_watch.HostWatch) -> None:
        self._watch = watch

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics of the host."""
        yield from map(exporter.metric, [
            metrics.Family(
                readings.SCORE, 'What the worst unit of the host has reached '
                'of the limits of the sign for 10 of the last 30 minutes; '
                'less than half is 0', ('sign', 'unit'),
                {(sign, unit): score for sign, (score, unit)
                 in self._watch.scores.items()}),
            metrics.Family(
                'hpcvirt_host_rate', 'What this unit does, in the units of '
                'the documentation', ('sign', 'quantity'),
                {(sign, name.value): value for sign, values
                 in self._watch.worst.items()
                 for name, value in values.items()}),
            *(_sample_families(self._watch.latest) if self._watch.latest
              else ())])


def _sample_families(sample: host_sample.HostSample) -> Iterator[
        metrics.Family]:
    yield metrics.Family(
        readings.TIME, 'When the last sample was taken', (),
        {(): sample.time})
    for place, part in enumerate(('', '_free')):
        yield metrics.Family(
            f'hpcvirt_host_huge_pages{part}', f'Huge pages{part and ", free"}',
            ('cell', 'size_kib'), {
                labels: numbers[place]
                for labels, numbers in sample.huge_pages.items()})
    if sample.ksm_pages is not None:
        yield metrics.Family('hpcvirt_host_ksm_pages', 'Pages that KSM has '
                             'merged', (), {(): sample.ksm_pages})
    if sample.slab_kib is not None:
        yield metrics.Family('hpcvirt_host_slab_bytes', 'Unreclaimable slab',
                             (), {(): sample.slab_kib * 1024})
