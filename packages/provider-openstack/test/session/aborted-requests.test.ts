import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HttpDouble } from '../../../../test/doubles/http-double.ts';
import { LazyCloud, OpenStackSession } from '../../src/session/openstack-session.ts';
import { ServiceClient } from '../../src/session/service-client.ts';
import { passwordAuth, settingsWith } from '../fixtures/cloud-settings.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { type Ending, plainClient } from '../fixtures/plain-client.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

/** Calls `abort` when the server has received the request, to which it does not respond. */
async function abortedBy(
  t: Ending,
  abort: (session: OpenStackSession, controller: AbortController) => void,
): Promise<void> {
  const controller = new AbortController();
  const { client, http, session } = await plainClient(t);
  http.reply(() => {
    abort(session, controller);
    return undefined;
  });
  await client.json('GET', '/images', { signal: controller.signal });
}

describe('an abort', () => {
  it('an abort ends a cloud request, with the reason as the cause', async (t) => {
    const reason = new Error('enough');
    await assert.rejects(
      abortedBy(t, (_session, controller) => controller.abort(reason)),
      (error: Error) => failsWith('aborted')(error) && error.cause === reason,
    );
  });

  it('closing a session aborts its requests to the cloud', async (t) => {
    await assert.rejects(
      abortedBy(t, (session) => session.close()),
      failsWith('aborted'),
    );
  });

  it('an abort ends the delay before a cloud request is retried', async (t) => {
    const controller = new AbortController();
    const http = await HttpDouble.start(() => ({ status: 503 }));
    t.after(() => http[Symbol.asyncDispose]());
    const session = new OpenStackSession(settingsWith({ type: 'none', endpoint: http.url }), {
      logger: { ...SILENT, warn: () => controller.abort() },
      retry: { firstDelay: 1e6, maxDelay: 1e6 },
    });
    const request = new ServiceClient({ type: 'image', interface: 'public' }, session).json(
      'GET',
      '/images',
      { signal: controller.signal },
    );
    await assert.rejects(request, failsWith('aborted'));
  });

  it('an abort ends a token request for which no other caller waits', { timeout: 20_000 }, async (t) => {
    const controller = new AbortController();
    const http = await HttpDouble.start(() => {
      controller.abort();
      return undefined;
    });
    t.after(() => http[Symbol.asyncDispose]());
    const session = new OpenStackSession(settingsWith(passwordAuth(`${http.url}/v3`)), { logger: SILENT });
    const request = new ServiceClient({ type: 'image', interface: 'public' }, session).json(
      'GET',
      '/images',
      { signal: controller.signal },
    );
    await assert.rejects(request, failsWith('aborted'));
  });
});

describe('a cloud that is closed while it opens', () => {
  it('a cloud that is closed while it opens keeps later sessions when the opening fails', async () => {
    const settings = settingsWith({ type: 'none', endpoint: 'http://127.0.0.1:1' });
    const slow = Promise.withResolvers<typeof settings>();
    const pending = [slow.promise];
    const options = { settings: async () => pending.shift() ?? settings, logger: SILENT };
    const cloud = new LazyCloud(options, (session) => session);
    const failing = cloud.open();
    cloud.close();
    const reopened = await cloud.open();
    slow.reject(new Error('no clouds.yaml'));
    await assert.rejects(failing, /no clouds.yaml/);
    assert.equal(await cloud.open(), reopened);
  });
});
