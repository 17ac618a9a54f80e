"""Times igraph or networkx on a graph whose edges are in a Parquet file, and prints JSON: milliseconds and an answer by
what was done. Where the edges are is told to neither: reading the file is part of building the graph.

usage: graph_peers.py igraph|networkx EDGES.parquet START END
"""

import json
import sys
import time

import duckdb

peer, path, start, end = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
times, answers = {}, {}


def timed(what, work):
    started = time.perf_counter()
    made = work()
    times[what] = (time.perf_counter() - started) * 1e3
    return made


def edges():
    columns = duckdb.sql(f"SELECT src, dst FROM read_parquet('{path}')").fetchnumpy()
    return columns["src"], columns["dst"]


if peer == "igraph":
    import igraph
    import numpy

    def build():
        sources, targets = edges()
        nodes = int(max(sources.max(), targets.max())) + 1
        return igraph.Graph(n=nodes, edges=numpy.column_stack([sources, targets]), directed=True)

    graph = timed("build", build)
    has_edge = [degree > 0 for degree in graph.degree()]
    answers["hops"] = len(timed("hops", lambda: graph.neighborhood(start, order=3, mode="out")))
    path_found = timed("path", lambda: graph.get_shortest_path(start, end, mode="out"))
    answers["path"] = len(path_found)
    members = timed("components", lambda: graph.connected_components(mode="weak").membership)
    answers["components"] = len({component for component, known in zip(members, has_edge) if known})

    def pattern():
        return sum(len(graph.successors(middle)) for middle in graph.successors(start))

    answers["pattern"] = timed("pattern", pattern)
else:
    import networkx

    def build():
        sources, targets = edges()
        graph = networkx.MultiDiGraph()
        graph.add_edges_from(zip(sources.tolist(), targets.tolist()))
        return graph

    graph = timed("build", build)
    reached = lambda: networkx.single_source_shortest_path_length(graph, start, cutoff=3)
    answers["hops"] = len(timed("hops", reached))

    def shortest():
        try:
            return networkx.shortest_path(graph, start, end)
        except networkx.NetworkXNoPath:
            return []

    answers["path"] = len(timed("path", shortest))
    answers["components"] = timed("components", lambda: networkx.number_weakly_connected_components(graph))

    def pattern():
        return sum(graph.out_degree(middle) for _, middle in graph.out_edges(start))

    answers["pattern"] = timed("pattern", pattern)
print(json.dumps({"times": times, "answers": answers}))
