import { randomUUID } from 'node:crypto';
import type { Reply, Request } from '../loopback-server.ts';
import { GoogleError } from './model.ts';

/** An object of Cloud Storage. */
export interface StoredObject {
  readonly bucket: string;
  readonly name: string;
  readonly bytes: Buffer;
  readonly generation: number;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly updated: Date;
}

/** A resumable upload session. */
interface Session {
  readonly bucket: string;
  readonly name: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  bytes: Buffer;
  object?: StoredObject;
}

/**
 * The part of Cloud Storage's JSON API that uploads need. @see
 * https://cloud.google.com/storage/docs/performing-resumable-uploads
 */
export class StorageDouble {
  readonly objects = new Map<string, StoredObject>();
  readonly sessions = new Map<string, Session>();
  /** Names of missing buckets. */
  readonly missingBuckets = new Set<string>();
  /** Bytes received in sessions. */
  receivedBytes = 0;
  readonly #crc32c: (bytes: Buffer) => string;
  #generation = 1;

  /** @param crc32c CRC32C in base64 */
  constructor(crc32c: (bytes: Buffer) => string) {
    this.#crc32c = crc32c;
  }

  respond(request: Request): Reply | undefined {
    const { method, url } = request;
    const upload = /^\/upload\/storage\/v1\/b\/([^/]+)\/o$/.exec(url.pathname);
    if (upload !== null) {
      const id = url.searchParams.get('upload_id');
      return id === null ? this.#start(request, upload[1] ?? '') : this.#continue(request, id);
    }
    const object = /^\/storage\/v1\/b\/([^/]+)\/o\/(.+)$/.exec(url.pathname);
    if (object !== null) {
      const key = `${object[1]}/${decodeURIComponent(object[2] ?? '')}`;
      const found = this.objects.get(key);
      if (found === undefined) throw new GoogleError(404, 'notFound', `No such object: ${key}`);
      const match = url.searchParams.get('ifGenerationMatch');
      if (match !== null && Number(match) !== found.generation) {
        throw new GoogleError(412, 'conditionNotMet', 'At least one of the pre-conditions did not hold.');
      }
      if (method === 'GET') return { status: 200, body: this.#describe(found) };
      if (method === 'DELETE') {
        this.objects.delete(key);
        return { status: 204 };
      }
    }
    const list = /^\/storage\/v1\/b\/([^/]+)\/o$/.exec(url.pathname);
    if (list !== null && method === 'GET') {
      const prefix = `${list[1]}/${url.searchParams.get('prefix') ?? ''}`;
      const items = [...this.objects].filter(([key]) => key.startsWith(prefix));
      return { status: 200, body: { items: items.map(([, one]) => this.#describe(one)) } };
    }
    return undefined;
  }

  #start({ url, headers, body }: Request, bucket: string): Reply {
    const id = randomUUID();
    const metadata = (body.length > 0 ? JSON.parse(body.toString()) : {}) as Record<string, unknown>;
    const name = url.searchParams.get('name') ?? textOf(metadata.name);
    if (name === '' || url.searchParams.get('uploadType') !== 'resumable') {
      throw new GoogleError(400, 'required', 'Required');
    }
    this.sessions.set(id, { bucket, name, metadata, bytes: Buffer.alloc(0) });
    const location = `http://${textOf(headers.host)}${url.pathname}?uploadType=resumable&upload_id=${id}`;
    return { status: 200, headers: { location } };
  }

  #continue({ method, headers, body }: Request, id: string): Reply {
    const session = this.sessions.get(id);
    if (session === undefined) throw new GoogleError(404, 'notFound', 'the session has expired');
    if (method === 'DELETE') {
      this.sessions.delete(id);
      return { status: 499 };
    }
    if (session.object !== undefined) return { status: 200, body: this.#describe(session.object) };
    const range = /^bytes (?:(?<first>\d+)-(?<last>\d+)|\*)\/(?<total>\d+|\*)$/.exec(
      headers['content-range'] ?? '',
    )?.groups;
    if (range === undefined)
      throw new GoogleError(400, 'badRequest', 'Failed to parse Content-Range header.');
    if (range.first !== undefined) {
      if (Number(range.first) !== session.bytes.length) {
        throw new GoogleError(400, 'badRequest', `the session has ${session.bytes.length} bytes`);
      }
      if (range.total === '*' && body.length % 262_144 !== 0) {
        throw new GoogleError(400, 'badRequest', 'a chunk must be a multiple of 256 KiB');
      }
      this.receivedBytes += body.length;
      session.bytes = Buffer.concat([session.bytes, body]);
    }
    const { length } = session.bytes;
    if (range.total === '*' || Number(range.total) !== length) {
      return { status: 308, headers: length === 0 ? {} : { range: `bytes=0-${length - 1}` } };
    }
    const { bucket, name, bytes, metadata } = session;
    const claimed = /crc32c=([^,]+)/.exec(String(headers['x-goog-hash'] ?? ''))?.[1];
    if (claimed !== undefined && claimed !== this.#crc32c(bytes)) {
      throw new GoogleError(400, 'invalid', 'Provided CRC32C does not match the calculated one.');
    }
    const object = { bucket, name, bytes, metadata, generation: this.#generation++, updated: new Date() };
    this.objects.set(`${bucket}/${name}`, object);
    session.object = object;
    return { status: 200, body: this.#describe(object) };
  }

  #describe({ bucket, name, bytes, metadata, generation, updated }: StoredObject): object {
    return {
      ...metadata,
      kind: 'storage#object',
      bucket,
      name,
      size: String(bytes.length),
      generation: String(generation),
      crc32c: this.#crc32c(bytes),
      updated: updated.toISOString(),
    };
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
