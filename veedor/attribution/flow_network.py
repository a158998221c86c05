"""The largest flows of one row of attention flow, by scipy's Dinic algorithm on one network for all of the row's sinks.

The algorithm works on whole numbers: widths are multiplied by 2^28 and rounded. Most of n² edges a layer carry nothing
that others could not: a thinned network is asked first, and the whole one only where its flow stays under the bound.
"""

import numpy as np

SCALE = 2**28  # rounding moves the smallest cut by at most 2^-29 an edge
THINNED = (4, 16)  # edges that a thinned network keeps of each node's, in and out: the sparsest is asked first
NEAR = 3e-7  # a flow of a part of the network that comes so near the bound is the largest flow of the whole


def settle(widths: np.ndarray, row: int, sinks: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Maximum flow from output `row` to each of these inputs, (sinks,); `high` (sinks,) is at least as large."""
    flows = high.copy()
    left = np.arange(len(sinks))
    for kept in THINNED:
        if len(left) and 4 * kept < widths.shape[-1]:
            network = RowNetwork(thinned(widths, row, kept), row)
            found = np.array([network.flow_to(int(sink)) for sink in sinks[left]])
            left = left[high[left] - found > NEAR]  # for the others, no room is left between this flow and the cut
    if len(left):
        network = RowNetwork(widths, row)
        flows[left] = [min(network.flow_to(int(sinks[at])), high[at]) for at in left]
    return flows


def thinned(widths: np.ndarray, row: int, kept: int) -> np.ndarray:
    """The same network with so many of the widest edges of each node; the two steps next to the input stay whole."""
    n = widths.shape[-1]
    found = widths.copy()
    own = np.eye(n, dtype=bool)
    for layer in found[2:]:
        others = np.where(own, 0.0, layer)
        out, into = (np.partition(others, n - kept, axis=axis).take([n - kept], axis) for axis in (1, 0))
        layer[(others < out) & (others < into) & ~own & (np.arange(n) != row)[:, None]] = 0.0
    return found


class RowNetwork:
    """Pipes from one output of the top layer, through every layer's nodes that it reaches, to a single sink.

    All sinks share it: only the widths of the last step, which stand at the end of the edge list, are theirs.
    """

    def __init__(self, widths: np.ndarray, row: int) -> None:
        """`widths` (layers, n, n) of two layers or more, the one next to the input first; `row`: the source."""
        from scipy.sparse import csr_matrix

        whole = np.rint(widths * SCALE).astype(np.int32)
        nodes, edges, first = np.array([row]), _Edges(), 0
        for layer in whole[:0:-1]:
            step = layer[nodes]
            reached = np.flatnonzero(step.any(axis=0))
            edges.add(step[:, reached], first=first)
            first += len(nodes)
            nodes = reached
        self._last = whole[0][nodes]
        edges.add(np.ones((len(nodes), 1), np.int32), first=first)
        self._sink = first + len(nodes)
        counts, targets, capacities = edges.joined()
        starts = np.concatenate(([0], np.cumsum(counts), [len(targets)])).astype(np.int32)
        self._graph = csr_matrix((capacities, targets, starts), shape=(self._sink + 1, self._sink + 1))

    def flow_to(self, sink: int) -> float:
        """The largest flow from the source to this input, 0 to 1."""
        from scipy.sparse.csgraph import maximum_flow

        own = self._last[:, sink]
        if not own.any():
            return 0.0
        self._graph.data[len(self._graph.data) - len(own) :] = own
        return float(maximum_flow(self._graph, 0, self._sink, method="dinic").flow_value) / SCALE


class _Edges:
    """Edges of a layered network in compressed rows: how many leave each node, where to, and how wide."""

    def __init__(self) -> None:
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, step: np.ndarray, *, first: int) -> None:
        """One step, (nodes, next nodes); its first node has the number `first` and the next ones follow its last."""
        start, end = np.nonzero(step)
        counts = np.count_nonzero(step, axis=1)
        self.parts.append((counts, (first + len(step) + end).astype(np.int32), step[start, end]))

    def joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts, targets and capacities of all steps."""
        counts, targets, capacities = (np.concatenate(parts) for parts in zip(*self.parts, strict=True))
        return counts, targets, capacities
