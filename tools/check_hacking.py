# SPDX-License-Identifier: Apache-2.0

"""Run flake8 with the checks of hacking alone.

flake8 also runs those of pycodestyle, pyflakes and mccabe, and drops what they
find unless it is selected. ruff makes the same checks, and they take most of
the time of flake8. The check H306, which setup.cfg ignores, would find
something in most files, and flake8 reads each of those again.
"""

import sys
from typing import Any

from flake8.main import cli
from flake8.plugins import finder

UNSELECTED = frozenset({'mccabe', 'pycodestyle', 'pyflakes'})
IGNORED = frozenset({'H306'})


def main() -> int:
    """Run flake8 with the arguments of the command."""
    load = finder.load_plugins

    def load_selected(plugins: list[Any], options: Any) -> Any:
        return load([plugin for plugin in plugins
                     if plugin.package not in UNSELECTED
                     and plugin.entry_point.name not in IGNORED], options)
    finder.load_plugins = load_selected
    return cli.main()


if __name__ == '__main__':
    sys.exit(main())
