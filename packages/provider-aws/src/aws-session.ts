import type { EBS } from '@aws-sdk/client-ebs';
import type { EC2 } from '@aws-sdk/client-ec2';
import type { S3 } from '@aws-sdk/client-s3';
import { cloudError, HttpAgent, type ListOptions, listAll } from '@nodepool-builder/image-builder/plugin';
import type { BuildHandler } from '@smithy/types';
import { awsError } from './aws-error.ts';
import { CHECK_PLACE, checkResponse, EBS_START, EC2_START, S3_START } from './check-response.ts';
import { renewedCredentials, retryWithRenewed } from './renewed-credentials.ts';
import { type SdkRequests, sdkRequests } from './sdk-requests.ts';

export interface SessionOptions {
  /** `providers[].name`. */
  readonly name: string;
  readonly region?: string | undefined;
  readonly profile?: string | undefined;
  readonly credentialsFile?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly s3Endpoint?: string | undefined;
  /** Max connections to one service. */
  readonly concurrency: number;
  /** Max attempts per request. Default 10. */
  readonly attempts?: number | undefined;
  /** Max milliseconds without a byte from a server. Default 120,000. */
  readonly socketTimeout?: number;
  /** Called with the duration of each request, in milliseconds. */
  readonly onTask?: ((task: string, milliseconds: number) => void) | undefined;
}

/** Options that the SDK accepts for each request. */
interface RequestOptions {
  readonly abortSignal: AbortSignal;
}

/** Page keys of a request. Without a page size, AWS sends everything in one response, whatever its length. */
interface PageQuery {
  readonly NextToken?: string;
  readonly MaxResults?: number;
}

/** Clients of one region. */
export class AwsRegion {
  readonly name: string;
  readonly clients: { readonly ec2: EC2; readonly ebs: EBS; readonly s3: S3 };
  readonly #session: SessionOptions;

  constructor(name: string, clients: AwsRegion['clients'], session: SessionOptions) {
    this.name = name;
    this.clients = clients;
    this.#session = session;
  }

  /** Returns the requests of EC2. They throw CloudError, or the signal's reason. */
  ec2(signal: AbortSignal): SdkRequests<EC2> {
    return this.#requests(this.clients.ec2, signal);
  }

  /** Like {@link ec2}, for EBS. */
  ebs(signal: AbortSignal): SdkRequests<EBS> {
    return this.#requests(this.clients.ebs, signal);
  }

  /** Like {@link ec2}, for S3. */
  s3(signal: AbortSignal): SdkRequests<S3> {
    return this.#requests(this.clients.s3, signal);
  }

  /**
   * Runs one request.
   *
   * @param task operation name: `RegisterImage`
   * @throws CloudError, or the signal's reason
   */
  async call<T>(
    task: string,
    signal: AbortSignal,
    request: (options: RequestOptions) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const start = performance.now();
    try {
      return await request({ abortSignal: signal });
    } catch (error) {
      signal.throwIfAborted();
      throw awsError(this.#subject(task), error);
    } finally {
      this.#session.onTask?.(task, performance.now() - start);
    }
  }

  /** Runs a list request for all pages. @param task operation name, for errors about the list */
  async list<Page extends { readonly NextToken?: string | undefined }, Item>(
    task: string,
    request: (page: PageQuery) => Promise<Page>,
    items: (page: Page) => readonly Item[] | undefined,
    list: Omit<ListOptions, 'subject'> = {},
  ): Promise<Item[]> {
    const subject = this.#subject(task);
    return await listAll({ ...list, subject }, async (marker, size) => {
      const next = { ...(marker && { NextToken: marker }), ...(size && { MaxResults: size }) };
      const page = await request(next);
      const entries = items(page);
      if (entries !== undefined) return { entries, next: page.NextToken };
      throw cloudError('invalid-response', subject, 'the response does not contain the list');
    });
  }

  #requests<Client extends object>(client: Client, signal: AbortSignal): SdkRequests<Client> {
    return sdkRequests(client, (task, send) => this.call(task, signal, send));
  }

  #subject(task: string): string {
    return `provider ${this.#session.name}: ${task} in ${this.name}`;
  }

  close(): void {
    for (const client of Object.values(this.clients)) client.destroy();
  }
}

/** Signs a request with the digest that its block already has, instead of computing it again. */
function withPayloadDigest<Input extends object, Output extends object>(
  next: BuildHandler<Input, Output>,
): BuildHandler<Input, Output> {
  return async (args) => {
    const { input, request } = args as {
      input: { Checksum?: string; BlockData?: unknown };
      request: unknown;
    };
    const { headers } = request as { headers: Record<string, string> };
    if (input.BlockData !== undefined && input.Checksum !== undefined) {
      headers['x-amz-content-sha256'] = Buffer.from(input.Checksum, 'base64').toString('hex');
    }
    return await next(args);
  };
}

/**
 * Credentials of one entry of `providers`. The SDK is loaded on the first request, because loading takes a third of a
 * second.
 */
export class AwsSession {
  readonly options: SessionOptions;
  readonly #regions = new Map<string, Promise<AwsRegion>>();
  #isClosed = false;

  constructor(options: SessionOptions) {
    this.options = options;
  }

  /**
   * Opens a region.
   *
   * @param name default: the region of the entry, of its profile or of the environment
   * @throws CloudError `bad-request` if none of them sets a region
   */
  async open(name: string | undefined = this.options.region): Promise<AwsRegion> {
    const key = name ?? '';
    const opened = this.#regions.get(key) ?? this.#open(name);
    this.#regions.set(key, opened);
    opened.catch(() => this.#regions.delete(key));
    return await opened;
  }

  close(): void {
    this.#isClosed = true;
    for (const opened of this.#regions.values()) opened.then((region) => region.close()).catch(() => {});
    this.#regions.clear();
  }

  async #open(name: string | undefined): Promise<AwsRegion> {
    const { profile, credentialsFile, endpoint, s3Endpoint, concurrency } = this.options;
    const { attempts = 10, socketTimeout = 120_000 } = this.options;
    const [{ EC2 }, { EBS }, { S3 }, { fromNodeProviderChain }] = await Promise.all([
      import('@aws-sdk/client-ec2'),
      import('@aws-sdk/client-ebs'),
      import('@aws-sdk/client-s3'),
      import('@aws-sdk/credential-providers'),
    ]);
    if (this.#isClosed) throw cloudError('connection-failed', this.#subject, 'the provider is closing');
    const agent = new HttpAgent({ keepAlive: true, maxSockets: concurrency });
    const agents = { httpAgent: agent, httpsAgent: agent };
    const chain = {
      clientConfig: { requestHandler: agents },
      ...(profile !== undefined && { profile }),
      ...(credentialsFile !== undefined && { filepath: credentialsFile }),
      ignoreCache: true,
    };
    const credentials = renewedCredentials(() => fromNodeProviderChain(chain)());
    const settings = {
      ...(name !== undefined && { region: name }),
      ...(profile !== undefined && { profile }),
      credentials,
      maxAttempts: attempts,
      requestHandler: {
        connectionTimeout: 10_000,
        socketTimeout, // the SDK only warns after a requestTimeout
        ...agents,
      },
    };
    const ec2 = new EC2({ ...settings, ...(endpoint && { endpoint }) });
    const ebs = new EBS({ ...settings, ...(endpoint && { endpoint }) });
    ebs.middlewareStack.add(withPayloadDigest, { name: 'payloadDigest', step: 'build' });
    const s3 = new S3({ ...settings, ...(s3Endpoint && { endpoint: s3Endpoint, forcePathStyle: true }) });
    ec2.middlewareStack.add(checkResponse(this.options.name, EC2_START), CHECK_PLACE);
    ebs.middlewareStack.add(checkResponse(this.options.name, EBS_START), CHECK_PLACE);
    s3.middlewareStack.add(checkResponse(this.options.name, S3_START), CHECK_PLACE);
    const place = { name: 'renewedCredentials', step: 'initialize' } as const;
    ec2.middlewareStack.add(retryWithRenewed(ec2.config.credentials), place);
    ebs.middlewareStack.add(retryWithRenewed(ebs.config.credentials), place);
    s3.middlewareStack.add(retryWithRenewed(s3.config.credentials), place);
    try {
      return new AwsRegion(await ec2.config.region(), { ec2, ebs, s3 }, this.options);
    } catch (cause) {
      const reason = 'no region is configured; set region-name';
      throw cloudError('bad-request', this.#subject, reason, { cause });
    }
  }

  get #subject(): string {
    return `provider ${this.options.name}`;
  }
}
