"""The child process in which the package `xllamacpp` serves a model: `python -m toolspeak.local.serve`.

A crash in llama.cpp ends its process, so it must not be the process of the gateway.
"""

import sys
from importlib import import_module
from typing import Any

from toolspeak.local.program import HOST

_SLOTS = 4


def main(path: str, name: str, port: str, context: str, threads: str) -> None:
    """Serve until the parent dies or closes the pipe."""
    llama: Any = import_module("xllamacpp")  # it has no types, and only this process may import it
    params: Any = llama.CommonParams()
    params.model.path, params.model_alias = path, {name}
    params.hostnames, params.port = [HOST], int(port)
    params.n_ctx, params.use_jinja = int(context), True
    params.n_parallel, params.kv_unified = _SLOTS, True  # as in `llama-server`: all slots share one context
    if int(threads):
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    server = llama.Server(params)
    # The pipe closes when the parent dies, however it dies: no server is left with the model in memory.
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main(*sys.argv[1:])
