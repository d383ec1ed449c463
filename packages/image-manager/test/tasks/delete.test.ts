import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GearmanError, JobExceptionError, JobFailedError } from '@nodepool-builder/gearman-node';
import type { FleetStatus } from '../../src/gearman/builder-fleet.ts';
import type { RunLimits } from '../../src/gearman/run-job.ts';
import { deleteFiles } from '../../src/tasks/delete.ts';

const IMAGE = 'debian-0000000001-ownerabc';

/** Runs a deletion during which the job servers report these states of the image. The last one repeats. */
function deletion(
  observed: readonly ('offered' | 'gone' | 'unknown')[],
  run: (limits: RunLimits) => Promise<void>,
) {
  const jobs: string[] = [];
  const rest = observed.map((what): FleetStatus => {
    const deletes = new Set(what === 'offered' ? [IMAGE] : []);
    return {
      offered: { builds: new Set(), uploads: new Set(), deletes },
      isComplete: what !== 'unknown',
      copied: new Set(),
    };
  });
  const next = () => (rest.length > 1 ? rest.shift() : rest[0]) as FleetStatus;
  const fleet = {
    get lastStatus() {
      return next();
    },
    status: async () => next(),
    run: async (name: string, _: unknown, unique: string, limits: RunLimits) => {
      jobs.push(`${name} ${unique}`);
      await run(limits);
      return Buffer.alloc(0);
    },
  };
  return { jobs, delete: (signal = AbortSignal.any([])) => deleteFiles(fleet, IMAGE, signal) };
}

const acknowledged = async (): Promise<void> => {};

/** A job that stays in the queue. */
const queued = ({ signal }: RunLimits): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new GearmanError('aborted', 'stopped')));
  });

test('an image’s files count as deleted once a builder has responded and no builder offers it', async () => {
  const it = deletion(['offered', 'offered', 'unknown', 'gone'], acknowledged);
  assert.equal(await it.delete(), true);
  assert.deepEqual(it.jobs, [`image-delete:${IMAGE} 0000000001-ownerabc`]);
});

test('an image that no builder offers does not count as deleted', async () => {
  const it = deletion(['gone'], acknowledged);
  assert.equal(await it.delete(), false);
  assert.deepEqual(it.jobs, []);
});

test('an image’s deletion does not fail if a builder no longer knows it', async () => {
  const it = deletion(['offered', 'gone'], async () => {
    throw new JobFailedError('image-delete', 'H:1');
  });
  assert.equal(await it.delete(), true);
});

test('an image’s deletion fails with the builder’s reason', async () => {
  const it = deletion(['offered', 'gone'], async () => {
    throw new JobExceptionError('image-delete', 'H:1', Buffer.from('read-only file system'));
  });
  await assert.rejects(it.delete(), JobExceptionError);
});

test('a queued deletion is cancelled when its function disappears, and the files do not count as deleted', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const it = deletion(['offered', 'gone', 'offered', 'unknown', 'gone'], queued);
  let hasEnded = false;
  const result = it.delete().finally(() => {
    hasEnded = true;
  });
  for (let poll = 0; poll < 4; poll += 1) {
    t.mock.timers.tick(250);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(hasEnded, false, `after poll ${poll + 1}`);
  }
  t.mock.timers.tick(250);
  assert.equal(await result, false);
});

test('an abort ends an image’s deletion', async () => {
  const stop = new AbortController();
  const result = deletion(['offered'], queued).delete(stop.signal);
  stop.abort(new Error('stopped'));
  await assert.rejects(result, /stopped/);
});
