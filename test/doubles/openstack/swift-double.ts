import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Reply } from '../loopback-server.ts';
import type { DoubleRequest } from './cloud-double.ts';

/** An object in the double. */
export interface StoredObject {
  readonly data: Buffer;
  /** Time in Swift's format: UTC without a zone. */
  readonly lastModified: string;
  readonly headers: IncomingHttpHeaders;
}

/** Entry in the manifest of a static large object. */
interface ManifestEntry {
  readonly path: string;
  readonly etag: string;
  readonly size_bytes: number;
}

/** Containers, objects and static large objects of Swift, according to its API reference. */
export class SwiftDouble {
  readonly containers: Map<string, Map<string, StoredObject>> = new Map();
  /** Names per page, whatever limit is requested. */
  pageSize = 1000;

  /** `container/object` of all objects. */
  get names(): readonly string[] {
    return [...this.containers].flatMap(([container, objects]) =>
      [...objects.keys()].map((name) => `${container}/${name}`),
    );
  }

  object(container: string, name: string): StoredObject | undefined {
    return this.containers.get(container)?.get(name);
  }

  handle(request: DoubleRequest): Reply | undefined {
    const [, container, name] =
      /^\/v1\/AUTH_test\/([^/]+)(?:\/(.+))?$/.exec(decodeURIComponent(request.path)) ?? [];
    if (container === undefined) return undefined;
    return name === undefined ? this.#container(container, request) : this.#object(container, name, request);
  }

  #container(container: string, { method, query }: DoubleRequest): Reply {
    const objects = this.containers.get(container);
    if (method === 'PUT') {
      if (objects === undefined) this.containers.set(container, new Map());
      return { status: objects === undefined ? 201 : 202 };
    }
    if (objects === undefined) return { status: 404, body: '<html><h1>Not Found</h1></html>' };
    const prefix = query.get('prefix') ?? '';
    const marker = query.get('marker') ?? '';
    const names = [...objects.keys()].toSorted().filter((name) => name.startsWith(prefix) && name > marker);
    return {
      status: 200,
      body: names
        .slice(0, this.pageSize)
        .map((name) => ({ name, last_modified: objects.get(name)?.lastModified })),
    };
  }

  #object(container: string, name: string, { method, query, headers, body }: DoubleRequest): Reply {
    const objects = this.containers.get(container);
    if (objects === undefined) return { status: 404 };
    if (method === 'DELETE') return { status: objects.delete(name) ? 204 : 404 };
    const data = query.get('multipart-manifest') === 'put' ? this.#assemble(body) : body;
    if (data === undefined) return { status: 400, body: 'Errors: segment etag or size mismatch' };
    objects.set(name, { data, headers, lastModified: new Date().toISOString().replace('Z', '000') });
    return { status: 201, headers: { etag: createHash('md5').update(data).digest('hex') } };
  }

  #assemble(manifest: Buffer): Buffer | undefined {
    const parts = (JSON.parse(manifest.toString()) as ManifestEntry[]).map(({ path, etag, size_bytes }) => {
      const [, container = '', name = ''] = /^\/([^/]+)\/(.+)$/.exec(path) ?? [];
      const data = this.object(container, name)?.data;
      const md5 = data && createHash('md5').update(data).digest('hex');
      return data?.length === size_bytes && md5 === etag ? data : undefined;
    });
    return parts.every((part) => part !== undefined) ? Buffer.concat(parts) : undefined;
  }
}
