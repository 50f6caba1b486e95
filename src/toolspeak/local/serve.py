"""The child process in which the package serves a model: `python -m toolspeak.local.serve`.

A fault in llama.cpp ends its process: it must not be the gateway's.
"""

import sys
from importlib import import_module
from typing import Any

from toolspeak.local.program import HOST

_SLOTS = 4


def main(path: str, name: str, port: str, context: str, threads: str) -> None:
    """Serve until the parent ends or closes the pipe."""
    llama: Any = import_module("xllamacpp")  # it has no types, and only this process may load it
    params: Any = llama.CommonParams()
    params.model.path, params.model_alias = path, {name}
    params.hostnames, params.port = [HOST], int(port)
    params.n_ctx, params.use_jinja = int(context), True
    params.n_parallel, params.kv_unified = _SLOTS, True  # as `llama-server` has it: all share one context
    if int(threads):
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    server = llama.Server(params)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main(*sys.argv[1:])
