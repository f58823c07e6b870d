# SPDX-License-Identifier: Apache-2.0

"""Sphinx configuration of the release notes."""

project = 'hpcvirt release notes'
copyright = 'hpcvirt developers'
author = 'hpcvirt developers'

extensions = ['reno.sphinxext']

html_theme = 'furo'

# Release notes have no version of their own.
version = ''
release = ''
