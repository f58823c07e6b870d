# SPDX-License-Identifier: Apache-2.0

"""Read workloads: logs of batch systems, and tables of a cloud's instances.

The format is detected by the content, never by the name of the file. Files
that are compressed by gzip are expanded.

To add a format, write a module with its reader, and add it to ``_FORMS``.
"""

from hpcvirt import exception
from hpcvirt.simulate import workload as workloads
from hpcvirt.simulate.read import boots_csv
from hpcvirt.simulate.read import log as logs
from hpcvirt.simulate.read import swf

_FORMS = ((boots_csv.recognizes, boots_csv.read),
          (swf.recognizes, swf.read))


def workload(path: str) -> workloads.Workload:
    """Read a workload.

    :param path: a file, or ``-`` for standard input
    :raises InvalidInput: with the file, and the line that is wrong
    """
    log = logs.Log(path)
    for recognizes, read in _FORMS:
        if recognizes(log.first):
            return read(log)
    raise exception.InvalidInput(
        log.where, 'has an unknown format; expected a CSV of boots and '
        'deletions, or the Standard Workload Format')
