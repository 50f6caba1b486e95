"""Models in the folders of Ollama, LM Studio and the hub: found by their names, without a process (UP-1)."""

import json
from pathlib import Path

import pytest

from testkit.gguf import write_gguf
from toolspeak.errors import BadConfig
from toolspeak.local.models import open_model
from toolspeak.local.stores import find_model, quant_of, stored_from_hub, stored_models

DIGEST = "a" * 64
LIBRARY = "registry.ollama.ai/library"


def silent(activity: str, done: int, total: int) -> None:
    del activity, done, total


def ollama(folder: Path, name: str, digest: str = DIGEST, kind: str = "model") -> None:
    """Store a model as Ollama does: a manifest that names a blob."""
    manifest = folder / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "f" * 64},
        {"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{digest}"},
    ]
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    if "/" not in digest:
        write_gguf(folder / "blobs" / f"sha256-{digest}")


def names(environ: dict[str, str]) -> list[str]:
    return [model.name for model in stored_models(environ)]


def test_a_model_of_ollama_is_found_by_its_name_and_served_under_it(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    ollama(tmp_path / ".ollama/models", f"{LIBRARY}/qwen2.5-coder/1.5b")
    found = open_model("qwen2.5-coder:1.5b", environ, silent)
    assert (found.name, found.path.name) == ("qwen2.5-coder:1.5b", f"sha256-{DIGEST}")
    assert open_model("qwen2.5-coder:1.5b", environ, silent, "mine").name == "mine"


def test_ollama_models_is_honoured_and_latest_may_be_left_out(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home"), "OLLAMA_MODELS": str(tmp_path / "store")}
    for number, name in enumerate((f"{LIBRARY}/llama3.2/latest", "registry.ollama.ai/anna/tuned/8b", "hf.co/o/r/Q4_0")):
        ollama(tmp_path / "store", name, f"{number}" * 64)
    ollama(tmp_path / "home/.ollama/models", f"{LIBRARY}/other/1b", "9" * 64)
    assert sorted(names(environ)) == ["anna/tuned:8b", "hf.co/o/r:Q4_0", "llama3.2"]
    assert find_model("llama3.2:latest", environ) == find_model("llama3.2", environ)


@pytest.mark.parametrize("digest", ["../../../../etc/passwd", "A" * 64, ""])
def test_a_manifest_leads_nowhere_else(tmp_path: Path, digest: str) -> None:
    store = tmp_path / "store"
    ollama(store, f"{LIBRARY}/bad/latest", "/" + digest)
    manifest = store / "manifests" / LIBRARY / "bad/latest"
    manifest.write_text(manifest.read_text().replace("sha256:/", "sha256:"))
    assert names({"OLLAMA_MODELS": str(store)}) == []


def test_what_is_no_model_of_one_file_is_left_out(tmp_path: Path) -> None:
    ollama(tmp_path, f"{LIBRARY}/tensors/1b", kind="tensor")
    ollama(tmp_path, f"{LIBRARY}/text/1b")
    (tmp_path / "manifests" / LIBRARY / "text/1b").write_text("no JSON")
    ollama(tmp_path, f"{LIBRARY}/gone/1b", "b" * 64)
    (tmp_path / f"blobs/sha256-{'b' * 64}").unlink()
    assert names({"OLLAMA_MODELS": str(tmp_path)}) == []


def test_models_of_lm_studio_are_found_by_repository_and_by_file(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    folder = tmp_path / ".lmstudio/models/lmstudio-community"
    only = write_gguf(folder / "Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf")
    write_gguf(folder / "Qwen3-4B-GGUF/mmproj-Qwen3-4B.gguf")
    for quant in ("Q4_K_M", "Q8_0"):
        write_gguf(folder / f"Two-GGUF/Two-{quant}.gguf")
    for number in (1, 2):
        write_gguf(folder / f"Split-GGUF/Split-F16-0000{number}-of-00002.gguf", 500)
    for name in ("lmstudio-community/Qwen3-4B-GGUF", "Qwen3-4B-GGUF", "Qwen3-4B-Q4_K_M"):
        assert find_model(name, environ).path == only
    assert find_model("lmstudio-community/Two-GGUF/Two-Q8_0", environ).served_as == "Two-Q8_0"
    split = open_model("Split-F16", environ, silent)
    assert (split.name, split.size) == ("Split-F16", 1000)
    with pytest.raises(BadConfig, match="Did you mean"):
        find_model("lmstudio-community/Two-GGUF", environ)


def test_models_of_the_hubs_cache_are_used_without_the_hub(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
    snapshot = tmp_path / "hf/hub/models--Org--Repo-GGUF/snapshots/abc"
    path = write_gguf(snapshot / "repo-q4_k_m.gguf")
    assert names(environ) == ["hf:Org/Repo-GGUF:Q4_K_M"]
    assert open_model("hf:Org/Repo-GGUF", environ, silent).path == path
    assert open_model("hf:Org/Repo-GGUF:q4_k_m", environ, silent).name == "repo-q4_k_m"
    write_gguf(snapshot / "repo-q8_0.gguf")
    assert stored_from_hub("Org/Repo-GGUF", "", environ) is None, "two fit"
    write_gguf(snapshot / "repo-f16-00001-of-00002.gguf")
    assert stored_from_hub("Org/Repo-GGUF", "F16", environ) is None, "a part is missing"


def test_a_file_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ollama(tmp_path / "store", f"{LIBRARY}/tiny/latest")
    monkeypatch.chdir(tmp_path)
    write_gguf(tmp_path / "tiny")
    environ = {"OLLAMA_MODELS": str(tmp_path / "store")}
    assert open_model("tiny", environ, silent).path == tmp_path / "tiny"
    assert open_model("tiny:latest", environ, silent).path.parent.name == "blobs"


def test_an_unknown_name_says_what_to_type(tmp_path: Path) -> None:
    ollama(tmp_path, f"{LIBRARY}/qwen2.5-coder/7b")
    with pytest.raises(BadConfig) as caught:
        find_model("qwen2.5-coder", {"OLLAMA_MODELS": str(tmp_path)})
    said = str(caught.value)
    assert "Did you mean qwen2.5-coder:7b?" in said
    assert "`toolspeak up` lists the models" in said


def test_a_folder_that_may_not_be_read_is_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "manifests").write_text("a file, not a folder")
    assert names({"OLLAMA_MODELS": str(tmp_path), "HF_HUB_CACHE": str(tmp_path / "manifests")}) == []


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf", "Q4_K_M"),
        ("qwen2.5-coder-7b-instruct-q4_k_m-00001-of-00002.gguf", "Q4_K_M"),
        ("Q8_0/gemma-3-27b-it-Q8_0-00001-of-00002.gguf", "Q8_0"),
        ("model-UD-IQ2_XXS.gguf", "UD-IQ2_XXS"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("tiny.BF16.gguf", "BF16"),
        ("ggml-model-f16.gguf", "F16"),
        ("llama.gguf", ""),
    ],
)
def test_a_quantisation_is_read_from_a_files_name(name: str, quant: str) -> None:
    assert quant_of(name) == quant
