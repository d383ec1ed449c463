// Only in test:all: it tests the benchmarks.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { profileTables, recordProfiles } from '../../../scripts/bench/profiles.ts';
import { temporaryDirectory } from '../../fixtures/temporary-directory.ts';

const PROGRAM = `
  import { createHash } from 'node:crypto';
  const bytes = Buffer.alloc(1e6);
  function hash() {
    for (let count = 0; count < 1000; count += 1) createHash('sha256').update(bytes).digest();
  }
  hash();
  setInterval(() => {}, 1e6);
  console.log('done');
`;

test('a profile shows where a program that SIGTERM ended was busy', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, 'hashes.mjs'), PROGRAM);
  const [profiles, env] = [join(directory, 'profiles'), { ...process.env }];
  await recordProfiles(profiles, env);
  const child = spawn(process.execPath, [join(directory, 'hashes.mjs')], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill();
  await once(child, 'exit');
  const [header = '', , busiest = ''] = (await profileTables(profiles)).split('\n');
  assert.match(header, /^\| hashes\.mjs, busy for \d+\.\d s \| of that \|$/);
  assert.match(busiest, /^\| `update` of node:internal\/crypto\/hash \| \d+ % \|$/);
});
