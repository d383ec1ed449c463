import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Nginx, startNginx } from '../../../../test/fixtures/nginx.ts';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { temporaryDirectory } from '../../../image-builder/test/temporary-directory.ts';
import type {
  ArtifactRequest,
  DownloadedArtifact,
  DownloadOptions,
} from '../../src/download/artifact-request.ts';
import { downloadArtifact } from '../../src/download/download-artifact.ts';

/** Retries that do not keep a test waiting. */
export const IMPATIENT = {
  attempts: 3,
  firstDelay: 0.001,
  longestDelay: 0.02,
  longestRetryAfter: 0.02,
} as const;

/** Bytes of a block, the unit of what is kept of a download. A request for a small object is for two. */
export const BLOCK: number = 128 * 1024;

/** A place to download to. */
export class DownloadFixture {
  readonly directory: string;
  readonly destination: string;
  readonly stateDirectory: string;
  readonly logger = new RecordingLogger();

  private constructor(directory: string) {
    this.directory = directory;
    this.destination = join(directory, 'images', 'image.raw');
    this.stateDirectory = join(directory, 'state');
  }

  static async create(t: TestContext): Promise<DownloadFixture> {
    const fixture = new DownloadFixture(await temporaryDirectory(t));
    await mkdir(join(fixture.directory, 'images'));
    return fixture;
  }

  async download(
    url: string,
    request: Partial<ArtifactRequest> = {},
    options: DownloadOptions = {},
  ): Promise<DownloadedArtifact> {
    const { destination, stateDirectory, logger } = this;
    return await downloadArtifact(
      { url, destination, stateDirectory, ...request },
      { logger, retryPolicy: IMPATIENT, ...options },
    );
  }

  /** What is there: names below the directories of images and of state. */
  async left(): Promise<{ readonly images: string[]; readonly state: string[] }> {
    const [images, state] = await Promise.all([
      readdir(join(this.directory, 'images')),
      readdir(this.stateDirectory).catch(() => []),
    ]);
    return { images, state };
  }
}

/** An nginx that ends with the test. */
export async function nginxFor(t: TestContext, directives?: string): Promise<Nginx> {
  const nginx = await startNginx(directives);
  t.after(() => nginx.stop());
  return nginx;
}

/** A request to a server of a test's own. */
export interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
}

/** A server of a test's own, for what nginx never does. */
export interface OddServer {
  readonly url: string;
  readonly asked: readonly Asked[];
}

/** Starts a server on loopback, which ends with the test. */
export async function oddServer(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse, count: number) => void,
): Promise<OddServer> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    asked.push({ path: request.url ?? '', headers: request.headers });
    answer(request, response, asked.length);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** Answers as any server with ranges does. */
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

/** Bytes as a disk image has them: some that mean something, and a long hole. */
export function imageContent(size: number): Buffer {
  return Buffer.concat([randomBytes(size / 4), Buffer.alloc(size / 2), randomBytes(size / 4)]);
}

export function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

export function md5(content: Buffer): string {
  return createHash('md5').update(content).digest('hex');
}
