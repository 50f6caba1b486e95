"""Programs that people use keep working in bubblewrap, with its list of system calls (RUN-5)."""

# ruff: noqa: E501 # a script of a shell is one line

import asyncio
from pathlib import Path
from shutil import which

import pytest

from toolspeak.agent.sandbox.bwrap import Bwrap, find_bwrap
from toolspeak.agent.sandbox.sandbox import Command

_PYTHON = """
import asyncio, multiprocessing, os, sqlite3, subprocess
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory
async def talk():
    process = await asyncio.create_subprocess_shell('cat', stdin=-1, stdout=-1)
    assert await process.communicate(b'in') == (b'in', None)
    server = await asyncio.start_server(lambda _, writer: writer.close(), '127.0.0.1', 0)
    reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b''
if __name__ == '__main__':
    assert subprocess.run(['echo', 'x'], capture_output=True).stdout == b'x\\n'
    for kind in ('fork', 'spawn', 'forkserver'):
        with ProcessPoolExecutor(2, multiprocessing.get_context(kind)) as pool:
            assert list(pool.map(abs, [-1, -2])) == [1, 2]
    asyncio.run(talk())
    database = sqlite3.connect('x.db')
    database.execute('pragma journal_mode=wal')
    database.execute('create table t(a)')
    os.posix_fallocate(os.open('f', os.O_CREAT | os.O_RDWR), 0, 1 << 20)
    memory = shared_memory.SharedMemory(create=True, size=4096)
    memory.close()
    memory.unlink()
"""
_NODE = """
const child = require('child_process');
new (require('worker_threads').Worker)('1', {eval: true});
if (child.execSync('echo hi').toString() !== 'hi\\n') process.exit(1);
require('http').createServer((_, answer) => answer.end('ok')).listen(0, '127.0.0.1', function () {
  require('http').get({port: this.address().port}, answer => process.exit(answer.statusCode === 200 ? 0 : 1)); });
"""
_COMMIT = "git -c user.name=a -c user.email=a@b commit -qm x"
PROGRAMS = {
    "bash": "bash -ec 'cat <(echo hi); mktemp -p .; [[ -d . ]]'",
    "git": f"cd /tmp && git init -q r && cd r && echo a > a && git add . && {_COMMIT} && git clone -q . ../c && git gc -q && git grep a",
    "python3": "python3 it.py && python3 -m venv --without-pip v && v/bin/python -c 'print(1)'",
    "node": "node it.js",
    "npm": "npm init -y >/dev/null && npm pkg set scripts.t='echo ran' && npm run -s t",
    "gcc": "printf 'int main(){return 0;}' > a.c && printf 'a: a.c\\n\\tgcc -O2 -g -o a a.c\\n' > Makefile && make -j2 && ./a",
    "java": "java -version",
    "curl": "curl -s -m 3 http://127.0.0.1:9/; test $? = 7",
    "tar": "mkdir t && echo a > t/a && tar czf t.tgz t && tar xzf t.tgz && find . -name a | xargs sed -i s/a/b/ && grep -r b t",
    "perl": "perl -e 'use Socket; socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die'",
    "sqlite3": "sqlite3 y.db 'create table t(a); insert into t values(1); select * from t'",
    "coreutils": "id && ls -la && df . && stat . && cp --reflink=auto it.js x && mv x y && touch -d yesterday y && nice true && mkfifo f",
    "script": "script -qec 'echo tty' /dev/null",
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("program", [name for name in PROGRAMS if name == "coreutils" or which(name)])
def test_a_program_works_in_the_sandbox_run5(program: str, tmp_path: Path) -> None:
    sandbox = find_bwrap()
    assert isinstance(sandbox, Bwrap), sandbox
    (tmp_path / "it.py").write_text(_PYTHON)
    (tmp_path / "it.js").write_text(_NODE)
    ran = asyncio.run(sandbox.run(Command(PROGRAMS[program], tmp_path.resolve(), 90.0)))
    assert (ran.status, ran.killed) == (0, ""), ran.output
