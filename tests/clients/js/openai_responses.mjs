// openai on Responses: the call is streamed, the answer comes whole.

import OpenAI from 'openai';
import { DESCRIPTION, NAME, PARAMETERS, end, model, prompt, url, writeNote } from './note.mjs';

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const tools = [{ type: 'function', name: NAME, description: DESCRIPTION, parameters: PARAMETERS, strict: false }];
const input = [{ role: 'user', content: prompt }];
const { output } = await client.responses.stream({ model, input, tools }).finalResponse();
const results = output
  .filter(({ type }) => type === 'function_call')
  .map(({ call_id, arguments: json }) => ({
    type: 'function_call_output',
    call_id,
    output: writeNote(JSON.parse(json)),
  }));
const said = output.map(({ parsed_arguments: _, ...item }) => item);
end((await client.responses.create({ model, input: [...input, ...said, ...results], tools })).output_text);
