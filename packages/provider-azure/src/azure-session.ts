import type { ComputeManagementClient } from '@azure/arm-compute';
import type { TokenCredential } from '@azure/identity';
import { errorMessage, parseJson, withAbort, withTimeout } from '@nodepool-builder/image-builder/internal';
import { CloudError, cloudError, HttpClient, listAll } from '@nodepool-builder/image-builder/plugin';
import { agentPolicy, type Policy } from './agent-policy.ts';
import { azureError } from './azure-error.ts';
import { checkResponse } from './check-response.ts';

/** One of the national clouds. */
export type AzureCloudName = 'public' | 'china' | 'us-government';

/** Resource Manager URL of each cloud. */
const ENDPOINTS: Readonly<Record<AzureCloudName, string>> = {
  public: 'https://management.azure.com',
  china: 'https://management.chinacloudapi.cn',
  'us-government': 'https://management.usgovcloudapi.net',
};

/** Access to a resource group. */
export interface AzureAccount {
  readonly subscription: string;
  readonly resourceGroup: string;
  /** National cloud. Default: the public cloud. */
  readonly cloud?: AzureCloudName | undefined;
  /** Resource Manager URL that replaces the cloud's URL. Plain HTTP is accepted on the loopback interface only. */
  readonly endpoint?: string | undefined;
  readonly credential: () => Promise<TokenCredential>;
}

export interface SessionOptions {
  /** `providers[].name`, for errors. */
  readonly name: string;
  /** Max retries of a request after a transient error. Default 5. */
  readonly retries?: number;
  /** Seconds between two polls of an operation, unless Azure requests another interval. Default 2. */
  readonly pollInterval?: number | undefined;
  /** Time limit of an operation that changes a resource, in seconds. Default 180. */
  readonly changeTimeout?: number;
  /** Called when Azure rejects the credentials, because they may have been replaced. */
  readonly onRefused?: () => void;
  /** Called with the duration of a request or operation, in milliseconds. */
  readonly onTask?: ((task: string, milliseconds: number) => void) | undefined;
}

/** Options of an SDK call. */
export interface CallOptions {
  readonly abortSignal: AbortSignal;
  /** Milliseconds between two polls of an operation, unless Azure requests another interval. */
  readonly updateIntervalInMs: number;
}

/** Calls a method of the SDK. */
type SdkCall<T> = (client: ComputeManagementClient, options: CallOptions) => PromiseLike<T>;

/** A paged list of the SDK. */
interface PagedList<T> {
  byPage(settings: { readonly continuationToken?: string }): AsyncIterableIterator<T[]>;
}

/** Default time limit of a request, in seconds. */
const REQUEST_TIMEOUT = 180;

/** Calls Resource Manager and converts errors to CloudError. */
export class AzureSession {
  readonly account: AzureAccount;
  readonly name: string;
  readonly #options: SessionOptions;
  readonly #client: ComputeManagementClient;
  readonly #credential: TokenCredential;

  private constructor(
    account: AzureAccount,
    options: SessionOptions,
    client: ComputeManagementClient,
    credential: TokenCredential,
  ) {
    this.account = account;
    this.name = options.name;
    this.#options = options;
    this.#client = client;
    this.#credential = credential;
  }

  /** Opens a session without sending a request. @throws CloudError `auth-failed` for credentials that cannot be used */
  static async open(account: AzureAccount, options: SessionOptions): Promise<AzureSession> {
    const { ComputeManagementClient: Client } = await import('@azure/arm-compute');
    const subject = `provider ${options.name}: credentials`;
    const credential = await account.credential().catch((error: unknown) => {
      if (error instanceof CloudError) throw error;
      throw cloudError('auth-failed', subject, errorMessage(error));
    });
    const endpoint = endpointOf(account);
    const isPlain = endpoint.startsWith('http:');
    const clientOptions = {
      endpoint,
      credentials: { scopes: [scopeOf(account)] },
      retryOptions: { maxRetries: options.retries ?? 5, maxRetryDelayInMs: 30_000 },
      ...(isPlain && { allowInsecureConnection: true }),
      additionalPolicies: [
        { policy: agentPolicy(), position: 'perCall' as const },
        { policy: checkResponse(`provider ${options.name}`, endpoint), position: 'perCall' as const },
        ...(isPlain
          ? [{ policy: plainTokens(credential, scopeOf(account)), position: 'perRetry' as const }]
          : []),
      ],
    };
    // Without a credential, because the SDK only sends tokens over TLS.
    const own = isPlain ? (undefined as unknown as TokenCredential) : credential;
    const client = new Client(own, account.subscription, clientOptions);
    return new AzureSession(account, options, client, credential);
  }

  /** Returns the id prefix of Microsoft.Compute resources in a resource group. */
  scope(resourceGroup: string = this.account.resourceGroup): string {
    const { subscription } = this.account;
    return `/subscriptions/${subscription}/resourceGroups/${resourceGroup}/providers/Microsoft.Compute`;
  }

  /** Changes a resource, and waits for the end of the operation. Otherwise like {@link call}. */
  async change<T>(request: string, signal: AbortSignal, work: SdkCall<T>): Promise<T> {
    return await this.call(request, signal, work, this.#options.changeTimeout);
  }

  /**
   * Calls the SDK.
   *
   * @param request for errors: `creation of disk d`
   * @param seconds time limit
   * @throws CloudError, or the signal's reason
   */
  async call<T>(
    request: string,
    signal: AbortSignal,
    work: SdkCall<T>,
    seconds: number = REQUEST_TIMEOUT,
  ): Promise<T> {
    const subject = `provider ${this.name}: ${request}`;
    const { onTask, onRefused, pollInterval = 2 } = this.#options;
    const start = performance.now();
    try {
      return await withAbort({ signal }, async () =>
        withTimeout(
          seconds,
          signal,
          async (abortSignal) => work(this.#client, { abortSignal, updateIntervalInMs: pollInterval * 1000 }),
          () => cloudError('image-timeout', subject, `not finished after ${seconds} s`),
        ),
      );
    } catch (error) {
      signal.throwIfAborted();
      const failure = azureError(subject, error);
      if (failure instanceof CloudError && failure.code === 'auth-failed') onRefused?.();
      throw failure;
    } finally {
      onTask?.(request.split(' of ')[0] ?? request, performance.now() - start);
    }
  }

  /** Lists all items, with one SDK request per page. */
  async list<T>(
    request: string,
    signal: AbortSignal,
    pages: (client: ComputeManagementClient, options: CallOptions) => PagedList<T>,
  ): Promise<T[]> {
    const subject = `provider ${this.name}: ${request}`;
    return await listAll({ subject }, async (marker) => {
      const page = await this.call(request, signal, async (client, options) => {
        const settings = marker === undefined ? {} : { continuationToken: marker };
        try {
          const { value } = await pages(client, options).byPage(settings).next();
          return value as T[] & { readonly continuationToken?: string };
        } catch (error) {
          // The SDK accesses the list before it checks whether it exists.
          if (!(error instanceof TypeError)) throw error;
          throw cloudError('invalid-response', subject, 'the response does not contain the list');
        }
      });
      return { entries: page, next: page.continuationToken };
    });
  }

  /**
   * Lists what the credentials may do in the resource group, according to their roles.
   *
   * @throws CloudError
   */
  async permissions(signal: AbortSignal): Promise<readonly Permission[]> {
    return await this.call('list of permissions', signal, async () => {
      const token = await this.#credential.getToken(scopeOf(this.account), { abortSignal: signal });
      const { subscription, resourceGroup } = this.account;
      const path = `/subscriptions/${subscription}/resourceGroups/${resourceGroup}/providers/Microsoft.Authorization/permissions`;
      const url = new URL(`${endpointOf(this.account)}${path}?api-version=2022-04-01`);
      const headers = { authorization: `Bearer ${token?.token}` };
      const response = await new HttpClient({ timeout: 60 }).send({ url, headers, signal });
      const body = parseJson(response.body) as PermissionResponse;
      if (response.status === 200 && Array.isArray(body.value)) return body.value;
      const { code = '', message = `status ${response.status}` } = body.error ?? {};
      throw Object.assign(new Error(message), { name: 'RestError', statusCode: response.status, code });
    });
  }

  /** Requests a token to check the credentials. @returns its expiry time */
  async authenticate(signal: AbortSignal): Promise<Date> {
    return await this.call('credentials', signal, async () => {
      const token = await this.#credential.getToken(scopeOf(this.account), { abortSignal: signal });
      return new Date(token?.expiresOnTimestamp ?? Number.NaN);
    });
  }
}

/** Actions of a role, possibly with wildcards. */
export interface Permission {
  readonly actions?: readonly string[];
  readonly notActions?: readonly string[];
}

interface PermissionResponse {
  readonly value?: readonly Permission[];
  readonly error?: { readonly code?: string; readonly message?: string };
}

function endpointOf({ endpoint, cloud = 'public' }: AzureAccount): string {
  return (endpoint ?? ENDPOINTS[cloud]).replace(/\/$/, '');
}

/** Returns the token scope for the cloud's Resource Manager. */
function scopeOf({ cloud = 'public' }: AzureAccount): string {
  return `${ENDPOINTS[cloud]}/.default`;
}

interface PlainRequest {
  readonly headers: { set(name: string, value: string): void };
}

/** Adds the token to plain HTTP requests. */
function plainTokens(credential: TokenCredential, scope: string): Policy<PlainRequest> {
  return {
    name: 'plainTokens',
    async sendRequest(request, next) {
      const token = await credential.getToken(scope);
      request.headers.set('authorization', `Bearer ${token?.token}`);
      return await next(request);
    },
  };
}

/** Describes why an endpoint is rejected; undefined if it is valid. */
export function endpointError(endpoint: string): string | undefined {
  const url = URL.parse(endpoint);
  if (url === null || !/^https?:$/.test(url.protocol)) return 'is not a URL';
  const isLoopback = /^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(url.hostname);
  return url.protocol === 'https:' || isLoopback ? undefined : 'would send tokens without TLS';
}
