import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { it } from 'node:test';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { isImageOffered } from '../../src/daemon/fleet.ts';

it('an abort ends the wait for a silent job server at once, with the abort’s reason', async (t) => {
  const silent = createServer((socket) => {
    undoAfter(t, () => socket.destroy());
  });
  undoAfter(t, () => silent.close());
  await once(silent.listen(0, '127.0.0.1'), 'listening');
  const { port } = silent.address() as AddressInfo;
  const stop = new AbortController();
  const reason = new Error('enough');
  silent.once('connection', () => stop.abort(reason));
  await assert.rejects(isImageOffered([{ host: '127.0.0.1', port }], '1', stop.signal), reason);
});
