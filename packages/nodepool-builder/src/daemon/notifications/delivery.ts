import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  createMask,
  type HttpAnswer,
  HttpClient,
  hiddenValues,
  inheritedEnvironment,
  networkFailure,
  retryAfterSeconds,
  runCommand,
  visible,
} from '@nodepool-builder/image-builder/module-kit';
import { isWebhookUrl, type NotificationSettings } from '../../configuration/notification.ts';
import { packageVersion } from '../../terms/version.ts';
import type { NotificationEvent } from './event.ts';

/** Maximum number of bytes of a response that are read. */
const LONGEST_ANSWER = 64 * 1024;

/** Maximum number of characters of a response or of an output in a message. */
const LONGEST_QUOTE = 200;

/** Maximum number of characters of the text in the environment, because the kernel limits a variable to 128 KiB. */
const LONGEST_VARIABLE = 8192;

/** An event was not delivered. The message contains neither the URL nor the secret. */
export class DeliveryError extends Error {
  override readonly name = 'DeliveryError';
  readonly retriable: boolean;
  /** Value of `Retry-After` in seconds. */
  readonly retryAfter: number | undefined;

  constructor(
    reason: string,
    options: { readonly retriable: boolean; readonly retryAfter?: number | undefined },
  ) {
    super(reason);
    this.retriable = options.retriable;
    this.retryAfter = options.retryAfter;
  }
}

/**
 * Sends an event once, to the webhook or to the command.
 *
 * @returns a summary of the response, for `notify-test`
 * @throws DeliveryError
 * @throws the signal's reason
 */
export async function deliver(
  entry: NotificationSettings,
  event: NotificationEvent,
  signal: AbortSignal,
): Promise<string> {
  return entry.command === undefined
    ? await post(entry, event, signal)
    : await run(entry, entry.command, event, signal);
}

async function post(
  entry: NotificationSettings,
  event: NotificationEvent,
  signal: AbortSignal,
): Promise<string> {
  const url = await urlOf(entry);
  const body = JSON.stringify(event);
  const client = new HttpClient({ timeout: entry.timeout, longestBody: LONGEST_ANSWER });
  const headers = {
    'content-type': 'application/json',
    'user-agent': `nodepool-builder/${packageVersion()}`,
    ...(await signature(entry, event.id, body)),
  };
  const sent = client.send({ method: 'POST', url, headers, body, signal, followsRedirects: false });
  const answer = await sent.catch((error: unknown): HttpAnswer => {
    signal.throwIfAborted();
    const { kind, message, status: answeredStatus } = networkFailure(error);
    // The status counts, because a receiver that has accepted the event must not get it again if its page is long.
    if (answeredStatus !== undefined) return { status: answeredStatus, headers: {}, body: message };
    throw new DeliveryError(`no response: ${message}`, { retriable: kind !== 'not-configured' });
  });
  const { status, headers: answered } = answer;
  if (status >= 200 && status < 300) return `status ${status}`;
  if (status >= 300 && status < 400) {
    const target = URL.parse(answered.location ?? '')?.origin ?? 'elsewhere';
    throw new DeliveryError(`redirected to ${target}; set the URL to the final one`, { retriable: false });
  }
  const quote = visible(answer.body.slice(0, LONGEST_QUOTE).trim());
  throw new DeliveryError(`status ${status}${quote === '' ? '' : `: ${quote}`}`, {
    retriable: status >= 500 || status === 408 || status === 429,
    retryAfter: retryAfterSeconds(answered['retry-after'], Date.now()),
  });
}

async function urlOf(entry: NotificationSettings): Promise<URL> {
  const text = entry.url ?? (await readText(entry['url-file'] ?? '', 'url-file')).trim();
  if (isWebhookUrl(text)) return new URL(text);
  throw new DeliveryError('url-file does not contain an HTTP URL; correct it', { retriable: true });
}

/**
 * The headers of Standard Webhooks 1.0. The receiver compares the signature with its own of `<id>.<timestamp>.<body>`,
 * rejects old timestamps, and recognises a repeated delivery by its id.
 */
async function signature(
  entry: NotificationSettings,
  id: string,
  body: string,
): Promise<Readonly<Record<string, string>>> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp };
  if (entry['secret-file'] === undefined) return headers;
  const text = (await readText(entry['secret-file'], 'secret-file')).trim();
  if (text === '')
    throw new DeliveryError('secret-file is empty; write a secret into it', { retriable: true });
  const [, encoded] = /^whsec_([\w+/=-]+)$/.exec(text) ?? [];
  const key = encoded === undefined ? Buffer.from(text) : Buffer.from(encoded, 'base64');
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { ...headers, 'webhook-signature': `v1,${digest}` };
}

/** Reads a file for each delivery, so that a renewed one is used at once. */
async function readText(path: string, key: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    throw new DeliveryError(`${key} cannot be read: ${(error as Error).message}`, { retriable: true });
  });
}

async function run(
  { timeout }: NotificationSettings,
  [program = '', ...args]: readonly string[],
  event: NotificationEvent,
  signal: AbortSignal,
): Promise<string> {
  const { event: kind, text, diskimage, provider, 'image-id': imageId } = event;
  const limit = AbortSignal.timeout(timeout * 1000);
  const environment = inheritedEnvironment();
  const withoutSecrets = createMask(hiddenValues(environment));
  let last = '';
  const options = {
    cwd: '/',
    env: {
      ...environment,
      NODEPOOL_EVENT: kind,
      NODEPOOL_TEXT: text.slice(0, LONGEST_VARIABLE),
      NODEPOOL_IMAGE_ID: imageId,
      NODEPOOL_DISKIMAGE: diskimage ?? '',
      NODEPOOL_PROVIDER: provider ?? '',
    },
    input: `${JSON.stringify(event)}\n`,
    signal: AbortSignal.any([signal, limit]),
    onLine: (line: string) => {
      if (line.trim() !== '') last = visible(withoutSecrets(line.trim())).slice(0, LONGEST_QUOTE);
    },
  };
  const result = await runCommand(program, args, options).catch((error: unknown) => {
    signal.throwIfAborted();
    if (!limit.aborted) throw new DeliveryError((error as Error).message, { retriable: true });
    const reason = `the command did not end within ${timeout} s; correct it, or raise timeout`;
    throw new DeliveryError(reason, { retriable: true });
  });
  const { exitCode, signal: endedBy } = result;
  if (exitCode === 0) return 'exit code 0';
  const said = last === '' ? '' : `, saying: ${last}`;
  const reason = `the command ended with ${endedBy ?? `exit code ${exitCode}`}${said}`;
  throw new DeliveryError(reason, { retriable: true });
}
