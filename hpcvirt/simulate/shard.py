# SPDX-License-Identifier: Apache-2.0

"""Write the replays of a shard as a document, and merge those of all shards.

A digest of the input tells shards of other requests, hosts or flavors.
"""

import dataclasses
import hashlib
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt.simulate import outcome as outcomes
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import simulation

#: The outcomes of two million requests with ten strategies are smaller.
_MAX_BYTES = 1 << 30


@dataclasses.dataclass(frozen=True)
class _ShardFile:
    input: str
    replays: Mapping[str, outcomes.ReplayOutcome]


def dump(found: Mapping[simulation.Key, outcomes.ReplayOutcome],
         choices: Mapping[str, scenarios.Scenario]) -> Any:
    """Write the outcomes of a shard as plain data."""
    return serialization.dump(_ShardFile(_digest(choices), {
        str(key): each for key, each in found.items()}))


def merge(paths: Sequence[str], keys: Collection[simulation.Key],
          choices: Mapping[str, scenarios.Scenario],
          ) -> dict[simulation.Key, outcomes.ReplayOutcome]:
    """Read the outcomes of all shards, in the order of the keys.

    :raises InvalidInput: if a file is no shard of this input, or a replay is
        in none of them
    """
    known: dict[str, outcomes.ReplayOutcome] = {}
    own = _digest(choices)
    for path in paths:
        where = input_file.name(path)
        file = serialization.load(_ShardFile, serialization.json_value(
            input_file.content(path, _MAX_BYTES), where), where)
        if file.input != own:
            raise exception.InvalidInput(
                where, 'is a shard of other requests, hosts or flavors')
        known |= file.replays
    for key in keys:
        outcome = known.get(str(key))
        if outcome is None or len(outcome.fates) != len(
                choices[key[0]].requests[key[2]].arrivals):
            raise exception.InvalidInput(
                '--merge', 'no file has all of the replay of '
                + ' '.join(filter(None, key[:2])))
    return {key: known[str(key)] for key in keys}


def _digest(choices: Mapping[str, scenarios.Scenario]) -> str:
    return hashlib.sha256(repr([(
        [(kind, len(group), group[0].state.free)
         for kind, group in scenarios.group_hosts(scenario.fleet)], [
             ([each.flavor for each in requests.flavors], requests.arrivals,
              requests.warm_up, [each.end for each in requests.residents])
             for requests in scenario.requests])
        for scenario in choices.values()]).encode()).hexdigest()
