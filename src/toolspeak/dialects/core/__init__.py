"""The shared parts of all dialects: the reader, the forms of a call, and what writers need.

Read in this order: `grammar` (a dialect's markup as data), `form` (the contract between the reader and a form),
`reader` (the state machine), `json_form` (the form that most models write), `writer` (prompts, calls and results).

Seven forms of a call's body cover every dialect that we know:

    G1  JSON                       json_form       {"name": "f", "arguments": {…}}
    G2  a name, then JSON          named_json      f[ARGS]{…}
    G3  tags                       tag_form        <function=f><parameter=k>v</parameter></function>
    G4  Python calls               python_form     [f(k="v")]
    G5  keys and quote tokens      key_value_form  call:f{k:<|"|>v<|"|>}
    G6  message headers            headers         <|channel|>commentary to=functions.f<|message|>{…}<|call|>
    G7  labels at line starts      named_json      Action: f⏎Action Input: {…}
"""
