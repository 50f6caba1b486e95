"""Whatever comes: every dialect whose markers nobody writes by chance, at once, to rescue calls that leaked as text.

Left out are those that look like prose or data: labels (`Action:`), elements named like tools, JSON in mid-message.
"""

from functools import reduce

from toolspeak.dialects import (
    apertus,
    cohere,
    deepseek,
    dots,
    dsml,
    fenced,
    firefunction,
    function_gemma,
    gemma,
    gigachat,
    glm,
    granite,
    harmony,
    hermes,
    inkling,
    internlm,
    invoke_xml,
    jamba,
    json_action,
    kimi,
    kimi_k3,
    lfm2,
    llama_json,
    lmstudio,
    longcat,
    minimax,
    mistral,
    nemotron,
    olmo,
    phi,
    pythonic,
    qwen_star,
    seed,
    solar,
    step3,
    tag_json,
    tool_code,
)
from toolspeak.dialects._dialect import Dialect

_READ = (
    *(hermes, jamba, nemotron, llama_json, mistral, dsml, invoke_xml, glm, minimax, pythonic, tool_code, json_action),
    *(fenced, lmstudio, tag_json, deepseek, kimi, kimi_k3, gemma, function_gemma, lfm2, granite, phi, olmo, cohere),
    *(longcat, internlm, apertus, gigachat, inkling, firefunction, solar, seed, dots, step3, qwen_star),
)

_GRAMMARS = tuple(module.DIALECT.grammar for module in _READ)

DIALECT = Dialect("any", reduce(lambda one, other: one | other, _GRAMMARS) | harmony.MARKED)
