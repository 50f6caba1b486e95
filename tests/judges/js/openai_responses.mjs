// openai-node on Responses: whole, streamed, and by the `.stream()` helper.

import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { DESCRIPTION, Judge, PARAMETERS, PROMPT, URL, collect, versionOf } from './checks.mjs';

const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: 'none', maxRetries: 0 });
const tools = [{ type: 'function', name: 'get_weather', description: DESCRIPTION, parameters: PARAMETERS, strict: false }];
const user = [{ role: 'user', content: PROMPT }];

async function whole(model, input = user) {
  const response = await client.responses.create({ model, input, tools });
  assert.equal(response.status, 'completed');
  assert.equal(response.usage.total_tokens, 34);
  return response;
}

async function streamed(model, input = user) {
  const events = await collect(await client.responses.create({ model, input, tools, stream: true }));
  return responseOf(events.at(-1));
}

async function helped(model, input = user) {
  const stream = client.responses.stream({ model, input, tools });
  responseOf((await collect(stream)).at(-1));
  return await stream.finalResponse();
}

function responseOf(last) {
  if (last.type === 'response.failed') throw new OpenAI.OpenAIError(last.response.error.message);
  assert.equal(last.type, 'response.completed');
  return last.response;
}

async function talk(ask, scenario, weather) {
  const first = await ask(scenario);
  const results = first.output
    .filter((item) => item.type === 'function_call')
    .map(({ call_id, name, arguments: given }) => ({
      type: 'function_call_output',
      call_id,
      output: weather.run(name, JSON.parse(given), call_id),
    }));
  const last = await ask(scenario, [...user, ...first.output, ...results]);
  return { opening: textOf(first, 'message'), thought: textOf(first, 'reasoning'), final: textOf(last, 'message') };
}

function textOf({ output }, type) {
  const items = output.filter((item) => item.type === type);
  return items.flatMap((item) => (item.content?.length ? item.content : item.summary)).map((part) => part.text).join('');
}

const judge = new Judge(`openai-node ${versionOf('openai')}`, 'openai_responses');
for (const [mode, ask] of Object.entries({ create: whole, 'create stream': streamed, 'stream helper': helped })) {
  await judge.converse(mode, (scenario, weather) => talk(ask, scenario, weather));
  await judge.refuse(mode, 'error', ask, OpenAI.BadRequestError);
  await judge.refuse(mode, 'midstream', ask, OpenAI.OpenAIError);
}
