"""Writes the weights of the tests' ONNX model as the publisher's `model.safetensors`: minilm_safetensors.py ONNX OUT.

The ONNX file keeps each matrix as bytes and a scale, and multiplies them before use, so the numbers are the same.
"""

import json
import struct
import sys

import numpy as np


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """The fields of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                size, at = varint(data, at)
            value = data[at : at + size]
            at += size
        yield key >> 3, value


def tensor(message):
    shape, name, kind, raw = [], "", 0, b""
    for field, value in fields(message):
        if field == 1:
            shape.append(value)
        elif field == 2:
            kind = value
        elif field == 8:
            name = bytes(value).decode()
        elif field == 9:
            raw = bytes(value)
    types = {1: np.float32, 3: np.int8, 2: np.uint8}
    return name, np.frombuffer(raw, types[kind]).reshape(shape) if kind in types else None


def main(source, target):
    with open(source, "rb") as file:
        model = memoryview(file.read())
    graph = next(value for field, value in fields(model) if field == 7)
    tensors, products = {}, []
    for field, value in fields(graph):
        if field == 5:
            name, numbers = tensor(value)
            tensors[name] = numbers
        elif field == 1:
            node = [(field, bytes(part).decode()) for field, part in fields(value) if field in (1, 4)]
            if (4, "MatMul") in node:
                products += [name for field, name in node if field == 1]
    whole = lambda name: tensors[f"{name}_q"].astype(np.float32) * tensors[f"{name}_scale"]
    matrices = [name for name in dict.fromkeys(products) if f"{name}_q" in tensors]
    parts = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
    parts += ["intermediate.dense", "output.dense"]
    names = [f"encoder.layer.{layer}.{part}.weight" for layer in range(6) for part in parts]
    assert len(matrices) == len(names), matrices
    written = {name: whole(matrix).T for name, matrix in zip(names, matrices)}
    for name, numbers in tensors.items():
        if name.startswith("inner.") and name.endswith("_q"):
            written[name[len("inner.") : -2]] = whole(name[:-2])
        elif name.startswith("inner.") and name.endswith((".weight", ".bias")):
            written[name[len("inner.") :]] = numbers
    header, blobs, at = {}, [], 0
    for name, numbers in written.items():
        blob = np.ascontiguousarray(numbers, dtype=np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(numbers.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


main(*sys.argv[1:])
