"""Times FAISS on the vectors and queries of two files of little-endian floats, one query at a time, and prints JSON.

usage: faiss_search.py VECTORS QUERIES DIMENSION NEIGHBOURS RECALL

HNSW searches as wide as it must for the recall, by inner product; the flat index is exact.
"""

import json
import sys
import time

import faiss
import numpy

LINKS = 32
BUILD_WIDTH = 200


def timed(index, queries, neighbours):
    """Milliseconds a query, and the neighbours found. The first round warms the caches."""
    for _ in range(2):
        times, found = [], []
        for query in queries:
            started = time.perf_counter()
            _, ids = index.search(query[None, :], neighbours)
            times.append((time.perf_counter() - started) * 1e3)
            found.append(ids[0])
    return times, numpy.array(found)


def main():
    vectors_file, queries_file, dimension, neighbours, recall_wanted = sys.argv[1:]
    dimension, neighbours = int(dimension), int(neighbours)
    vectors = numpy.fromfile(vectors_file, dtype="<f4").reshape(-1, dimension)
    queries = numpy.fromfile(queries_file, dtype="<f4").reshape(-1, dimension)

    flat = faiss.IndexFlatIP(dimension)
    flat.add(vectors)
    flat_ms, exact = timed(flat, queries, neighbours)

    hnsw = faiss.IndexHNSWFlat(dimension, LINKS, faiss.METRIC_INNER_PRODUCT)
    hnsw.hnsw.efConstruction = BUILD_WIDTH
    hnsw.add(vectors)
    for width in (16, 32, 64, 128, 256, 512, 1024):
        hnsw.hnsw.efSearch = width
        hnsw_ms, found = timed(hnsw, queries, neighbours)
        hits = sum(len(set(a) & set(b)) for a, b in zip(found, exact))
        recall = hits / exact.size
        if recall >= float(recall_wanted):
            break
    print(json.dumps({"hnsw_ms": hnsw_ms, "hnsw_recall": recall, "flat_ms": flat_ms}))


if __name__ == "__main__":
    main()
