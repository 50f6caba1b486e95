"""Families 4 and 8: pages of HTML, XML and Markdown; ordinary prose, mathematics and lists."""

from html import escape
from random import Random
from typing import Final

from testkit.noncalls.draft import Draft, shown
from testkit.noncalls.quotes import fence, inline
from testkit.noncalls.tools import NAMES, STRANGERS, arguments
from testkit.noncalls.words import SENTENCES, WORDS, filled, outro, paragraph, sentence

ELEMENTS: Final = (
    "<details>\n<summary>More about {name}</summary>\n{text}\n</details>",
    '<search>\n<form action="/{name}"><input name="query"></form>\n</search>',
    '<search role="search"><label>Find</label></search>',
    '<tool-card name="{name}"><p>{text}</p></tool-card>',
    '<shell-prompt>{word}</shell-prompt>\n<read-file src="a.txt"></read-file>',
    "<tools><tool>hammer</tool><tool>{word}</tool></tools>",
    "<tool>{word}</tool>",
    '<function name="{stranger}"><param name="id">7</param></function>',
    '<action name="{name}" class="com.example.{word}"><result>ok</result></action>',
    "<answer>{count}</answer><result>{text}</result>",
    "<response><status>200</status><name>{name}</name></response>",
    "<p>{text} <b>{name}</b> &lt;tool_call&gt; &amp; more.</p>",
    "<ul>\n  <li>{name}(city)</li>\n  <li><code>{name}</code></li>\n</ul>",
    '<custom:invoke-later target="{name}"/>',
    '<parameter name="city">Oslo</parameter>',
    '<call-to-action href="/{name}">{text}</call-to-action>',
    "<script>const f = ({name}) => {{ return a < b && c > d; }};</script>",
    "<table><tr><td>{name}</td><td>{count}</td></tr></table>",
)
XML: Final = (
    """<?xml version="1.0"?>
<rss version="2.0"><channel><title>{word}</title>
<item><title>{name} {count}</title><description>{text}</description></item>
</channel></rss>""",
    """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {count} {count}">
<path d="M0 0 L{count} 5"/>
<text>{name}</text></svg>""",
    '<project>\n  <target name="{name}">\n    <exec executable="ls"/>\n  </target>\n</project>',
    '<config>\n  <tool name="{name}" enabled="true"/>\n  <limit>{count}</limit>\n</config>',
    "<!-- {name} is called here -->\n<note><to>{word}</to><body>{text}</body></note>",
)
PROSE: Final = (
    "{name}(city) returns the forecast for {count} days.",
    '{name}("Oslo") returns {count}.',
    "{name}() is a function; now() is another one.",
    "The function {name}(path, limit={count}) was renamed.",
    "[{name}](https://example.com/{word}) explains the rest.",
    "[{name}(query)](https://example.com/{word}) is a link.",
    '[{name}("x")](https://example.com) is a link too.',
    "[1] {text}\n[2] {text}",
    "{{a, b, c}} is a set, [0, 1) is an interval, and f(x) < g(x).",
    "Let f : A → B and x ∈ [0, {count}]; then |f(x)| < ε.",
    "If a < b then [a, b] ≠ ∅ and {{x | x > {count}}} is open.",
    "- [ ] call {name}\n- [x] read the {word}\n- [{name}] later",
    "{name}: {text}",
    "{name} {{city}} is how the template names it.",
    "analysis of the {word} shows {count} cases.",
    "to={word} is the recipient in that header.",
    "commentary to={word} was added later.",
    "all\nof it is gone",
    "functools is a Python module; functools[{count}] is not.",
    "functions.{name} is the full name, functions.{name}:0 an id.",
    "Tool call: {name}, {count} times. Function calls are cheap.",
    "[Tool calls: {count}] [Calling home] [Tool call]",
    "Use {name}{{...}} or {name}[...] as you like.",
    "🛠️ {name} 🌦️ {count}° ✿ {text}",
    '{{"city" means Stadt}} and {{name}} is a placeholder.',
    "{{{{ {name} }}}} renders the value.",
    "assistantfinal is one word in that dump.",
    "<{name}> is no HTML element, and neither is </{name}>.",
    "<3 {text} >_<",
    "> {text}\n\n{text}",
)


def _fill(dice: Random, template: str, name: str) -> str:
    text = sentence(dice, name)
    template = template.replace("{text}", text).replace("{stranger}", dice.choice(STRANGERS))
    return filled(dice, template, name).replace("{{", "{").replace("}}", "}")


def page(dice: Random) -> Draft:
    """Make a page or a piece of one."""
    make = dice.choice((_elements, _elements, _xml, _markdown, _escaped))
    return make(dice)


def _elements(dice: Random) -> Draft:
    """Write HTML elements, perhaps with prose before."""
    name = dice.choice(NAMES)
    parts = [_fill(dice, dice.choice(ELEMENTS), name) for _ in range(dice.randint(1, 4))]
    before = f"{paragraph(dice, name)}\n\n" if dice.random() < 0.5 else ""
    return Draft("pages/elements", before + "\n".join(parts), ("cline", "tag_json", "minicpm", "invoke_xml"))


def _xml(dice: Random) -> Draft:
    """Write an XML file as the message, or in a fence."""
    name = dice.choice(NAMES)
    text = _fill(dice, dice.choice(XML), name)
    text = f"```xml\n{text}\n```" if dice.random() < 0.4 else text
    return Draft("pages/xml", text, ("cline", "tag_json", "minicpm", "nemotron"))


def _markdown(dice: Random) -> Draft:
    """Write a page of Markdown with a quoted call in it."""
    call = shown(dice)
    quoted = fence(dice, call.text) if dice.random() < 0.7 else inline(dice, call.text)
    parts = [
        f"# {dice.choice(WORDS).title()}",
        paragraph(dice, call.name),
        f"<details>\n<summary>Example</summary>\n\n{quoted}\n\n</details>",
        f"[^1]: {sentence(dice, call.name)}",
        "\n".join(f"{number}. {sentence(dice, call.name)}" for number in range(1, dice.randint(2, 5))),
    ]
    return Draft("pages/markdown", "\n\n".join(parts), call.dialects)


def _escaped(dice: Random) -> Draft:
    """Write HTML that shows a call, escaped as HTML must be."""
    call = shown(dice)
    text = f"<h2>{call.name}</h2>\n<pre><code>{escape(call.text)}</code></pre>\n<p>{outro(dice, call.name)}</p>"
    text = f"```html\n{text}\n```\n{outro(dice, call.name)}" if dice.random() < 0.3 else text
    needs_fence = "<" not in call.text or "```" in call.text
    return _markdown(dice) if needs_fence else Draft("pages/escaped", text, call.dialects)


def prose(dice: Random) -> Draft:
    """Make ordinary prose in which tools' names and odd characters occur."""
    name = dice.choice(NAMES)
    lines = [_fill(dice, dice.choice((*PROSE, *SENTENCES)), name) for _ in range(dice.randint(1, 5))]
    lines.insert(dice.randint(0, len(lines)), _fill(dice, dice.choice(PROSE), name))
    lines.insert(dice.randint(0, len(lines)), _usage(dice, name))
    return Draft("prose", dice.choice(("\n", "\n\n", " ")).join(lines), ("pythonic", "react", "functionary", "harmony"))


def _usage(dice: Random, name: str) -> str:
    args = arguments(dice, name)
    call = f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})"
    return dice.choice(
        (
            f"You would type [{call}] and press enter.",
            f"After {call} we know more.",
            f"{call} gives an answer within seconds.",
            f"[{call}] is a list of one call, {call} a call.",
            f"{dice.choice(WORDS)}: {call} → ok",
        )
    )
