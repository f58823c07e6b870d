# SPDX-License-Identifier: Apache-2.0

"""Which variables of the environment the programs that hpcvirt starts get.

A program gets only variables that are listed here, so that the passwords,
tokens and application credentials of the caller stay with the caller. A site
names further variables in :data:`FURTHER`.
"""

import fnmatch
import os
from collections.abc import Mapping

#: The variable with names and patterns, separated by spaces, of variables
#: that all programs get in addition.
FURTHER = 'HPCVIRT_PASS_ENVIRONMENT'

#: Who the user is, where files are, and how text is written.
USER = ('HOME', 'LANG', 'LANGUAGE', 'LC_*', 'LOGNAME', 'PATH', 'SHELL',
        'TERM', 'TMPDIR', 'TZ', 'USER', 'XDG_CACHE_HOME', 'XDG_CONFIG_HOME',
        'XDG_DATA_HOME', 'XDG_RUNTIME_DIR', 'XDG_STATE_HOME')

#: What chooses and sets the compilers and libraries of a benchmark: those of
#: environment modules, OpenMP, MPI, its transports, and accelerators.
BENCHMARK = (
    'CC', 'CFLAGS', 'CPATH', 'CPPFLAGS', 'CUDA_*', 'CXX', 'CXXFLAGS', 'F77',
    'FC', 'FFLAGS', 'FI_*', 'GOMP_*', 'HIP_*', 'HSA_*', 'HWLOC_*', 'I_MPI_*',
    'KMP_*', 'LDFLAGS', 'LD_LIBRARY_PATH', 'LIBRARY_PATH', 'LMOD_*',
    'LOADEDMODULES', 'MANPATH', 'MKL_*', 'MODULEPATH', 'MODULESHOME',
    'MPICH_*', 'NCCL_*', 'NVIDIA_*', 'OMPI_*', 'OMP_*', 'OPAL_PREFIX',
    'OPENBLAS_*', 'PKG_CONFIG_PATH', 'PMIX_*', 'PRTE_*', 'PSM2_*', 'ROCM_*',
    'ROCR_*', 'UCC_*', 'UCX_*', '_LMFILES_')

#: What lets ssh log in: an agent, which gives no key away, and the name of the
#: file with Kerberos tickets.
SSH = ('KRB5CCNAME', 'SSH_AUTH_SOCK')

#: What a program needs to run another Python, or to reach other machines by
#: ssh and Ansible.
SITE = ('ANSIBLE_*', 'PYTHONPATH', 'PYTHONPYCACHEPREFIX', 'REQUESTS_CA_BUNDLE',
        'SSL_CERT_FILE', 'VIRTUAL_ENV', *SSH)

#: The settings of a site for hpcvirt, which it passes on when it runs itself:
#: the folders of benchmarks, separated by colons; the directory for files of
#: runs on targets; and the URL of the database of results. The password of the
#: database stays with the caller.
CATALOGUE = 'HPCVIRT_CATALOGUE'
JOB_DIRECTORY = 'HPCVIRT_JOB_DIRECTORY'
STORE = 'HPCVIRT_STORE'
OWN = (CATALOGUE, JOB_DIRECTORY, STORE)

#: What tells salloc which nodes to allocate, and where Slurm is.
SLURM = ('SALLOC_*', 'SLURM_CONF')


def choose(*patterns: str,
           given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Choose the variables of the environment that a program gets.

    :param patterns: names and shell patterns, besides :data:`USER` and
        :data:`FURTHER`
    :param given: the environment to choose from; None for the caller's
    """
    present = os.environ if given is None else given
    passed = (*USER, *patterns, *present.get(FURTHER, '').split())
    return {name: value for name, value in present.items()
            if any(fnmatch.fnmatchcase(name, each) for each in passed)}
