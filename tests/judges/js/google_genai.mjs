// @google/genai on Gemini: whole, streamed, and with automatic function calling.

import assert from 'node:assert/strict';
import { ApiError, GoogleGenAI } from '@google/genai';
import { DESCRIPTION, Judge, PARAMETERS, PROMPT, URL, collect, versionOf } from './checks.mjs';

const client = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: URL } });
const declared = { name: 'get_weather', description: DESCRIPTION, parametersJsonSchema: PARAMETERS };
const config = { tools: [{ functionDeclarations: [declared] }], thinkingConfig: { includeThoughts: true } };
const user = { role: 'user', parts: [{ text: PROMPT }] };

async function whole(model, contents = [user]) {
  const response = await client.models.generateContent({ model, contents, config });
  return partsOf([response]);
}

async function streamed(model, contents = [user]) {
  return partsOf(await collect(await client.models.generateContentStream({ model, contents, config })));
}

function partsOf(chunks) {
  const last = chunks.at(-1);
  assert.equal(last.candidates[0].finishReason, 'STOP');
  assert.equal(last.usageMetadata.totalTokenCount, 34);
  return chunks.flatMap((chunk) => chunk.candidates?.[0].content?.parts ?? []);
}

async function talk(ask, scenario, weather) {
  const parts = await ask(scenario);
  const results = parts
    .filter((part) => part.functionCall)
    .map(({ functionCall: { id, name, args } }) => ({
      functionResponse: { id, name, response: { output: weather.run(name, args, id) } },
    }));
  const last = await ask(scenario, [user, { role: 'model', parts }, { role: 'user', parts: results }]);
  return { opening: joined(parts, false), thought: joined(parts, true), final: joined(last, false) };
}

function joined(parts, thought) {
  return parts.filter((part) => part.text && !!part.thought === thought).map((part) => part.text).join('');
}

/** Let the client itself run the tool. */
async function automatic(scenario, weather) {
  const callable = {
    tool: async () => ({ functionDeclarations: [declared] }),
    callTool: async (calls) =>
      calls.map(({ id, name, args }) => ({
        functionResponse: { id, name, response: { output: weather.run(name, args, id) } },
      })),
  };
  const config = { tools: [callable] };
  const response = await client.models.generateContent({ model: scenario, contents: [user], config });
  return { final: response.text };
}

const judge = new Judge(`google-genai-node ${versionOf('@google/genai')}`, 'gemini');
for (const [mode, ask] of Object.entries({ generateContent: whole, generateContentStream: streamed })) {
  await judge.converse(mode, (scenario, weather) => talk(ask, scenario, weather));
  await judge.refuse(mode, 'error', ask, ApiError);
  await judge.refuse(mode, 'midstream', ask, ApiError);
}
await judge.converse('generateContent automatic', automatic);
