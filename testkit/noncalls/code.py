"""Family 2: code that has to do with tool calls, in fences and as models write it without."""

import json
from random import Random
from typing import Final

from testkit.noncalls.draft import Draft, Shown, shown
from testkit.noncalls.quotes import fence, prefixed
from testkit.noncalls.tools import NAMES, arguments
from testkit.noncalls.words import WORDS, intro, outro, paragraph, sentence

PYTHON: Final = '''import re

OPENER = {opener}
PATTERN = re.compile(re.escape(OPENER) + r"(.*)")


def parse(text: str) -> list[str]:
    """Return calls such as {short}."""
    return [json.loads(body) for body in PATTERN.findall(text)]


def test_parse() -> None:
    sample = """
{sample}
"""
    assert parse(sample) == [{literal}]'''
JAVASCRIPT: Final = """const OPENER = {opener};

export function parse(text) {{
  // e.g. {short}
  const at = text.indexOf(OPENER);
  return at < 0 ? [] : [text.slice(at)];
}}

test("parses", () => {{
  expect(parse(`{sample}`)).toEqual([{literal}]);
}});"""
GO: Final = """package parser

const opener = {opener}

// Parse finds calls such as {short}
func Parse(text string) []string {{
	if i := strings.Index(text, opener); i >= 0 && len(text) > i {{
		return []string{{text[i:]}}
	}}
	return nil
}}

var sample = {literal}"""
RUST: Final = """const OPENER: &str = {opener};

#[test]
fn parses() {{
    let sample = r#"{sample}"#;
    assert_eq!(parse(sample), vec![{literal}]);
}}"""
HTML: Final = """<!DOCTYPE html>
<html>
  <body>
    <pre>{sample}</pre>
    <script>const opener = {opener};</script>
  </body>
</html>"""
CSS: Final = """/* {short} */
pre::before {{ content: {opener}; }}
.call > .name[data-tool="{name}"] {{ color: red; }}"""
SQL: Final = """INSERT INTO messages (role, content) VALUES
  ('assistant', {literal}),
  ('tool', 'ok');
SELECT * FROM calls WHERE name = '{name}' AND id < 10;"""
YAML: Final = """tools:
  - name: {name}
    example: |
{indented}
    opener: {opener}"""
DIFF: Final = """--- a/parser.py
+++ b/parser.py
@@ -1,3 +1,4 @@
 def parse(text):
-    return text.split({opener})
+    # {short}
+    sample = {literal}
{added}"""
LANGUAGES: Final = {
    "python": PYTHON,
    "js": JAVASCRIPT,
    "go": GO,
    "rust": RUST,
    "html": HTML,
    "css": CSS,
    "sql": SQL,
    "yaml": YAML,
    "diff": DIFF,
}
UNFENCED: Final = (
    "def {name}_twice({key}):\n    first = {name}({key})\n    return [first, {name}({key}={key})]",
    "class {title}:\n    def run(self):\n        return {call}\n\n    @property\n    def name(self): return {opener}",
    '@tool\ndef {name}({key}: str) -> str:\n    """Do it."""\n    return backend.{call}',
    "results = [{name}(x) for x in items]\nprint(results[0])",
    "[{name}(x) for x in items if x < 3]",
    "for item in items:\n    print({name}(item))\n    if item > 3: break",
    "result = {call}\nprint(result)",
    "if text.startswith({opener}):\n    calls.append(text)",
    ">>> {call}\n'ok'\n>>> {name}\n<function {name} at 0x7f>",
    "const out = await {name}({{ {key}: 1 }});\nconsole.log(out);",
    "$ curl -s localhost/{name} | jq '.[0]'\n[]",
    "fn {name}(x: &str) -> Vec<String> {{ vec![] }}",
    "print({call})",
    "await asyncio.gather({call}, {call})",
    "{call}.then((r) => r.json())",
    'x = {{"name": "{name}"}}\ny = x["name"]',
    "assert parse({opener}) == []\nassert {call} is None",
)


def code(dice: Random) -> Draft:
    """Make an answer with code in it."""
    make = dice.choice((_fenced, _fenced, _fenced, _unfenced, _unfenced, _literals))
    return make(dice)


def _source(dice: Random, language: str, call: Shown) -> str:
    return LANGUAGES[language].format(
        name=call.name,
        opener=json.dumps(call.opener),
        short=dice.choice((call.opener + " …", call.text.split("\n")[0])),
        sample=call.text,
        literal=json.dumps(call.text),
        indented=prefixed(call.text, "      "),
        added=prefixed(call.text, "+"),
    )


def _fenced(dice: Random) -> Draft:
    """Put a file in a fence of its language."""
    call = shown(dice)
    language = dice.choice(tuple(LANGUAGES))
    source = _source(dice, language, call)
    block = fence(dice, source) if "```" in source else f"```{language}\n{source}\n```"
    before = f"{intro(dice, call.name)}\n\n" if dice.random() < 0.8 else ""
    return Draft(f"code/{language}", f"{before}{block}\n\n{outro(dice, call.name)}", call.dialects)


def _unfenced(dice: Random) -> Draft:
    """Write code without a fence, with prose around it."""
    name = dice.choice(NAMES)
    args = arguments(dice, name)
    source = dice.choice(UNFENCED).format(
        name=name,
        title=dice.choice(WORDS).title(),
        key=next(iter(args)) if args else "x",
        call=f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})",
        opener=json.dumps(shown(dice, fences=False).opener),
    )
    indent = dice.choice(("", "", "    ", "  "))
    before = f"{dice.choice((intro(dice, name), paragraph(dice, name)))}\n\n"
    text = f"{before}{prefixed(source, indent)}\n\n{outro(dice, name)}"
    return Draft("code/unfenced", text, ("pythonic", "llama4", "tool_code", "functionary"))


def _literals(dice: Random) -> Draft:
    """Write code without a fence whose strings hold a whole call."""
    call = shown(dice)
    lines = [
        f"SAMPLE = {json.dumps(call.text, ensure_ascii=False)}",
        f"assert parse(SAMPLE) == [{call.name!r}]",
        f"# {sentence(dice, call.name)}",
    ]
    text = f"{intro(dice, call.name)}\n\n{chr(10).join(lines)}\n\n{outro(dice, call.name)}"
    return Draft("code/literals", text, call.dialects)
