# SPDX-License-Identifier: Apache-2.0

"""The group ``[hpcvirt]`` of nova.conf.

It is a group of its own, because Nova owns ``[filter_scheduler]``.
"""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'hpcvirt', title='hpcvirt in the scheduler',
    help="Options of hpcvirt's filter and weighers, which nova-scheduler "
         'reads from nova.conf.')
