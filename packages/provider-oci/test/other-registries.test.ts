// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { type Blob, uploadBlob } from '../src/blob-upload.ts';
import { contentDigest, Registry } from '../src/registry.ts';

const KIB = 1024;

/** Differences between a registry and the OCI distribution specification. */
interface Quirks {
  /** Responds to a chunk instead of the registry. @returns whether it did */
  readonly refuse?: (chunk: Buffer, response: ServerResponse) => boolean;
  /** Status and range of the response to a chunk. */
  readonly respond?: (length: number, chunk: Buffer) => readonly [status: number, range: string];
  /** Returns the part of a chunk that it keeps. */
  readonly keep?: (chunk: Buffer) => Buffer;
}

interface Opened {
  readonly registry: Registry;
  /** Lengths of the chunks that it has received. */
  readonly chunks: number[];
  /** Unfinished uploads. */
  readonly uploads: ReadonlyMap<string, Buffer>;
  readonly blobs: ReadonlyMap<string, Buffer>;
}

async function openRegistry(t: TestContext, quirks: Quirks): Promise<Opened> {
  const chunks: number[] = [];
  const uploads = new Map<string, Buffer>();
  const blobs = new Map<string, Buffer>();
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const { pathname: path, searchParams: query } = new URL(request.url ?? '', 'http://localhost');
    const body = await buffer(request);
    if (request.method === 'POST') {
      uploads.set(`${path}${uploads.size}-${chunks.length}`, Buffer.alloc(0));
      return response.writeHead(202, { location: [...uploads.keys()].at(-1) }).end();
    }
    if (request.method === 'HEAD') return response.writeHead(404).end();
    const bytes = uploads.get(path);
    if (bytes === undefined) return response.writeHead(404).end();
    if (request.method === 'DELETE') return response.writeHead(uploads.delete(path) ? 204 : 404).end();
    if (request.method === 'PUT') {
      uploads.delete(path);
      if (query.get('digest') !== contentDigest(bytes)) return response.writeHead(400).end();
      blobs.set(contentDigest(bytes), bytes);
      return response.writeHead(201).end();
    }
    chunks.push(body.length);
    if (quirks.refuse?.(body, response)) return response;
    const kept = Buffer.concat([bytes, quirks.keep?.(body) ?? body]);
    uploads.set(path, kept);
    const [status, range] = quirks.respond?.(kept.length, body) ?? [202, `0-${kept.length - 1}`];
    return response.writeHead(status, { location: path, range }).end();
  };
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const registry = new Registry({
    name: 'ci',
    endpoint: new URL(`http://${host}`),
    repository: { host, path: 'ci/images' },
    credentials: async () => await Promise.resolve(undefined),
    retry: { attempts: 3, firstDelay: 0.001 },
  });
  return { registry, chunks, uploads, blobs };
}

async function send(registry: Registry, bytes: Buffer, chunkSize: number): Promise<Blob> {
  return await uploadBlob({
    registry,
    async *pieces() {
      for (let start = 0; start < bytes.length; start += 64 * KIB) {
        yield await Promise.resolve(bytes.subarray(start, start + 64 * KIB));
      }
    },
    chunkSize,
    state: {},
    save: async () => await Promise.resolve(),
    limit: undefined,
    signal: AbortSignal.timeout(60_000),
  });
}

for (const [name, status] of [
  ['GitHub’s registry', 416],
  ['a proxy', 413],
] as const) {
  test(`chunks become short enough for ${name}`, async (t) => {
    const { registry, chunks, uploads, blobs } = await openRegistry(t, {
      refuse({ length }, response) {
        const isTooLong = length > 256 * KIB;
        if (isTooLong) response.writeHead(status).end('the body exceeds the limit');
        return isTooLong;
      },
    });
    const bytes = randomBytes(640 * KIB + 1);
    const { digest } = await send(registry, bytes, 1024 * KIB);
    assert.ok(blobs.get(digest)?.equals(bytes));
    assert.deepEqual(chunks.slice(2), [256 * KIB, 256 * KIB, 128 * KIB + 1]);
    assert.equal(uploads.size, 0);
    // The next upload knows it.
    await send(registry, bytes.subarray(1), 1024 * KIB);
    assert.ok(chunks.slice(2).every((length) => length <= 256 * KIB));
  });
}

test('a registry that accepts no chunk at all causes an error with its reason', async (t) => {
  const { registry, chunks } = await openRegistry(t, {
    refuse(_chunk, response) {
      const errors = [{ code: 'SIZE_INVALID', message: 'no chunks here' }];
      response.writeHead(413).end(JSON.stringify({ errors }));
      return true;
    },
  });
  await assert.rejects(send(registry, randomBytes(300 * KIB), 256 * KIB), /no chunks here/);
  assert.deepEqual(chunks, [256 * KIB, 128 * KIB, 64 * KIB]);
});

test('a registry that always returns the range of the first chunk gets each chunk once', async (t) => {
  const { registry, chunks, blobs } = await openRegistry(t, {
    respond: () => [201, `0-${128 * KIB - 1}`],
  });
  const bytes = randomBytes(500 * KIB);
  const { digest } = await send(registry, bytes, 128 * KIB);
  assert.ok(blobs.get(digest)?.equals(bytes));
  assert.equal(chunks.length, 4);
});

test('a registry that keeps only a part of a chunk gets the blob again', async (t) => {
  let isFirst = true;
  const { registry, chunks, blobs } = await openRegistry(t, {
    keep(chunk) {
      const kept = isFirst ? chunk.subarray(0, 1000) : chunk;
      isFirst = false;
      return kept;
    },
  });
  const bytes = randomBytes(200 * KIB);
  const { digest } = await send(registry, bytes, 128 * KIB);
  assert.ok(blobs.get(digest)?.equals(bytes));
  assert.equal(chunks.length, 4);
});
