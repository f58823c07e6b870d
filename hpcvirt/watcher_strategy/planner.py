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

"""``hpcvirt_in_order``: carry out the actions in the order of the solution.

Watcher's own planner begins two migrations at once.
"""


from oslo_config import cfg
from watcher.decision_engine.planner import weight


class InOrder(weight.WeightPlanner):
    """The planner of Watcher, one migration after the other."""

    @classmethod
    def get_config_opts(cls) -> list[cfg.Opt]:
        """Return the options of the weight planner, without parallelism."""
        return [cfg.DictOpt('weights', default=cls.action_weights,
                            help='As of the planner "weight".'),
                cfg.DictOpt('parallelization',
                            default=dict.fromkeys(cls.action_weights, 1),
                            help='As of the planner "weight".')]
