import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { coreutilsDigest, LARGE, randomFile } from './image-file.ts';

const run = promisify(execFile);

/** Programs that never close their reader. */
const PROGRAMS: readonly (readonly [name: string, body: string])[] = [
  ['breaks off', 'for await (const piece of reader.pieces()) break;'],
  ['stops in the middle', 'await reader.pieces().next();'],
  ['reads all of it', 'for await (const piece of reader.pieces()); await reader.checksums;'],
];

/** Node.js flags that load the package from its sources, or compiled. */
const WAYS: readonly (readonly [name: string, flags: readonly string[]])[] = [
  ['from its sources', ['--conditions=@nodepool-builder/source']],
  ['compiled', []],
];

for (const [way, flags] of WAYS) {
  for (const [name, body] of PROGRAMS) {
    test(`a process that ${name} while hashing a file ends by itself, ${way}`, async (t) => {
      const { path } = await randomFile(t, 2 * LARGE);
      const program = `
        import { HashedReader } from '@nodepool-builder/image-builder';
        const reader = await HashedReader.open(process.argv[1]);
        reader.checksums.then(({ md5 }) => console.log(md5));
        ${body}`;
      const args = [...flags, '--input-type=module', '--eval', program, '--', path];
      const { stdout } = await run(process.execPath, args, { cwd: import.meta.dirname, timeout: 60_000 });
      assert.equal(stdout.trim(), name === 'reads all of it' ? coreutilsDigest('md5', path) : '');
    });
  }
}
