# SPDX-License-Identifier: Apache-2.0

"""Write the files that configure hosts, as deployment tools need them.

It also compares them with the present files. Only ``disk.py`` reads and
writes files, by ``rooted_files``.
"""
