// @anthropic-ai/sdk on Messages: the call is streamed, the answer comes whole.

import Anthropic from '@anthropic-ai/sdk';
import { DESCRIPTION, NAME, PARAMETERS, end, model, prompt, url, writeNote } from './note.mjs';

const client = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const asked = { model, max_tokens: 999, tools: [{ name: NAME, description: DESCRIPTION, input_schema: PARAMETERS }] };
const user = { role: 'user', content: prompt };
const { content } = await client.messages.stream({ ...asked, messages: [user] }).finalMessage();
const results = content
  .filter(({ type }) => type === 'tool_use')
  .map(({ id, input }) => ({ type: 'tool_result', tool_use_id: id, content: writeNote(input) }));
const messages = [user, { role: 'assistant', content }, { role: 'user', content: results }];
const last = await client.messages.create({ ...asked, messages });
end(last.content.map(({ text }) => text ?? '').join(''));
