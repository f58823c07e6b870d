# SPDX-License-Identifier: Apache-2.0

"""What ``hpcvirt host watch`` tells Prometheus."""

from collections.abc import Iterator

from prometheus_client import core
from prometheus_client import registry

from hpcvirt.cmd.fleet import exporter
from hpcvirt.fleet import metrics
from hpcvirt.health import host_sample
from hpcvirt.health import host_watch


class WatchCollector(registry.Collector):
    """Shows what the last sample said.

    :param watch: its state is replaced as a whole, and thus consistent
    """

    def __init__(self, watch: host_watch.HostWatch) -> None:
        self._watch = watch

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics of the host."""
        state, found = self._watch.state, self._watch.latest
        yield from map(exporter.metric, [
            metrics.Family(
                'hpcvirt_host_rate', 'What the host does, in the units of the '
                'documentation; unknown rates are missing', ('quantity',),
                {(name.value,): value for name, value in found.items()}),
            metrics.Family(
                'hpcvirt_host_limit', 'Over this limit a rate counts',
                ('sign', 'quantity'),
                {(sign.name, name.value): limit for sign in self._watch.signs
                 for name, limit in sign.limits.items()}),
            metrics.Family(
                'hpcvirt_host_sign', 'Whether the sign of slowness is on',
                ('sign',), {(sign.name,): int(
                    sign.name in state.signs and state.signs[sign.name].on)
                    for sign in self._watch.signs}),
            metrics.Family(
                'hpcvirt_host_quarantine_wanted', 'Whether the host belongs '
                'in quarantine', (), {(): int(bool(state.reason))}),
            metrics.Family(
                'hpcvirt_host_quarantine_held', 'Whether this program has put '
                'the host in quarantine', (), {(): int(bool(state.held))}),
            *(_sample_families(state.last) if state.last else ())])
        yield core.CounterMetricFamily(
            'hpcvirt_host_quarantine_failures', 'Changes of the cloud that '
            'have failed', value=self._watch.reconciler.failures)


def _sample_families(sample: host_sample.HostSample) -> Iterator[
        metrics.Family]:
    yield metrics.Family(
        'hpcvirt_host_sample_timestamp_seconds', 'When the last sample was '
        'taken', (), {(): sample.time})
    for part in ('total', 'free'):
        yield metrics.Family(
            f'hpcvirt_host_huge_pages_{part}', f'Huge pages, {part}',
            ('cell', 'size_kib'),
            {(str(pages.cell), str(pages.size_kib)): getattr(pages, part)
             for pages in sample.huge_pages})
    for name, value, words in (
            ('ksm_pages', sample.ksm_pages, 'Pages that KSM has merged'),
            ('slab_kib', sample.slab_kib, 'Unreclaimable slab')):
        if value is not None:
            yield metrics.Family(f'hpcvirt_host_{name}', words, (),
                                 {(): value})
