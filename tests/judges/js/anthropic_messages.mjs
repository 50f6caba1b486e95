// @anthropic-ai/sdk on Messages: whole, streamed, by the `stream` helper, and by the tool runner.

import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { DESCRIPTION, Judge, PARAMETERS, PROMPT, URL, versionOf } from './checks.mjs';

const client = new Anthropic({ baseURL: URL, apiKey: 'none', maxRetries: 0 });
const described = { name: 'get_weather', description: DESCRIPTION };
const tools = [{ ...described, input_schema: PARAMETERS }];
const user = [{ role: 'user', content: PROMPT }];
const rest = { max_tokens: 1000, tools };

async function whole(model, messages = user) {
  const message = await client.messages.create({ model, messages, ...rest });
  assert.equal(message.usage.output_tokens, 13);
  return message.content;
}

async function streamed(model, messages = user) {
  const blocks = [];
  for await (const event of await client.messages.create({ model, messages, stream: true, ...rest })) {
    if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block, json: '' };
    if (event.type === 'content_block_delta') grow(blocks[event.index], event.delta);
  }
  return blocks.map(({ json, ...block }) => (block.type === 'tool_use' ? { ...block, input: JSON.parse(json) } : block));
}

function grow(block, delta) {
  if (delta.type === 'text_delta') block.text += delta.text;
  if (delta.type === 'thinking_delta') block.thinking += delta.thinking;
  if (delta.type === 'signature_delta') block.signature = delta.signature;
  if (delta.type === 'input_json_delta') block.json += delta.partial_json;
}

async function helped(model, messages = user) {
  const stream = client.messages.stream({ model, messages, ...rest });
  return (await stream.finalMessage()).content;
}

async function talk(ask, scenario, weather) {
  const first = await ask(scenario);
  const results = first
    .filter((block) => block.type === 'tool_use')
    .map(({ id, name, input }) => ({ type: 'tool_result', tool_use_id: id, content: weather.run(name, input, id) }));
  const history = [...user, { role: 'assistant', content: first }, { role: 'user', content: results }];
  const last = await ask(scenario, history);
  return { opening: joined(first, 'text'), thought: joined(first, 'thinking'), final: joined(last, 'text') };
}

function joined(blocks, kind) {
  return blocks.filter((block) => block.type === kind).map((block) => block[kind]).join('');
}

async function runTools(scenario, weather, stream) {
  const tool = betaTool({ ...described, inputSchema: PARAMETERS, run: weather.getWeather });
  const params = { model: scenario, messages: user, max_tokens: 1000, tools: [tool], stream };
  const message = await client.beta.messages.toolRunner(params).runUntilDone();
  return { final: joined(message.content, 'text') };
}

const judge = new Judge(`anthropic-sdk-typescript ${versionOf('@anthropic-ai/sdk')}`, 'anthropic');
for (const [mode, ask] of Object.entries({ create: whole, 'create stream': streamed, 'stream helper': helped })) {
  await judge.converse(mode, (scenario, weather) => talk(ask, scenario, weather));
  await judge.refuse(mode, 'error', ask, Anthropic.BadRequestError);
  await judge.refuse(mode, 'midstream', ask, Anthropic.APIError);
}
await judge.converse('tool runner', (scenario, weather) => runTools(scenario, weather, false));
await judge.converse('tool runner stream', (scenario, weather) => runTools(scenario, weather, true));
