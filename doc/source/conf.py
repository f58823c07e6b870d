# SPDX-License-Identifier: Apache-2.0

"""Sphinx configuration of the documentation."""

import pathlib
import sys
from importlib import metadata

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'ext'))

project = 'hpcvirt'
copyright = 'hpcvirt developers'
author = 'hpcvirt developers'

extensions = [
    'oslo_config.sphinxext',
    'audit_rules',
    'benchmark_table',
    'bibliography_page',
    'command_reference',
    'extra_spec_table',
    'page_checks',
]

# A command line in prose keeps its two dashes.
smartquotes = False

html_theme = 'furo'
html_title = 'hpcvirt'
# The version comes from git, as that of the package.
release = metadata.version('hpcvirt')
version = release

#: Source, name, description, authors, section.
man_pages = [('cli/hpcvirt', 'hpcvirt',
              'near-native HPC instances on OpenStack Nova', [author], 1)]
