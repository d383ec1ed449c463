import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planHiding } from '../../src/cleanup/hidden-files.ts';
import { parseMounts } from '../../src/cleanup/mounts.ts';

const MOUNTS = parseMounts(
  [
    '26 1 254:0 / / rw,relatime - ext4 /dev/root rw',
    '21 26 0:20 / /proc rw - proc proc rw',
    '22 26 0:23 / /run rw shared:3 - tmpfs tmpfs rw',
    String.raw`30 26 254:0 /etc /srv/a\040chroot/etc rw - ext4 /dev/root rw`,
    '31 26 0:20 / /srv/chroot/proc rw - proc proc rw',
    '32 22 0:40 / /run/credentials/nodepool-builder.service ro - ramfs none rw',
  ].join('\n'),
);

test('a secret file is covered under each path that leads to it, and every /proc is detached', () => {
  assert.deepEqual(planHiding(['/etc/nodepool/key.pem'], MOUNTS), {
    detached: ['/srv/chroot/proc', '/proc'],
    covered: ['/etc/nodepool/key.pem', '/srv/a chroot/etc/nodepool/key.pem'],
    files: ['/etc/nodepool/key.pem'],
  });
});

test('a memory file system that contains only secrets is detached', () => {
  const key = '/run/credentials/nodepool-builder.service/key';
  const { detached, covered } = planHiding([key], MOUNTS);
  assert.deepEqual(detached[0], '/run/credentials/nodepool-builder.service');
  assert.deepEqual(covered, []);
});

test('a memory file system that contains other files stays', () => {
  const { detached, covered } = planHiding(['/run/nodepool/key'], MOUNTS);
  assert.deepEqual(detached, ['/srv/chroot/proc', '/proc']);
  assert.deepEqual(covered, ['/run/nodepool/key']);
});
