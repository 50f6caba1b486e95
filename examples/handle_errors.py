"""Tell the caller's mistakes from the upstream's, and temporary failures from others."""

from toolspeak import (
    AsyncUpstream,
    BadConfig,
    BadField,
    Client,
    FailureKind,
    ToolsInput,
    ToolspeakError,
    UpstreamFailed,
)


def ask(question: str, tools: ToolsInput = (), upstream: str | AsyncUpstream = "") -> str:
    """Return the answer, or a sentence about why there is none."""
    try:
        with Client(upstream) as client:
            return client.chat(question, tools=tools).text
    except BadField as error:
        return f"the argument {error.field} is wrong: {error}"
    except BadConfig as error:
        return "the configuration is wrong: " + "; ".join(error.problems)
    except UpstreamFailed as error:
        if FailureKind(error.kind).is_temporary:
            return f"try again later: {error}"
        return f"the upstream refuses ({error.upstream_status}): {error}"
    except ToolspeakError as error:
        return f"something else: {error}"


if __name__ == "__main__":
    print(ask("What is the capital of Norway?"))
