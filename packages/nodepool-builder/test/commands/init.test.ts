// Not a unit test: it runs the whole command.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runInProcess } from '../../../../test/fixtures/command-in-process.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';

describe('init', () => {
  it('init writes a commented file that validate accepts', async (t) => {
    const file = join(temporaryDirectory(t), 'nodepool.yaml');
    const { code, stdout, stderr } = await runInProcess('init', '--output', file);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(
      stdout,
      new RegExp(`^wrote ${file}; change it, then:\n  nodepool-builder validate --strict `),
    );
    assert.match(await readFile(file, 'utf8'), /^# .*\n\nimages-dir: /s);
    assert.equal((await runInProcess('validate', file)).code, 0);
  });

  it('init does not overwrite a file', async (t) => {
    const file = join(temporaryDirectory(t), 'nodepool.yaml');
    await writeFile(file, 'mine');
    const { code, stderr } = await runInProcess('init', '--output', file);
    assert.equal(code, 4);
    assert.match(stderr, /exists, and is not overwritten; name another file with --output/);
    assert.equal(await readFile(file, 'utf8'), 'mine');
  });

  it('init names a file that cannot be written', async () => {
    const { code, stderr } = await runInProcess('init', '--output', '/nonexistent/nodepool.yaml');
    assert.equal(code, 1);
    assert.match(stderr, /\/nonexistent\/nodepool\.yaml cannot be written: ENOENT/);
  });
});
