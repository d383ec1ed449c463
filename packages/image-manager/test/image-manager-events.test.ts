import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ManagerEvent } from '@nodepool-builder/image-manager';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { ManagerSite } from './manager-site.ts';

/** Formats an event as one line: `ended debian-1 failed`. */
function inWords(event: ManagerEvent): string {
  switch (event.kind) {
    case 'started':
      return `started ${'provider' in event.record ? 'upload' : 'build'}${event.isRetry ? ' again' : ''}`;
    case 'ended':
      return `ended ${'provider' in event.record ? 'upload' : 'build'}: ${event.record.state}`;
    case 'retry':
      return `retry ${event.step}`;
    case 'scanned':
      return `scanned: ${event.orphans.length}`;
    case 'orphan':
      return `orphan ${event.isDeleted ? 'deleted' : 'stays'}`;
    case 'leadership':
      return event.isLeader ? 'leader' : 'standby';
  }
}

/** Fails at the first call only. */
function failOnce(message: string): () => void {
  let calls = 0;
  return () => {
    calls += 1;
    if (calls === 1) throw new Error(message);
  };
}

test('each start, end and retry of a build or upload emits one event', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'] });
  const builder = await site.builder();
  builder.beforeBuild = failOnce('the disk is full');
  builder.beforeUpload = failOnce('the cloud is full');
  const running = site.manage();
  await site.untilInUse();
  await running.stop();
  assert.deepEqual(
    site.events.map(inWords).filter((words) => !words.startsWith('scanned')),
    [
      'leader',
      'started build',
      'ended build: failed',
      'started build again',
      'ended build: ready',
      'started upload',
      'ended upload: failed',
      'started upload again',
      'ended upload: ready',
      'standby',
    ],
  );
});

test('each orphan that a scan finds and the end of its deletion emit an event', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], timing: { orphanScanInterval: 0.03 } });
  const east = site.provider('east');
  east.plant({ externalId: 'orphan', uploadId: `0000000099-${site.store.owner}` });
  east.plant({ externalId: 'of another owner', uploadId: '0000000099-aaaaaaaa' });
  east.beforeDelete = failOnce('it is in use');
  site.manage();
  const seen = await waitUntil('a scan without orphans', () => {
    const words = site.events.map(inWords).slice(1);
    return words.at(-1) === 'scanned: 0' && words.slice(0, words.indexOf('scanned: 0') + 1);
  });
  const [first, second, ...rest] = seen;
  assert.deepEqual([first, second], ['scanned: 1', 'scanned: 1']);
  assert.deepEqual(rest, ['orphan stays', 'scanned: 1', 'orphan deleted', 'scanned: 0']);
});

test('a failed deletion that is tried again emits a retry event', async (t) => {
  const site = await ManagerSite.start(t, { providers: ['east'], diskimage: { keep: 1 } });
  await site.builder();
  const { manager } = site.manage();
  const first = await site.untilInUse();
  const east = site.provider('east');
  east.beforeDelete = failOnce('it is in use');
  site.configuration = site.withDebian({ digest: 'second' });
  manager.reconfigure(site.configuration);
  await site.untilGone(first);
  assert.deepEqual(
    site.events.map(inWords).filter((words) => words.startsWith('retry')),
    ['retry delete-upload'],
  );
});
