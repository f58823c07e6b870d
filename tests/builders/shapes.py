# SPDX-License-Identifier: Apache-2.0

"""Random shapes that a flavor can express."""

from hypothesis import strategies as st

from hpcvirt.model import shape

PAGES = st.sampled_from([None, 4, 64, 2048, 1048576, *shape.PageClass])
MAYBE_THREADS = st.sampled_from([None, *shape.ThreadPolicy])
MAYBE_EMULATOR = st.sampled_from([None, *shape.EmulatorThreads])
ALIASES = st.text('abcXYZ019_-', min_size=1, max_size=8)


@st.composite
def cells(draw, policy):
    """Cells of one guest: even ones as often as uneven ones."""
    page_kib = draw(PAGES)
    count = draw(st.integers(1, 6))
    even = draw(st.booleans())
    sizes = [(draw(st.integers(1, 9)), draw(st.integers(1, 1 << 20)))
             for _ in range(1 if even else count)]
    sizes = sizes * count if even else sizes
    drawn = []
    for cpus, memory_mib in sizes:
        pcpus = {shape.CPUPolicy.DEDICATED: cpus,
                 shape.CPUPolicy.SHARED: 0}.get(policy)
        if pcpus is None:
            pcpus = draw(st.integers(0, cpus))
        drawn.append(shape.GuestCell(pcpus, cpus - pcpus, memory_mib,
                                     page_kib))
    return tuple(drawn)


def is_mixed(cells):
    pcpus = sum(cell.pcpus for cell in cells)
    return 0 < pcpus < sum(cell.cpus for cell in cells)


@st.composite
def shapes(draw):
    """Any shape with cells that is one flavor."""
    policy = draw(st.sampled_from(list(shape.CPUPolicy)))
    strategy = cells(policy)
    if policy is shape.CPUPolicy.MIXED:
        strategy = strategy.filter(is_mixed)
    guest_cells = draw(strategy)
    pinned = policy is not shape.CPUPolicy.SHARED
    emulator = draw(MAYBE_EMULATOR)
    if not pinned and emulator is shape.EmulatorThreads.ISOLATE:
        emulator = None
    affinity = draw(st.sampled_from([None, *shape.PCIAffinity]))
    return shape.Shape(
        cells=guest_cells, cpu_policy=policy,
        thread_policy=draw(MAYBE_THREADS) if pinned else None,
        emulator_threads=emulator,
        devices=tuple(
            shape.GuestDevices(alias, draw(st.integers(1, 8)), affinity)
            for alias in draw(st.lists(ALIASES, max_size=3))),
        topology=draw(st.none() | topologies(
            sum(cell.cpus for cell in guest_cells))),
        numa_scope=draw(st.sampled_from(list(shape.NUMAScope))),
        exclusive_cells=draw(st.booleans()),
        device_set=draw(st.sampled_from([None, 'gpu4', 'a_B-9'])))


@st.composite
def topologies(draw, cpus):
    sockets = draw(st.sampled_from(divisors(cpus)))
    cores = draw(st.sampled_from(divisors(cpus // sockets)))
    return shape.GuestTopology(sockets, cores, cpus // sockets // cores)


def divisors(number):
    return [part for part in range(1, number + 1) if number % part == 0]
