import { callbackify } from 'node:util';
import type { GlobalOperationsClient, ImagesClient } from '@google-cloud/compute';
import type { Storage } from '@google-cloud/storage';
import type { Logger } from '@nodepool-builder/image-builder';
import { retryText, unlessAborted, withTimeout } from '@nodepool-builder/image-builder/internal';
import {
  CloudError,
  type CloudErrorCode,
  cloudError,
  RetryPolicy,
} from '@nodepool-builder/image-builder/plugin';
import type { GceCredentials } from './gce-credentials.ts';
import { googleError } from './gce-error.ts';

/** Errors that are worth a retry. Every request of this package may be repeated. */
const TRANSIENT: readonly CloudErrorCode[] = ['rate-limited', 'service-unavailable', 'connection-failed'];

const RETRIES = new RetryPolicy({ attempts: 5, firstDelay: 0.5, maxDelay: 20, maxRetryAfter: 0 });

/** Time limit of one request, in seconds. A chunk of an upload has its own. */
const REQUEST_TIME = 60;

/** Time limit of a request including all retries, in seconds. */
const TOTAL_TIME = 300;

/** Seconds for which Cloud Storage keeps an upload session. Each request of the session may be repeated until then. */
const SESSION_TIME = 7 * 24 * 3600;

export interface GceSessionOptions {
  /** `providers[].name`. */
  readonly name: string;
  readonly project?: string | undefined;
  readonly credentialsFile?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly storageEndpoint?: string | undefined;
  readonly logger?: Logger | undefined;
  /** Retry policy. Default: 5 attempts. */
  readonly retries?: RetryPolicy | undefined;
  /** Time limit of a request including all retries, in seconds. Default 300. */
  readonly timeLimit?: number | undefined;
  readonly onTask?: ((task: string, milliseconds: number) => void) | undefined;
}

/** Clients of one project. */
export interface GceClients {
  readonly project: string;
  readonly images: ImagesClient;
  readonly operations: GlobalOperationsClient;
  readonly storage: Storage;
}

/** Credentials of one entry of `providers`. The SDK is loaded on the first request. */
export class GceSession {
  readonly #options: GceSessionOptions;
  #clients: Promise<GceClients> | undefined;
  #auth: GceCredentials | undefined;

  constructor(options: GceSessionOptions) {
    this.#options = options;
  }

  async open(): Promise<GceClients> {
    this.#clients ??= this.#open().catch((error: unknown) => {
      this.#clients = undefined;
      throw this.error('credentials', error);
    });
    return await this.#clients;
  }

  /**
   * Runs a request, and retries after transient errors within a time limit. An abort ends the wait for the response.
   *
   * @throws CloudError, or the signal's reason
   */
  async call<T>(task: string, signal: AbortSignal, request: (clients: GceClients) => Promise<T>): Promise<T> {
    const { retries = RETRIES, timeLimit = TOTAL_TIME, logger } = this.#options;
    let last = '';
    const run = async (limited: AbortSignal): Promise<T> =>
      await retries.run(async () => await this.once(task, limited, request), {
        signal: limited,
        mayRetry: (error) => error instanceof CloudError && TRANSIENT.includes(error.code),
        onRetry: (retry) => {
          last = ` (last failure: ${retry.error.message})`;
          logger?.debug(`${retry.error.message}; ${retryText(retry)}`);
        },
      });
    return await withTimeout(timeLimit, signal, run, () =>
      cloudError('connection-failed', this.subject(task), `no response within ${timeLimit} s${last}`),
    );
  }

  /** Like {@link call}, without retries. */
  async once<T>(task: string, signal: AbortSignal, request: (clients: GceClients) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const clients = await unlessAborted(this.open(), signal);
    const start = performance.now();
    try {
      return await unlessAborted(request(clients), signal);
    } catch (error) {
      signal.throwIfAborted();
      throw this.error(task, error);
    } finally {
      this.#options.onTask?.(task, performance.now() - start);
    }
  }

  /** Returns the subject of messages: `provider gce: TASK`. */
  subject(task: string): string {
    return `provider ${this.#options.name}: ${task}`;
  }

  error(task: string, error: unknown): Error {
    const { credentialsFile } = this.#options;
    const credentials =
      credentialsFile === undefined
        ? 'the application default credentials'
        : `the credentials "${credentialsFile}"`;
    const converted = googleError(this.subject(task), error, credentials);
    if (converted instanceof CloudError && converted.code === 'auth-failed') this.#auth?.forget();
    return converted;
  }

  close(): void {
    void closeClients(this.#clients);
    this.#clients = undefined;
  }

  async #open(): Promise<GceClients> {
    const { project, credentialsFile, endpoint, storageEndpoint } = this.#options;
    const [{ ImagesClient, GlobalOperationsClient }, { IdempotencyStrategy, Storage }, { GceCredentials }] =
      await Promise.all([
        import('@google-cloud/compute'),
        import('@google-cloud/storage'),
        import('./gce-credentials.ts'),
      ]);
    const auth = new GceCredentials(
      credentialsFile,
      project === undefined ? {} : { projectId: project },
      `provider ${this.#options.name}`,
    );
    this.#auth = auth;
    if (credentialsFile !== undefined) await auth.getClient();
    const projectId = project ?? (await auth.getProjectId());
    const url = endpoint === undefined ? undefined : new URL(endpoint);
    const place = url && {
      apiEndpoint: url.hostname,
      port: Number(url.port) || (url.protocol === 'http:' ? 80 : 443),
      protocol: url.protocol.slice(0, -1),
    };
    const options = { auth: auth as never, projectId, fallback: true as const, ...place };
    const storage = new Storage({
      projectId,
      authClient: auth as never,
      timeout: REQUEST_TIME * 1000,
      // Each request may be repeated, because an object name belongs to one upload.
      retryOptions: {
        idempotencyStrategy: IdempotencyStrategy.RetryAlways,
        maxRetries: 5,
        totalTimeout: SESSION_TIME,
      },
      ...(storageEndpoint && { apiEndpoint: storageEndpoint, useAuthWithCustomEndpoint: true }),
    });
    storage.makeAuthenticatedRequest = requestsBy(auth);
    return {
      project: projectId,
      images: new ImagesClient({ ...options, clientConfig: withoutRetries('Images') }),
      operations: new GlobalOperationsClient({
        ...options,
        clientConfig: withoutRetries('GlobalOperations'),
      }),
      storage,
    };
  }
}

type Scalar = string | number | boolean;

/** The part of a Cloud Storage SDK request that is used here. */
interface StorageRequest {
  readonly uri: string;
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly qs?: Readonly<Record<string, Scalar | readonly Scalar[] | undefined>>;
  readonly json?: unknown;
}

/**
 * Sends Cloud Storage metadata requests with our credentials, as the SDK does for uploads. Otherwise the SDK uses other
 * proxies and certificate authorities for them.
 */
function requestsBy(auth: GceCredentials): Storage['makeAuthenticatedRequest'] {
  const send = async ({ uri, method = 'GET', qs = {}, json }: StorageRequest): Promise<unknown> => {
    const url = new URL(uri);
    for (const [name, values] of Object.entries(qs)) {
      for (const value of [values ?? []].flat()) url.searchParams.append(name, String(value));
    }
    const body = typeof json === 'object' && json !== null ? { data: json } : {};
    const request = { url, method, timeout: REQUEST_TIME * 1000, ...body };
    const response = await auth.request(request).catch((error: Error & { readonly status?: number }) => {
      throw error.status === undefined ? error : Object.assign(error, { code: error.status });
    });
    return response.data;
  };
  return callbackify(send) as Storage['makeAuthenticatedRequest'];
}

/** SDK methods in use. */
const METHODS = ['Delete', 'Deprecate', 'Get', 'Insert', 'List'];

/** Disables retries in the SDK. It would not retry after a lost connection, but for ten minutes after other errors. */
function withoutRetries(service: string): object {
  const method = { timeout_millis: REQUEST_TIME * 1000, retry_codes_name: 'none' };
  const methods = Object.fromEntries(METHODS.map((name) => [name, method]));
  return { interfaces: { [`google.cloud.compute.v1.${service}`]: { retry_codes: { none: [] }, methods } } };
}

async function closeClients(clients: Promise<GceClients> | undefined): Promise<void> {
  const opened = await clients?.catch(() => undefined);
  await Promise.allSettled([opened?.images.close(), opened?.operations.close()]);
}
