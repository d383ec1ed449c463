// Not a unit test: it starts servers and commands.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it, type TestContext } from 'node:test';
import { RetryPolicy } from '@nodepool-builder/image-builder/plugin';
import { RecordingLogger } from '../../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../../test/fixtures/wait-until.ts';
import type { NotificationSettings } from '../../../src/configuration/notification.ts';
import type { EventFacts } from '../../../src/daemon/notifications/event.ts';
import { Notifier } from '../../../src/daemon/notifications/notifier.ts';

const FAILED: EventFacts = {
  id: 'build/debian-1/failed',
  event: 'build-failed',
  diskimage: 'debian',
  'image-id': 'debian-1',
  error: 'no such package',
};

interface Request {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Starts a server that responds with these statuses in turn, and then repeats the last one. */
async function startReceiver(
  t: TestContext,
  responders: readonly ((response: ServerResponse) => void)[],
): Promise<{ readonly url: string; readonly requests: readonly Request[] }> {
  const requests: Request[] = [];
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    requests.push({ headers: request.headers, body: await text(request) });
    responders[Math.min(requests.length, responders.length) - 1]?.(response);
  };
  const server = createServer((request, response) => void respond(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  undoAfter(t, () => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  return { url: `http://127.0.0.1:${address.port}/hook-secret`, requests };
}

const status =
  (code: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(code, headers).end('the body');
  };

function drop(response: ServerResponse): void {
  response.destroy();
}

function entryOf(fields: Partial<NotificationSettings>): NotificationSettings {
  return { name: 'chat', 'max-age': 1000, ...fields };
}

function startNotifier(t: TestContext, ...entries: readonly NotificationSettings[]) {
  return startLimitedNotifier(t, {}, ...entries);
}

/** @param limits pause between deliveries and timeout of each, in seconds */
function startLimitedNotifier(
  t: TestContext,
  { attempts = 100, pause = 0.01, timeout = 10 },
  ...entries: readonly NotificationSettings[]
) {
  const logger = new RecordingLogger();
  const { lines } = logger;
  const retries = new RetryPolicy({
    attempts,
    firstDelay: pause,
    maxDelay: pause,
    maxRetryAfter: 1,
  });
  const notifier = new Notifier({ logger, retries, timeout });
  undoAfter(t, () => notifier.close());
  notifier.configure(entries);
  const hasLogged = (pattern: RegExp): Promise<boolean> =>
    waitUntil(String(pattern), () => lines.some((line) => pattern.test(line)));
  return { notifier, lines, hasLogged };
}

describe('a webhook', () => {
  it('a webhook gets the event, with a signature made with its secret', async (t) => {
    const { url, requests } = await startReceiver(t, [status(204)]);
    const secretFile = join(temporaryDirectory(t), 'secret');
    await writeFile(secretFile, `whsec_${Buffer.from('a key').toString('base64')}\n`);
    const { notifier, hasLogged } = startNotifier(t, entryOf({ url, 'secret-file': secretFile }));
    notifier.notify(FAILED);
    await hasLogged(/^info notification chat: build-failed of debian-1 was delivered: status 204$/);
    const [{ headers, body } = { headers: {}, body: '' }, ...others] = requests;
    assert.deepEqual(others, []);
    assert.equal(JSON.parse(body).text, 'build debian-1 of debian failed: no such package');
    const signed = `build/debian-1/failed.${String(headers['webhook-timestamp'])}.${body}`;
    const digest = createHmac('sha256', 'a key').update(signed).digest('base64');
    assert.equal(headers['webhook-signature'], `v1,${digest}`);
    assert.equal(headers['webhook-id'], 'build/debian-1/failed');
    const age = Date.now() / 1000 - Number(headers['webhook-timestamp']);
    assert.ok(age < 60 && age > -1, `${age}`);
  });

  it('a webhook gets the event again after a transient error, with the same id, until it accepts it', async (t) => {
    const responders = [status(503), drop, status(429, { 'retry-after': '0' }), status(200)];
    const { url, requests } = await startReceiver(t, responders);
    const { notifier, lines, hasLogged } = startNotifier(t, entryOf({ url }));
    notifier.notify(FAILED);
    await hasLogged(/was delivered/);
    assert.deepEqual(
      requests.map(({ headers }) => headers['webhook-id']),
      Array.from({ length: 4 }, () => 'build/debian-1/failed'),
    );
    assert.match(
      lines[0] ?? '',
      /^warn .* was not delivered: status 503: the body; retrying in .* s \(attempt 2/,
    );
    assert.equal(lines.filter((line) => line.startsWith('warn')).length, 1);
  });

  it('a webhook that rejects the event or redirects gets it once', async (t) => {
    const refusing = await startReceiver(t, [status(403)]);
    const elsewhere = await startReceiver(t, [status(200)]);
    const redirecting = await startReceiver(t, [status(307, { location: elsewhere.url })]);
    const { notifier, hasLogged } = startNotifier(
      t,
      entryOf({ url: refusing.url }),
      entryOf({ name: 'moved', url: redirecting.url }),
    );
    notifier.notify(FAILED);
    await hasLogged(/^error notification chat: .* was not delivered: status 403: the body$/);
    await hasLogged(/^error notification moved: .* redirected to http:\/\/127\.0\.0\.1:\d+; set the URL/);
    assert.deepEqual([refusing.requests.length, redirecting.requests.length], [1, 1]);
    assert.deepEqual(elsewhere.requests, []);
  });

  it('a webhook with a long response body gets the event once if it accepts it, and again after a 502', async (t) => {
    const page = 'x'.repeat(1_000_000);
    const long =
      (code: number) =>
      (response: ServerResponse): void => {
        response.writeHead(code).end(page);
      };
    const accepting = await startReceiver(t, [long(200)]);
    const recovering = await startReceiver(t, [long(502), long(200)]);
    const { notifier, hasLogged } = startNotifier(
      t,
      entryOf({ url: accepting.url }),
      entryOf({ name: 'later', url: recovering.url }),
    );
    notifier.notify(FAILED);
    await hasLogged(/^info notification chat: .* was delivered: status 200$/);
    await hasLogged(/^info notification later: .* was delivered: status 200$/);
    assert.deepEqual([accepting.requests.length, recovering.requests.length], [1, 2]);
  });

  it('a webhook that hangs delays neither the others nor the end of the process', async (t) => {
    const hanging = await startReceiver(t, [() => {}]);
    const quick = await startReceiver(t, [status(200)]);
    const { notifier, hasLogged } = startLimitedNotifier(
      t,
      { attempts: 2, timeout: 0.5 },
      entryOf({ name: 'slow', url: hanging.url }),
      entryOf({ url: quick.url }),
    );
    notifier.notify(FAILED);
    await hasLogged(/^info notification chat: .* was delivered/);
    await hasLogged(/^error notification slow: .* was not delivered: no response: /);
    assert.ok(hanging.requests.length > 1);
  });

  it('a webhook’s URL and secret are never shown in the log', async (t) => {
    const { url } = await startReceiver(t, [status(500)]);
    const secretFile = join(temporaryDirectory(t), 'secret');
    await writeFile(secretFile, 'hunter2');
    const { notifier, lines, hasLogged } = startLimitedNotifier(
      t,
      { attempts: 1 },
      entryOf({ url, 'secret-file': secretFile }),
      entryOf({ name: 'gone', url: 'http://127.0.0.1:1/hook-secret' }),
      entryOf({ name: 'unread', url: secretFile }),
    );
    notifier.notify(FAILED);
    for (const name of ['chat', 'gone', 'unread']) await hasLogged(RegExp(`^error notification ${name}:`));
    assert.doesNotMatch(lines.join('\n'), /hook-secret|hunter2/);
  });

  it('a webhook still gets pending events when its entry is removed, and nothing later', async (t) => {
    const { url, requests } = await startReceiver(t, [status(500), status(200)]);
    const { notifier, hasLogged } = startNotifier(t, entryOf({ url }));
    notifier.notify(FAILED);
    await hasLogged(/was not delivered: .*\(attempt 2/);
    notifier.configure([]);
    notifier.notify(FAILED);
    await hasLogged(/was delivered|was not delivered: /);
    assert.ok(requests.length <= 2);
  });
});

describe('a webhook in a pause after an error', () => {
  const longPause = 600;

  it('a webhook in a pause after an error gets the event once more when the process stops', async (t) => {
    const { url, requests } = await startReceiver(t, [status(500), status(200)]);
    const { notifier, lines, hasLogged } = startLimitedNotifier(t, { pause: longPause }, entryOf({ url }));
    notifier.notify(FAILED);
    await hasLogged(/was not delivered: .*\(attempt 2/);
    await notifier.close();
    assert.equal(requests.length, 2);
    assert.match(lines.at(-1) ?? '', /^info notification chat: .* was delivered: status 200$/);
  });

  it('a webhook in a pause is named with its error if the last attempt also fails', async (t) => {
    const { url } = await startReceiver(t, [status(500), status(503)]);
    const { notifier, lines, hasLogged } = startLimitedNotifier(t, { pause: longPause }, entryOf({ url }));
    notifier.notify(FAILED);
    await hasLogged(/was not delivered: .*\(attempt 2/);
    await notifier.close();
    assert.match(lines.at(-1) ?? '', /^error notification chat: .* was not delivered: status 503: the body$/);
  });
});

describe('a command', () => {
  it('a notification command gets the event as JSON, and in its environment', async (t) => {
    const file = join(temporaryDirectory(t), 'event');
    const script = `cat > '${file}.part'; echo "$NODEPOOL_EVENT $NODEPOOL_IMAGE_ID: $NODEPOOL_TEXT" >> '${file}.part'; mv '${file}.part' '${file}'`;
    const { notifier, hasLogged } = startNotifier(t, entryOf({ command: ['sh', '-c', script] }));
    notifier.notify(FAILED);
    await hasLogged(/was delivered: exit code 0/);
    const [json = '', line] = (await readFile(file, 'utf8')).split('\n');
    assert.equal(JSON.parse(json).event, 'build-failed');
    assert.equal(line, 'build-failed debian-1: build debian-1 of debian failed: no such package');
  });

  it('a notification command need not read its input', async (t) => {
    const { notifier, hasLogged } = startNotifier(t, entryOf({ command: ['true'] }));
    notifier.notify({ ...FAILED, error: 'x'.repeat(1_000_000) });
    await hasLogged(/was delivered: exit code 0/);
  });

  it('a notification command is run again when it fails, and ended when it hangs', async (t) => {
    const mark = join(temporaryDirectory(t), 'mark');
    const script = `[ -e '${mark}' ] || { touch '${mark}'; echo no mail server; exit 3; }`;
    const { notifier, lines, hasLogged } = startLimitedNotifier(
      t,
      { attempts: 2, timeout: 2 },
      entryOf({ command: ['sh', '-c', script] }),
      entryOf({ name: 'hangs', command: ['sleep', '1000'] }),
    );
    notifier.notify(FAILED);
    await hasLogged(/^info notification chat: .* was delivered/);
    assert.match(
      lines.join('\n'),
      /was not delivered: the command ended with exit code 3, saying: no mail server;/,
    );
    await hasLogged(/^error notification hangs: .* the command did not end within 2 s/);
  });
});

describe('a receiver', () => {
  it('a receiver gets its chosen events, from a URL in a file', async (t) => {
    const { url, requests } = await startReceiver(t, [status(200)]);
    const urlFile = join(temporaryDirectory(t), 'url');
    await writeFile(urlFile, `${url}\n`);
    const { notifier } = startNotifier(t, entryOf({ url: urlFile, events: ['upload-succeeded'] }));
    notifier.notify(FAILED);
    notifier.notify({ ...FAILED, event: 'upload-recovered', provider: 'west', id: 'the one' });
    await notifier.close();
    assert.deepEqual(
      requests.map(({ headers }) => headers['webhook-id']),
      ['the one'],
    );
  });

  it('a receiver is notified once about an image that is too old, and again about the next one', async (t) => {
    const { url, requests } = await startReceiver(t, [status(200)]);
    const { notifier } = startNotifier(t, entryOf({ url, 'max-age': 1000 }));
    const image = { ...FAILED, event: 'image-too-old', provider: 'west', 'image-name': 'debian' } as const;
    for (const [id, age] of [
      ['a', 999],
      ['a', 1000],
      ['a', 1060],
      ['b', 10],
      ['b', 5000],
    ] as const) {
      notifier.notify({ ...image, id, age });
    }
    await notifier.close();
    assert.deepEqual(
      requests.map(({ headers }) => headers['webhook-id']),
      ['a', 'b'],
    );
  });
});
