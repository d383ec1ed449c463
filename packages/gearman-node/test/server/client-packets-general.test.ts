import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JobServerSite, settled } from '../fixtures/job-server-site.ts';

test('ECHO_REQ gets a response with the same bytes', async (t) => {
  const site = await JobServerSite.start(t);
  const peer = await site.connect();
  for (const data of ['', 'ping', '\0\0', 'x'.repeat(1024 * 1024)]) {
    assert.deepEqual(await peer.ask('ECHO_REQ', data), ['ECHO_RES', data]);
  }
});

test('an unknown option gets an ERROR packet', async (t) => {
  const site = await JobServerSite.start(t);
  const peer = await site.connect();
  assert.deepEqual((await peer.ask('OPTION_REQ', 'nonsense')).slice(0, 2), ['ERROR', 'UNKNOWN_OPTION']);
});

test('SET_CLIENT_ID sets a name of at most 127 bytes that the admin command workers shows', async (t) => {
  const site = await JobServerSite.start(t);
  const peer = await site.connect();
  for (const [id, shown] of [
    ['builder-1', 'builder-1'],
    ['x'.repeat(200), 'x'.repeat(127)],
    ['', '-'],
  ] as const) {
    peer.send('SET_CLIENT_ID', id);
    assert.deepEqual(await settled(peer), []);
    peer.sendBytes('workers\n');
    assert.deepEqual(await peer.next(), ['LINE', `1 127.0.0.1 ${shown} :`]);
    assert.deepEqual(await peer.next(), ['LINE', '.']);
  }
});
