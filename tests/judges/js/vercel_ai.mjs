// Vercel's `ai`, with tools in several steps, on the providers of all five wires.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import { createOllama } from 'ollama-ai-provider-v2';
import { DESCRIPTION, Judge, PARAMETERS, PROMPT, URL, Weather, versionOf } from './checks.mjs';

const key = { apiKey: 'none' };
const openai = createOpenAI({ baseURL: `${URL}/v1`, ...key });
const compatible = createOpenAICompatible({ name: 'judged', baseURL: `${URL}/v1`, ...key });
// As it comes, this client sends only the ids of the texts and thoughts that it believes the server has kept.
const unkept = { openai: { store: false } };
const PROVIDERS = [
  ['@ai-sdk/openai', 'openai_chat', openai.chat],
  ['@ai-sdk/openai', 'openai_responses', openai.responses],
  ['@ai-sdk/openai', 'openai_responses', openai.responses, unkept],
  ['@ai-sdk/openai-compatible', 'openai_chat', compatible],
  ['@ai-sdk/anthropic', 'anthropic', createAnthropic({ baseURL: `${URL}/v1`, ...key })],
  ['@ai-sdk/google', 'gemini', createGoogle({ baseURL: `${URL}/v1beta`, ...key })],
  ['ollama-ai-provider-v2', 'ollama', createOllama({ baseURL: `${URL}/api` })],
];

function asked(model, weather, providerOptions) {
  const inputSchema = jsonSchema(PARAMETERS);
  const tools = { get_weather: tool({ description: DESCRIPTION, inputSchema, execute: weather.getWeather }) };
  return { model, prompt: PROMPT, tools, stopWhen: isStepCount(3), maxRetries: 0, providerOptions };
}

async function generated(...asking) {
  return heard(await generateText(asked(...asking)));
}

async function streamed(...asking) {
  const result = streamText({ ...asked(...asking), onError: () => {} });
  for await (const part of result.fullStream) {
    if (part.type === 'error') throw raised(part.error);
  }
  return heard({ steps: await result.steps, text: await result.text });
}

function heard({ steps, text }) {
  return { opening: steps[0].text, thought: steps[0].reasoningText, final: text };
}

function raised(error) {
  return error instanceof Error ? error : new Error(JSON.stringify(error));
}

// This one knows no error of Ollama: it shows the HTTP status instead, and drops the line that ends a stream.
const DEAF = 'ollama-ai-provider-v2';

for (const [provider, wire, load, options] of PROVIDERS) {
  const judge = new Judge(`ai ${versionOf('ai')} ${provider} ${versionOf(provider)}`, wire);
  for (const [name, ask] of Object.entries({ generateText: generated, streamText: streamed })) {
    const mode = options ? `${name} unkept` : name;
    const met = (scenario) => ask(load(scenario), new Weather(), options);
    const told = provider === DEAF ? (raised) => raised.responseBody : undefined;
    await judge.converse(mode, (scenario, weather) => ask(load(scenario), weather, options));
    await judge.refuse(mode, 'error', met, APICallError, told);
    if (provider !== DEAF) await judge.refuse(mode, 'midstream', met, Error);
  }
}
