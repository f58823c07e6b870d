# SPDX-License-Identifier: Apache-2.0

"""The documents that hpcvirt takes figures and methods from.

All other places cite a document by its key, in square brackets:
``[CERN-HEPiX-2015]``. Only this module describes a document and says where a
reader finds it.
"""

import dataclasses

from hpcvirt import exception


@dataclasses.dataclass(frozen=True, slots=True)
class Publication:
    """A published document.

    :ivar key: what other places cite, without the brackets
    :ivar authors: the authors, or the institution where no author is named
    :ivar venue: where the document was published or presented
    :ivar year: the year or date of publication, with what is known of it
    :ivar found: where a reader finds the document
    :ivar file: name of the text that the figures were taken from; None for a
        document that gives a method and no figures
    """

    key: str
    authors: str
    title: str
    venue: str
    year: str
    found: str
    file: str | None = None

    @property
    def citation(self) -> str:
        """The key as text cites it, in square brackets."""
        return f'[{self.key}]'


def _linux(key: str, title: str, page: str) -> Publication:
    """Describe a page of the documentation of Linux."""
    return Publication(
        key, 'The kernel development community', title,
        'documentation of Linux', 'Linux 6.12', f'docs.kernel.org/{page}')


DOCUMENTS = (
    Publication(
        'VMware-Memory-2010', 'VMware',
        'HPC Application Performance on ESX 4.1: Memory Virtualization',
        'VMware VROOM! Blog, third part of a series on HPC',
        '2010 (the text shows no date; the first part of the series is of '
        'September 2010)',
        'blogs.vmware.com/performance', '000_5f8a437f5bcb73de.txt'),
    Publication(
        'LBNL-Partitioning', 'Khaled Ibrahim and Costin Iancu',
        'Efficient Virtualization for HPC Applications',
        'slides, Future Technologies Group, Lawrence Berkeley National '
        'Laboratory; the full paper was presented at CCGrid 2011',
        'not stated (the slides measure QEMU 0.13 and Xen 4.0, both of 2010)',
        'no address is known; search for the title',
        '001_3ef947e446be6dbd.txt'),
    Publication(
        'VMware-NAMD-2010', 'VMware',
        'HPC Application Performance on ESX 4.1: NAMD',
        'VMware VROOM! Blog, second part of a series on HPC',
        '2010 (the text shows no date; the first part of the series is of '
        'September 2010)',
        'blogs.vmware.com/performance', '002_f180406610a393ac.txt'),
    Publication(
        'CERN-HEPiX-2015',
        'Arne Wiebalck, Tim Bell, Sean Crosby and Ulrich Schwickerath',
        'CPU Performance Optimizations of Virtualized Compute Resources in '
        'the CERN Cloud Service',
        'slides, HEPiX Autumn Meeting, Brookhaven National Laboratory',
        '14 October 2015', 'the agenda of the HEPiX Autumn 2015 meeting',
        '003_5d5158a0f72041aa.txt'),
    Publication(
        'SDSC-SRIOV-2013', 'Glenn K. Lockwood',
        'High-Performance Virtualization: SR-IOV and InfiniBand',
        'blog post on work of the San Diego Supercomputer Center that was '
        'presented at SC13',
        '14 December 2013', "the author's blog", '004_31bfc564158c3a5d.txt'),
    Publication(
        'Georges-2007', 'Andy Georges, Dries Buytaert and Lieven Eeckhout',
        'Statistically Rigorous Java Performance Evaluation',
        'OOPSLA 2007', '2007', 'doi.org/10.1145/1297027.1297033'),
    Publication(
        'Kalibera-Jones-2013', 'Tomas Kalibera and Richard Jones',
        'Rigorous Benchmarking in Reasonable Time',
        'ISMM 2013', '2013', 'doi.org/10.1145/2464157.2464160'),
    Publication(
        'Law-2015', 'Averill M. Law', 'Simulation Modeling and Analysis',
        'McGraw-Hill, fifth edition, section 9.5.3', '2015',
        'ISBN 978-0-07-340132-4'),
    Publication(
        'Cochran-1977', 'William G. Cochran', 'Sampling Techniques',
        'Wiley, third edition, section 6.4', '1977',
        'ISBN 978-0-471-16240-7'),
    Publication(
        'Holm-1979', 'Sture Holm',
        'A Simple Sequentially Rejective Multiple Test Procedure',
        'Scandinavian Journal of Statistics 6(2), pages 65 to 70', '1979',
        'jstor.org/stable/4615733'),
    Publication(
        'Wilcoxon-1945', 'Frank Wilcoxon',
        'Individual Comparisons by Ranking Methods',
        'Biometrics Bulletin 1(6), pages 80 to 83', '1945',
        'doi.org/10.2307/3001968'),
    Publication(
        'Hodges-Lehmann-1963', 'Joseph L. Hodges and Erich L. Lehmann',
        'Estimates of Location Based on Rank Tests',
        'Annals of Mathematical Statistics 34(2), pages 598 to 611', '1963',
        'doi.org/10.1214/aoms/1177704172'),
    Publication(
        'Meeker-2017',
        'William Q. Meeker, Gerald J. Hahn and Luis A. Escobar',
        'Statistical Intervals: A Guide for Practitioners and Researchers',
        'Wiley, second edition', '2017', 'doi.org/10.1002/9781118594841'),
    Publication(
        'Hawkins-2003', 'Douglas M. Hawkins, Peihua Qiu and Chang Wook Kang',
        'The Changepoint Model for Statistical Process Control',
        'Journal of Quality Technology 35(4), pages 355 to 366', '2003',
        'doi.org/10.1080/00224065.2003.11980233'),
    Publication(
        'Zou-Donner-2008', 'Guang Yong Zou and Allan Donner',
        'Construction of Confidence Limits about Effect Measures: A General '
        'Approach',
        'Statistics in Medicine 27(10), pages 1693 to 1702', '2008',
        'doi.org/10.1002/sim.3095'),
    Publication(
        'Linux-Parameters', 'The kernel development community',
        "The kernel's command-line parameters",
        'documentation of Linux, admin-guide/kernel-parameters', 'Linux 6.12',
        'docs.kernel.org/admin-guide/kernel-parameters.html'),
    Publication(
        'Linux-Hugetlb', 'The kernel development community', 'HugeTLB Pages',
        'documentation of Linux, admin-guide/mm/hugetlbpage',
        'Linux 6.12; pages of a cell on the command line since 5.16',
        'docs.kernel.org/admin-guide/mm/hugetlbpage.html'),
    Publication(
        'Linux-Vm', 'The kernel development community',
        'Documentation for /proc/sys/vm',
        'documentation of Linux, admin-guide/sysctl/vm', 'Linux 6.12',
        'docs.kernel.org/admin-guide/sysctl/vm.html'),
    Publication(
        'Linux-Kernel', 'The kernel development community',
        'Documentation for /proc/sys/kernel',
        'documentation of Linux, admin-guide/sysctl/kernel', 'Linux 6.12',
        'docs.kernel.org/admin-guide/sysctl/kernel.html'),
    Publication(
        'Tuned-Partitioning', 'The TuneD developers',
        'The profiles cpu-partitioning and virtual-host',
        'TuneD, profiles/cpu-partitioning and profiles/virtual-host',
        'TuneD 2.20 and master of August 2026',
        'github.com/redhat-performance/tuned'),
    Publication(
        'Systemd-Manager', 'The systemd developers',
        'systemd-system.conf: System and session service manager '
        'configuration files', 'manual page', 'systemd 252',
        'freedesktop.org/software/systemd/man/systemd-system.conf.html'),
    Publication(
        'Systemd-Cpusets-2022', 'The systemd developers',
        'Starting a unit with a cpuset resets CPUAffinity of all others',
        'issue 23748 of github.com/systemd/systemd', '2022',
        'github.com/systemd/systemd/issues/23748'),
    Publication(
        'Nova-Cpus', 'The Nova developers', 'CPU topologies',
        'documentation of Nova, admin/cpu-topologies', 'Nova 34 (2026.2)',
        'docs.openstack.org/nova/latest/admin/cpu-topologies.html'),
    Publication(
        'Nova-Hugepages', 'The Nova developers', 'Huge pages',
        'documentation of Nova, admin/huge-pages', 'Nova 34 (2026.2)',
        'docs.openstack.org/nova/latest/admin/huge-pages.html'),
    Publication(
        'Nova-Devices', 'The Nova developers',
        'Attaching physical PCI devices to guests',
        'documentation of Nova, admin/pci-passthrough', 'Nova 34 (2026.2)',
        'docs.openstack.org/nova/latest/admin/pci-passthrough.html'),
    Publication(
        'Nova-Isolation', 'The Nova developers',
        'Filtering hosts by isolating aggregates',
        'documentation of Nova, reference/isolate-aggregates',
        'Nova 34 (2026.2)',
        'docs.openstack.org/nova/latest/reference/isolate-aggregates.html'),
    Publication(
        'Nova-Zones', 'The Nova developers', 'Availability Zones',
        'documentation of Nova, admin/availability-zones',
        'Nova 34 (2026.2)',
        'docs.openstack.org/nova/latest/admin/availability-zones.html'),
    Publication(
        'Nova-Providers', 'The Nova developers',
        'Managing Resource Providers Using Config Files',
        'documentation of Nova, admin/managing-resource-providers',
        'Nova 34 (2026.2)',
        'docs.openstack.org/nova/latest/admin/managing-resource-providers'
        '.html'),
    Publication(
        'AMD-HPC-2023', 'AMD',
        'HPC Tuning Guide for AMD EPYC 9004 Series Processors',
        'publication 58002', '2023', 'amd.com, documentation hub'),
    _linux('Linux-Irq', 'SMP IRQ affinity',
           'core-api/irq/irq-affinity.html'),
    _linux('Linux-Ksm', 'Kernel Samepage Merging',
           'admin-guide/mm/ksm.html'),
    _linux('Linux-Nohz', 'NO_HZ: Reducing Scheduling-Clock Ticks',
           'timers/no_hz.html'),
    Publication(
        'SWF-Chapin-1999',
        'Steve J. Chapin, Walfredo Cirne, Dror G. Feitelson, James Patton '
        'Jones, Scott T. Leutenegger, Uwe Schwiegelshohn, Warren Smith and '
        'David Talby',
        'Benchmarks and Standards for the Evaluation of Parallel Job '
        'Schedulers',
        'Job Scheduling Strategies for Parallel Processing, LNCS 1659', '1999',
        'doi.org/10.1007/3-540-47954-6_4; the format is kept at '
        'www.cs.huji.ac.il/labs/parallel/workload/swf.html'),
    Publication(
        'FGD-Weng-2023',
        'Qizhen Weng, Lingyun Yang, Yinghao Yu, Wei Wang, Xiaochuan Tang, '
        'Guodong Yang and Liping Zhang',
        'Beware of Fragmentation: Scheduling GPU-Sharing Workloads with '
        'Fragmentation Gradient Descent',
        'USENIX Annual Technical Conference', '2023',
        'www.usenix.org/conference/atc23/presentation/weng; the trace openb '
        'is cluster-trace-gpu-v2023 of github.com/alibaba/clusterdata'),
    Publication(
        'Azure-Cortez-2017',
        'Eli Cortez, Anand Bonde, Alexandre Muzio, Mark Russinovich, Marcus '
        'Fontoura and Ricardo Bianchini',
        'Resource Central: Understanding and Predicting Workloads for '
        'Improved Resource Management in Large Cloud Platforms',
        '26th Symposium on Operating Systems Principles (SOSP)', '2017',
        'doi.org/10.1145/3132747.3132772; the traces are those of '
        'github.com/Azure/AzurePublicDataset'),
    Publication(
        'Azure-Hadary-2020',
        'Ori Hadary, Luke Marshall, Ishai Menache, Abhisek Pan, Esaias E '
        'Greeff, David Dion, Star Dorminey, Shailesh Joshi, Yang Chen, Mark '
        'Russinovich and Thomas Moscibroda',
        'Protean: VM Allocation Service at Scale',
        '14th USENIX Symposium on Operating Systems Design and '
        'Implementation (OSDI)', '2020',
        'www.usenix.org/conference/osdi20/presentation/hadary; the trace is '
        'AzureTracesForPacking2020 of github.com/Azure/AzurePublicDataset'),
    _linux('Linux-Sriov', 'PCI Express I/O Virtualization Howto',
           'PCI/pci-iov-howto.html'),
    _linux('Linux-Thp', 'Transparent Hugepage Support',
           'admin-guide/mm/transhuge.html'),
    _linux('Linux-Cpufreq', 'CPU Performance Scaling',
           'admin-guide/pm/cpufreq.html'),
    _linux('Linux-Cpuidle', 'CPU Idle Time Management',
           'admin-guide/pm/cpuidle.html'),
    _linux('Linux-Vulnerabilities', 'Hardware vulnerabilities',
           'admin-guide/hw-vuln'),
    _linux('Linux-Pstate', 'intel_pstate CPU Performance Scaling Driver',
           'admin-guide/pm/intel_pstate.html'),
    Publication(
        'LBNL-Nhc', 'Michael Jennings', 'LBNL Node Health Check',
        'documentation of version 1.4.3', 'not dated', 'github.com/mej/nhc'),
    Publication(
        'Nova-Gazpacho', 'The Nova developers',
        'Nova 2026.1 (Gazpacho) release notes',
        'release notes', 'Nova 33 (2026.1)',
        'docs.openstack.org/releasenotes/nova'),
    Publication(
        'Nova-Options', 'The Nova developers', 'Configuration options',
        'documentation of Nova, configuration/config', 'Nova 34 (2026.2)',
        'docs.openstack.org/nova/latest/configuration/config.html'),
    Publication(
        'Irqbalance-Manual', 'The Irqbalance developers', 'irqbalance(1)',
        'manual page', 'not dated', 'github.com/Irqbalance/irqbalance'),
    Publication(
        'Behrens-2022', 'Jonathan Behrens, Adam Belay and M. Frans Kaashoek',
        'Performance Evolution of Mitigating Transient Execution Attacks',
        'EuroSys 2022', '2022', 'doi.org/10.1145/3492321.3519559'),
    Publication(
        'Linux-Kasan', 'The kernel development community', 'KASAN',
        'help of options, lib/Kconfig.kasan', 'Linux 6.12', 'git.kernel.org'),
    _linux('Linux-Halt-Polling', 'The KVM halt polling system',
           'virt/kvm/halt-polling.html'),
    _linux('Linux-Ras', 'Reliability, Availability and Serviceability',
           'admin-guide/RAS/main.html'),
    _linux('Linux-Abi', 'Linux ABI description: sysfs-bus-pci',
           'admin-guide/abi.html'),
    _linux('Linux-Vfio', 'VFIO: Virtual Function I/O', 'driver-api/vfio.html'),
    Publication(
        'NVIDIA-Ats', 'NVIDIA', 'ATS and ACS configuration',
        'Optimizing VM Configuration for AI Inference, appendix', 'not dated',
        'docs.nvidia.com/ai-enterprise'),
    Publication(
        'NVIDIA-Nvswitch', 'NVIDIA',
        'HGX Shared NVSwitch GPU Passthrough Virtualization Integration Guide',
        'WP-12736-002', 'not dated',
        'docs.nvidia.com/hgx-platforms'),
    Publication(
        'NVIDIA-Guids', 'NVIDIA', 'SR-IOV', 'DOCA SDK, "InfiniBand"',
        'not dated', 'networking-docs.nvidia.com/doca/sdk/sr-iov'),
    Publication(
        'NVIDIA-Hooks', 'NVIDIA',
        'Shared NVSwitch GPU Partition Automatic Configuration',
        'libvirt-hooks, README', 'not dated', 'github.com/NVIDIA'),
    Publication(
        'Levin-2020', 'Aya Levin',
        'net/mlx5e: Add support for PCI relaxed ordering',
        'commit 17347d5430c4 of Linux', '2020', 'git.kernel.org'),
    Publication(
        'Linux-Therm-Throt', 'The kernel development community',
        'Thermal throttle event support',
        'comments in drivers/thermal/intel/therm_throt.c', 'Linux 6.12',
        'git.kernel.org'),
    Publication(
        'Mcelog-Conf', 'Andi Kleen', 'mcelog.conf',
        'example configuration of mcelog', 'not dated', 'mcelog.org'),
    Publication(
        'RHEL-RT-Timestamps', 'Red Hat', 'Timestamping',
        'RHEL for Real Time 7, Reference Guide', 'not dated',
        'docs.redhat.com'),
)

_BY_KEY = {document.key: document for document in DOCUMENTS}
KEYS = frozenset(_BY_KEY)


def get(key: str) -> Publication:
    """Return the document of a key.

    :raises InvalidInput: for a key that the bibliography does not have
    """
    try:
        return _BY_KEY[key]
    except KeyError as exc:
        raise exception.InvalidInput(
            key, 'is not in the bibliography') from exc
