// openai-node on Chat Completions: whole, streamed, by the `.stream()` helper, and by runTools.

import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { DESCRIPTION, Judge, PARAMETERS, PROMPT, URL, versionOf } from './checks.mjs';

const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: 'none', maxRetries: 0 });
const described = { name: 'get_weather', description: DESCRIPTION, parameters: PARAMETERS };
const tools = [{ type: 'function', function: described }];
const user = [{ role: 'user', content: PROMPT }];

async function whole(model, messages = user) {
  const completion = await client.chat.completions.create({ model, messages, tools });
  assert.equal(completion.usage.total_tokens, 34);
  return completion.choices[0].message;
}

async function streamed(model, messages = user) {
  const message = { role: 'assistant', content: '', reasoning_content: '', tool_calls: [] };
  for await (const chunk of await client.chat.completions.create({ model, messages, tools, stream: true })) {
    for (const { delta } of chunk.choices) grow(message, delta);
  }
  return message.tool_calls.length ? message : { role: 'assistant', content: message.content };
}

function grow(message, delta) {
  message.content += delta.content ?? '';
  message.reasoning_content += delta.reasoning_content ?? '';
  for (const { index, id, type, function: called } of delta.tool_calls ?? []) {
    message.tool_calls[index] ??= { id, type, function: { name: called.name, arguments: '' } };
    message.tool_calls[index].function.arguments += called.arguments ?? '';
  }
}

async function helped(model, messages = user) {
  const stream = client.chat.completions.stream({ model, messages, tools, stream_options: { include_usage: true } });
  const completion = await stream.finalChatCompletion();
  assert.equal(completion.usage.total_tokens, 34);
  // It keeps only the last piece of a key that it does not know.
  const { reasoning_content, ...message } = completion.choices[0].message;
  return message;
}

async function talk(ask, scenario, weather) {
  const first = await ask(scenario);
  const results = first.tool_calls.map(({ id, function: called }) => ({
    role: 'tool',
    tool_call_id: id,
    content: weather.run(called.name, JSON.parse(called.arguments), id),
  }));
  const last = await ask(scenario, [...user, first, ...results]);
  return { opening: first.content, thought: first.reasoning_content, final: last.content };
}

async function runTools(scenario, weather, stream) {
  const runnable = { ...described, parse: JSON.parse, function: weather.getWeather };
  const runner = client.chat.completions.runTools({
    model: scenario,
    messages: user,
    tools: [{ type: 'function', function: runnable }],
    stream,
  });
  return { final: await runner.finalContent() };
}

const judge = new Judge(`openai-node ${versionOf('openai')}`, 'openai_chat');
for (const [mode, ask] of Object.entries({ create: whole, 'create stream': streamed, 'stream helper': helped })) {
  await judge.converse(mode, (scenario, weather) => talk(ask, scenario, weather));
  await judge.refuse(mode, 'error', ask, OpenAI.BadRequestError);
  await judge.refuse(mode, 'midstream', ask, OpenAI.APIError);
}
await judge.converse('runTools', (scenario, weather) => runTools(scenario, weather, false));
await judge.converse('runTools stream', (scenario, weather) => runTools(scenario, weather, true));
