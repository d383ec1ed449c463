import { createHash } from 'node:crypto';
import type { S3, S3ClientConfig } from '@aws-sdk/client-s3';
import { ImageError, type Logger } from '@nodepool-builder/image-builder';
import { noResponse, readBounded } from '@nodepool-builder/image-builder/internal';
import {
  CloudError,
  type CloudErrorCode,
  cloudError,
  HttpAgent,
  listAll,
  type RemedyTable,
  remedyFor,
  responseMeter,
} from '@nodepool-builder/image-builder/plugin';
import { CHECK_PLACE, checkResponse } from './check-response.ts';
import { S3Keys } from './s3-keys.ts';
import type { S3Entry } from './s3-settings.ts';

/** S3 error codes that are more specific than their HTTP status. */
const CODES: readonly (readonly [pattern: RegExp, code: CloudErrorCode])[] = [
  [/SlowDown|Throttl|TooManyRequests/, 'rate-limited'],
  [/EntityTooLarge/, 'bad-request'],
  [/QuotaExceeded|LimitExceeded/, 'quota-exceeded'],
  [/AccessDenied|^Forbidden$/, 'forbidden'],
  [/InvalidAccessKeyId|SignatureDoesNotMatch|Expired|CredentialsProviderError/, 'auth-failed'],
  [/NotFound|NoSuch/, 'not-found'],
  [/Conflict|PreconditionFailed/, 'conflict'],
  // Another process has sent this part again, so the part's ETag has changed.
  [/InvalidPart/, 'image-failed'],
];

/**
 * Remedies for reasons that are more specific than their codes. Someone else must have set a protection, because the
 * provider sets none.
 */
const REMEDIES: RemedyTable = [
  [
    /object.?lock|legal.?hold|retention|WORM/i,
    'end the legal hold or the retention of the object, which may come from a rule of the bucket',
  ],
  [/\(EntityTooLarge\)/, 'ask the operator of the object store for a higher limit'],
  [/\(NoSuchBucket\)/, 'create the bucket, or correct bucket-name'],
];

/** Region that object stores other than AWS accept. */
const DEFAULT_REGION = 'us-east-1';

/** Max attempts of a request. */
const ATTEMPTS = 6;

/** Milliseconds for which credentials without an expiry time are used. */
const LIFETIME = 15 * 60_000;

/** Errors about credentials that may have been renewed at their source. The response to HEAD has no code. */
const EXPIRED = /Expired|InvalidAccessKeyId|InvalidToken|^Unknown|^Forbidden$/;

export interface StoreOptions {
  readonly entry: S3Entry;
  readonly logger?: Logger | undefined;
  /** Max attempts per request. Default 6. */
  readonly attempts?: number;
  readonly onTask?: ((task: string, milliseconds: number) => void) | undefined;
}

/** An object in a list. */
export interface StoredObject {
  readonly key: string;
  readonly size: number;
  readonly etag: string;
  readonly changedAt: Date;
}

/** Properties of one object. */
export interface ObjectState {
  readonly size: number;
  readonly etag: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A page of a list, as S3 describes it. */
interface StorePage<T> {
  readonly entries: readonly T[];
  readonly isTruncated: boolean | undefined;
  /** Marker of the next page. */
  readonly next: string | undefined;
}

interface RequestOptions {
  readonly abortSignal: AbortSignal;
}

type Credentials = Awaited<ReturnType<S3['config']['credentials']>>;

type Request<T> = (client: S3, options: RequestOptions) => Promise<T>;

/** A provider's objects in a bucket. The SDK is loaded on the first request. */
export class ObjectStore {
  readonly bucket: string;
  readonly keys: S3Keys;
  readonly #options: StoreOptions;
  #client: Promise<S3> | undefined;

  constructor(options: StoreOptions) {
    const { 'bucket-name': bucket, prefix } = options.entry;
    this.bucket = bucket;
    this.keys = new S3Keys(prefix);
    this.#options = options;
  }

  /** Name of the provider. */
  get provider(): string {
    return this.#options.entry.name;
  }

  warn(message: string): void {
    this.#options.logger?.warn(`provider ${this.provider}: ${message}`);
  }

  /** Runs one request. @throws CloudError, or the signal's reason */
  async call<T>(task: string, key: string, signal: AbortSignal, request: Request<T>): Promise<T> {
    signal.throwIfAborted();
    const start = performance.now();
    try {
      this.#client ??= this.#open();
      return await withRenewed(await this.#client, { abortSignal: signal }, request);
    } catch (error) {
      signal.throwIfAborted();
      throw this.#error(this.#subject(task, key), error);
    } finally {
      this.#options.onTask?.(task, performance.now() - start);
    }
  }

  /** Lists the objects whose key begins with `prefix` and contains no further slash. */
  async list(prefix: string, signal: AbortSignal): Promise<StoredObject[]> {
    const query = { Bucket: this.bucket, Prefix: prefix, Delimiter: '/' };
    return await this.listAll('ListObjectsV2', prefix, signal, async (client, options, token) => {
      const next = token === undefined ? {} : { ContinuationToken: token };
      const page = await client.listObjectsV2({ ...query, ...next }, options);
      const { Contents: contents = [], IsTruncated: isTruncated, NextContinuationToken: following } = page;
      const entries = contents.map(({ Key = '', Size = 0, ETag = '', LastModified = new Date(0) }) => {
        return { key: Key, size: Size, etag: ETag, changedAt: LastModified };
      });
      return { entries, isTruncated, next: following };
    });
  }

  /** Runs list requests, one per page. @throws CloudError, or the signal's reason */
  async listAll<T>(
    task: string,
    key: string,
    signal: AbortSignal,
    request: (client: S3, options: RequestOptions, marker: string | undefined) => Promise<StorePage<T>>,
  ): Promise<T[]> {
    const subject = this.#subject(task, key);
    return await listAll({ subject }, async (marker) => {
      const page = await this.call(task, key, signal, (client, options) => request(client, options, marker));
      const { isTruncated, next } = page;
      if (isTruncated === undefined) throw cloudError('invalid-response', subject, 'IsTruncated is missing');
      if (!isTruncated) return { entries: page.entries };
      if (!next) throw cloudError('invalid-response', subject, 'a page other than the last has no marker');
      return page;
    });
  }

  /** Reads a small object; undefined if it does not exist. */
  async read(key: string, signal: AbortSignal): Promise<string | undefined> {
    const read = this.call('GetObject', key, signal, async (client, options) => {
      const { Body: body } = await client.getObject({ Bucket: this.bucket, Key: key }, options);
      const meter = responseMeter(this.#subject('GetObject', key));
      return (await readBounded(body as AsyncIterable<Uint8Array>, meter)).toString('utf8');
    });
    return await read.catch(unlessMissing);
  }

  /** Writes a small object. */
  async write(key: string, text: string, signal: AbortSignal): Promise<void> {
    const ContentMD5 = createHash('md5').update(text).digest('base64');
    const input = { Bucket: this.bucket, Key: key, Body: text, ContentType: 'application/json', ContentMD5 };
    await this.call('PutObject', key, signal, (client, options) => client.putObject(input, options));
  }

  /** Reads an object's state; undefined if the object does not exist. */
  async head(key: string, signal: AbortSignal): Promise<ObjectState | undefined> {
    const asked = this.call('HeadObject', key, signal, (client, options) =>
      client.headObject({ Bucket: this.bucket, Key: key }, options),
    );
    const response = await asked.catch(unlessMissing);
    if (response === undefined) return undefined;
    const { ContentLength: size = 0, ETag: etag = '', Metadata: metadata = {} } = response;
    return { size, etag, metadata };
  }

  /** Removes an object. A missing object is not an error. */
  async remove(key: string, signal: AbortSignal): Promise<void> {
    const removed = this.call('DeleteObject', key, signal, (client, options) =>
      client.deleteObject({ Bucket: this.bucket, Key: key }, options),
    );
    await removed.catch(unlessMissing);
  }

  close(): void {
    this.#client?.then((client) => client.destroy()).catch(() => {});
    this.#client = undefined;
  }

  #subject(task: string, key: string): string {
    return `provider ${this.provider}: ${task} ${this.bucket}/${key}`;
  }

  async #open(): Promise<S3> {
    const { entry, attempts = ATTEMPTS } = this.#options;
    const { endpoint, 'region-name': region, 'profile-name': profile } = entry;
    const { 'shared-credentials-file': filepath, 'path-style': forcePathStyle = endpoint !== undefined } =
      entry;
    const [{ S3 }, { fromNodeProviderChain }] = await Promise.all([
      import('@aws-sdk/client-s3'),
      import('@aws-sdk/credential-providers'),
    ]);
    // The credential chain itself would use credentials from a file for the lifetime of the process.
    const agent = new HttpAgent({ keepAlive: true });
    const agents = { httpAgent: agent, httpsAgent: agent };
    const clientConfig = { requestHandler: agents };
    const chain = {
      clientConfig,
      ...(profile && { profile }),
      ...(filepath && { filepath }),
      ignoreCache: true,
    };
    const credentials = async (): Promise<Credentials> => {
      const { expiration = new Date(Date.now() + LIFETIME), ...rest } = await fromNodeProviderChain(chain)();
      return { ...rest, expiration };
    };
    const settings: S3ClientConfig = {
      ...(profile && { profile }),
      ...(endpoint && { endpoint }),
      forcePathStyle,
      credentials,
      maxAttempts: attempts,
      // Content-MD5 protects the parts, because other object stores do not support AWS's newer checksums. Some stores
      // are silent while they complete a large object.
      requestHandler: { connectionTimeout: 10_000, socketTimeout: 300_000, ...agents },
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    };
    const open = (more: S3ClientConfig): S3 => {
      const client = new S3({ ...settings, ...more });
      client.middlewareStack.add(checkResponse(`provider ${entry.name}: bucket ${this.bucket}`), CHECK_PLACE);
      return client;
    };
    if (region !== null && region !== undefined) return open({ region: String(region) });
    const client = open({});
    const isKnown = await client.config.region().then(
      () => true,
      () => false,
    );
    return isKnown ? client : open({ region: DEFAULT_REGION });
  }

  #error(what: string, error: unknown): Error {
    if (!(error instanceof Error) || error instanceof CloudError || error instanceof ImageError)
      return error as Error;
    const { $metadata: { httpStatusCode: status = 0 } = {}, $response: { headers = {} } = {} } = error as {
      $metadata?: { httpStatusCode?: number };
      $response?: { headers?: Readonly<Record<string, string>> };
    };
    const [, known] = CODES.find(([pattern]) => pattern.test(error.name)) ?? [];
    if (known === undefined && status === 0) return noResponse(what, error);
    const byStatus = status === 403 ? 'forbidden' : status >= 500 ? 'service-unavailable' : 'bad-request';
    const reason = `${error.message === 'UnknownError' ? `status ${status}` : error.message} (${error.name})`;
    const region = headers['x-amz-bucket-region'] ?? 'the region of the bucket';
    const remedy =
      status >= 300 && status < 400
        ? { remedy: `set region-name to ${region}, or endpoint to the URL of the bucket` }
        : remedyFor(reason, REMEDIES);
    return cloudError(known ?? byStatus, what, reason, { cause: error, ...remedy });
  }
}

/** Repeats a request once if its credentials were rejected and new ones are available. */
async function withRenewed<T>(client: S3, options: RequestOptions, request: Request<T>): Promise<T> {
  const { credentials } = client.config;
  const used = await credentials();
  try {
    return await request(client, options);
  } catch (error) {
    if (!EXPIRED.test((error as Error).name)) throw error;
    const isUsed = (one: Credentials): boolean =>
      one.accessKeyId === used.accessKeyId && one.sessionToken === used.sessionToken;
    if (isUsed(await credentials()) && isUsed(await credentials({ forceRefresh: true }))) throw error;
    return await request(client, options);
  }
}

/** For `catch`: returns undefined for a missing object, but rethrows the error of a missing bucket. */
export function unlessMissing(error: unknown): undefined {
  const { cause } = error as Error;
  const isBucket = cause instanceof Error && cause.name === 'NoSuchBucket';
  if (error instanceof CloudError && error.code === 'not-found' && !isBucket) return;
  throw error;
}
