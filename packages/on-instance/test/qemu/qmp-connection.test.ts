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
import { QmpConnection } from '../../src/qemu/qmp-connection.ts';

test('a QEMU that is killed in the middle of a line counts as ended', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'qmp-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const path = join(directory, 'qmp.sock');
  const server = createServer((socket) => {
    createInterface({ input: socket })
      .once('line', () => socket.write('{"return": {}, "id": 1}\n'))
      .on('line', (line) => {
        if (line.includes('query-status')) socket.end('{"return": {"sta');
      });
  });
  undoAfter(t, () => server.close());
  await once(server.listen(path), 'listening');
  const qmp = await QmpConnection.open(path);
  assert.ok(qmp !== undefined);
  undoAfter(t, () => qmp.close());
  const ended = assert.rejects(
    qmp.execute('query-status'),
    (error) => error instanceof ImageError && error.message.includes('it has ended'),
  );
  await Promise.all([qmp.nextEvent(), ended]);
});
