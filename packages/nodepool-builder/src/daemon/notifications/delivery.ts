import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  asNetworkError,
  createMask,
  hiddenValues,
  inheritedEnvironment,
  retryAfterSeconds,
  runCommand,
  visible,
} from '@nodepool-builder/image-builder/internal';
import { HttpClient, type HttpResponse } from '@nodepool-builder/image-builder/plugin';
import { isWebhookUrl, type NotificationSettings } from '../../configuration/notification.ts';
import { packageVersion } from '../../terms/version.ts';
import type { NotificationEvent } from './event.ts';

/** Max seconds of a request, or of a command. */
const TIMEOUT = 30;

/** Max bytes of a response. */
const MAX_RESPONSE = 64 * 1024;

/** Max characters that a message shows of a response or an output. */
const MAX_QUOTE = 200;

/** Max characters of the text in the environment: the kernel limits a variable to 128 KiB. */
const MAX_VARIABLE = 8192;

/** An event was not delivered. The message contains neither the URL nor the secret. */
export class DeliveryError extends Error {
  override readonly name = 'DeliveryError';
  readonly retriable: boolean;
  /** Value of `Retry-After` in seconds. */
  readonly retryAfter: number | undefined;

  constructor(reason: string, retriable = true, retryAfter?: number) {
    super(reason);
    this.retriable = retriable;
    this.retryAfter = retryAfter;
  }
}

/**
 * Sends an event once, to the webhook or to the command.
 *
 * @returns the response of the receiver, for `notify-test`
 * @throws DeliveryError
 * @throws the signal's reason
 */
export async function deliver(
  { url: target = '', command, 'secret-file': secretFile }: NotificationSettings,
  event: NotificationEvent,
  signal: AbortSignal,
  timeout: number = TIMEOUT,
): Promise<string> {
  if (command !== undefined) return await run(command, event, signal, timeout);
  const address = target.startsWith('/') ? await readText(target, 'url') : target;
  if (!isWebhookUrl(address))
    throw new DeliveryError('the file of url does not contain an HTTP URL; correct it');
  const body = JSON.stringify(event);
  const secret = secretFile === undefined ? undefined : await readText(secretFile, 'secret-file');
  const headers = {
    'content-type': 'application/json',
    'user-agent': `nodepool-builder/${packageVersion()}`,
    ...signatureHeaders(event.id, body, secret),
  };
  const client = new HttpClient({ timeout, maxBodySize: MAX_RESPONSE });
  const url = new URL(address);
  const sent = client.send({ method: 'POST', url, headers, body, signal, followsRedirects: false });
  const response = await sent.catch((error: unknown): HttpResponse => {
    signal.throwIfAborted();
    const { kind, message, status } = asNetworkError(error);
    if (status === undefined) throw new DeliveryError(`no response: ${message}`, kind !== 'not-configured');
    // The status counts, because a receiver that has accepted the event must not get it again if its page is long.
    return { status, headers: {}, body: message };
  });
  const { status, headers: received } = response;
  if (status >= 200 && status < 300) return `status ${status}`;
  if (status >= 300 && status < 400) {
    const origin = URL.parse(received.location ?? '')?.origin ?? 'elsewhere';
    throw new DeliveryError(`redirected to ${origin}; set the URL to the final one`, false);
  }
  const quote = visible(response.body.slice(0, MAX_QUOTE).trim());
  throw new DeliveryError(
    `status ${status}${quote === '' ? '' : `: ${quote}`}`,
    status >= 500 || status === 408 || status === 429,
    retryAfterSeconds(received['retry-after'], Date.now()),
  );
}

/**
 * The headers of Standard Webhooks 1.0. The receiver compares the signature with its own of `<id>.<timestamp>.<body>`,
 * rejects old timestamps, and recognises a repeated delivery by its id.
 */
function signatureHeaders(id: string, body: string, secret?: string): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp };
  if (secret === undefined) return headers;
  const [, encoded] = /^whsec_([\w+/=-]+)$/.exec(secret) ?? [];
  const key = encoded === undefined ? secret : Buffer.from(encoded, 'base64');
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { ...headers, 'webhook-signature': `v1,${digest}` };
}

/** Reads a file for each delivery, so that a renewed file counts at once. */
async function readText(path: string, key: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new DeliveryError(`${key} cannot be read: ${(error as Error).message}`);
  });
  if (text.trim() === '') throw new DeliveryError(`the file of ${key} is empty; fill it`);
  return text.trim();
}

async function run(
  [program = '', ...args]: readonly string[],
  event: NotificationEvent,
  signal: AbortSignal,
  timeout: number,
): Promise<string> {
  const limit = AbortSignal.timeout(timeout * 1000);
  const environment = inheritedEnvironment();
  const mask = createMask(hiddenValues(environment));
  let last = '';
  const options = {
    cwd: '/',
    env: {
      ...environment,
      NODEPOOL_EVENT: event.event,
      NODEPOOL_TEXT: event.text.slice(0, MAX_VARIABLE),
      NODEPOOL_IMAGE_ID: event['image-id'],
      NODEPOOL_DISKIMAGE: event.diskimage ?? '',
      NODEPOOL_PROVIDER: event.provider ?? '',
    },
    input: `${JSON.stringify(event)}\n`,
    signal: AbortSignal.any([signal, limit]),
    onLine: (line: string) => {
      if (line.trim() !== '') last = visible(mask(line.trim())).slice(0, MAX_QUOTE);
    },
  };
  const { exitCode, signal: endedBy } = await runCommand(program, args, options).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new DeliveryError(
      limit.aborted ? `the command did not end within ${timeout} s` : (error as Error).message,
    );
  });
  if (exitCode === 0) return 'exit code 0';
  const output = last === '' ? '' : `, saying: ${last}`;
  throw new DeliveryError(`the command ended with ${endedBy ?? `exit code ${exitCode}`}${output}`);
}
