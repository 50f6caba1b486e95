"""OpenAI Responses: `POST /v1/responses`, the wire of Codex and of the vendor's newer clients.

Read first: `incoming.py` with `read_items.py`, and `encoder.py` with `blocks.py` (we are the server); then
`outgoing.py` with `write_items.py`, and `decoder.py` with `growing.py` (we are the client).
"""

from toolspeak.wires._api import Endpoint, HttpApi, Operation

API = HttpApi(
    endpoints=(
        Endpoint("POST", "/responses", Operation.TURN),
        Endpoint("POST", "/responses/input_tokens", Operation.COUNT),
    ),
)
