// What the judges share: the tool that really runs, the checks, and one line of JSON for each of them.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

export const URL = process.argv[2];
export const PROMPT = 'What is the weather? Say it in one sentence.';
export const WANTED = {
  one: [{ city: 'Oslo' }],
  parallel: [{ city: 'Oslo' }, { city: 'Bergen' }],
  interleaved: [{ city: 'Oslo' }, { city: 'Bergen' }],
  unicode: [{ city: 'Tromsø', note: 'say "hei" 🌦 ☃\nto all 🌦\u2028' }],
};
export const DESCRIPTION = 'Tell the weather of a city.';
export const PARAMETERS = {
  type: 'object',
  properties: { city: { type: 'string' }, note: { type: 'string', description: 'what else to say' } },
  required: ['city'],
};
const OPENING = 'Let me look. ';
const THOUGHT = 'I have to look that up.';
const MESSAGES = { error: 'the scripted model refuses', midstream: 'the scripted model broke down' };

/** The tool. Nobody can guess what it says: it has to run. */
export class Weather {
  asked = [];
  said = [];
  ids = new Set();

  getWeather = ({ city, note }) => {
    this.asked.push(note ? { city, note } : { city });
    this.said.push(`${city} has ${process.hrtime.bigint()} drops ${note ?? ''}`);
    return this.said.at(-1);
  };

  /** Run a call as a client does, and look at its id. */
  run(name, given, id) {
    assert.equal(name, 'get_weather');
    if (id !== undefined) {
      assert.match(id, /^[A-Za-z0-9_-]{1,64}$/);
      assert.ok(!this.ids.has(id), `${id} came twice`);
      this.ids.add(id);
    }
    return this.getWeather(given);
  }
}

/** Checks one client on one wire. */
export class Judge {
  constructor(client, wire) {
    Object.assign(this, { client, wire });
  }

  /** Let the client talk through every scenario that ends well: `talk` gives { opening, thought, final }. */
  async converse(mode, talk) {
    for (const scenario of Object.keys(WANTED)) {
      await this.check(mode, scenario, () => converse(talk, scenario));
    }
  }

  /** Let the client meet a failure: it must raise its own error, with our message where `told` finds it. */
  async refuse(mode, scenario, ask, error, told = (raised) => raised.message) {
    await this.check(mode, scenario, () => refuse(ask, scenario, error, told));
  }

  async check(mode, scenario, run) {
    const line = { judge: this.client, wire: this.wire, mode, scenario, ok: true };
    const started = performance.now();
    try {
      await run();
    } catch (error) {
      console.error(error);
      process.exitCode = 1;
      Object.assign(line, { ok: false, error: String(error).slice(0, 500) });
    }
    line.seconds = Math.round(performance.now() - started) / 1000;
    console.log(JSON.stringify(line));
  }
}

async function converse(talk, scenario) {
  const weather = new Weather();
  const { opening, thought, final } = await talk(scenario, weather);
  assert.deepEqual(weather.asked, WANTED[scenario]);
  assert.equal(opening ?? OPENING, OPENING);
  assert.equal(thought ?? THOUGHT, THOUGHT);
  weather.asked.forEach(({ city }, number) => {
    const said = weather.said[number];
    const quoted = final.includes(`get_weather(${city}) said <${said}>.`) || final.includes(JSON.stringify(said));
    assert.ok(quoted, `${final} does not quote ${said}`);
  });
}

async function refuse(ask, scenario, error, told) {
  let raised;
  try {
    await ask(scenario);
  } catch (caught) {
    raised = caught;
  }
  assert.ok(raised !== undefined, `nothing was raised; wanted ${error.name}`);
  if (!(raised instanceof error)) throw raised;
  assert.ok(String(told(raised)).includes(MESSAGES[scenario]), raised);
}

export function versionOf(name) {
  const path = new globalThis.URL(`node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(path, 'utf8')).version;
}

export async function collect(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}
