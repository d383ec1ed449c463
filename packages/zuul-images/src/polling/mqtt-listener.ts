import { readFile } from 'node:fs/promises';
import { getCACertificates } from 'node:tls';
import type { Logger } from '@nodepool-builder/image-builder';
import { unlessAborted } from '@nodepool-builder/image-builder/internal';
import { RetryPolicy } from '@nodepool-builder/image-builder/plugin';
import type { ErrorWithReasonCode, IClientOptions } from 'mqtt';
import type { MqttSettings } from '../zuul-settings.ts';

/**
 * Maximum size of a message in bytes, a hundred times a usual report. An MQTT 5 broker sends no larger ones; MQTT 3.1.1
 * has no such limit.
 */
export const MAX_MESSAGE_SIZE: number = 1024 * 1024;

/** Timeout of the connection attempt and of requests to the broker, in milliseconds. */
const TIMEOUT = 30_000;

/** Reconnects forever, because an outage only delays imports. */
const RETRIES = new RetryPolicy({
  attempts: Number.POSITIVE_INFINITY,
  firstDelay: 1,
  maxDelay: 60,
  maxRetryAfter: 0,
});

/** Milliseconds after which the loss of a connection is logged again, and the back-off restarts. */
const STEADY = 60_000;

/** Protocol number of MQTT 5, or of 3.1.1. */
type ProtocolVersion = 5 | 4;

/** Reason codes for an unsupported protocol version, in MQTT 3.1.1 and in MQTT 5. */
const UNSUPPORTED_VERSION: ReadonlySet<unknown> = new Set([1, 132]);

/** Callbacks of {@link listenToBroker}. */
export interface MqttHandlers {
  /** Called with each new subscription. Messages published before it are lost. */
  readonly onSubscribed: () => void;
  readonly onMessage: (payload: Uint8Array) => void;
}

/**
 * Listens to one topic of a broker, and reconnects, until the signal aborts. Never rejects.
 *
 * @param broker name of the broker in messages, without the user name
 */
export async function listenToBroker(
  broker: string,
  settings: MqttSettings,
  { onSubscribed, onMessage }: MqttHandlers,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    let subscribedAt = Number.POSITIVE_INFINITY;
    const subscribed = (): void => {
      subscribedAt = performance.now();
      if (failures > 0) logger.info(`${broker}: connected`);
      onSubscribed();
    };
    const handlers = { onSubscribed: subscribed, onMessage };
    const error = await listen(settings, handlers, signal).catch((reason: unknown) => reason as Error);
    if (signal.aborted) return;
    if (performance.now() - subscribedAt > STEADY) failures = 0;
    // The error of a host with several addresses has no message.
    const reason = error.message || ((error as NodeJS.ErrnoException).code ?? error.name);
    if (failures > 0) logger.debug(`${broker}: ${reason}`);
    else logger.warn(`${broker}: ${reason}; until it can be used, builds are found only by polling`);
    failures += 1;
    await RETRIES.sleep(RETRIES.delayAfter(failures) ?? 0, signal).catch(() => undefined);
  }
}

/**
 * Connects to a broker and subscribes once.
 *
 * @throws Error if that fails
 */
export async function subscribeOnce(settings: MqttSettings, signal: AbortSignal): Promise<void> {
  const subscribed = new AbortController();
  const handlers = { onSubscribed: () => subscribed.abort(), onMessage: () => {} };
  await listen(settings, handlers, AbortSignal.any([signal, subscribed.signal])).catch((error: unknown) => {
    if (!subscribed.signal.aborted) throw error;
  });
}

/** Connects and listens until the connection is lost, by MQTT 3.1.1 if the broker is too old. Always rejects. */
async function listen(settings: MqttSettings, handlers: MqttHandlers, signal: AbortSignal): Promise<never> {
  return await listenBy(settings, 5, handlers, signal).catch(async (error: Partial<ErrorWithReasonCode>) => {
    if (!UNSUPPORTED_VERSION.has(error.code)) throw error;
    return await listenBy(settings, 4, handlers, signal);
  });
}

async function listenBy(
  settings: MqttSettings,
  version: ProtocolVersion,
  { onSubscribed, onMessage }: MqttHandlers,
  signal: AbortSignal,
): Promise<never> {
  const { connect } = await import('mqtt'); // imported on demand, because few images have a broker
  const client = connect(settings.url, await connectOptions(settings, version));
  const lost = Promise.withResolvers<never>();
  const connected = Promise.withResolvers<void>();
  client.on('error', lost.reject);
  client.on('close', () => lost.reject(new Error('the connection was closed')));
  client.on('connect', () => connected.resolve());
  client.on('message', (_topic, payload) => onMessage(payload));
  const subscribe = async (): Promise<never> => {
    await Promise.race([connected.promise, lost.promise]);
    await Promise.race([client.subscribeAsync(settings.topic, { qos: 0 }), lost.promise]);
    onSubscribed();
    return await lost.promise;
  };
  try {
    return await unlessAborted(subscribe(), signal);
  } finally {
    client.end(true);
  }
}

/**
 * Returns the options of a connection to a broker in addition to its URL. The files are read each time, so that a new
 * password needs no restart.
 *
 * @throws Error of the file system
 */
async function connectOptions(
  { 'password-file': passwordFile, 'ca-file': caFile }: MqttSettings,
  protocolVersion: ProtocolVersion,
): Promise<IClientOptions> {
  const [password, ca] = await Promise.all([readIfNamed(passwordFile), readIfNamed(caFile)]);
  return {
    ...(password !== undefined && { password: password.replace(/\r?\n$/, '') }),
    ...(ca !== undefined && { ca: [...getCACertificates('default'), ca] }),
    protocolVersion,
    ...(protocolVersion === 5 && { properties: { maximumPacketSize: MAX_MESSAGE_SIZE } }),
    connectTimeout: TIMEOUT,
    // listenToBroker reconnects, with the files read again.
    reconnectPeriod: 0,
  };
}

async function readIfNamed(path: string | undefined): Promise<string | undefined> {
  return path === undefined ? undefined : await readFile(path, 'utf8');
}
