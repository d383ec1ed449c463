import type { PageBlobClient } from '@azure/storage-blob';
import { type DiskBlock, sendBlocks, withAbort } from '@nodepool-builder/image-builder/internal';
import { type BandwidthLimit, CloudError } from '@nodepool-builder/image-builder/plugin';
import { agentPolicy, type Policy } from './agent-policy.ts';
import { azureError } from './azure-error.ts';
import { FOOTER_SIZE } from './fixed-vhd.ts';

/** Size of a block in bytes: the max size of one request. */
const BLOCK = 4 * 1_048_576;

/** Max blocks in memory and concurrent requests. */
const CONCURRENCY = 8;

/** Size of a page in bytes. */
const PAGE = 512;

/** SDK retries of a page request. The SDK's own time limit for a try applies only to the server. */
const RETRIES = { maxTries: 6, retryDelayInMs: 500, maxRetryDelayInMs: 20_000 };

export interface PagesOptions {
  /** Subject of errors: `provider azure: upload of image debian-1`. */
  readonly subject: string;
  /** Grants access to the disk. @returns the URL of its pages, which is a secret */
  readonly grant: () => Promise<string>;
  readonly limit: Pick<BandwidthLimit, 'take'> | undefined;
  readonly signal: AbortSignal;
  /** Seconds after which a request without a response is repeated. Default 180. */
  readonly responseTimeout?: number;
  readonly onProgress: (progress: { readonly done: number; readonly total: number }) => void;
}

/** Pages of one disk. Access is granted again after it has expired. */
export class DiskPages {
  readonly #options: PagesOptions;
  #client: Promise<PageBlobClient>;

  constructor(options: PagesOptions) {
    this.#options = options;
    this.#client = this.#open();
    this.#client.catch(() => {}); // The first request reports this error.
  }

  /**
   * Sends a raw image without its zeros, then the footer.
   *
   * @param path image file
   * @param length image size in bytes: the rest of the file is not sent
   * @param size disk size without the footer
   * @param isResumed whether the disk may already contain pages
   */
  async send(path: string, length: number, size: number, footer: Buffer, isResumed: boolean): Promise<void> {
    const { limit, signal, onProgress } = this.#options;
    const there = isResumed ? await this.#blocksThere(size) : new Set<number>();
    const send = async ({ index, bytes }: DiskBlock): Promise<void> => {
      const offset = index * BLOCK;
      const block = bytes.subarray(0, size - offset).fill(0, Math.max(0, length - offset));
      await limit?.take(block.length, signal);
      await this.#put(block, offset);
    };
    const isSkipped = (index: number): boolean => index * BLOCK >= size || there.has(index);
    await sendBlocks(path, {
      blockSize: BLOCK,
      concurrency: CONCURRENCY,
      send,
      isSkipped,
      signal,
      onProgress,
    });
    await this.#put(footer, size);
  }

  /** Finds the blocks that an earlier attempt has sent completely. */
  async #blocksThere(size: number): Promise<ReadonlySet<number>> {
    const blocks = new Set<number>();
    await this.#call(async (client, abortSignal) => {
      for await (const { start, end } of client.listPageRanges(0, size + FOOTER_SIZE, { abortSignal })) {
        const stop = Math.ceil((end + 1) / PAGE) * PAGE;
        for (let index = Math.ceil(start / BLOCK); index * BLOCK < stop; index++) {
          if (Math.min((index + 1) * BLOCK, size) <= stop) blocks.add(index);
        }
      }
    });
    return blocks;
  }

  async #put(bytes: Buffer, offset: number): Promise<void> {
    await this.#call(async (client, abortSignal) => {
      await client.uploadPages(bytes, offset, bytes.length, { abortSignal });
    });
  }

  /**
   * Runs a request. If access has expired, it is granted again once. If other requests have renewed access meanwhile,
   * the request is repeated.
   */
  async #call(work: (client: PageBlobClient, signal: AbortSignal) => Promise<void>): Promise<void> {
    const { subject, signal } = this.#options;
    try {
      await withAbort(
        { signal },
        async () => await this.#withAccess(async (client) => await work(client, signal)),
      );
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof CloudError ? error : azureError(subject, error);
    }
  }

  async #withAccess(work: (client: PageBlobClient) => Promise<void>): Promise<void> {
    for (let isGrantedAgain = false; ; ) {
      const used = this.#client;
      try {
        await work(await used);
        return;
      } catch (error) {
        if (!isDenied(error)) throw error;
        if (this.#client !== used) continue;
        if (isGrantedAgain) throw error;
        isGrantedAgain = true;
        this.#client = this.#open();
      }
    }
  }

  async #open(): Promise<PageBlobClient> {
    const { AnonymousCredential, PageBlobClient: Client, RestError } = await import('@azure/storage-blob');
    const { grant, signal, responseTimeout: seconds = 180 } = this.#options;
    const responseTimeout: Policy<{ abortSignal?: unknown }> = {
      name: 'responseTimeout',
      async sendRequest(request, next) {
        const timeout = AbortSignal.timeout(seconds * 1000);
        request.abortSignal = AbortSignal.any([signal, timeout]);
        try {
          return await next(request);
        } catch (error) {
          if (signal.aborted || !timeout.aborted) throw error;
          throw new RestError(`no response after ${seconds} s`, { code: 'ETIMEDOUT' });
        }
      },
    };
    const options = {
      retryOptions: RETRIES,
      additionalPolicies: [
        { policy: agentPolicy(), position: 'perCall' as const },
        { policy: responseTimeout, position: 'perRetry' as const },
      ],
    };
    return new Client(await grant(), new AnonymousCredential(), options);
  }
}

function isDenied(error: unknown): boolean {
  return error instanceof Error && 'statusCode' in error && error.statusCode === 403;
}
