"""llama.cpp's own server, compiled for the processor of this machine: reads prompts 1.7 times as fast as the wheel's.

    python -m testkit.llama_build [--jobs 2]     builds it once, and prints where it is; about ten minutes on one core

The source comes from the sdist of llama-cpp-python, checked against its sha256 before any of it runs. CMake
and Ninja come from pinned wheels, the C++ compiler from the system.

The answers in the repository came from one processor. A processor with all its features gets a server compiled
for exactly these features, so that its answers go into the same tables; any other gets a server for its own. The
program is kept in the cache folder under a name that identifies the processor: another machine with the same home
folder does not find it and crash on an illegal instruction.
"""

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from testkit.llama_models import cache_folder

VERSION = "0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
REQUIREMENTS = Path(__file__).parents[1] / "requirements" / "llama-server.txt"
NICENESS = 15
PROGRAM = "llama-server"
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_CXX_FLAGS_RELEASE": "-O1 -DNDEBUG",
    "BUILD_SHARED_LIBS": "OFF",
    "GGML_CCACHE": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_NUMBER": "0",
}
HOOKS = {
    # GGML is where the server spends its time. All else has -O1, with which the build takes half as long.
    "ggml": 'set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")',
    # Fifty small files for images and sound, which the server needs to be linked, are compiled as four.
    "llama.cpp": """
        file(GLOB alone ${CMAKE_CURRENT_SOURCE_DIR}/tools/mtmd/*.cpp)
        cmake_language(DEFER CALL set_target_properties mtmd PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
        cmake_language(DEFER CALL set_source_files_properties ${alone} TARGET_DIRECTORY mtmd
            PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    """,
}
"""The CMake code that runs at the start of each project."""


@dataclass(frozen=True, slots=True)
class Target:
    """A processor to compile for."""

    name: str
    options: dict[str, str]


AVX512 = {"avx2", "bmi2", "f16c", "fma", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni"}
"""Features of the processor that the answers in the repository came from, by the names of Linux."""
ANSWERS = Target("c3623540", {"GGML_NATIVE": "OFF", "GGML_AVX512": "ON", "GGML_AVX512_VNNI": "ON"})
"""That processor. GGML without `GGML_NATIVE` takes everything up to AVX2 by itself. The name was the hash of all its
features, when each machine compiled for its own."""


def built() -> Path | None:
    """Return the server that was built for this machine, or None."""
    program = _program()
    return program if program.exists() else None


def build(jobs: int = 1) -> Path:
    """Return the server for this machine, built if it is not there."""
    program = _program()
    if program.exists():
        return program
    if not (shutil.which("c++") or shutil.which("g++")):
        raise SystemExit("a C++ compiler is needed and none is here: install g++ (apt install g++)")
    folder = cache_folder() / "llama-server-build"
    folder.mkdir(parents=True, exist_ok=True)
    tools = _tools(folder)
    made = _compile(_source(folder, tools), folder, tools, jobs)
    subprocess.run([made, "--version"], check=True, capture_output=True)  # it runs on this processor
    program.parent.mkdir(parents=True, exist_ok=True)
    whole = program.with_suffix(".new")
    shutil.copy2(made, whole)
    whole.replace(program)  # whole or missing
    shutil.rmtree(folder)
    return program


def target() -> Target:
    """Return the processor to compile for on this machine."""
    has = features()
    if has >= AVX512:
        return ANSWERS
    digest = hashlib.sha256(f"{platform.machine()} {' '.join(sorted(has))}".encode()).hexdigest()
    return Target(digest[:8], {"GGML_NATIVE": "ON"})


def features() -> set[str]:
    """Return the features of this processor, by the names of Linux."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return set(flags.partition(":")[2].split())


def _program() -> Path:
    return cache_folder() / f"{PROGRAM}-{VERSION}-{target().name}" / PROGRAM


def _tools(folder: Path) -> Path:
    """Return the programs of a virtual environment with CMake, Ninja and what the sdist needs to be unpacked by pip."""
    environment = folder / "venv"
    if not (environment / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        pip = [environment / "bin" / "pip", "install", "--quiet", "--require-hashes", "-r", REQUIREMENTS]
        subprocess.run(pip, check=True)
        (environment / "complete").touch()
    return environment / "bin"


def _source(folder: Path, tools: Path) -> Path:
    """Return the folder of llama.cpp's source."""
    archive = folder / f"llama_cpp_python-{VERSION}.tar.gz"
    if not archive.exists():
        pinned = folder / "source.txt"
        pinned.write_text(f"llama-cpp-python=={VERSION} --hash=sha256:{SHA256}\n")
        pip = [tools / "pip", "download", "--quiet", "--no-cache-dir", "--no-deps", "--no-build-isolation"]
        wanted = ["--no-binary", "llama-cpp-python", "--require-hashes", "-r", pinned, "-d", folder]
        subprocess.run([*pip, *wanted], check=True)
    if (found := hashlib.sha256(archive.read_bytes()).hexdigest()) != SHA256:
        raise SystemExit(f"{archive} has the sha256 {found}, not {SHA256}: delete it and try again")
    inside = f"llama_cpp_python-{VERSION}/vendor/llama.cpp"
    with tarfile.open(archive) as packed:
        members = (member for member in packed if member.name.startswith(f"{inside}/"))
        packed.extractall(folder, members, filter="data")
    return folder / inside


def _compile(source: Path, folder: Path, tools: Path, jobs: int) -> Path:
    """Compile the server, and return it."""
    made = folder / "build"
    # Reported by /props: answers of two builds differ in near ties, so the laboratory keeps them apart by it.
    options = OPTIONS | target().options | {"LLAMA_BUILD_COMMIT": f"{VERSION}-native-{target().name}"}
    for project, lines in HOOKS.items():
        hook = folder / f"{project}.cmake"
        hook.write_text(lines)
        options[f"CMAKE_PROJECT_{project}_INCLUDE"] = str(hook)
    defined = [f"-D{key}={value}" for key, value in options.items()]
    environment = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    for command in (
        ["cmake", "-S", source, "-B", made, "-G", "Ninja", *defined],
        ["cmake", "--build", made, "--target", PROGRAM, "--parallel", str(jobs)],
    ):
        subprocess.run(["nice", "-n", str(NICENESS), *command], check=True, env=environment, stdout=sys.stderr)
    return made / "bin" / PROGRAM


def main() -> None:
    """Build it, unless it is there, and print where it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="how many files to compile at once")
    print(build(parser.parse_args().jobs))


if __name__ == "__main__":
    main()
