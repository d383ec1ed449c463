// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { CloudDouble } from '../../../../test/doubles/openstack/cloud-double.ts';
import { ImageApi } from '../../src/image-api.ts';
import { OpenStackSession } from '../../src/session/openstack-session.ts';
import { type ActiveImageOptions, activeImage } from '../../src/upload/active-image.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

const { signal } = new AbortController();

/** Successive states of an image and its tasks. The last one is repeated. */
interface Course {
  readonly arrival: ActiveImageOptions['arrival'];
  readonly statuses: readonly string[];
  readonly tasks?: readonly (object | readonly object[])[];
  /** Timeout in seconds. Default: longer than any test. */
  readonly timeout?: number;
}

/** Waits for an image. */
async function wait(
  t: TestContext,
  { arrival, statuses, tasks = [], timeout = 60 }: Course,
): Promise<string> {
  const cloud = await CloudDouble.start(t);
  const settings = cloud.settings();
  const session = new OpenStackSession(settings, { logger: SILENT });
  t.after(() => session.close());
  const images = new ImageApi(session);
  const left = [...statuses];
  const leftTasks = [...tasks];
  cloud.intercept = ({ path }) => {
    if (path.endsWith('/tasks')) {
      const now = leftTasks.length > 1 ? leftTasks.shift() : leftTasks[0];
      return { status: 200, body: { tasks: now === undefined ? [] : [now].flat() } };
    }
    const status = left.length > 1 ? left.shift() : left[0];
    return { status: 200, body: { id: 'i1', status, created_at: '2026-01-01T00:00:00Z' } };
  };
  return (await activeImage(images, 'i1', { arrival, timeout, signal })).status;
}

describe('an image after a PUT', () => {
  test('an image is polled after a PUT while the cloud stores the data', async (t) => {
    assert.equal(await wait(t, { arrival: 'file', statuses: ['saving', 'importing', 'active'] }), 'active');
  });

  for (const status of ['queued', 'uploading', 'killed', 'deleted', 'pending_delete', 'deactivated', 'new']) {
    test(`an image has failed after a PUT if its status is ${status}`, async (t) => {
      await assert.rejects(
        wait(t, { arrival: 'file', statuses: ['saving', status] }),
        failsWith('image-failed', 'cloud double: image i1', `went to ${status} instead of active`),
      );
    });
  }

  test('an image that is not active after a PUT fails after the timeout', async (t) => {
    await assert.rejects(
      wait(t, { arrival: 'file', statuses: ['saving'], timeout: 0.5 }),
      failsWith('image-timeout', 'i1 is saving and not active after 0.5 s', 'increase image-upload-timeout'),
    );
  });
});

describe('an image after an import', () => {
  test('an image may be queued before its import starts', async (t) => {
    assert.equal(await wait(t, { arrival: 'import', statuses: ['queued', 'importing', 'active'] }), 'active');
    assert.equal(
      await wait(t, { arrival: 'import', statuses: ['uploading', 'importing', 'saving', 'active'] }),
      'active',
    );
  });

  for (const status of ['queued', 'uploading']) {
    test(`an image has failed after an import if it returns to ${status}`, async (t) => {
      await assert.rejects(
        wait(t, { arrival: 'import', statuses: [status, 'importing', status] }),
        failsWith('image-failed', `went to ${status} instead of active`),
      );
    });
  }

  const failure = { id: 't1', status: 'failure', message: 'Task failed due to Internal Error' };
  const inItsWords = failsWith('image-failed', 'could not be imported (Task failed due to Internal Error)');

  test('an image has failed after an import if its task has failed, with the cloud’s message', async (t) => {
    await assert.rejects(wait(t, { arrival: 'import', statuses: ['queued'], tasks: [failure] }), inItsWords);
  });

  for (const status of ['importing', 'saving']) {
    test(`an image has failed after an import if its task has failed while its status is ${status}`, async (t) => {
      await assert.rejects(wait(t, { arrival: 'import', statuses: [status], tasks: [failure] }), inItsWords);
    });
  }

  test('an image is awaited while another import task runs after a failed one', async (t) => {
    const again = { id: 't2', status: 'processing' };
    const statuses = ['importing', 'importing', 'active'];
    assert.equal(await wait(t, { arrival: 'import', statuses, tasks: [[failure, again]] }), 'active');
  });

  test('a failed import whose image returned to its earlier status reports the cloud’s late message', async (t) => {
    const processing = { ...failure, status: 'processing', message: '' };
    await assert.rejects(
      wait(t, {
        arrival: 'import',
        statuses: ['queued', 'importing', 'queued'],
        tasks: [processing, processing, failure],
      }),
      inItsWords,
    );
  });
});
