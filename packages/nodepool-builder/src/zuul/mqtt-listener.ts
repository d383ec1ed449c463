import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@nodepool-builder/image-builder';
import type { MqttSettings } from '@nodepool-builder/zuul-images';
import { connect, ErrorWithReasonCode } from 'mqtt';
import { connectOptions, LARGEST_MESSAGE, type ProtocolVersion } from './mqtt-options.ts';

/** Milliseconds before a broker is tried again; each further pause is twice as long, and up to half of it is cut at random. */
const FIRST_PAUSE = 1_000;

const LONGEST_PAUSE = 60_000;

/** How long a connection stands, in milliseconds, until its loss is news: a broker that hangs up on us at once is away. */
const STEADY = 60_000;

/** A broker that knows no MQTT 5 says so: one of 3.1.1 by 1, one of MQTT 5 by 132. */
const UNSUPPORTED_VERSION: ReadonlySet<number> = new Set([1, 132]);

/** What an {@link MqttListener} needs. */
export interface MqttListenerOptions {
  readonly settings: MqttSettings;
  /** Called whenever a subscription begins: what was published before did not come. */
  readonly onSubscribed: () => void;
  readonly onMessage: (payload: Uint8Array) => void;
  readonly logger: Logger;
}

/** Listens to one topic of a broker, and connects again and again while the broker is away. */
export class MqttListener implements AsyncDisposable {
  readonly #options: MqttListenerOptions;
  /** What messages call the broker; a URL may hold a password. */
  readonly #broker: string;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #version: ProtocolVersion = 5;
  #subscribedAt: number | undefined;

  constructor(options: MqttListenerOptions) {
    this.#options = options;
    this.#broker = `MQTT broker ${new URL(options.settings.url).host}`;
    this.#running = this.#run(this.#closing.signal);
  }

  /** Hangs up. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      this.#subscribedAt = undefined;
      const error = await this.#listen(failures > 0, signal).catch((reason: unknown) => reason as Error);
      if (signal.aborted) return;
      if (this.#isTooOld(error)) continue;
      if (this.#subscribedAt !== undefined && performance.now() - this.#subscribedAt > STEADY) failures = 0;
      this.#tell(error, failures);
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** failures) * (1 - Math.random() / 2);
      await delay(pause, undefined, { signal }).catch(() => undefined);
      failures += 1;
    }
  }

  /** One connection, from its beginning until it is lost. Always rejects. */
  async #listen(isAgain: boolean, signal: AbortSignal): Promise<never> {
    const { settings, onSubscribed, logger } = this.#options;
    const client = connect(await connectOptions(settings, this.#version));
    const lost = Promise.withResolvers<never>();
    const connected = Promise.withResolvers<void>();
    const onAbort = (): void => lost.reject(signal.reason);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    client.on('error', lost.reject);
    client.on('close', () => lost.reject(new Error('the connection was closed')));
    client.on('connect', () => connected.resolve());
    client.on('message', (_topic, payload) => this.#receive(payload));
    try {
      await Promise.race([connected.promise, lost.promise]);
      await Promise.race([client.subscribeAsync(settings.topic, { qos: 0 }), lost.promise]);
      this.#subscribedAt = performance.now();
      if (isAgain) logger.info(`${this.#broker}: connected`);
      onSubscribed();
      return await lost.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
      client.end(true);
    }
  }

  /** A broker of 3.1.1 was not told how large a message may be. */
  #receive(payload: Uint8Array): void {
    const { onMessage, logger } = this.#options;
    if (payload.length <= LARGEST_MESSAGE) onMessage(payload);
    else
      logger.debug(
        `${this.#broker}: a message of ${payload.length} bytes is too large for a report of Zuul's`,
      );
  }

  /** Then an older version is spoken from now on. */
  #isTooOld(error: Error): boolean {
    if (this.#version !== 5 || !(error instanceof ErrorWithReasonCode)) return false;
    if (!UNSUPPORTED_VERSION.has(error.code)) return false;
    this.#version = 4;
    return true;
  }

  /** An outage is told once, however long it lasts. */
  #tell(error: Error, failures: number): void {
    const { logger } = this.#options;
    // an error of several addresses has no message
    const reason = error.message || ((error as NodeJS.ErrnoException).code ?? error.name);
    if (failures > 0) logger.debug(`${this.#broker}: ${reason}`);
    else logger.warn(`${this.#broker}: ${reason}; until it can be used, builds are found by polling alone`);
  }
}
