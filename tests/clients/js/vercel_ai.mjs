// Vercel's `ai` on the providers of all five wires: streamed, in several steps.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { isStepCount, jsonSchema, streamText, tool } from 'ai';
import { createOllama } from 'ollama-ai-provider-v2';
import { DESCRIPTION, NAME, PARAMETERS, end, model, prompt, url, wire, writeNote } from './note.mjs';

const key = { apiKey: 'none' };
const PROVIDERS = {
  openai_chat: () => createOpenAICompatible({ name: 'toolspeak', baseURL: `${url}/v1`, ...key }),
  openai_responses: () => createOpenAI({ baseURL: `${url}/v1`, ...key }).responses,
  anthropic: () => createAnthropic({ baseURL: `${url}/v1`, ...key }),
  gemini: () => createGoogle({ baseURL: `${url}/v1beta`, ...key }),
  ollama: () => createOllama({ baseURL: `${url}/api` }),
};
const tools = {
  [NAME]: tool({ description: DESCRIPTION, inputSchema: jsonSchema(PARAMETERS), execute: writeNote }),
};
const result = streamText({
  model: PROVIDERS[wire]()(model),
  prompt,
  tools,
  stopWhen: isStepCount(3),
  maxRetries: 0,
  onError: ({ error }) => console.error(error),
});
end(await result.text);
