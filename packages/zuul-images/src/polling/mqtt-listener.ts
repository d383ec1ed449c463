import { readFile } from 'node:fs/promises';
import { getCACertificates } from 'node:tls';
import type { Logger } from '@nodepool-builder/image-builder';
import { RetryPolicy, unlessAborted } from '@nodepool-builder/image-builder/module-kit';
import { connect, ErrorWithReasonCode, type IClientOptions } from 'mqtt';
import type { MqttSettings } from '../zuul-settings.ts';

/** Size limit of a message in bytes, a hundred times a usual report. A broker of MQTT 5 sends no larger ones. */
const LARGEST_MESSAGE = 1024 * 1024;

/** Timeout of the connection attempt and of requests to the broker, in milliseconds. */
const TIMEOUT = 30_000;

/** Reconnects for ever: an outage only delays imports. */
const RETRIES = new RetryPolicy({
  attempts: Number.POSITIVE_INFINITY,
  firstDelay: 1,
  longestDelay: 60,
  longestRetryAfter: 0,
});

/** Milliseconds after which the loss of a connection is logged again, and the back-off starts from scratch. */
const STEADY = 60_000;

/** Reason codes for an unsupported protocol version: of brokers of 3.1.1, and of MQTT 5. */
const UNSUPPORTED_VERSION: ReadonlySet<number> = new Set([1, 132]);

/** Settings of an {@link MqttListener}. */
export interface MqttListenerOptions {
  readonly settings: MqttSettings;
  /** Called with each new subscription: messages published before it are lost. */
  readonly onSubscribed: () => void;
  readonly onMessage: (payload: Uint8Array) => void;
  readonly logger: Logger;
}

/** Listens to one topic of a broker. It reconnects until it is closed. */
export class MqttListener {
  readonly #options: MqttListenerOptions;
  /** Name of the broker in messages; the URL may contain a password. */
  readonly #broker: string;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  /** MQTT 5, or 3.1.1, whose number on the wire is 4. */
  #version: 5 | 4 = 5;
  #subscribedAt = Number.POSITIVE_INFINITY;

  constructor(options: MqttListenerOptions) {
    this.#options = options;
    this.#broker = `MQTT broker ${new URL(options.settings.url).host}`;
    this.#running = this.#run(this.#closing.signal);
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      this.#subscribedAt = Number.POSITIVE_INFINITY;
      const error = await this.#listen(failures > 0, signal).catch((reason: unknown) => reason as Error);
      if (signal.aborted) return;
      if (this.#isTooOld(error)) continue;
      if (performance.now() - this.#subscribedAt > STEADY) failures = 0;
      this.#logFailure(error, failures);
      failures += 1;
      await RETRIES.sleep(RETRIES.delayAfter(failures) ?? 0, signal).catch(() => undefined);
    }
  }

  /** Connects and listens until the connection is lost. Always rejects. */
  async #listen(isAgain: boolean, signal: AbortSignal): Promise<never> {
    const { settings, onSubscribed, logger } = this.#options;
    const client = connect(await connectOptions(settings, this.#version));
    const lost = Promise.withResolvers<never>();
    const connected = Promise.withResolvers<void>();
    client.on('error', lost.reject);
    client.on('close', () => lost.reject(new Error('the connection was closed')));
    client.on('connect', () => connected.resolve());
    client.on('message', (_topic, payload) => this.#receive(payload));
    const subscribe = async (): Promise<never> => {
      await Promise.race([connected.promise, lost.promise]);
      await Promise.race([client.subscribeAsync(settings.topic, { qos: 0 }), lost.promise]);
      this.#subscribedAt = performance.now();
      if (isAgain) logger.info(`${this.#broker}: connected`);
      onSubscribed();
      return await lost.promise;
    };
    try {
      return await unlessAborted(subscribe(), signal);
    } finally {
      client.end(true);
    }
  }

  /** MQTT 3.1.1 has no size limit, so that it is enforced here. */
  #receive(payload: Uint8Array): void {
    const { onMessage, logger } = this.#options;
    const size = payload.length;
    if (size <= LARGEST_MESSAGE) onMessage(payload);
    else logger.debug(`${this.#broker}: ignored a message of ${size} bytes, too large for a report of Zuul`);
  }

  /** Whether the broker does not support MQTT 5; then it is used with 3.1.1 from now on. */
  #isTooOld(error: Error): boolean {
    if (this.#version !== 5 || !(error instanceof ErrorWithReasonCode)) return false;
    if (!UNSUPPORTED_VERSION.has(error.code)) return false;
    this.#version = 4;
    return true;
  }

  /** Warns once in each outage. */
  #logFailure(error: Error, failures: number): void {
    const { logger } = this.#options;
    // The error of a host with several addresses has no message.
    const reason = error.message || ((error as NodeJS.ErrnoException).code ?? error.name);
    if (failures > 0) logger.debug(`${this.#broker}: ${reason}`);
    else logger.warn(`${this.#broker}: ${reason}; until it can be used, builds are found by polling alone`);
  }
}

/**
 * Options of a connection to a broker. The files are read each time, so that a new password needs no restart.
 *
 * @throws Error of the file system
 */
async function connectOptions(settings: MqttSettings, protocolVersion: 5 | 4): Promise<IClientOptions> {
  const { url, username, 'password-file': passwordFile, 'ca-file': caFile } = settings;
  const { protocol, hostname, port } = new URL(url);
  const [password, ca] = await Promise.all([readIfNamed(passwordFile), readIfNamed(caFile)]);
  return {
    protocol: protocol === 'mqtts:' ? 'mqtts' : 'mqtt',
    // An IPv6 address has brackets in a URL.
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    ...(port !== '' && { port: Number(port) }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password: password.replace(/\r?\n$/, '') }),
    ...(ca !== undefined && { ca: [...getCACertificates('default'), ca] }),
    protocolVersion,
    ...(protocolVersion === 5 && { properties: { maximumPacketSize: LARGEST_MESSAGE } }),
    connectTimeout: TIMEOUT,
    // MqttListener reconnects, with the files read again.
    reconnectPeriod: 0,
  };
}

async function readIfNamed(path: string | undefined): Promise<string | undefined> {
  return path === undefined ? undefined : await readFile(path, 'utf8');
}
