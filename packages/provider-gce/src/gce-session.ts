import { readFile } from 'node:fs/promises';
import type { GlobalOperationsClient, ImagesClient } from '@google-cloud/compute';
import type { Storage } from '@google-cloud/storage';
import { ImageError, type Logger } from '@nodepool-builder/image-builder';
import {
  CloudError,
  type CloudErrorCode,
  networkFailure,
  RetryPolicy,
  unlessAborted,
} from '@nodepool-builder/image-builder/module-kit';
import type { AuthClient } from 'google-auth-library';

/** Reasons of Google that mean more than their HTTP status. */
const REASONS: readonly (readonly [pattern: RegExp, code: CloudErrorCode])[] = [
  [/rateLimitExceeded|RESOURCE_EXHAUSTED/i, 'rate-limited'],
  [/quota/i, 'quota-exceeded'],
];

const STATUSES: Readonly<Record<number, CloudErrorCode>> = {
  401: 'auth-failed',
  403: 'forbidden',
  404: 'not-found',
  409: 'conflict',
  412: 'conflict',
  429: 'rate-limited',
};

/** Status codes of gRPC, which the SDK gives for those of HTTP: 409 becomes 10. */
const GRPC: Readonly<Record<number, number>> = {
  2: 500,
  3: 400,
  4: 504,
  5: 404,
  6: 409,
  7: 403,
  8: 429,
  9: 400,
  10: 409,
  12: 501,
  13: 500,
  14: 503,
  16: 401,
};

/** Errors of the SDK for an object whose checksum is not that of the bytes that were sent, or that lacks some of them. */
const MISMATCHES: readonly unknown[] = ['FILE_NO_UPLOAD', 'FILE_NO_UPLOAD_DELETE'];

/** Failures that a repeated request may not see. Every request of this package may be repeated. */
const TRANSIENT: readonly CloudErrorCode[] = ['rate-limited', 'service-unavailable', 'connection-failed'];

const RETRIES = new RetryPolicy({ attempts: 5, firstDelay: 0.5, longestDelay: 20, longestRetryAfter: 0 });

const SCOPES = ['https://www.googleapis.com/auth/cloud-platform'];

export interface GceSessionOptions {
  /** `providers[].name`. */
  readonly name: string;
  readonly project?: string | undefined;
  readonly credentialsFile?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly storageEndpoint?: string | undefined;
  readonly logger?: Logger | undefined;
  readonly onTask?: ((task: string, milliseconds: number) => void) | undefined;
}

/** The clients of one project. */
export interface GceClients {
  readonly project: string;
  readonly images: ImagesClient;
  readonly operations: GlobalOperationsClient;
  readonly storage: Storage;
}

/** The credentials of one entry of `providers`. The SDK is loaded with the first request. */
export class GceSession {
  readonly #options: GceSessionOptions;
  #clients: Promise<GceClients> | undefined;

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
   * Runs a request, and repeats it after failures that may pass. An abort ends the wait for its answer.
   *
   * @throws CloudError, or the signal's reason
   */
  async call<T>(task: string, signal: AbortSignal, request: (clients: GceClients) => Promise<T>): Promise<T> {
    return await RETRIES.run(async () => await this.once(task, signal, request), {
      signal,
      mayRetry: (error) => error instanceof CloudError && TRANSIENT.includes(error.code),
      onRetry: (error, delay) =>
        this.#options.logger?.debug(`${error.message}; retry in ${delay.toFixed(1)} s`),
    });
  }

  /** As {@link call}, without retries of its own. */
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

  error(task: string, error: unknown): Error {
    // An ImageError is one of the file on this host.
    if (!(error instanceof Error) || error instanceof CloudError || error instanceof ImageError) {
      return error as Error;
    }
    const {
      code = 0,
      message,
      errors,
    } = error as Error & {
      code?: number | string;
      errors?: readonly { readonly reason?: string; readonly message?: string }[];
    };
    const subject = `provider ${this.#options.name}: ${task}`;
    if (MISMATCHES.includes(code) || error instanceof RangeError) {
      return new CloudError('image-failed', subject, 'the object is not what was sent', { cause: error });
    }
    const reasons = errors?.map(({ reason }) => reason ?? '').join(' ') ?? '';
    const number = typeof code === 'number' ? (GRPC[code] ?? code) : Number(code) || 0;
    const [, known] = REASONS.find(([pattern]) => pattern.test(`${reasons} ${message}`)) ?? [];
    if (number === 0 && known === undefined) {
      const failure = networkFailure(error);
      return new CloudError('connection-failed', subject, `no answer: ${failure.message}`, { cause: error });
    }
    const byStatus = STATUSES[number] ?? (number >= 500 ? 'service-unavailable' : 'bad-request');
    const meant = number === 403 || number === 429 || number === 0 ? (known ?? byStatus) : byStatus;
    return new CloudError(meant, subject, message, { cause: error });
  }

  close(): void {
    void closeClients(this.#clients);
    this.#clients = undefined;
  }

  async #open(): Promise<GceClients> {
    const { project, credentialsFile, endpoint, storageEndpoint } = this.#options;
    const [{ ImagesClient, GlobalOperationsClient }, { IdempotencyStrategy, Storage }, { GoogleAuth }] =
      await Promise.all([
        import('@google-cloud/compute'),
        import('@google-cloud/storage'),
        import('google-auth-library'),
      ]);
    const auth = new GoogleAuth({
      scopes: SCOPES,
      ...(credentialsFile !== undefined && { authClient: await readCredentials(credentialsFile) }),
      ...(project !== undefined && { projectId: project }),
    });
    const projectId = project ?? (await auth.getProjectId());
    const url = endpoint === undefined ? undefined : new URL(endpoint);
    const place = url && {
      apiEndpoint: url.hostname,
      port: Number(url.port) || (url.protocol === 'http:' ? 80 : 443),
      protocol: url.protocol.slice(0, -1),
    };
    const options = { auth: auth as never, projectId, fallback: true as const, ...place };
    return {
      project: projectId,
      images: new ImagesClient({ ...options, clientConfig: withoutRetries('Images') }),
      operations: new GlobalOperationsClient({
        ...options,
        clientConfig: withoutRetries('GlobalOperations'),
      }),
      storage: new Storage({
        projectId,
        authClient: auth as never,
        // Names of objects belong to one upload: each request may be repeated.
        retryOptions: { idempotencyStrategy: IdempotencyStrategy.RetryAlways, maxRetries: 5 },
        ...(storageEndpoint && { apiEndpoint: storageEndpoint, useAuthWithCustomEndpoint: true }),
      }),
    };
  }
}

/** Has the SDK repeat nothing by itself: it would not after a lost connection, and for ten minutes after other failures. */
function withoutRetries(service: string): object {
  const retries = { idempotent: [], non_idempotent: [] };
  return { interfaces: { [`google.cloud.compute.v1.${service}`]: { retry_codes: retries } } };
}

interface CredentialsFile {
  readonly type?: string;
  readonly client_email?: string;
  readonly private_key?: string;
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly refresh_token?: string;
  readonly project_id?: string;
  readonly credential_source?: { readonly environment_id?: string; readonly executable?: object };
}

/** Reads a file with credentials. The kinds that the library itself would read, without its warnings. */
async function readCredentials(path: string): Promise<AuthClient> {
  const { AwsClient, IdentityPoolClient, JWT, PluggableAuthClient, UserRefreshClient } = await import(
    'google-auth-library'
  );
  const file = parseCredentials(path, await readFile(path, 'utf8').catch((error: unknown) => error));
  const { type, client_email: email, private_key: key, credential_source: source } = file;
  if (type === 'service_account' && email && key) {
    return new JWT({ email, key, scopes: SCOPES, ...(file.project_id && { projectId: file.project_id }) });
  }
  if (type === 'authorized_user') {
    const { client_id: clientId, client_secret: clientSecret, refresh_token: refreshToken } = file;
    return new UserRefreshClient({ clientId, clientSecret, refreshToken } as never);
  }
  if (type === 'external_account') {
    const Client = source?.environment_id?.startsWith('aws')
      ? AwsClient
      : source?.executable === undefined
        ? IdentityPoolClient
        : PluggableAuthClient;
    return new Client({ ...file, scopes: SCOPES } as never);
  }
  const reason = `"${path}" has credentials of the type "${type}"; use a key of a service account, or workload identity federation`;
  throw new CloudError('bad-request', 'credentials', reason);
}

/** An error never quotes the file, which contains secrets. */
function parseCredentials(path: string, text: unknown): CredentialsFile {
  if (typeof text !== 'string') {
    const { message } = Object(text) as Error;
    throw new CloudError('bad-request', 'credentials', `"${path}" cannot be read: ${message}`);
  }
  try {
    return Object(JSON.parse(text)) as CredentialsFile;
  } catch {
    throw new CloudError('bad-request', 'credentials', `"${path}" is not JSON`);
  }
}

async function closeClients(clients: Promise<GceClients> | undefined): Promise<void> {
  const opened = await clients?.catch(() => undefined);
  await Promise.allSettled([opened?.images.close(), opened?.operations.close()]);
}
