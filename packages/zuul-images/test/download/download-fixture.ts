import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, rename, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Nginx, startNginx } from '../../../../test/fixtures/nginx.ts';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { AddressGuard } from '../../src/download/address-guard.ts';
import { type DownloadedArtifact, downloadArtifact } from '../../src/download/download-artifact.ts';
import type { ArtifactAccess } from '../../src/download/http-source.ts';
import type { ArtifactRequest, DownloadOptions } from '../../src/download/transfer.ts';

/** Retries that do not keep a test waiting. */
export const IMPATIENT = {
  attempts: 3,
  firstDelay: 0.001,
  maxDelay: 0.02,
  maxRetryAfter: 0.02,
} as const;

/** Half of the min part of a download. */
export const BLOCK: number = 128 * 1024;

/** Access to servers on loopback, but not to other internal networks. */
export const LOCAL: ArtifactAccess = { guard: new AddressGuard({ configuredUrls: ['http://127.0.0.1/'] }) };

/** A directory for a download. */
export class DownloadFixture {
  /** Path of the finished file. */
  readonly destination: string;
  readonly directory: string;
  readonly logger = new RecordingLogger();

  private constructor(parent: string) {
    this.destination = join(parent, 'image.raw');
    this.directory = join(parent, 'partial');
  }

  static async create(t: TestContext): Promise<DownloadFixture> {
    return new DownloadFixture(await temporaryDirectory(t));
  }

  /** Downloads a file, and moves it to the destination. */
  async download(
    url: string,
    request: Partial<ArtifactRequest> = {},
    options: DownloadOptions = {},
  ): Promise<DownloadedArtifact> {
    const { directory, logger } = this;
    const limits = { maxSize: 2 ** 38, leaveFree: 0 };
    const artifact = await downloadArtifact(
      { url, access: LOCAL, directory, ...limits, ...request },
      { logger, retryPolicy: IMPATIENT, ...options },
    );
    await rename(artifact.path, this.destination);
    await rm(directory, { recursive: true });
    return artifact;
  }

  /** Lists the files of the partial download. */
  async partial(): Promise<readonly string[]> {
    return await readdir(this.directory).catch(() => []);
  }
}

/** Starts an nginx that ends with the test. */
export async function nginxFor(t: TestContext, directives?: string): Promise<Nginx> {
  const nginx = await startNginx(directives);
  t.after(() => nginx.stop());
  return nginx;
}

/** A request to an {@link OddServer}. */
export interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
}

/** A server that behaves as nginx never does. */
export interface OddServer {
  readonly url: string;
  readonly asked: readonly Asked[];
}

/** Starts a server on loopback that ends with the test. */
export async function oddServer(
  t: TestContext,
  respond: (request: IncomingMessage, response: ServerResponse, count: number) => void,
): Promise<OddServer> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    asked.push({ path: request.url ?? '', headers: request.headers });
    respond(request, response, asked.length);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** Sends the head of a response with a range. Returns the response’s body. */
export function sendRange(
  { headers }: IncomingMessage,
  response: ServerResponse,
  content: Buffer,
  fields: Readonly<Record<string, string>> = { etag: '"one"' },
): Buffer {
  const [, first = '0', last = ''] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
  const part = content.subarray(Number(first), Number(last) + 1);
  response.writeHead(206, {
    'content-range': `bytes ${first}-${last}/${content.length}`,
    'content-length': part.length,
    ...fields,
  });
  return part;
}

/** Returns random bytes around a long hole, like a disk image. */
export function imageContent(size: number): Buffer {
  return Buffer.concat([randomBytes(size / 4), Buffer.alloc(size / 2), randomBytes(size / 4)]);
}

export function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

export function md5(content: Buffer): string {
  return createHash('md5').update(content).digest('hex');
}
