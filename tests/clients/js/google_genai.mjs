// @google/genai on Gemini: the call is streamed, the answer comes whole.

import { GoogleGenAI } from '@google/genai';
import { DESCRIPTION, NAME, PARAMETERS, end, model, prompt, url, writeNote } from './note.mjs';

const client = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: url } });
const declared = { name: NAME, description: DESCRIPTION, parametersJsonSchema: PARAMETERS };
const config = { tools: [{ functionDeclarations: [declared] }] };
const user = { role: 'user', parts: [{ text: prompt }] };
const parts = [];
for await (const chunk of await client.models.generateContentStream({ model, contents: [user], config })) {
  parts.push(...(chunk.candidates[0].content?.parts ?? []));
}
const results = parts
  .filter(({ functionCall }) => functionCall)
  .map(({ functionCall: { id, name, args } }) => ({
    functionResponse: { id, name, response: { output: writeNote(args) } },
  }));
const contents = [user, { role: 'model', parts }, { role: 'user', parts: results }];
end((await client.models.generateContent({ model, contents, config })).text);
