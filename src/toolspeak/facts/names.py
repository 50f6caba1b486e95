"""Names of models, written alike: the same model has another name on every server.

>>> plain_name("hf.co/bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M")
'llama-3.1-8b-instruct-gguf-q-4-k-m'
>>> plain_name("llama3.1:8b")
'llama-3.1-8b'
"""

import re
from typing import Final

LONGEST: Final = 256
"""Characters of a name that are looked at: a client may write anything."""
_PUBLISHERS: Final = (
    *("ai21", "alibaba", "amazon", "anthropic", "arcee-ai", "cohere", "coherelabs", "cohereforai", "deepseek-ai"),
    *("google", "ibm-granite", "ibm", "liquidai", "lgai-exaone", "meta-llama", "meta", "meetkai", "microsoft"),
    *("minimaxai", "mistralai", "moonshotai", "moonshot", "nousresearch", "nvidia", "openai", "qwen", "thudm"),
    *("unsloth", "upstage", "us", "eu", "apac", "global", "zai-org", "zai"),
)
"""Who stands before the name without a slash: `Meta-Llama-3.1`, `google_gemma-3`, `us.meta.llama3-1`."""
_PUBLISHER: Final = re.compile(rf"(?:{'|'.join(_PUBLISHERS)})[._-](?=[a-z])")
_SEPARATORS: Final = re.compile(r"[\s_:@-]+")
_LETTER_DIGIT: Final = re.compile(r"(?<=[a-z])(?=\d)")
_VERSION: Final = re.compile(r"(?<![\d.])(\d)-(\d)(?=-|$)")


def plain_name(model: str) -> str:
    """Return the name without place, publisher and ending, in lower case, its parts set apart by hyphens."""
    name = model[-LONGEST:].lower().replace("\\", "/").rstrip("/").rpartition("/")[2].removesuffix(".gguf")
    while found := _PUBLISHER.match(name):
        rest = name[found.end() :]
        if found[0].startswith("qwen") and not rest.startswith("qw"):
            break
        name = rest
    return _VERSION.sub(r"\1.\2", plain(name))


def plain(name: str) -> str:
    """Set the parts of a name apart: `qwen2.5_coder` becomes `qwen-2.5-coder`."""
    return _LETTER_DIGIT.sub("-", _SEPARATORS.sub("-", name.lower())).strip("-")
