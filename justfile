# Every command that people and CI run.

set shell := ["bash", "-euo", "pipefail", "-c"]
# "$@" keeps an argument with spaces whole, such as the form 'fenced guardrails'
set positional-arguments

python := env("PYTHON", "python3.11")

# pyright comes inside its wheel, pinned by its hash: never ask the net for a newer one
export PYRIGHT_PYTHON_IGNORE_WARNINGS := "1"
export PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT := "1"
export PIP_DISABLE_PIP_VERSION_CHECK := "1"
# Images of containers often turn bytecode off: then each process that a test starts compiles all of src, for a second of CPU.
export PYTHONDONTWRITEBYTECODE := ""

install := justfile_directory() / ".ci/install"

# list the recipes
default:
    @{{ just_executable() }} --list --unsorted

# make .venv with the pinned tools and this package
setup:
    test -x .venv/bin/python || {{ python }} -m venv .venv
    test -x .venv/bin/uv || .venv/bin/pip install --quiet --require-hashes -r <(sed -n '/^uv==/,/# via/p' requirements/dev.txt)
    {{ install }} .venv requirements/dev.txt
    .venv/bin/pip install --quiet --no-deps --no-build-isolation -e .

# format, and repair what ruff can repair
fix:
    .venv/bin/ruff format
    .venv/bin/ruff check --fix

# everything that can be said without running the code
check:
    .venv/bin/ruff check
    .venv/bin/ruff format --check
    .venv/bin/pyright
    .venv/bin/mypy
    .venv/bin/lint-imports --no-logo
    .venv/bin/python tools/repo_rules.py
    .venv/bin/python tools/dialect_table.py --check
    .venv/bin/python tools/facts_page.py --check
    .venv/bin/python tools/configuration_page.py --check
    .venv/bin/python tools/metrics_page.py --check
    .venv/bin/python tools/man_page.py --check
    .venv/bin/python tools/tactics_diagram.py --check
    .venv/bin/python tools/api_reference.py --check
    .venv/bin/python -m tools.rooms_picture --check
    .venv/bin/python tools/figures.py --check
    .venv/bin/python -m tools.agent_pages --check
    .venv/bin/python -m tools.unreached

# run the tests; arguments go to pytest
test *args:
    .venv/bin/pytest -n 2 --dist worksteal "$@"

# run tests (all, or those that are named) on another Python, if it is here, against the built wheel, with few examples
test-on version *args: build
    #!/usr/bin/env bash
    set -euo pipefail
    for found in python{{ version }} "$HOME"/.pyenv/versions/{{ version }}.*/bin/python none; do
        "$found" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "{{ version }}")' 2>/dev/null && break
    done
    if [ "$found" = none ]; then
        echo "Python {{ version }} is not here: NOT tested on it"
        exit 0
    fi
    echo "on $("$found" --version)"
    "$found" -m venv --clear --without-pip .venv-{{ version }}
    {{ install }} .venv-{{ version }} requirements/test.txt
    .venv/bin/pip --python .venv-{{ version }} install --quiet --no-deps dist/*.whl
    HYPOTHESIS_PROFILE=quick .venv-{{ version }}/bin/pytest -q -n 2 --dist worksteal {{ rerun }} "${@:2}"

# the failure corpus: every case read as it must be, however it is cut; arguments are beginnings of ids
corpus *args:
    .venv/bin/python -m bench.corpus "$@"

# every dialect reads back what it writes, 100,000 times each; CI tries 2,000: `--examples N`, `--dialect NAME`
roundtrip *args:
    .venv/bin/python -m bench.roundtrip "$@"

# text that only looks like a call gives no call, 100,000 times; CI tries 25,000: `--texts N`, `--dialect NAME`
noncalls *args:
    .venv/bin/python -m bench.noncalls "$@"

# outputs of models from public issues: right, or refused with a complaint; no wrong call, no false call: `--only ID`
field *args:
    .venv/bin/python -m bench.field "$@"

# the parsers of vLLM, SGLang and @ai-sdk-tool/parser on the outputs of `field` and `conformance`, beside our readers; needs npm, Python 3.12, downloads 400 MB; writes docs/peers.md: `--only ID`
field-peers *args:
    .venv/bin/python -m bench.field_peers "$@"

# the 469 fixtures of canitoolcall, an outside suite, judged by its own checks: `--only ID`
conformance *args:
    .venv/bin/python -m bench.conformance "$@"

# `toolspeak conformance` on toolspeak, LiteLLM, forge and Portkey; downloads 200 MB; writes docs/conformance.md: `--only NAME`, `--page`
conformance-peers *args:
    .venv/bin/python -m bench.conformance_peers "$@"

# twice the input, at most 2.5 times the time; `--every 3` measures every third case
linear *args:
    .venv/bin/python -m bench.linear "$@"

# workers killed with kill -9 over 240 runs, on PostgreSQL and SQLite: nothing lost, nothing done twice; `--quick`, `--unguarded`
killtest *args:
    .venv/bin/python -m bench.killtest "$@"

# a fleet on one machine while things break: four gateways, two workers of runs, nginx, Redis, PostgreSQL, three upstreams; 20 minutes; needs nginx, and root for a full disk: `--minutes`, `--streams`, `--runs`, `--faults`, `--seed`, `--keep FOLDER`, `--save`
fleet *args:
    .venv/bin/python -m bench.fleet.run "$@"

# the same fleet, where gateways only replace their workers and take new configurations: no request may fail; writes bench/results/rolling-restart.json
rolling-restart *args:
    .venv/bin/python -m bench.fleet.rolling_restart "$@"

# what a durable step costs on both databases, and 500 live runs on one worker
runs-overhead *args:
    .venv/bin/python -m bench.runs_overhead "$@"

# CPU of one cell of runs (claims of 100,000 queued runs, whole runs, bytes of each) and of one Redis (limit checks); half a minute: `--save`
cell *args:
    .venv/bin/python -m bench.cell "$@"

# spans of real turns in a real collector, Phoenix, in .venv-phoenix; `--save` keeps the result in bench/results/spans.json
spans *args:
    .venv/bin/python -m bench.spans "$@"

# speed of the core
speed-core:
    .venv/bin/python -m bench.speed_core

# damaged golden texts: nothing raises, nothing is lost, no cut shows
fuzz seeds="20000":
    .venv/bin/python -m bench.fuzz {{ seeds }}

# a coverage-guided search for exceptions and stalls, in .venv-fuzz; TARGET is http, wires or readers; `--seconds N`
fuzz-coverage target *args:
    .venv/bin/python -m bench.fuzzing.run "$@"

# whole turns against a simulated model, network and client; `just simulate 1 --seed S` runs one again
simulate seeds="2000" *args:
    .venv/bin/python -m bench.simulate "$@"

# both drivers of the gateway give the same bytes for the same bytes, whatever is cut or breaks; `--cases N`, `--seed S`, `--save`
driver *args:
    .venv/bin/python -m bench.driver "$@"

# the tests in which the driver can make a difference, once more on the push driver, with a share of the long tables
test-push *args:
    TOOLSPEAK_TEST_DRIVER=push .venv/bin/pytest -n 2 --dist worksteal --share 4 {{ rerun }} {{ on_push }} "$@"

# connections, streams, clients that leave, limits, and what breaks
on_push := "tests/gateway/test_cancel.py tests/gateway/test_connections.py tests/gateway/test_errors.py tests/gateway/test_keep_alive.py tests/gateway/test_limits.py " + \
    "tests/gateway/test_outbound.py tests/gateway/test_passthrough.py tests/gateway/test_retries.py tests/gateway/test_shutdown.py " + \
    "tests/gateway/test_smuggling.py tests/gateway/test_square.py tests/gateway/test_streams.py tests/gateway/test_tls.py tests/security/test_keys.py"

# a thousand streams at once through one gateway: none lost, none mixed up, memory, keep-alives, clients that leave
streams *args:
    .venv/bin/python -m bench.streams "$@"

# real requests come back as they were, the matrix of wires, hostile bodies
wires:
    .venv/bin/python -m bench.wires

# CPU of a streamed chunk and memory of a stream with 1 to 4,000 streams at once, on both drivers; six minutes; writes bench/results/cost-curve.json: `--streams`, `--rounds`, `--urgent`
cost-curve *args:
    .venv/bin/python -m bench.cost_curve "$@"

# half an hour at 70 % of what a gateway carries, with faults: no leak, no stall, no error that was not injected; writes bench/results/soak.json: `--minutes`, `--driver`, `--save`, `--urgent`
soak *args:
    .venv/bin/python -m bench.soak "$@"

# speed of the wires: CPU per streamed chunk for all pairs
speed-wires *args:
    .venv/bin/python -m bench.speed_wires "$@"

# speed of the engine: CPU per streamed chunk beside wires and JSON
speed-engine *args:
    .venv/bin/python -m bench.speed_engine "$@"

# CPU of one request through the whole gateway in memory, without HTTP: no tools, 30 tools seen before, 30 never seen; `--rounds N`, `--profile NAME`, `--save`
speed-request *args:
    .venv/bin/python -m bench.speed_request "$@"

# speed of the gateway beside a bare one and its peers, targets S1 to S10; the full run needs nginx; `--quick` has ours and the bare one only
speed-gateway *args:
    .venv/bin/python -m bench.speed_gateway "$@"

# what other interpreters, or a compiled core, are worth: `just speed-pythons pgo=/its/bin/python`; `--sockets` beside Envoy, `--rounds N`, `--save`
speed-pythons *args:
    .venv/bin/python -m bench.speed_pythons "$@"

# `serve` with one worker and with several: requests a second and CPU of a request, memory of a worker; `--workers N`, `--rounds N`, `--save`
speed-workers *args:
    .venv/bin/python -m bench.speed_workers "$@"

# the openai SDK bare, through a gateway over loopback, and with toolspeak in process: CPU of a request and of a chunk, in .venv-hosts; `--rounds N`, `--save`
speed-hosts *args: build
    .venv/bin/python -m bench.speed_hosts "$@"

# what traces cost: CPU of a chunk, memory after 10,000 requests, a search in a million of them; `--save`
traces-cost *args:
    .venv/bin/python -m bench.traces_cost "$@"

# the speed of the core beside that of another commit, in one interleaved run: `REV`, `--rounds N`, `--save`
speed-before-after *args:
    .venv/bin/python -m bench.speed_before_after "$@"

# the vendors' own SDKs talk to the wires, or with `--driver push` to a gateway, and run a tool; needs npm, and Node 22 or newer or Linux on x64
judges *args:
    .venv/bin/python -m tests.judges.run "$@"

# vLLM and SGLang read every golden and field case with toolspeak's parsers, whole and streamed; downloads 400 MB: `--only vllm`
model-servers *args: build
    .venv/bin/python -m tests.model_servers.run "$@"

# vLLM's own tests of its parsers, with toolspeak's parsers in place: each difference is in tests/model_servers/vllm_differences.toml; downloads 400 MB: `--list`, `--save`
server-tests *args: build
    .venv/bin/python -m tests.model_servers.own_tests "$@"

# SDKs and frameworks run a tool in process, by `toolspeak.Transport` or as a provider of LiteLLM, with a model without tool calling; in .venv-hosts and .venv-hosts-openai2: `--only NAME`, `--save`
hosts *args: build
    .venv/bin/python -m tests.hosts.run "$@"

# a model writes a file of 200 KB by an emulated call: when do Claude Code and opencode see it grow? `checked` and `eager`; needs npm
long-write *args:
    .venv/bin/python -m tests.live.long_write "$@"

# real agents and SDKs run their tools through the gateway: the fast ones against every kind of upstream; needs npm, and root or user namespaces
clients *args:
    .venv/bin/python -m tests.clients.run "$@"

# the same through a gateway with the push driver
clients-push *args:
    TOOLSPEAK_DRIVER=push .venv/bin/python -m tests.clients.run "$@"

# all of them; writes bench/results/clients.json and docs/clients.md
clients-all *args:
    .venv/bin/python -m tests.clients.run --all "$@"

# real MCP servers from PyPI and npm, used by runs: over stdio, over HTTP, killed in the middle; needs npm
mcp-servers:
    .venv/bin/python -m tests.mcp.run

# every page of the dashboard, checked by axe-core in Chromium: both themes, wide and narrow; needs npm
ui-check:
    .venv/bin/python -m tests.browser.accessibility

# pictures of every page of the dashboard in build/ui, and a few of them in docs/ui; needs Chromium
screenshots:
    .venv/bin/python -m tools.screenshots

# the same while Claude Code and pi work with a real model of 1.1 GB, in build/ui-live; needs Chromium and npm: `--model`, `--docs`
screenshots-live *args:
    .venv/bin/python -m tests.live.screenshots "$@"

# a real model of 0.5 GB, bare and behind the gateway, side by side; `--ways`, `--agent pi`, `--model`, `--help`
live *args:
    .venv/bin/python -m tests.live.run "$@"

# a real model of 0.1 GB behind `toolspeak up`: it answers, comes back after kill -9 and SIGSTOP, two switch, none is left behind
up-live:
    .venv/bin/python -m tests.live.up

# Claude Code, Codex and pi, started by `toolspeak launch`, write a file with a model without tool calling; needs npm: `--only claude`
launch-live *args:
    .venv/bin/python -m tests.live.launch "$@"

# wheel, `toolspeak up`, `toolspeak launch claude`, in an empty environment, timed; writes docs/first-hour.md; needs npm: `--minutes`, `--model`, `--page`
first-hour *args: build
    .venv/bin/python -m tests.live.first_hour "$@"

# docs/first-call.md as it is written, in an empty environment: the wheel, a real model of 0.5 GB, a call, timed; then each server that the page names
five-minutes: build
    .venv/bin/python -m tests.live.five_minutes dist/*.whl

# a real model works on small file tasks, in several forms; writes docs/example-run.md: `--model`, `--help`
example-run *args:
    .venv/bin/python -m tests.live.example "$@"

# BFCL tasks and conversations on a real model, in every form; it goes on where it stopped: `--minutes`, `--form`, `--help`
accuracy *args:
    .venv/bin/python -m bench.accuracy.run "$@"

# compile llama.cpp's server for this machine, once, into the cache folder, where `just accuracy` finds it; needs a C++ compiler: `--jobs N`
llama-server *args:
    .venv/bin/python -m testkit.llama_build "$@"

# how often instructions in tool results succeed, by form, with AgentDojo in .venv-injection; goes on where it stopped: `--cases N`, `--minutes N`, `--model M`
injection *args:
    .venv/bin/python -m bench.injection.run "$@"

# the same with scripted models: every attack succeeds with one that obeys, none with one that does not
injection-quick:
    .venv/bin/python -m bench.injection.quick

# what `injection` found; writes bench/results/injection.json and the table of docs/injection.md
injection-report *args:
    .venv/bin/python -m bench.injection.report "$@"

# write the answers that the model gave into bench/accuracy/answers, so that `just accuracy --replay` needs no model
accuracy-answers *args:
    .venv/bin/python -m bench.accuracy.answers "$@"

# the table, the lifts and the pictures of all that was asked; writes bench/results/accuracy*
accuracy-report *args:
    .venv/bin/python -m bench.accuracy.report "$@"

# how likely small models say that a tool does not fit, by limits of `unfit_probability`; development tasks; writes bench/results/tool-fit.json: `--model`, `--tasks`, `--replay`
tool-fit *args:
    .venv/bin/python -m bench.accuracy.tool_fit "$@"

# a small model, a larger one, and the small one with `escalate_to` the larger: tasks solved and their cost; `--replay` asks no model: `--tasks N`, `--form F`, `--large-form F`, `--save`
escalation *args:
    .venv/bin/python -m bench.accuracy.escalation "$@"

# tasks an hour of the accuracy laboratory: the wheel's server and the one of `llama-server`, one task at once and several, by CPU time: `--rounds N`, `--save`
accuracy-speed *args:
    .venv/bin/python -m bench.accuracy.speed "$@"

# a dozen tasks on the real model of 0.5 GB: ours is at least as good as the bare server, and every call is valid
accuracy-quick:
    .venv/bin/python -m bench.accuracy.quick

# how much of each turn's prompt the real server has in its cache, native and emulated
prompt-cache *args:
    .venv/bin/python -m bench.prompt_cache "$@"

# llama.cpp's server takes our grammars and keeps to them: two real models of 0.1 and 0.5 GB
constraint *args:
    .venv/bin/python -m tests.live.constraint "$@"

# the probe of canitoolcall, an outside suite, asks a real model of 0.5 GB bare and behind the gateway: `--model`
conformance-live *args:
    .venv/bin/python -m tests.live.conformance "$@"

# a real model whose server drops its tools or returns calls as text, or that only says what it will do, bare and behind the gateway; writes bench/results/silence-live.json
silence-live *args:
    .venv/bin/python -m tests.live.silence "$@"

# twenty everyday requests on two real models of 0.5 and 1.1 GB, before and after `doctor --quick`: never fewer right calls; writes bench/results/everyday.json: `--model`, `--full`
everyday *args:
    .venv/bin/python -m tests.live.everyday "$@"

# probes of four real models behind the server of llama.cpp; writes bench/results/probes.json
probes *args:
    .venv/bin/python -m tests.probes.live "$@"

# 190 attempts to get out of the sandbox, in each that works here, as root and as nobody; `--save` keeps the result
sandbox *args:
    .venv/bin/python -m tests.security.sandbox.run "$@"

# every attack that broke the gateway once, its variants and controls, as root and as nobody, while an observer measures what
# others notice; 0 may succeed. Needs redis-server, PostgreSQL, bubblewrap, faketime, openssl: `--quick`, `--only NAME`, `--save`
attack *args:
    .venv/bin/python -m tests.attack.run "$@"

# the attacks on connections, on a gateway with the push driver
attack-push:
    TOOLSPEAK_TEST_DRIVER=push .venv/bin/python -m tests.attack.run --quick $(printf -- '--only %s ' connections raw_http upgrade hostile_upstream shutdown)

# the tests of the library and the gateway on the lowest and the newest dependencies that pyproject.toml allows, in environments of their own: `--only lowest`, `--save`
dependency-range *args:
    .venv/bin/python -m tools.dependency_range "$@"

# run each command line of tests/unit/cli/error_messages.txt again, and write what it prints now: read the difference
error-messages:
    .venv/bin/python -m testkit.error_messages

# every rule of docs/behaviour.md that must be proven has a test that names it
requirements:
    .venv/bin/python -m tools.requirements

# every setting, command-line option and public name that is documented is used
unreached:
    .venv/bin/python -m tools.unreached

# the shape of src before and after: files, lines, importers, names, layers, phrases; fails if a rule is broken: `--report`, `--before REV`, `--phrases`
house *args:
    .venv/bin/python -m tools.house "$@"

# 200 mistakes, one at a time in a copy of the tree: how many do the tests that reach them notice? It goes on where it stopped: `--minutes`, `--again`, `--only PACKAGE`, `--jobs`, `--seed`
mutants *args:
    .venv/bin/python -m tools.mutants "$@"

# write the pages that are made from the code
docs:
    .venv/bin/python tools/dialect_table.py
    .venv/bin/python tools/facts_page.py
    .venv/bin/python tools/configuration_page.py
    .venv/bin/python tools/metrics_page.py
    .venv/bin/python tools/man_page.py
    .venv/bin/python tools/tactics_diagram.py
    .venv/bin/python tools/api_reference.py
    .venv/bin/python -m tools.rooms_picture
    .venv/bin/python tools/figures.py
    .venv/bin/python -m tools.agent_pages

# build the documentation site into build/site/html, with a Markdown twin of each page and llms.txt, and check every link and load
site:
    test -x .venv-site/bin/python || {{ python }} -m venv --without-pip .venv-site
    {{ install }} .venv-site requirements/site.txt
    .venv/bin/python -m tools.site .venv-site/bin/zensical

# record `launch`, `up`, `doctor` and `run` in a terminal as docs/*.svg; real models where that is quick; needs npm: `--only NAME`
recordings *args:
    .venv/bin/python -m tools.recordings "$@"

# build the wheel into dist
build:
    rm -rf dist
    .venv/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# build the container image into build/image and podman's storage, with its bill of materials; needs mmdebstrap, buildah, binutils: `--extras redis,otel,runs`, `--name`
image *args: build
    .venv/bin/python -m tools.image "$@" dist/*.whl

# run that image with podman, read-only and without capabilities: health, a call on each protocol, a drain; needs podman: `--save`, IMAGE
image-check *args:
    .venv/bin/python -m tests.image.run "$@"

# render the Helm chart in each variant of charts/toolspeak/ci, and check the manifests against the schemas of Kubernetes; `--save`
chart *args:
    test -x .venv-packages/bin/python || {{ python }} -m venv --without-pip .venv-packages
    {{ install }} .venv-packages requirements/packages.txt
    .venv/bin/python -m tools.chart "$@"

# build the sdist and the wheel into dist, alike each time: the time in them is that of the commit
distributions:
    rm -rf dist
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) .venv/bin/python -m hatchling build

# check the workflows of .github: their form against GitHub's schema, and their security with zizmor
workflows:
    test -x .venv-packages/bin/python || {{ python }} -m venv --without-pip .venv-packages
    {{ install }} .venv-packages requirements/packages.txt
    .venv-packages/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
    .venv-packages/bin/zizmor --offline --persona pedantic .github

# install the wheel in an empty venv and try the README there, as it is written
wheel: build
    #!/usr/bin/env bash
    set -euo pipefail
    empty=$(mktemp -d)
    trap 'rm -rf "$empty"' EXIT
    .venv/bin/python -m venv --without-pip "$empty/venv"
    {{ install }} "$empty/venv" requirements/runtime.txt
    .venv/bin/pip --python "$empty/venv" install --quiet --no-deps dist/*.whl
    .venv/bin/python -m tests.quickstart.run "$empty/venv"
    .venv/bin/python -m tests.quickstart.runners dist/*.whl "$empty/venv"

# pin the requirements anew; each extra gets the versions that all extras agree on; --upgrade takes newer ones
pin *args:
    .venv/bin/uv pip compile {{ pin }} "$@" pyproject.toml -o requirements/runtime.txt
    .venv/bin/uv pip compile {{ pin }} "$@" pyproject.toml --all-extras -o requirements/extras/all.txt
    for extra in {{ extras }}; do \
        .venv/bin/uv pip compile {{ pin }} --no-annotate -c requirements/extras/all.txt pyproject.toml \
            --extra $extra -o requirements/extras/$extra.txt; \
    done
    .venv/bin/uv pip compile {{ pin }} "$@" pyproject.toml --group test -o requirements/test.txt
    .venv/bin/uv pip compile {{ pin }} "$@" pyproject.toml --group dev -o requirements/dev.txt
    .venv/bin/uv pip compile {{ pin }} "$@" pyproject.toml --group judges -o requirements/judges.txt
    .venv/bin/uv pip compile {{ pin }} "$@" pyproject.toml --group hosts -o requirements/hosts.txt
    .venv/bin/uv pip compile {{ pin }} "$@" pyproject.toml --group hosts-openai2 -o requirements/hosts-openai2.txt
    .venv/bin/uv pip compile {{ pin }} "$@" pyproject.toml --group fuzz -o requirements/fuzz.txt
    .venv/bin/uv pip compile {{ pin }} "$@" pyproject.toml --group site -o requirements/site.txt
    .venv/bin/uv pip compile {{ pin }} "$@" --group injection -o requirements/injection.txt
    .venv/bin/uv pip compile {{ pin }} "$@" --group packages -o requirements/packages.txt
    .venv/bin/uv pip compile {{ pin }} "$@" --group llama-server -o requirements/llama-server.txt
    for server in vllm sglang; do \
        .venv/bin/uv pip compile {{ pin }} "$@" -c requirements/runtime.txt pyproject.toml --group $server -o requirements/$server.txt; \
        .venv/bin/uv pip compile {{ pin }} "$@" --no-deps --group $server-wheel -o requirements/$server-wheel.txt; \
    done

extras := "redis jwt runs mcp sandlock llama hub otel"
pin := "--quiet --universal --python-version 3.11 --generate-hashes --no-header"

# 3.12 and 3.13, with a share of the cases: each test that can depend on the language runs on one of them (`tests` is named: pytest ignores no folder that it begins at, as bench/tests)
pythons: build
    {{ just_executable() }} --no-deps test-on 3.12 --share 4 tests -k 'not p8' $(printf -- '--ignore %s ' {{ on_313 }} {{ on_311_only }})
    {{ just_executable() }} --no-deps test-on 3.13 --share 4 -k 'not p8' {{ on_313 }} $(printf -- '--ignore %s ' {{ on_311_only }})

# asyncio, HTTP, TLS, terminals: all that the gateway, the client and the commands ask of Python
on_313 := "tests/gateway tests/unit/cli tests/unit/client tests/unit/runtime tests/unit/local tests/unit/agent/tools tests/unit/engine"
# Here the kernel, databases, other programs and the clock decide, or the tested tools themselves only ever run in .venv.
on_311_only := "bench/tests tests/attack tests/browser tests/compose tests/unit/tools tests/unit/agent/sandbox tests/security/sandbox tests/runs tests/mcp tests/probes " + \
    "tests/gateway/test_runs.py tests/gateway/test_runs_fleet.py tests/gateway/test_runs_limits.py tests/gateway/test_runs_outage.py " + \
    "tests/gateway/test_overload.py tests/gateway/test_streams.py tests/gateway/test_plugins.py " + \
    "tests/unit/cli/test_up.py tests/unit/cli/test_up_models.py tests/unit/cli/test_error_messages.py tests/unit/cli/test_run_terminal.py " + \
    "tests/contract/test_response_template.py"

# the proofs that compute
computing: build
    {{ just_executable() }} check requirements
    {{ just_executable() }} --no-deps pythons
    {{ just_executable() }} test-push
    {{ just_executable() }} roundtrip --examples 2000

# the proofs that mostly wait: for the net, for real agents, for a real model; then those that need one core for minutes
waiting: build
    {{ just_executable() }} --no-deps wheel
    {{ just_executable() }} site
    {{ just_executable() }} judges
    {{ just_executable() }} judges --driver push
    {{ just_executable() }} ui-check
    {{ just_executable() }} clients --brief
    {{ just_executable() }} launch-live
    {{ just_executable() }} --no-deps hosts --only notebook
    {{ just_executable() }} mcp-servers
    {{ just_executable() }} up-live
    {{ just_executable() }} accuracy-quick
    {{ just_executable() }} injection-quick
    {{ just_executable() }} corpus
    {{ just_executable() }} noncalls --texts 25000
    {{ just_executable() }} wires
    {{ just_executable() }} conformance
    {{ just_executable() }} field
    {{ just_executable() }} simulate
    {{ just_executable() }} driver

# Tests with real processes and sockets share a busy machine: one that fails runs once more, and the closing line counts it.
rerun := "--reruns 1 --reruns-delay 3 --rerun-show-tracebacks -rR"

# both lanes at the same time: none of their proofs measures time; if one fails, both end
lanes: build
    #!/usr/bin/env bash
    set -euo pipefail
    log=$(mktemp)
    trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$log"' EXIT
    nice {{ just_executable() }} --no-deps computing >"$log" 2>&1 & # it yields to the agents and the model, which have deadlines
    {{ just_executable() }} --no-deps waiting &
    { wait -n && wait -n; } || { cat "$log"; exit 1; }
    cat "$log"

# the proofs that measure time: one after another, and nothing beside them
timing: (attack "--quick") attack-push (killtest "--quick") (linear "--every" "6") speed-core speed-wires speed-engine (speed-gateway "--quick")

# everything that CI runs; the last line is pytest's
ci: lanes timing
    HYPOTHESIS_PROFILE=ci .venv/bin/pytest -n $(nproc) --dist worksteal --durations 40 --durations-min 5 {{ rerun }}
