# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt_in_order``: carry out the actions in the order of the solution.

Watcher's own planners start two migrations at once.
"""

from oslo_config import cfg
from watcher.decision_engine.planner import weight


class InOrder(weight.WeightPlanner):
    """Watcher's weight planner, with one migration after another."""

    @classmethod
    def get_config_opts(cls) -> list[cfg.Opt]:
        """Return the options of the weight planner, without parallelism."""
        return [cfg.DictOpt('weights', default=cls.action_weights,
                            help='As of the planner "weight".'),
                cfg.DictOpt('parallelization',
                            default=dict.fromkeys(cls.action_weights, 1),
                            help='As of the planner "weight".')]
