import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { coreutilsDigest, LARGE, randomFile } from './image-file.ts';

const run = promisify(execFile);

/** What a program does with a source that it never closes, and how that ends. */
const PROGRAMS: readonly (readonly [name: string, body: string])[] = [
  ['breaks off', 'for await (const piece of source.pieces()) break;'],
  ['stops in the middle', 'await source.pieces().next();'],
  ['reads all of it', 'for await (const piece of source.pieces()); await source.digests;'],
];

/** Both ways in which the package is loaded: its sources, and compiled. */
const WAYS: readonly (readonly [name: string, flags: readonly string[]])[] = [
  ['from its sources', ['--conditions=@nodepool-builder/source']],
  ['compiled', []],
];

for (const [way, flags] of WAYS) {
  for (const [name, body] of PROGRAMS) {
    test(`a process that ${name} ends by itself, ${way}`, async (t) => {
      const { path } = await randomFile(t, 2 * LARGE);
      const program = `
        import { openUploadSource } from '@nodepool-builder/image-builder';
        const source = await openUploadSource(process.argv[1], { digests: ['md5', 'sha256'] });
        source.digests.then(({ md5 }) => console.log(md5));
        ${body}`;
      const args = [...flags, '--input-type=module', '--eval', program, '--', path];
      const { stdout } = await run(process.execPath, args, { cwd: import.meta.dirname, timeout: 60_000 });
      assert.equal(stdout.trim(), name === 'reads all of it' ? coreutilsDigest('md5', path) : '');
    });
  }
}
