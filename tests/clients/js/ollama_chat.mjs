// ollama-js on /api/chat: the call is streamed, the answer comes whole.

import { Ollama } from 'ollama';
import { DESCRIPTION, NAME, PARAMETERS, end, model, prompt, url, writeNote } from './note.mjs';

const client = new Ollama({ host: url });
const tools = [{ type: 'function', function: { name: NAME, description: DESCRIPTION, parameters: PARAMETERS } }];
const user = { role: 'user', content: prompt };
const said = { role: 'assistant', content: '', tool_calls: [] };
for await (const { message } of await client.chat({ model, messages: [user], tools, stream: true })) {
  said.content += message.content;
  said.tool_calls.push(...(message.tool_calls ?? []));
}
const results = said.tool_calls.map(({ function: called }) => ({
  role: 'tool',
  tool_name: called.name,
  content: writeNote(called.arguments),
}));
end((await client.chat({ model, messages: [user, said, ...results], tools })).message.content);
