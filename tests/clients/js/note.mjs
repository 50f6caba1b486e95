// The tool that every script here offers, what it is asked with, and how it ends.

import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';

export const [url, model, prompt, wire] = process.argv.slice(2);
export const NAME = 'write_note';
export const DESCRIPTION = 'Write a note into the file out.txt.';
export const PARAMETERS = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

const kept = [];

export function writeNote({ text }) {
  writeFileSync('out.txt', text);
  kept.push(`kept-${randomBytes(4).toString('hex')}`);
  return kept.at(-1);
}

// The answer must quote what the tool said, once.
export function end(final) {
  console.log(final);
  if (kept.length === 1 && final.includes(kept[0])) return;
  console.error(`the tool ran ${kept.length} times: ${kept}; the answer does not quote it`);
  process.exit(1);
}
