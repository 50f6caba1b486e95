"""The head of a GGUF file: what is read of real ones, and one line for files that are damaged or hostile (UP-2)."""

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.gguf import HEAD, gguf_head, pair, text, write_gguf
from toolspeak.errors import BadConfig
from toolspeak.local.gguf import read_header
from toolspeak.local.memory import bytes_text, free_memory, has_gpu, memory_need
from toolspeak.local.program import model_file

QWEN = {
    "general.architecture": "qwen2",
    "qwen2.block_count": 28,
    "qwen2.embedding_length": 1536,
    "qwen2.attention.head_count": 12,
    "qwen2.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": ["a", "b", "c"],
    "after.the.vocabulary": 1,
}
"""The numbers of Qwen2.5-Coder-1.5B."""


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_numbers_are_read_up_to_the_vocabulary(tmp_path: Path) -> None:
    header = read_header(written(tmp_path / "m.gguf", gguf_head(QWEN)))
    assert (header.architecture, header.number("block_count"), header.vocabulary) == ("qwen2", 28, 3)
    assert "after.the.vocabulary" not in header.pairs


def test_the_kv_cache_of_a_known_model_is_as_llama_cpp_says(tmp_path: Path) -> None:
    """Keys and values of every layer and token, two bytes each: 896 MiB for this model with 32768 tokens."""
    header = read_header(written(tmp_path / "m.gguf", gguf_head(QWEN)))
    need = memory_need(header, 1_117_320_768, 32_768)
    assert need.per_token * need.context == 896 << 20
    assert need.total > need.weights + (896 << 20)
    assert need.largest_context(need.total) == 32_768
    assert need.largest_context(need.total - 1) == 31 * 1024
    assert need.largest_context(need.weights) == 0


def test_layers_may_have_heads_of_their_own(tmp_path: Path) -> None:
    """Hybrid models have attention in some layers only; the others keep no keys."""
    some = {**QWEN, "qwen2.attention.head_count_kv": [2, 0] * 14}
    all_, half = (
        memory_need(read_header(written(tmp_path / "m.gguf", gguf_head(head))), 0, 1).per_token for head in (QWEN, some)
    )
    assert half * 2 == all_


def test_text_arrays_before_the_numbers_are_skipped(tmp_path: Path) -> None:
    head = {"general.architecture": "llama", "general.tags": ["a"] * 500, "llama.block_count": 7}
    assert read_header(written(tmp_path / "m.gguf", gguf_head(head))).number("block_count") == 7


COUNT = struct.pack("<IQQ", 3, 0, 1)
HOSTILE = {
    "it begins with b'<htm'": b"<html>",
    "it begins with b''": b"",
    "is GGUF version 9": gguf_head(version=9),
    "it claims 1000000 settings": b"GGUF" + struct.pack("<IQQ", 3, 0, 1_000_000),
    "a text of 18446744073709551615 bytes": b"GGUF" + COUNT + struct.pack("<Q", 2**64 - 1),
    "there is no type 77": b"GGUF" + COUNT + text("k") + struct.pack("<I", 77),
    "an array of 18446744073709551615 values": b"GGUF" + COUNT + text("k") + struct.pack("<IIQ", 9, 4, 2**64 - 1),
    "the file ends in it": b"GGUF" + COUNT + pair("k", "value")[:-2],
}


@pytest.mark.parametrize("said", HOSTILE)
def test_a_damaged_file_is_one_line_up2(tmp_path: Path, said: str) -> None:
    path = written(tmp_path / "m.gguf", HOSTILE[said])
    with pytest.raises(BadConfig) as caught:
        read_header(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_array_of_texts_that_never_ends_is_damaged(tmp_path: Path) -> None:
    data = b"GGUF" + COUNT + text("k") + struct.pack("<IIQ", 9, 8, 2**63) + text("x") * 100
    with pytest.raises(BadConfig, match="the file ends in it"):
        read_header(written(tmp_path / "m.gguf", data))


@given(st.binary(max_size=200), st.integers(0, 150))
def test_whatever_follows_the_magic_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int
) -> None:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    for data in (b"GGUF" + junk, gguf_head()[:at] + junk):
        with suppress(BadConfig):
            memory_need(read_header(written(path, data)), 1, 1)


@pytest.mark.parametrize("cut", range(0, len(gguf_head(HEAD)), 7))
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, cut: int) -> None:
    with pytest.raises(BadConfig):
        read_header(written(tmp_path / "m.gguf", gguf_head(HEAD)[:cut]))


# ---------------------------------------------------------------- split files


def test_any_part_stands_for_a_split_model(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write_gguf(tmp_path / f"big-Q8_0-0000{number}-of-00003.gguf", 1000)
    for number in (1, 3):
        found = model_file(tmp_path / f"big-Q8_0-0000{number}-of-00003.gguf")
        assert (found.name, found.size, found.path.name) == ("big-Q8_0", 3000, "big-Q8_0-00001-of-00003.gguf")


def test_parts_that_are_missing_are_named(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "big-00001-of-00002.gguf")
    with pytest.raises(BadConfig, match=r"2 files, and 1 of them are not here: big-00002-of-00002.gguf\."):
        model_file(path)


# ---------------------------------------------------------------- free memory


def system(root: Path, **files: str) -> Path:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def test_free_is_what_the_machine_or_the_container_has_left(tmp_path: Path) -> None:
    root = system(tmp_path, proc__meminfo="MemTotal: 9 kB\nMemAvailable:    2000 kB\n")
    assert free_memory(root) == 2_048_000
    group = {"memory_dot_current": "900000", "memory_dot_stat": "anon 5\ninactive_file 100000\n"}
    names = {f"sys__fs__cgroup__{name}": content for name, content in group.items()}
    system(tmp_path, **names, sys__fs__cgroup__memory_dot_max="1000000")
    assert free_memory(root) == 200_000
    system(tmp_path, sys__fs__cgroup__memory_dot_max="max")
    assert free_memory(root) == 2_048_000


def test_without_a_figure_nothing_is_claimed(tmp_path: Path) -> None:
    assert free_memory(tmp_path) is None


def test_a_gpu_is_seen_by_its_device_or_by_the_arguments(tmp_path: Path) -> None:
    assert not has_gpu(["--flash-attn"], tmp_path)
    assert has_gpu(["--n-gpu-layers=99"], tmp_path)
    assert has_gpu(["-ngl", "9"], tmp_path)
    assert has_gpu([], system(tmp_path, dev__nvidiactl=""))


def test_sizes_for_people() -> None:
    assert [bytes_text(size) for size in (7, 2_500, 2.5e6, 4.37e9)] == ["7 bytes", "2.5 kB", "2.5 MB", "4.37 GB"]
