// @ai-sdk-tool/parser, one question a line:
//   {"parser", "reasoning", "opened", "tools", "text", "streams": {way: deltas}} -> {way: answer}
// It goes the way of an application: `wrapLanguageModel` with the middleware, and with the AI SDK's own
// `extractReasoningMiddleware` where the text holds reasoning. A call of an unknown tool is an error, as in the AI SDK.

import { createInterface } from "node:readline";
import { extractReasoningMiddleware, wrapLanguageModel } from "ai";
import * as parser from "@ai-sdk-tool/parser";

const usage = { inputTokens: {}, outputTokens: {} };
const finishReason = { unified: "stop", raw: "stop" };

function model(ask, deltas) {
  const pieces = deltas.map((delta) => delta.join(""));
  const parts = [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "1" },
    ...pieces.map((delta) => ({ type: "text-delta", id: "1", delta })),
    { type: "text-end", id: "1" },
    { type: "finish", usage, finishReason },
  ];
  const bare = {
    specificationVersion: "v3",
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate: async () => ({ content: [{ type: "text", text: ask.text }], usage, finishReason, warnings: [] }),
    doStream: async () => ({
      stream: new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(part);
          controller.close();
        },
      }),
    }),
  };
  const middleware = [parser[`${ask.parser}ToolMiddleware`]];
  if (ask.reasoning) {
    middleware.push(extractReasoningMiddleware({ tagName: ask.reasoning, startWithReasoning: ask.opened }));
  }
  return wrapLanguageModel({ model: bare, middleware });
}

async function read(ask, way) {
  const answer = { reasoning: "", text: "", calls: [] };
  const take = (part) => {
    if (part.type === "text") answer.text += part.text;
    if (part.type === "text-delta") answer.text += part.delta;
    if (part.type === "reasoning") answer.reasoning += part.text;
    if (part.type === "reasoning-delta") answer.reasoning += part.delta;
    if (part.type === "error") answer.error = String(part.error);
    if (part.type !== "tool-call") return;
    if (ask.tools.some((tool) => tool.name === part.toolName)) {
      answer.calls.push({ name: part.toolName, arguments: part.input });
    } else {
      answer.error = `unknown tool ${part.toolName}`;
    }
  };
  const options = {
    prompt: [{ role: "user", content: [{ type: "text", text: "?" }] }],
    tools: ask.tools.map((tool) => ({ type: "function", name: tool.name, inputSchema: tool.parameters })),
    providerOptions: { toolCallMiddleware: { onError: (message) => (answer.error = message) } },
  };
  try {
    if (way === "whole") {
      const result = await model(ask, []).doGenerate(options);
      result.content.forEach(take);
    } else {
      const { stream } = await model(ask, ask.streams[way]).doStream(options);
      for await (const part of stream) take(part);
    }
  } catch (error) {
    return { text: "", calls: [], error: String(error) };
  }
  return answer;
}

console.warn = console.error = () => {};
for await (const line of createInterface({ input: process.stdin })) {
  const ask = JSON.parse(line);
  const answers = {};
  for (const way of ["whole", ...Object.keys(ask.streams)]) answers[way] = await read(ask, way);
  process.stdout.write(`${JSON.stringify(answers)}\n`);
}
