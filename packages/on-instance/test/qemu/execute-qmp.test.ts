import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { ImageError } from '@nodepool-builder/image-builder';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { executeQmp } from '../../src/qemu/execute-qmp.ts';

test('a QEMU that is killed in the middle of a line counts as ended', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'qmp-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const path = join(directory, 'qmp.sock');
  const server = createServer((socket) => {
    createInterface({ input: socket })
      .once('line', () => socket.write('{"return": {}}\n'))
      .on('line', (line) => {
        if (line.includes('query-status')) socket.end('{"return": {"sta');
      });
  });
  undoAfter(t, () => server.close());
  await once(server.listen(path), 'listening');
  await assert.rejects(
    executeQmp(path, 'query-status'),
    (error) => error instanceof ImageError && error.message.includes('it has ended'),
  );
});
