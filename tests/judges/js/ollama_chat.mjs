// ollama-js on /api/chat: whole and streamed.

import assert from 'node:assert/strict';
import { Ollama } from 'ollama';
import { DESCRIPTION, Judge, PARAMETERS, PROMPT, URL, collect, versionOf } from './checks.mjs';

const client = new Ollama({ host: URL });
const described = { name: 'get_weather', description: DESCRIPTION, parameters: PARAMETERS };
const tools = [{ type: 'function', function: described }];
const user = [{ role: 'user', content: PROMPT }];

async function whole(model, messages = user) {
  const response = await client.chat({ model, messages, tools, think: true });
  assert.deepEqual([response.done, response.prompt_eval_count, response.eval_count], [true, 21, 13]);
  return response.message;
}

async function streamed(model, messages = user) {
  const chunks = await collect(await client.chat({ model, messages, tools, think: true, stream: true }));
  const { done, prompt_eval_count, eval_count } = chunks.at(-1);
  assert.deepEqual([done, prompt_eval_count, eval_count], [true, 21, 13]);
  const joined = (key) => chunks.map(({ message }) => message[key] ?? '').join('');
  const tool_calls = chunks.flatMap(({ message }) => message.tool_calls ?? []);
  return { role: 'assistant', content: joined('content'), thinking: joined('thinking'), tool_calls };
}

async function talk(ask, scenario, weather) {
  const first = await ask(scenario);
  const results = first.tool_calls.map(({ function: called }) => ({
    role: 'tool',
    tool_name: called.name,
    content: weather.run(called.name, called.arguments),
  }));
  const last = await ask(scenario, [...user, first, ...results]);
  return { opening: first.content, thought: first.thinking, final: last.content };
}

const judge = new Judge(`ollama-js ${versionOf('ollama')}`, 'ollama');
for (const [mode, ask] of Object.entries({ chat: whole, 'chat stream': streamed })) {
  await judge.converse(mode, (scenario, weather) => talk(ask, scenario, weather));
  await judge.refuse(mode, 'error', ask, Error);
  await judge.refuse(mode, 'midstream', ask, Error);
}
