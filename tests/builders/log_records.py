# SPDX-License-Identifier: Apache-2.0

"""Records and lines of the logs of Nova and of hpcvirt in it."""

from hpcvirt.fit import decision_log
from hpcvirt.fit import reasons

LOGGER = 'hpcvirt.nova.no_valid_host_log'


def a_refusal(request='req-1', hosts=3, **more):
    """Make the record of hosts that refused a request alike."""
    return decision_log.RefusedHosts(**{
        'time': '2026-11-22T10:00:00+00:00', 'request_id': request,
        'instance': 'uuid-1', 'flavor': 'hpc',
        'hosts': hosts, 'of': hosts, 'asked': '4 vCPUs and 1024 MiB',
        'code': reasons.Code.NO_CELL, 'root': reasons.Code.FREE_PCPUS,
        'examples': 'a, b', 'reason': 'no cell has room', **more})


def a_comparison(request='req-1', flavor='hpc', passed=2, novas=3,
                 differing=0, **more):
    """Make the record of a request on which filters were compared."""
    return decision_log.ShadowComparison(**{
        'time': '2026-11-22T10:00:00+00:00', 'request_id': request,
        'instance': 'uuid-1', 'flavor': flavor, 'hosts': 3, 'compared': 3,
        'passed': passed, 'passed_by_nova': novas, 'differing': differing,
        **more})


def a_difference(request='req-1', hosts=1,
                 direction=decision_log.Disagreement.HPCVIRT_REFUSES,
                 code=reasons.Code.CLAIM_REFUSES, flavor='hpc'):
    """Make the record of hosts on which the filters disagree."""
    return decision_log.ShadowDifference(
        time='2026-11-22T10:00:00+00:00', request_id=request,
        instance='uuid-1', flavor=flavor, direction=direction, code=code,
        hosts=hosts, examples='a', reason='why')


def line(record, logger=LOGGER):
    """Write a record as oslo.log does."""
    message = record if isinstance(record, str) else decision_log.write(record)
    return (f'2026-11-22 10:00:00.123 7 INFO {logger} '
            f'[None req-1 admin - - - -] {message}\n').encode()


#: As nova-conductor writes of an instance that is built elsewhere.
INSTANCE = '2f9ab1f0-6a0b-4f6d-9d2c-8f3b6a0c1e55'
BUILD = (
    f'[instance: {INSTANCE}] Error from last host: node1 (node node1): '
    "['Traceback (most recent call last):\\n', '  File \"manager.py\", line "
    "2649, in _build_and_run_instance\\n', 'nova.exception."
    'ComputeResourcesUnavailable: Insufficient compute resources: Claim pci '
    "failed.\\n', '\\nDuring handling of the above exception, another "
    "exception occurred:\\n\\n', 'nova.exception.RescheduledException: Build "
    f'of instance {INSTANCE} was re-scheduled: Insufficient compute resources:'
    " Claim pci failed.\\n']")


def nova_line(logger, message, level='INFO',
              context='None req-1 u p - - -'):
    """Write a message as a service of Nova does."""
    return (f'2026-11-22 10:00:00.123 7 {level} {logger} [{context}] '
            f'{message}\n').encode()


#: A line with a refusal.
LINE = line(a_refusal())
