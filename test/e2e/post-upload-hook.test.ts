import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { startBuilder } from '../fixtures/builder-process.ts';
import { gearman } from '../fixtures/gearman-commands.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

it('a job is assigned and its hook run again after the builder was killed while the hook ran', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createSite(server.port);
  undoAfter(t, () => site.remove());
  const [hook, pids] = ['hook', 'pids'].map((name) => join(site.directory, name)) as [string, string];
  // The first run hangs, the second rejects the image.
  const script = `if [ -e ${pids} ]; then exit 1; fi; echo $$ > ${pids}; exec sleep 600`;
  await writeFile(hook, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const configuration = await readFile(site.config, 'utf8');
  await writeFile(
    site.config,
    configuration.replace('    directory: pool\n', '    directory: pool\n    post-upload-hook: ./hook\n'),
  );
  const builder = await startBuilder(site.config);
  undoAfter(t, () => builder.end('SIGKILL'));
  const build = await gearman(server.port, 'image-build:docs', '{"image-id": "0001"}');
  assert.equal(build.code, 0);

  const upload = gearman(server.port, 'image-upload:0001', '{"provider": "pool", "image-name": "docs"}');
  // The shell creates the file before it writes to it.
  const hanging = await waitUntil('the hook', async () => {
    const pid = existsSync(pids) ? Number(await readFile(pids, 'utf8')) : 0;
    return pid > 0 && pid;
  });
  undoAfter(t, () => process.kill(hanging, 'SIGKILL'));
  assert.ok((await readdir(site.pool)).includes('docs-0001.qcow2'));
  await builder.end('SIGKILL');
  const successor = await startBuilder(site.config);
  undoAfter(t, () => successor.end('SIGKILL'));

  assert.notEqual((await upload).code, 0);
  await successor.logged(
    /image\.upload\.pool: .*hook" ended with exit code 1; the image was deleted from pool/,
  );
  assert.deepEqual(await readdir(site.pool), []);
});
