import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GearmanError, JobExceptionError, JobFailedError } from '@nodepool-builder/gearman-node';
import { deleteFiles } from '../../src/acts/delete.ts';
import type { Observation } from '../../src/gearman/builder-fleet.ts';
import type { RunLimits } from '../../src/gearman/run-job.ts';

const IMAGE = 'debian-0000000001-ownerabc';

/** What job servers say of an image, one after the other; the last one again and again. */
function deletion(
  observed: readonly ('offered' | 'gone' | 'unknown')[],
  run: (limits: RunLimits) => Promise<void>,
) {
  const jobs: string[] = [];
  const rest = observed.map((what): Observation => {
    const deletes = new Set(what === 'offered' ? [IMAGE] : []);
    return {
      offered: { builds: new Set(), uploads: new Set(), deletes },
      isComplete: what !== 'unknown',
      copied: new Set(),
    };
  });
  const next = () => (rest.length > 1 ? rest.shift() : rest[0]) as Observation;
  const context = {
    lastObservation: next,
    observe: async () => next(),
    fleet: {
      run: async (name: string, _: unknown, unique: string, limits: RunLimits) => {
        jobs.push(`${name} ${unique}`);
        await run(limits);
        return Buffer.alloc(0);
      },
    },
  };
  return { jobs, delete: (signal = AbortSignal.any([])) => deleteFiles(context, IMAGE, signal) };
}

const answered = async (): Promise<void> => {};

/** A job that waits in the queue. */
const queued = ({ signal }: RunLimits): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new GearmanError('aborted', 'left')));
  });

test('files are removed when a builder has answered and nobody offers the image, whatever is unknown before', async () => {
  const it = deletion(['offered', 'offered', 'unknown', 'gone'], answered);
  assert.equal(await it.delete(), true);
  assert.deepEqual(it.jobs, [`image-delete:${IMAGE} 0000000001-ownerabc`]);
});

test('an image that nobody offers is not taken for removed', async () => {
  const it = deletion(['gone'], answered);
  assert.equal(await it.delete(), false);
  assert.deepEqual(it.jobs, []);
});

test('a builder that does not know the image any more is no obstacle', async () => {
  const it = deletion(['offered', 'gone'], async () => {
    throw new JobFailedError('image-delete', 'H:1');
  });
  assert.equal(await it.delete(), true);
});

test('a builder that cannot remove it says why', async () => {
  const it = deletion(['offered', 'gone'], async () => {
    throw new JobExceptionError('image-delete', 'H:1', Buffer.from('read-only file system'));
  });
  await assert.rejects(it.delete(), JobExceptionError);
});

test('a job whose function goes while it waits is given up, and nothing is taken for removed', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const it = deletion(['offered', 'gone', 'offered', 'unknown', 'gone'], queued);
  let isOver = false;
  const result = it.delete().finally(() => {
    isOver = true;
  });
  for (let look = 0; look < 4; look += 1) {
    t.mock.timers.tick(250);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isOver, false, `after look ${look + 1}`);
  }
  t.mock.timers.tick(250);
  assert.equal(await result, false);
});

test('it stops when it is told to', async () => {
  const stop = new AbortController();
  const result = deletion(['offered'], queued).delete(stop.signal);
  stop.abort(new Error('enough'));
  await assert.rejects(result, /enough/);
});
