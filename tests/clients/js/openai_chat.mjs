// openai on Chat Completions: `runTools` streams, and runs the function by itself.

import OpenAI from 'openai';
import { DESCRIPTION, NAME, PARAMETERS, end, model, prompt, url, writeNote } from './note.mjs';

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const described = { name: NAME, description: DESCRIPTION, parameters: PARAMETERS };
const tool = { type: 'function', function: { ...described, parse: JSON.parse, function: writeNote } };
const messages = [{ role: 'user', content: prompt }];
end(await client.chat.completions.runTools({ model, messages, tools: [tool], stream: true }).finalContent());
