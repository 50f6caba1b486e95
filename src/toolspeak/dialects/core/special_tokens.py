"""Markup that untrusted text must not contain, because servers, models or our own readers obey it. Data only.

Two shapes cover most of it, so tokens of templates that are not listed yet are covered too: `<|word|>` (with either
bar) and call markup in tags. Listed are only tokens of other shapes.

Not listed are tokens that plain text contains for other reasons and that mean nothing without one that is broken:
`[ARGS]` (in the usage line of every other command), `[PREFIX]`, `[IMG]`; and templates of mere words (`### Response:`,
`USER:`).
"""

from typing import Final

SPECIAL_TOKENS: Final[dict[str, tuple[str, ...]]] = {
    "chatml": ("<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|endoftext|>"),
    "llama 3": ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"),
    "llama 3 tools": ("<|python_tag|>", "<|end_of_text|>", "<|reserved_special_token_0|>"),
    "llama 4": ("<|header_start|>", "<|header_end|>", "<|eot|>", "<|python_start|>", "<|python_end|>"),
    "llama 2": ("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<unk>"),
    "mistral": (
        *("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS", "[/TOOL_CALLS]", "[TOOL_RESULTS]"),
        *("[/TOOL_RESULTS]", "[TOOL_CONTENT]", "[CALL_ID]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
        *("[THINK]", "[/THINK]", "[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"),
    ),
    "gemma": ("<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<pad>", "<start_of_image>", "<end_of_image>"),
    "gemma 4": (
        *("<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", "<|tool_response>"),
        *("<tool_response|>", "<|channel>", "<channel|>", '<|"|>', "<|image>", "<image|>", "<|audio>", "<audio|>"),
    ),
    "function gemma": (
        *("<start_function_call>", "<end_function_call>", "<start_function_declaration>"),
        *("<end_function_declaration>", "<start_function_response>", "<end_function_response>", "<escape>"),
    ),
    "harmony": ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"),
    "deepseek": (
        *(
            "<｜begin▁of▁sentence｜>",
            "<｜end▁of▁sentence｜>",
            "<｜User｜>",
            "<｜Assistant｜>",
            "<｜tool▁calls▁begin｜>",
        ),
        *("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<｜DSML｜"),
        *("<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>", "</｜DSML｜"),
    ),
    "phi": ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>", "<|/tool|>", "<|tool_call|>"),
    "glm": ("[gMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),
    "glm tools": ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<tool_sep>"),
    "cohere": (
        *("<BOS_TOKEN>", "<EOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|USER_TOKEN|>"),
        *("<|CHATBOT_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|START_ACTION|>", "<|END_ACTION|>", "<|START_THINKING|>"),
        *("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ),
    "kimi": (
        *("<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>", "<|tool_calls_section_begin|>"),
        *("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "[BOS]", "[EOS]", "[EOT]"),
    ),
    "kimi k3": ("<|open|>", "<|close|>", "<|sep|>"),
    "qwen": ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"),
    "qwen pictures": ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|fim_prefix|>", "<|file_sep|>"),
    "granite": ("<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>"),
    "minimax": ("]~!b[", "]~b]", "[e~[", "]<]minimax[>[", "<minimax:tool_call>", "<mm:think>", "</mm:think>"),
    "seed": ("<seed:bos>", "<seed:eos>", "<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>"),
    "internlm": ("<|action_start|>", "<|action_end|>", "<|plugin|>", "<|interpreter|>", "<eoh>", "<eoa>"),
    "hunyuan": ("<|startoftext|>", "<|extra_0|>", "<｜hy_User｜>"),
    "solar": ("<|tool_call:begin|>", "<|tool_call:name|>", "<|tool_call:args|>", "<|tool_call:end|>"),
    "nemotron": ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>"),
    "longcat": ("<longcat_think>", "</longcat_think>"),
    "lfm2": ("<|tool_list_start|>", "<|tool_call_start|>", "<|tool_call_end|>", "<|tool_response_start|>"),
    "apertus": ("<|system_start|>", "<|tools_prefix|>", "<|tools_suffix|>"),
    "step": ("<｜tool_calls_begin｜>", "<｜tool_call_begin｜>", "<｜tool_sep｜>"),
}
"""By the family whose chat template or tokenizer has them. In these, case matters."""

CALL_TAGS: Final = (
    *("tool_call", "tool_calls", "tool-call", "tool_use", "tool-use", "use_tool", "function_call"),
    *(
        "function_calls",
        "longcat_tool_call",
        "dots_function_call",
        "tool_response",
        "tool_responses",
        "tool_result",
        "tool_results",
    ),
    *("tool_output", "tool_outputs", "function_results"),
)
"""Names of elements, in any namespace and whatever their attributes, that hold calls or results and nothing else."""

WORD_TAGS: Final = ("tool", "tools", "toolcall", "think", "thinking")
"""The same, but right after a name they are a type: `Vec<ToolCall>`, `List<Tool>`."""

CALL_LITERALS: Final = (
    *("<function=", "<function name=", "</function>", "<parameter=", "<invoke>", "</invoke>", "<invoke name"),
    *(
        "[TOOL_CALL]",
        "[/TOOL_CALL]",
        "[TOOL_REQUEST]",
        "[END_TOOL_REQUEST]",
        "[/TOOL_REQUEST]",
        "[Calling tool:",
        "[Tool call:",
    ),
    *("✿FUNCTION✿", "✿ARGS✿", "✿RESULT✿", "✿RETURN✿"),
)

SHARED_TAGS: Final = ("parameter", "param", "function", "invoke", "result", "results", "response", "ipython")
"""Tags that other text has too: broken where they are this dialect's own, and in the JSON of any list of tools."""

FENCES: Final = ("tool_call", "tool_calls", "json tool_call", "toolcall", "json action", "tool_code")
"""Info strings of fences that are calls."""

LINE_WORDS: Final = ("functools",)
"""Words that begin a call at the start of a line, before JSON."""
