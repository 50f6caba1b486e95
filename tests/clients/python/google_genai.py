"""google-genai on Gemini: a stream that runs the function by itself."""

import warnings

from google import genai
from google.genai import types
from note import asked, end, write_note

warnings.simplefilter("ignore")  # it is still experimental, it says
url, model, prompt, _ = asked()
client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))
config = types.GenerateContentConfig(tools=[write_note])
chunks = client.models.generate_content_stream(model=model, contents=prompt, config=config)
end("".join(chunk.text or "" for chunk in chunks))
