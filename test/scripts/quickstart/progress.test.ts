import assert from 'node:assert/strict';
import { test } from 'node:test';
import { progressIn } from '../../../scripts/quickstart/progress.ts';

const TIME = '2026-11-21 22:39:12,172';

test('the quickstart reports the manager’s progress', () => {
  assert.deepEqual(progressIn(`${TIME} INFO nodepool.manager: build debian-1 is ready`), {
    kind: 'news',
    text: 'build debian-1 is ready',
  });
});

test('the quickstart reports the end of long phases in disk-image-create, and no other output', () => {
  const line = (text: string): string => `${TIME} INFO nodepool.image.build.debian: ${TIME} | ${text}`;
  assert.deepEqual(progressIn(line('dib-run-parts Target: install.d')), {
    kind: 'news',
    text: 'the packages are installed',
  });
  for (const other of ['dib-run-parts Script     Seconds', 'dib-run-parts Target: environment.d']) {
    assert.equal(progressIn(line(other)), undefined);
  }
});

test('the quickstart reports a failed build or upload as a failure', () => {
  for (const text of [
    'build debian-1 failed: no builder has offered it',
    'upload 2-a of debian-1 to local failed: the disk is full',
  ]) {
    assert.deepEqual(progressIn(`${TIME} WARNING nodepool.manager: ${text}`), { kind: 'failure', text });
  }
  const text = 'build debian-1 of debian failed: exit code 3 (job H:vm:4)';
  const line = `${TIME} ERROR nodepool.builder.BuildWorker: ${text}`;
  assert.deepEqual(progressIn(line), { kind: 'failure', text });
});

test('the quickstart ignores other loggers', () => {
  assert.equal(progressIn(`${TIME} INFO gear.Worker: connected to the job server`), undefined);
});
