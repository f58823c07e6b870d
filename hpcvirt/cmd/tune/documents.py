# SPDX-License-Identifier: Apache-2.0

"""Read an experiment and plan it, for all commands of ``hpcvirt tune``."""

import argparse
import dataclasses

from hpcvirt.model import host as host_model
from hpcvirt.tune import configurations
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import space as spaces


@dataclasses.dataclass(frozen=True)
class TuneDocument:
    """An experiment that can be carried out.

    :ivar where: the file, for errors
    :ivar hosts: the hosts, which differ only in their names
    """

    where: str
    experiment: experiments.Experiment
    hosts: tuple[host_model.Host, ...]
    configurations: configurations.Configurations
    space: spaces.Space
    budget: spaces.Budget


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Add the argument EXPERIMENT."""
    parser.add_argument('experiment', metavar='EXPERIMENT',
                        help='the file of the experiment, as YAML or JSON')


def read(path: str, has_native: bool = False) -> TuneDocument:
    """Read an experiment and all files that it names, and plan it.

    :param path: the file; relative paths in it are relative to its folder
    :param has_native: whether each replicate begins with a native trial
    :raises InvalidInput: for an invalid file, a configuration that cannot be
        planned, or limits within which nothing can be decided
    """
    raise NotImplementedError
